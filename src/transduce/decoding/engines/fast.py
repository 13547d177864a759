"""The fast engine of a model: made at its first use, checked against our own search, and kept in a cache.

    $XDG_CACHE_HOME/transduce/engines/<digest>/    model.bin  config.json  …  check.json  manifest.json

The digest is that of the model's manifest, so that another model never finds it. The model folder is not written to.
"""

import contextlib
import hashlib
import json
import os
import shutil
import tempfile
from importlib.metadata import version
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from transduce import bundle
from transduce.config import DecodeConfig, ModelConfig, RunConfig
from transduce.corpus.pairs import read_pairs
from transduce.corpus.phrasebook.sampling import sentences
from transduce.decoding.engines.ctranslate2 import POSITIONS, CTranslate2Engine, max_positions
from transduce.decoding.engines.engine import Found, Request, penalty
from transduce.decoding.translator import Translator, batches
from transduce.errors import UserError
from transduce.files import MANIFEST, digest, to_json, verify, write_folder
from transduce.journal import say
from transduce.preparation import VALID

if TYPE_CHECKING:
    from transduce.decoding.engines.torch import TorchEngine

FORMAT = 1  # of what is kept; another one is made anew
CHECK = "check.json"
CHECKED = 128  # sentences
TOLERANCE = 0.05  # length-penalised log-probability by our model, on average: what its translations may be worse by
COMPUTE_TYPES = ("int8", "float32")  # the fastest first


class Check(NamedTuple):
    """How an engine's translations compare with those of our own search."""

    compute_type: str  # "": none was exact enough
    sentences: int
    same: int  # that both translate alike
    worse: float  # by so much, as our model scores them


def refusal(config: RunConfig, folder: Path) -> str:
    """Why there can be no fast engine for a model; empty if there can be one."""
    model = config.model
    standard = ModelConfig()
    if find_spec("ctranslate2") is None:
        return "it needs the package ctranslate2: pip install 'transduce[fast]'"
    if not (folder / MANIFEST).exists():
        return f"the training of {folder} is not finished"
    if model.kind != "transformer":
        return f"it knows Transformers only, not model.kind = {model.kind}"
    if model.experts:
        return "it knows no experts (model.experts)"
    for name in ("attention", "window", "d_k", "d_v"):
        if getattr(model, name) != getattr(standard, name):
            return f"it does not know model.{name} = {getattr(model, name)}"
    return ""


def fast_engine(folder: Path, config: RunConfig, threads: int, *, keep: bool) -> CTranslate2Engine | None:
    """From the cache, or made now; None if what can be made translates worse than our own search.

    The model is one without `refusal`. Where it can't be kept, UserError is raised if `keep`; otherwise it is made for
    this once. Whatever else goes wrong in making it is raised, too.
    """
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "transduce" / "engines"
    place = cache / _key(folder)
    if check := _kept(place):
        return _opened(place, check, config, threads)
    with contextlib.ExitStack() as stack:
        if not _writable(cache):
            if keep:
                raise UserError(f"{cache} can't be written to")
            place = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "engine"
            say(f"{cache} can't be written to; the engine is made for this once.")
        else:
            say(f"Making a fast engine for {folder}, once; it is kept in {place}")
        return _opened(place, _make(folder, config, place, threads), config, threads)


def _opened(place: Path, check: Check, config: RunConfig, threads: int) -> CTranslate2Engine | None:
    """The engine, which needs no files when it is loaded."""
    if not check.compute_type:
        return None
    return CTranslate2Engine(place, check.compute_type, max_positions(config.model), threads)


def _writable(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(folder, os.W_OK)


def _key(folder: Path) -> str:
    what = f"{FORMAT} {version('ctranslate2')} {digest(folder / MANIFEST)}"
    return hashlib.sha256(what.encode()).hexdigest()[:32]


def _kept(place: Path) -> Check | None:
    """What was found when the engine was made; None if it is not there, and what is damaged is removed."""
    try:
        if place.exists():
            verify(place, hashes=True)
            return Check(**json.loads((place / CHECK).read_text(encoding="utf-8")))
    except (UserError, OSError, TypeError, ValueError):
        with contextlib.suppress(OSError):  # others may be doing the same
            shutil.rmtree(place.rename(place.with_name(f".{place.name}.damaged-{os.getpid()}")))
    return None


def _make(folder: Path, config: RunConfig, place: Path, threads: int) -> Check:
    """Convert, check and keep the first that is exact enough, or that none is."""
    from transduce.decoding.engines.conversion import convert
    from transduce.decoding.engines.torch import TorchEngine

    model = bundle.load(folder)
    own = TorchEngine([model.model])
    requests = _requests(Translator(own, model.tokenizer, config.decode), _texts(folder))
    expected = list(own.search(requests, config.decode, 1))
    try:
        with write_folder(place) as aside:
            check = Check("", 0, 0, 0.0)
            for compute_type in COMPUTE_TYPES:
                try:
                    convert(model.model, config.model, aside, compute_type)
                    engine = CTranslate2Engine(aside, compute_type, max_positions(config.model), threads)
                    found = list(engine.search(requests, config.decode, 1))
                except (RuntimeError, ValueError) as error:  # this processor can't
                    say(f"CTranslate2, {compute_type}: {error}")
                    continue
                worse = [
                    ours - theirs
                    for request, *both in zip(requests, expected, found, strict=True)
                    for ours, theirs in zip(*(_scores(own, request, each, config.decode) for each in both), strict=True)
                ]
                check = Check(compute_type, len(worse), worse.count(0.0), sum(worse) / max(1, len(worse)))
                say(
                    f"{engine.name}: {check.same} of {check.sentences} sentences are translated as by our own search, "
                    f"all {check.worse:.4f} worse on average (log-probability / length penalty)"
                )
                if check.worse <= TOLERANCE:
                    break
            else:
                say("Our own search is used.")
                check = check._replace(compute_type="")
            (aside / CHECK).write_text(to_json(check._asdict()), encoding="utf-8")
    except (UserError, OSError):
        kept = _kept(place)  # somebody else was first
        if kept is None:
            raise
        return kept
    return check


def _requests(translator: Translator, texts: list[str]) -> list[Request]:
    """The texts that the model's positions are enough for, in batches."""
    sources = translator.tokenizer.encode_source(texts)
    most = translator.engine.max_positions or POSITIONS
    fitting = [i for i, source in enumerate(sources) if len(source) < most]
    return [
        translator.request([texts[fitting[i]] for i in batch], [sources[fitting[i]] for i in batch])
        for batch in batches([len(sources[i]) + 1 for i in fitting], translator.engine.budget(translator.config))
    ]


def _scores(own: "TorchEngine", request: Request, found: Found, config: DecodeConfig) -> list[float]:
    """What our model says of the best translations that were found for a request."""
    tokens = [hypotheses[0].tokens if hypotheses else [] for hypotheses in found]
    log_probs = own.log_probs(request.sources, tokens)
    lengths = (len(row) + 1 for row in tokens)
    return [
        log_prob / penalty(length, config.length_penalty) for log_prob, length in zip(log_probs, lengths, strict=True)
    ]


def _texts(folder: Path) -> list[str]:
    """What the training held out; where that is gone, sentences of the phrasebook."""
    held_out = folder / bundle.DATA / VALID
    if held_out.is_file() and held_out.stat().st_size:
        return [pair.source for pair in islice(read_pairs([str(held_out)]), CHECKED)]
    return [example.english for example in sentences(CHECKED, seed=1)]
