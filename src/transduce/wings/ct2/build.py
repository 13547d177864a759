"""Building an engine of CTranslate2: converted, compared with our own search, and kept in the cache."""

import contextlib
import math
import os
import tempfile
from pathlib import Path
from typing import NamedTuple

from transduce import model_folder
from transduce.config.schema import DecodeConfig, RunConfig
from transduce.decoding.alignment_layer import alignment_layer
from transduce.decoding.torch_engine import TorchEngine
from transduce.decoding.translator import Translator, batches
from transduce.decoding.types import ModelToOpen, NBestLists, Refusal, Request, Sentences, length_penalty
from transduce.preparation.prepared import is_prepared, open_prepared
from transduce.system.errors import UserError
from transduce.system.files import remove_leftovers, to_json, write_folder
from transduce.system.journal import say
from transduce.tokens.tokenizer import Tokenizer
from transduce.wings.ct2.convert import convert, write_shortlist
from transduce.wings.ct2.engine import (
    CHECK_FILE,
    MAX_POSITIONS,
    CTranslate2Engine,
    EngineError,
    cache_folder,
    read_compute_type,
)
from transduce.wings.ct2.shortlist import Shortlist, learn
from transduce.wings.formats import refuse_config
from transduce.wings.phrasebook.examples import held_out

CHECK_SENTENCES = 128
TOLERANCE = 0.05  # length-penalised log-probability by our model, on average: what its translations may be worse by
COMPUTE_TYPES = ("int8", "float32")  # the fastest first
ABANDONED_SECONDS = 3600  # without a new file: the builder is presumed dead


class Check(NamedTuple):
    """How an engine's translations compare with those of our own search."""

    compute_type: str  # "": none was exact enough
    sentences: int
    same: int  # translated alike
    worse: float  # mean loss, as our model scores the translations; NaN without sentences


def build_and_open(model: ModelToOpen, folder: Path, place: Path, threads: int) -> CTranslate2Engine | Refusal:
    """Build an engine in the cache, or for this once if it is required and the cache can't be written to.

    Raises UserError or OSError for what goes wrong.
    """
    if refusal := refuse_config("ctranslate2", model.config):
        return refusal
    with contextlib.ExitStack() as stack:  # an opened engine needs no files
        cache = cache_folder()
        if _is_writable(cache):
            say(f"Building a fast engine for {folder}, once; it is kept in {place}")
        elif not model.required:
            raise UserError(f"{cache} can't be written to")
        else:
            place = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "engine"
            say(f"{cache} can't be written to; the engine is built for this once.")
        compute_type = build_in_cache(folder, model.config, place, threads)
        if not compute_type:
            return Refusal("what it translates is worse than what our own search finds")
        return CTranslate2Engine(place, compute_type, model.config.model, threads)


def _is_writable(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(folder, os.W_OK)


def build_in_cache(folder: Path, config: RunConfig, place: Path, threads: int) -> str:
    """Build an engine in `place`, unless another process is first; returns its compute type, "" if there is none."""
    remove_leftovers(place.parent, ABANDONED_SECONDS)
    try:
        with write_folder(place) as aside:
            build(folder, config, aside, threads)
    except (UserError, OSError):
        if read_compute_type(place) is None:
            raise
    return read_compute_type(place) or ""


def build(folder: Path, config: RunConfig, out: Path, threads: int) -> None:
    """Write the first engine that is exact enough into the folder `out`, and the check of it."""
    model = model_folder.load(folder)
    own = TorchEngine([model.model])
    sources = [pair.source for pair in held_out(folder, CHECK_SENTENCES)]
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
            results = list(engine.search(requests, config.decode, 1))
        except (RuntimeError, ValueError, EngineError) as error:  # this processor lacks the instructions
            say(f"CTranslate2, {compute_type}: {error}")
            continue
        check = _compare(own, config.decode, requests, expected, results)
        say(
            f"{engine.name}: {check.same} of {check.sentences} sentences are translated as by our own search; "
            f"their scores are {check.worse:.4f} lower on average"
        )
        if check.worse <= TOLERANCE:
            check = check._replace(compute_type=compute_type)
            break
    else:
        say("Our own search is used.")
        for file in out.iterdir():  # never loaded
            file.unlink()
    (out / CHECK_FILE).write_text(to_json(check._asdict()), encoding="utf-8")


def _shortlist(folder: Path, config: RunConfig, tokenizer: Tokenizer) -> Shortlist:
    """From what the model was trained on; raises UserError if that is gone."""
    places = [folder / model_folder.DATA, *(Path(corpus.files[0]) for corpus in config.data.corpora)]
    for place in places:
        if is_prepared([str(place)]):
            say(f"Learning from {place} which pieces go with which")
            return learn(open_prepared(place).mixture, tokenizer.source_size, joint=tokenizer.joint)
    raise UserError(f"decode.shortlist is learnt from what a model was trained on, and there is no {places[0]}")


def _compare(
    own: TorchEngine,
    config: DecodeConfig,
    requests: list[Request],
    expected: list[NBestLists],
    results: list[NBestLists],
) -> Check:
    losses = [
        ours - theirs
        for request, *both in zip(requests, expected, results, strict=True)
        for ours, theirs in zip(*(_scores(own, request, each, config) for each in both), strict=True)
    ]
    return Check("", len(losses), losses.count(0.0), sum(losses) / len(losses) if losses else math.nan)


def _requests(translator: Translator, texts: list[str]) -> list[Request]:
    """The texts that the model's positions are enough for, in batches."""
    sources = translator.tokenizer.encode_source(texts)
    positions = translator.engine.max_positions or MAX_POSITIONS
    fitting = [i for i, source in enumerate(sources) if len(source) < positions]
    lengths = [len(source) + 1 for source in sources]
    sentences = Sentences(texts, sources, list(range(len(texts))))
    budget = translator.engine.budget(translator.config, sum(lengths[i] for i in fitting))
    return [
        translator.request(sentences, [fitting[i] for i in batch])
        for batch in batches([lengths[i] for i in fitting], budget)
    ]


def _scores(own: TorchEngine, request: Request, n_best_lists: NBestLists, config: DecodeConfig) -> list[float]:
    """Our model's scores of the best translation of each sentence."""
    tokens = [hypotheses[0].tokens if hypotheses else [] for hypotheses in n_best_lists]
    log_probs = own.log_probs(request.sources, tokens)
    lengths = (len(row) + 1 for row in tokens)
    return [
        log_prob / length_penalty(length, config.length_penalty)
        for log_prob, length in zip(log_probs, lengths, strict=True)
    ]
