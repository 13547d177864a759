"""A fast engine, converted and compared with our own search."""

import math
from pathlib import Path
from typing import NamedTuple

from transduce import model_folder
from transduce.config.schema import DecodeConfig, RunConfig
from transduce.decoding.check_sentences import held_out
from transduce.decoding.engines.attention import alignment_layer
from transduce.decoding.engines.ct2.convert import convert, write_shortlist
from transduce.decoding.engines.ct2.engine import CHECK, POSITIONS, CTranslate2Engine
from transduce.decoding.engines.engine import Found, Request, penalty
from transduce.decoding.engines.torch import TorchEngine
from transduce.decoding.translator import Translator, batches
from transduce.preparation.prepared import is_prepared, open_prepared
from transduce.system.errors import UserError
from transduce.system.files import to_json
from transduce.system.journal import say
from transduce.tokens.shortlist import Shortlist, learn
from transduce.tokens.tokenizer import Tokenizer

CHECKED = 128  # sentences
TOLERANCE = 0.05  # length-penalised log-probability by our model, on average: what its translations may be worse by
COMPUTE_TYPES = ("int8", "float32")  # the fastest first


class Check(NamedTuple):
    """How an engine's translations compare with those of our own search."""

    compute_type: str  # "": none was exact enough
    sentences: int
    same: int  # that both translate alike
    worse: float  # by so much, as our model scores them


def make(folder: Path, config: RunConfig, out: Path, threads: int) -> None:
    """Write the first engine that is exact enough into the folder `out`, and with it what the comparison found."""
    model = model_folder.load(folder)
    own = TorchEngine([model.model])
    sources = [pair.source for pair in held_out(folder, CHECKED)]
    requests = _requests(Translator(own, model.tokenizer, config.decode), sources)
    expected = list(own.search(requests, config.decode, 1))
    check, layer = Check("", 0, 0, math.nan), alignment_layer(model)
    shortlist = _shortlist(folder, config, model.tokenizer) if config.decode.shortlist else None
    for compute_type in COMPUTE_TYPES:
        try:
            convert(model.model, config.model, out, compute_type, layer)
            if shortlist:
                write_shortlist(shortlist, out)
            engine = CTranslate2Engine(out, compute_type, config.model, threads)
            found = list(engine.search(requests, config.decode, 1))
        except (RuntimeError, ValueError) as error:  # this processor can't
            say(f"CTranslate2, {compute_type}: {error}")
            continue
        check = _compare(own, config.decode, requests, expected, found)
        say(
            f"{engine.name}: {check.same} of {check.sentences} sentences are translated as by our own search; "
            f"their scores are {check.worse:.4f} lower on average"
        )
        if check.worse <= TOLERANCE:
            check = check._replace(compute_type=compute_type)
            break
    else:
        say("Our own search is used.")
        for file in out.iterdir():  # what is never loaded is not kept
            file.unlink()
    (out / CHECK).write_text(to_json(check._asdict()), encoding="utf-8")


def _shortlist(folder: Path, config: RunConfig, tokenizer: Tokenizer) -> Shortlist:
    """From what the model was trained on; raises UserError if that is gone."""
    places = [folder / model_folder.DATA, *(Path(corpus.files[0]) for corpus in config.data.corpora)]
    for place in places:
        if is_prepared([str(place)]):
            say(f"Learning from {place} which pieces go with which")
            return learn(open_prepared(place).mixture, tokenizer.source_size, joint=tokenizer.joint)
    raise UserError(f"decode.shortlist is learnt from what a model was trained on, and there is no {places[0]}")


def _compare(
    own: TorchEngine, config: DecodeConfig, requests: list[Request], expected: list[Found], found: list[Found]
) -> Check:
    """Of no sentences nothing is known, and `worse` is not a number."""
    worse = [
        ours - theirs
        for request, *both in zip(requests, expected, found, strict=True)
        for ours, theirs in zip(*(_scores(own, request, each, config) for each in both), strict=True)
    ]
    return Check("", len(worse), worse.count(0.0), sum(worse) / len(worse) if worse else math.nan)


def _requests(translator: Translator, texts: list[str]) -> list[Request]:
    """The texts that the model's positions are enough for, in batches."""
    sources = translator.tokenizer.encode_source(texts)
    most = translator.engine.max_positions or POSITIONS
    fitting = [i for i, source in enumerate(sources) if len(source) < most]
    lengths = [len(sources[i]) + 1 for i in fitting]
    return [
        translator.request([texts[fitting[i]] for i in batch], [sources[fitting[i]] for i in batch])
        for batch in batches(lengths, translator.engine.budget(translator.config, sum(lengths)))
    ]


def _scores(own: TorchEngine, request: Request, found: Found, config: DecodeConfig) -> list[float]:
    """What our model says of the best translations that were found for a request."""
    tokens = [hypotheses[0].tokens if hypotheses else [] for hypotheses in found]
    log_probs = own.log_probs(request.sources, tokens)
    lengths = (len(row) + 1 for row in tokens)
    return [
        log_prob / penalty(length, config.length_penalty) for log_prob, length in zip(log_probs, lengths, strict=True)
    ]
