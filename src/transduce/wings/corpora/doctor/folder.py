"""Checks model folders, exports and prepared corpora for damage."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from shlex import quote

from rich.filesize import decimal

from transduce import model_folder
from transduce.decoding.loading import export_engine
from transduce.preparation.prepared import is_prepared
from transduce.system.errors import DamagedError, UserError
from transduce.system.file_lock import LOCK
from transduce.system.files import ASIDE, MANIFEST, digest, read_manifest
from transduce.wings.corpora.doctor.machine import Fact
from transduce.wings.corpora.fetch.corpus import SOURCE_JSON


def folder_facts(folder: Path) -> Iterator[Fact]:
    """Check a model folder, an export or a prepared corpus. Raises UserError for any other folder."""
    finished = (folder / MANIFEST).exists()
    if is_prepared([str(folder)]):
        yield from _files(folder, "prepare the corpus again")
        return
    if finished and (export_engine(folder) or not (folder / model_folder.CONFIG).exists()):
        made = (
            "fetch the corpus again"
            if (folder / SOURCE_JSON).exists()
            else "export the model again"
        )
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
            facts += _files(
                path,
                f"rm -r {quote(str(path))} (training then uses the previous checkpoint)",
                brief=True,
            )
        yield from facts if path.is_dir() else ()  # a training removes old checkpoints meanwhile
    if (folder / model_folder.DATA).is_dir():
        yield from _files(
            folder / model_folder.DATA, "use another copy, or train into a new folder", brief=True
        )
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


def _files(folder: Path, mend: str, *, brief: bool = False) -> Iterator[Fact]:
    """Yield a `Fact` for each file that differs from the manifest, or one `Fact` if no file is damaged."""
    try:
        manifest = read_manifest(folder)
    except UserError as error:
        yield Fact(folder.name, "damaged", str(error), mend)
        return
    all_whole = True
    for name, entry in manifest.items():
        path = folder / name
        says = ""
        if not path.is_file():
            says = "is missing"
        elif path.stat().st_size != entry.size:
            says = f"has {path.stat().st_size:,} bytes instead of {entry.size:,}"
        elif digest(path) != entry.sha256:
            says = "has changed since it was written (its SHA-256 differs)"
        if says and name == model_folder.CARD and path.is_file():
            yield Fact(name, "good", "edited since")  # users may edit the model card
        elif says:
            all_whole = False
            yield Fact(str(path) if brief else name, "damaged", says, mend)
    if all_whole:
        size = sum(entry.size for entry in manifest.values())
        yield Fact(
            folder.name if brief else "files",
            "good",
            f"{len(manifest)} files, {decimal(size)}, none damaged",
        )
