"""Downloads the files of a corpus and writes the aligned texts to a folder atomically.

OUT/train.en, train.de, valid.en …   one sentence per line, where line i of train.de translates line i of train.en
OUT/SOURCE.md, source.json           the licence and the URLs, as text and as JSON
OUT/manifest.json                    size and SHA-256 of each file above
OUT.downloads/                       the downloads, until OUT is complete
"""

import filecmp
import json
import os
import shutil
from collections.abc import Collection
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from transduce.system.console import count
from transduce.system.errors import UserError
from transduce.system.file_lock import LOCK, file_lock
from transduce.system.files import (
    MANIFEST,
    digest,
    make_folder,
    remove_leftovers,
    to_json,
    verify,
    write_folder,
)
from transduce.wings.corpora.fetch.archive import members, readable
from transduce.wings.corpora.fetch.download import download, file_name, remove_download
from transduce.wings.corpora.fetch.table import Corpus, Download, Side
from transduce.wings.corpora.fetch.texts import Written, write_text

SOURCE_PAGE, SOURCE_JSON = "SOURCE.md", "source.json"
PRINTED_FACTS = ("licence", "homepage", "cite", "corpus", "fetched")  # facts in SOURCE_PAGE
Facts = dict[str, Any]  # the content of SOURCE_JSON
MAX_NOTE_BYTES = 1 << 20  # maximum size of a licence or README


def already_fetched(name: str, out: Path, kept: Path | None = None) -> Facts | None:
    """The facts about the corpus `name` in the folder `out`, or None if `out` is missing.

    Removes temporary files and, unless the user keeps downloads in `kept`, the downloads in OUT.downloads. Raises
    UserError if `out` has other content.
    """
    if not (out / SOURCE_JSON).is_file():
        if os.path.lexists(out):
            raise UserError(f"{out} exists already.", "Name a new folder.", "out")
        return None
    verify(out, hashes=True, only=SOURCE_JSON)
    facts: Facts = json.loads((out / SOURCE_JSON).read_bytes())
    if facts["corpus"] != name:
        raise UserError(
            f"{out} holds {facts['corpus']}.", f"Name another folder for {name}.", "out"
        )
    verify(out, hashes=True)
    _clear(out, () if kept else [file_name(file["url"]) for file in facts["downloads"]])
    return facts


def fetch(corpus: Corpus, out: Path, kept: Path | None = None) -> Facts:
    """Download a corpus and write it to the folder `out`. If `kept` is a folder, the downloads stay there."""
    folder = kept or _downloads(out)
    files = corpus.downloads()
    names = {file_name(file.url) for file in files}
    if len(names) < len({file.url for file in files}):
        raise UserError(
            f"Two of the URLs of {corpus.name} share a file name in {folder}.",
            "Move one URL to another corpus.",
        )
    own = {f"{split}.{language}" for split in corpus.splits for language in corpus.languages}
    # Some file systems ignore the case.
    own = {name.lower() for name in (*own, SOURCE_PAGE, SOURCE_JSON, MANIFEST)}
    for note in (note for parts in corpus.splits.values() for part in parts for note in part.notes):
        if Path(note).name.lower() in own:
            raise UserError(
                f"In the table, the note {note} has the name of another file in {out}.",
                "Remove this note.",
            )
    make_folder(folder)
    with file_lock(folder / LOCK, f"Another process is downloading to {folder}."):
        # Another process may just have finished.
        facts = already_fetched(corpus.name, out, folder)
        if not facts:
            paths = {file: download(file, folder) for file in files}
            _clear(out)
            with write_folder(out) as aside:
                facts = _write(corpus, paths, aside)
    if not kept:
        _clear(out, names)
    return facts


def _downloads(out: Path) -> Path:
    return out.with_name(out.name + ".downloads")


def _clear(out: Path, names: Collection[str] = ()) -> None:
    """Remove temporary files of killed processes, and from OUT.downloads the downloads `names`."""
    remove_leftovers(out.parent, out.name, sole_writer=True)
    folder = _downloads(out)
    if names and folder.exists():
        with suppress(OSError, UserError):
            with file_lock(folder / LOCK, f"{folder} is in use."):
                for name in names:
                    remove_download(folder / name)
            folder.rmdir()


