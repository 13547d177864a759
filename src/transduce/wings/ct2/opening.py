"""Opens a model's CTranslate2 engine from the cache, or builds it first."""

import hashlib
import json
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from transduce.config.schema import RunConfig
from transduce.decoding.types import ModelToOpen, Refusal
from transduce.system.cache import cache_folder
from transduce.system.console import log
from transduce.system.errors import Hint, UserError
from transduce.system.files import MANIFEST, digest, remove_leftovers
from transduce.system.machine import cores
from transduce.training.facts import Fact
from transduce.wings.ct2.engine import CHECK_FILE, WORSE, CTranslate2Engine, read_compute_type
from transduce.wings.formats import formats, refuse_config

CACHE_FORMAT = 4  # engines in another format are rebuilt


def open_engine(model: ModelToOpen) -> CTranslate2Engine | Refusal:
    """Open a model's engine from the cache, or build the engine first if the cache lacks it."""
    if len(model.folders) > 1:
        return Refusal("it is for one model, not an ensemble")
    [folder] = model.folders
    if find_spec("ctranslate2") is None:
        return Refusal("it needs the package ctranslate2", Hint.install("fast"))
    if not (folder / MANIFEST).exists():
        return Refusal(f"the training of {folder} is not finished")
    if model.device is not None and str(model.device) != "cpu":
        return Refusal("it runs on CPUs only")
    try:
        if model.device is None and not model.required and has_gpu():
            return Refusal("our own search uses the GPU")
        place = cached(folder)
        compute_type = read_compute_type(place)
        threads = model.threads or cores()
        if compute_type:
            remove_leftovers(place.parent, place.name)
            return CTranslate2Engine(place, compute_type, model.config.model, threads)
        if compute_type is not None:
            return WORSE
        # Needs torch, which takes a second to load.
        from transduce.wings.ct2.build import build_and_open

        return build_and_open(model, folder, place, threads)
    except (ImportError, OSError, UserError) as error:
        refusal = Refusal(f"it can't be built: {str(error).rstrip('.')}")
    if not model.required:
        log(f"The fast engine is not used: {refusal.reason}")
    return refusal


def facts(folder: Path, config: RunConfig) -> list[Fact]:
    """What `transduce info` says about the uses of a finished model: its engine, and the formats of its exports."""
    engine = [] if config.data.symbols else [Fact("engine", choice(folder, config))]
    return [*engine, Fact("exports to", ", ".join(formats(folder, config)) or "nothing")]


def choice(folder: Path, config: RunConfig) -> str:
    """The engine that translates with a model by default, and how it was chosen."""
    if find_spec("ctranslate2") is None:
        return "torch; faster: pip install 'transduce[fast]'"
    if why := refuse_config("ctranslate2", config):
        return f"torch, since CTranslate2 can't run the model: {why.reason}"
    if has_gpu():
        return "torch, on the GPU"
    try:
        found = json.loads((cached(folder) / CHECK_FILE).read_bytes())
        compute_type = found["compute_type"]
        comparison = found["comparison"]
    except (OSError, UserError, ValueError, LookupError, TypeError):
        return "chosen at the first translation"
    if not comparison:
        return "torch, since CTranslate2 can't run on this processor"
    return f"{f'CTranslate2, {compute_type}' if compute_type else 'torch, since CTranslate2 is worse'}: {comparison}"


def cached(folder: Path) -> Path:
    """The folder of a model's engine in the cache; raises UserError if the user's home folder is unknown."""
    parts = [str(CACHE_FORMAT), version("ctranslate2"), digest(folder / MANIFEST)]
    return cache_folder() / "engines" / hashlib.sha256(" ".join(parts).encode()).hexdigest()[:32]


def has_gpu() -> bool:
    """Whether our own search can use a CUDA device."""
    import ctranslate2

    if not ctranslate2.get_cuda_device_count():
        return False
    import torch  # slow, but needed now: to search, or to find out whether torch was built with CUDA

    return torch.cuda.is_available()
