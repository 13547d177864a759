"""Builds, checks and caches CTranslate2 engines."""

import contextlib
import math
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import mean, stdev

from transduce import model_folder
from transduce.config.schema import RunConfig
from transduce.decoding.alignment_layer import alignment_layer
from transduce.decoding.directions import encode_sources
from transduce.decoding.repetition import find_loops
from transduce.decoding.torch_engine import TorchEngine
from transduce.decoding.translator import Translator
from transduce.decoding.types import ModelToOpen, NBestLists, Refusal, Sentences, length_penalty
from transduce.system.console import log
from transduce.system.errors import UserError
from transduce.system.files import remove_leftovers, to_json, write_folder
from transduce.text.pairs import Pair
from transduce.wings.ct2.convert import convert
from transduce.wings.ct2.engine import (
    CHECK_FILE,
    WORSE,
    Check,
    CTranslate2Engine,
    EngineError,
    Loss,
    read_compute_type,
)
from transduce.wings.formats import MAX_POSITIONS, refuse_config
from transduce.wings.phrasebook.examples import PHRASEBOOK, held_out

CHECK_SENTENCES = 200
COMPUTE_TYPES = ("int8", "float32")  # the fastest first


def build_and_open(
    model: ModelToOpen, folder: Path, place: Path, threads: int
) -> CTranslate2Engine | Refusal:
    """Build an engine and open it; raises UserError or OSError if the engine can't be built."""
    if refusal := refuse_config("ctranslate2", model.config):
        return refusal
    with contextlib.ExitStack() as stack:  # an engine needs no files once it is open
        with contextlib.suppress(OSError):
            place.parent.mkdir(parents=True, exist_ok=True)
        if os.access(place.parent, os.W_OK):
            log(f"Building a fast engine for {folder} and saving it in {place} for later runs")
        elif not model.required:
            raise UserError(f"{place.parent} can't be written to")
        else:
            log(f"{place.parent} can't be written to; the engine is built for this run only.")
            place = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "engine"
        compute_type = build_in_cache(folder, model.config, place, threads)
        return (
            CTranslate2Engine(place, compute_type, model.config.model, threads)
            if compute_type
            else WORSE
        )


def build_in_cache(folder: Path, config: RunConfig, place: Path, threads: int) -> str:
    """Build an engine in the cache; returns its compute type, or "" if no compute type is accurate enough."""
    remove_leftovers(place.parent)
    try:
        with write_folder(place) as aside:
            build(folder, config, aside, threads)
    except (UserError, OSError):  # another process may have built the engine first
        if read_compute_type(place) is None:
            raise
    return read_compute_type(place) or ""


def build(folder: Path, config: RunConfig, out: Path, threads: int) -> None:
    """Write the fastest engine that is accurate enough, and its `Check`, to the folder `out`."""
    model = model_folder.load(folder)
    # The model's own search options, because later translations with other options use the same engine.
    own = Translator(TorchEngine([model.model]), model.tokenizer, model.config.decode)
    pairs = held_out(model, CHECK_SENTENCES)
    sentences = _sentences(own, pairs)
    # The phrasebook is of another domain, or in other languages.
    is_own = pairs[0].origin.file != PHRASEBOOK
    references = [pairs[i].target for i in sentences.numbers] if is_own else None
    expected = own.search(own.engine, sentences, 1)
    chosen = ""
    comparison = ""
    layer = alignment_layer(model)
    for compute_type in COMPUTE_TYPES:
        try:
            convert(model.model, config.model, out, compute_type, layer)
            engine = CTranslate2Engine(out, compute_type, config.model, threads)
            found = own.search(engine, sentences, 1)
        except (
            RuntimeError,
            ValueError,
            EngineError,
        ) as error:  # this processor can't compute in this type
            log(f"CTranslate2, {compute_type}: {error}")
            continue
        check = compare(own, sentences, expected, found, references)
        comparison = str(check)
        log(f"{engine.name}: {comparison}")
        if check.is_good():
            chosen = compute_type
            break
    else:
        log("No CTranslate2 conversion is accurate enough, so torch is used.")
        for file in out.iterdir():  # a rejected engine is never loaded
            file.unlink()
    facts = {"compute_type": chosen, "comparison": comparison}
    (out / CHECK_FILE).write_text(to_json(facts), encoding="utf-8")


def _sentences(translator: Translator, pairs: Sequence[Pair]) -> Sentences:
    """Encode the sources, without those that are too long for our own search or for CTranslate2."""
    texts = [pair.source for pair in pairs]
    sources = encode_sources(translator.tokenizer, pairs)
    positions = translator.engine.max_positions or MAX_POSITIONS
    fitting = [i for i, source in enumerate(sources) if len(source) < positions]
    return Sentences(texts, sources, list(range(len(texts)))).select(fitting)


def compare(
    own: Translator,
    sentences: Sentences,
    expected: NBestLists,
    found: NBestLists,
    references: Sequence[str] | None = None,
) -> Check:
    """Compare the best hypotheses of our own search (`expected`) with those of an engine (`found`)."""
    # Imported here because only the first translation with a model needs it.
    from sacrebleu.metrics.chrf import (
        CHRF,
    )

    ours, theirs = (set(find_loops(sentences.sources, lists)) for lists in (expected, found))
    compared = [i for i in range(len(sentences.texts)) if i not in ours | theirs]
    rows = [
        [lists[i][0].tokens if lists[i] else [] for lists in (expected, found)] for i in compared
    ]
    different = [k for k, (one, other) in enumerate(rows) if one != other]
    sources = [sentences.sources[compared[k]] for k in different]
    scores = list[list[float]]()
    chrf = list[list[float]]()
    metric = CHRF()
    for which in range(2):
        tokens = [rows[k][which] for k in different]
        log_probs = own.forced(own.engine, own.engine.log_probs, sources, tokens)
        penalties = [length_penalty(len(row) + 1, own.config.length_penalty) for row in tokens]
        scores.append(
            [sum(each) / penalty for each, penalty in zip(log_probs, penalties, strict=True)]
        )
        if references:
            texts = zip(own.tokenizer.decode(tokens), different, strict=True)
            chrf.append(
                [metric.sentence_score(text, [references[compared[k]]]).score for text, k in texts]
            )
    same = len(compared) - len(different)
    return Check(
        len(compared),
        len(theirs - ours),
        same,
        _loss(scores[0], scores[1], same),
        _loss(chrf[0], chrf[1], same) if chrf else None,
    )


def _loss(ours: Sequence[float], theirs: Sequence[float], same: int) -> Loss:
    """The loss, if as many more sentences lose nothing."""
    losses = [one - other for one, other in zip(ours, theirs, strict=True)] + [0.0] * same
    error = 2 * stdev(losses) / math.sqrt(len(losses)) if len(losses) > 1 else 0.0
    return Loss(mean(losses) if losses else math.nan, error)