def _write(corpus: Corpus, paths: dict[Download, Path], folder: Path) -> Facts:
    """Unpack the texts of all parts, then concatenate the parts of each split."""
    parts = [part for split in corpus.splits.values() for part in split]
    formats = {side: part.format for part in parts for side in (part.source, part.target)}
    staged = {side: folder / f".{number}" for number, side in enumerate(formats)}
    written: dict[Side, Written] = {}
    for file, path in paths.items():
        sides = {side.member: side for side in formats if side.download == file}
        notes = {note for part in parts if part.source.download == file for note in part.notes}
        with readable(path):
            for member, stream in members(path, sides, notes):
                if side := sides.get(member):
                    with staged[side].open("wb") as text:
                        written[side] = write_text(stream, text, formats[side])
                else:
                    _append_note(folder / Path(member).name, stream.read(MAX_NOTE_BYTES))
    pairs = {}
    for name, split in corpus.splits.items():
        for source, target, *_ in split:
            _check_aligned(source, target, paths, written)
            for side in (source, target):
                _append(folder / f"{name}.{side.language}", staged[side])
        pairs[name] = sum(written[part.source].lines for part in split)
    facts = {
        **corpus.facts,
        "languages": corpus.languages,
        "corpus": corpus.name,
        "pairs": pairs,
        "repaired": sum(side.repaired for side in written.values()),
        "fetched": datetime.now(UTC).date().isoformat(),
        "downloads": [
            {
                "url": file.url,
                "bytes": path.stat().st_size,
                "sha256": digest(path),
                "expected": file.checksum,
            }
            for file, path in paths.items()
        ],
    }
    (folder / SOURCE_JSON).write_text(to_json(facts), encoding="utf-8")
    (folder / SOURCE_PAGE).write_text(_source_page(corpus, facts), encoding="utf-8")
    return facts


def _check_aligned(
    source: Side, target: Side, paths: dict[Download, Path], written: dict[Side, Written]
) -> None:
    """Raise UserError if two texts are clearly not aligned: they are equal, or differ in lines or segments."""
    files = [paths[source.download], paths[target.download]]
    names = [side.member or side.download.url for side in (source, target)]
    own = written[source]
    other = written[target]
    if source.member == target.member and filecmp.cmp(files[0], files[1], shallow=False):
        raise UserError(
            f"{files[0]} and {files[1]} are byte-identical.",
            "Check whether a proxy asks for a login. Remove both to fetch them again, or correct the table.",
        )
    if own.lines != other.lines:
        raise UserError(
            f"Not aligned: {names[0]} has {count(own.lines, 'line')} and {names[1]} has {other.lines:,}.",
            "If a download was cut short, remove it from the folder of the downloads, and repeat the command.",
        )
    if own.segments != other.segments:
        raise UserError(
            f"{names[0]} and {names[1]} don't have the same segments in the same order."
        )
    if not own.lines:
        raise UserError(f"{names[0]} has no text.", "Check its format in the table.")


def _append(whole: Path, part: Path) -> None:
    if not whole.exists():
        part.rename(whole)
        return
    with whole.open("ab") as file, part.open("rb") as rest:
        shutil.copyfileobj(rest, file, 1 << 20)
    part.unlink()


def _append_note(path: Path, content: bytes) -> None:
    """Append a file such as a licence to the file of the same name from other archives."""
    with path.open("ab") as note:
        note.write((b"\n\n" if note.tell() else b"") + content)


def _source_page(corpus: Corpus, facts: Facts) -> str:
    lines = [f"# {facts['title']}", ""]
    lines += [f"{name.title()}: {facts[name]}" for name in PRINTED_FACTS if facts[name]]
    lines += ["", "The parts of each split, in their order:", ""]
    for split, parts in corpus.splits.items():
        names = [Path(part.source.member or part.source.download.url).stem for part in parts]
        lines.append(f"* {split}: {facts['pairs'][split]:,} pairs: {', '.join(names)}")
    lines += ["", "From:", ""]
    for file in facts["downloads"]:
        lines.append(f"* {file['url']} ({file['bytes']:,} bytes, SHA-256 {file['sha256']})")
    if facts["repaired"]:
        said = "lines had bytes that are not UTF-8, which were replaced by U+FFFD."
        lines += ["", f"{facts['repaired']:,} {said}"]
    return "\n".join(lines) + "\n"
