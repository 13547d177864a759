"""The fast engine of a model: made at its first use (see `making.py`), kept in a cache, and found again without torch.

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
from pathlib import Path

from transduce.config.schema import RunConfig
from transduce.decoding.engines.ct2.engine import CHECK, CTranslate2Engine
from transduce.decoding.engines.support import unknown_to
from transduce.system.errors import UserError
from transduce.system.files import MANIFEST, digest, remove_leftovers, verify, write_folder
from transduce.system.journal import say

FORMAT = 2  # of what is kept; another one is made anew
LEFT = 3600  # seconds without a new file, after which nobody is making it any more: the process was killed


def refusal(config: RunConfig, folder: Path) -> str:
    """Why there can be no fast engine for a model; empty if there can be one."""
    if find_spec("ctranslate2") is None:
        return "it needs the package ctranslate2: pip install 'transduce[fast]'"
    if not (folder / MANIFEST).exists():
        return f"the training of {folder} is not finished"
    return unknown_to("ctranslate2", config)


def fast_engine(folder: Path, config: RunConfig, threads: int, *, keep: bool) -> CTranslate2Engine | None:
    """From the cache, or made now; None if what can be made translates worse than our own search.

    The model is one without `refusal`; whether it has a shortlist is config.decode's, the rest as it was trained. Where
    it can't be kept, UserError is raised if `keep`; otherwise it is made for this once. Whatever else goes wrong in
    making it is raised, too.
    """
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "transduce" / "engines"
    place = cache / _key(folder, shortlist=config.decode.shortlist)
    with contextlib.ExitStack() as stack:  # an engine that is loaded needs no files
        compute_type = _kept(place)
        if compute_type is None:
            if _writable(cache):
                say(f"Making a fast engine for {folder}, once; it is kept in {place}")
            elif keep:
                raise UserError(f"{cache} can't be written to")
            else:
                place = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "engine"
                say(f"{cache} can't be written to; the engine is made for this once.")
            compute_type = _make(folder, config, place, threads)
        if not compute_type:
            return None
        return CTranslate2Engine(place, compute_type, config.model, threads)


def _writable(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(folder, os.W_OK)


def _key(folder: Path, *, shortlist: bool) -> str:
    what = f"{FORMAT} {version('ctranslate2')} {digest(folder / MANIFEST)}" + " shortlist" * shortlist
    return hashlib.sha256(what.encode()).hexdigest()[:32]


def _kept(place: Path) -> str | None:
    """What the engine computes in, "" if none was exact enough; None if there is nothing, and what is damaged goes."""
    try:
        if place.exists():
            verify(place, hashes=True)
            return str(json.loads((place / CHECK).read_text(encoding="utf-8"))["compute_type"])
    except (UserError, OSError, LookupError, TypeError, ValueError):
        with contextlib.suppress(OSError):  # others may be doing the same
            shutil.rmtree(place.rename(place.with_name(f".{place.name}.damaged-{os.getpid()}")))
    return None


def _make(folder: Path, config: RunConfig, place: Path, threads: int) -> str:
    """Make it in `place`, unless somebody else is first; what it computes in."""
    from transduce.decoding.engines.ct2.build import make

    remove_leftovers(place.parent, LEFT)
    try:
        with write_folder(place) as aside:
            make(folder, config, aside, threads)
    except (UserError, OSError):
        if _kept(place) is None:
            raise
    return _kept(place) or ""
