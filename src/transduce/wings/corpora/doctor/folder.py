"""Checks model folders, exports and prepared corpora for damage."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from shlex import quote

from rich.filesize import decimal

from transduce import model_folder
from transduce.decoding.loading import export_engine
from transduce.preparation.prepared import is_prepared
from transduce.system.console import count
from transduce.system.errors import DamagedError, UserError
from transduce.system.file_lock import LOCK
from transduce.system.files import ASIDE, MANIFEST, read_manifest, verify
from transduce.wings.corpora.doctor.machine import Fact
from transduce.wings.corpora.fetch.corpus import SOURCE_JSON


def folder_facts(folder: Path) -> Iterator[Fact]:
    """Check a model folder, an export or a prepared corpus. Raises UserError for any other folder."""
    finished = (folder / MANIFEST).exists()
    if is_prepared([str(folder)]):
        yield from _files(folder, "prepare the corpus again")
        return
    if finished and (export_engine(folder) or not (folder / model_folder.CONFIG).exists()):
        is_corpus = (folder / SOURCE_JSON).exists()
        made = "fetch the corpus again" if is_corpus else "export the model again"
        yield from _files(folder, f"{made} to another folder")
        return
    mend = f"use another copy of the model, or train again into a folder other than {folder}"
    try:
        config = model_folder.read_config(folder)
    except DamagedError as error:
        if not finished:
            raise
        yield Fact("model", "damaged", str(error), mend)
        yield from _files(folder, mend)
        return
    yield Fact("model", "good", f"{config.data.languages}, {config.model.shape}")
    whole = model_folder.checkpoints(folder)
    if finished:
        yield from _files(folder, mend)
    else:
        yield Fact("state", "lacking", "not finished", "to resume, run the training command again")
    for path in whole:
        facts = list[Fact]()
        with suppress(FileNotFoundError):
            mend = f"rm -r {quote(str(path))} (training then uses the previous checkpoint)"
            facts += _files(path, mend)
        yield from facts if path.is_dir() else ()  # a training removes old checkpoints meanwhile
    if (folder / model_folder.DATA).is_dir():
        mend = "use another copy, or train into a new folder"
        yield from _files(folder / model_folder.DATA, mend)
    asides = list[Path]()
    with suppress(FileNotFoundError):
        asides += sorted(folder.rglob(f".*{ASIDE}*"))
    for aside in asides:
        if aside.suffix != LOCK:
            yield Fact(
                aside.name, "lacking", "left by a killed process", f"rm -r {quote(str(aside))}"
            )
    if not finished and not whole:
        yield Fact("checkpoints", "lacking", "none", "to start, run the training command again")


def _files(folder: Path, mend: str) -> Iterator[Fact]:
    """Yield a `Fact` for each file that differs from the manifest, or a single `Fact` if no file is damaged."""
    try:
        manifest = read_manifest(folder)
    except UserError as error:
        yield Fact(folder.name, "damaged", str(error), mend)
        return
    all_whole = True
    for name in manifest:
        try:
            verify(folder, hashes=True, only=name)
        except DamagedError as error:
            if name == model_folder.CARD and (folder / name).is_file():
                yield Fact(name, "good", "edited since")  # users may edit the model card
            else:
                all_whole = False
                yield Fact(name, "damaged", error.cause, mend)
    if all_whole:
        size = decimal(sum(entry.size for entry in manifest.values()))
        yield Fact(folder.name, "good", f"{count(len(manifest), 'file')}, {size}, none damaged")
