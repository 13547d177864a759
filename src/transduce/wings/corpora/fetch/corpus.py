"""A corpus fetched whole: downloads, then aligned text files, and where they are from.

OUT/train.en, train.de, valid.en …   a line for a sentence, line i of one the translation of line i of the other
OUT/SOURCE.md, source.json           where it is from, under which licence, what was done: for people, for programs
OUT/manifest.json                    sizes and SHA-256 of all of it
OUT.downloads/                       what is downloaded, until OUT is there
"""

import json
import os
import shutil
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from transduce.system.errors import UserError
from transduce.system.file_lock import LOCK, file_lock
from transduce.system.files import digest, remove_leftovers, to_json, verify, write_folder
from transduce.wings.corpora.fetch.archive import members, optional_members, readable
from transduce.wings.corpora.fetch.download import download, file_name
from transduce.wings.corpora.fetch.table import Corpus, Download, Part, Side
from transduce.wings.corpora.fetch.texts import Written, write_text

SOURCE, FACTS = "SOURCE.md", "source.json"
LARGEST_NOTE = 1 << 20  # bytes of a licence that are kept


class Fetched(NamedTuple):
    """What there is now; pairs by split."""

    folder: Path
    languages: tuple[str, str]
    recipe: str
    pairs: dict[str, int]
    repaired: int  # lines that were not UTF-8

    def files(self, split: str) -> list[Path]:
        """The two files of a split."""
        return [self.folder / f"{split}.{language}" for language in self.languages]


def already_fetched(name: str, out: Path) -> Fetched | None:
    """What `out` holds, if it is this corpus, and nothing beside it; raises UserError if it is something else."""
    try:
        facts = json.loads((out / FACTS).read_bytes())
        found = facts["corpus"]
        fetched = Fetched(out, tuple(facts["languages"]), facts["recipe"], facts["pairs"], facts["repaired"])
    except (FileNotFoundError, NotADirectoryError):
        if os.path.lexists(out):
            raise UserError(f"--out {out} exists already; name a new folder.") from None
        return None
    except (ValueError, LookupError, TypeError):
        raise UserError(f"{out / FACTS} is damaged; remove {out}, and it is fetched again.") from None
    if found != name:
        raise UserError(f"--out {out} holds {found}; name another folder for {name}.")
    verify(out)
    _clear(out)
    return fetched


def fetch(corpus: Corpus, out: Path, kept: Path | None = None) -> Fetched:
    """Download a corpus and write it to the folder `out`, whole or not at all.

    Downloads are kept in the folder `kept`, if one is given, and what is there already is used.
    """
    folder = kept or _downloads(out)
    urls = {file_name(each.url): each.url for each in corpus.downloads()}
    for each in corpus.downloads():
        if (other := urls[file_name(each.url)]) != each.url:
            raise UserError(f"{each.url} and {other} would be the same file in {folder}; rename one of them.")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"{folder} can't be written: {error.strerror}; choose another place.") from error
    busy = f"Another transduce is downloading to {folder}; wait for it."
    with file_lock(folder / LOCK, busy):
        fetched = already_fetched(corpus.name, out)  # by another process, which has just ended
        if not fetched:
            paths = {each: download(each, folder) for each in corpus.downloads()}
            _clear(out)
            with write_folder(out) as aside:
                fetched = _write(corpus, paths, aside)._replace(folder=out)
    if not kept:
        _clear(out)
    return fetched


def _downloads(out: Path) -> Path:
    return out.with_name(out.name + ".downloads")


def _clear(out: Path) -> None:
    """Remove what killed processes left of `out`, and its downloads once it is there; not what others work in."""
    remove_leftovers(out.parent, name=out.name)
    downloads = _downloads(out)
    if out.exists() and downloads.exists():
        with suppress(UserError), file_lock(downloads / LOCK, ""):
            shutil.rmtree(downloads, ignore_errors=True)


def _write(corpus: Corpus, paths: dict[Download, Path], folder: Path) -> Fetched:
    written = _unpack(corpus, paths, folder)
    pairs: dict[str, int] = {}
    for split, parts in corpus.splits.items():
        for number, part in enumerate(parts):
            for side in (part.source, part.target):
                _append(folder / f"{split}.{side.language}", folder / _aside(split, number, side))
        pairs[split] = sum(written[_aside(split, number, part.source)].lines for number, part in enumerate(parts))
    repaired = sum(each.repaired for each in written.values())
    fetched = Fetched(folder, corpus.languages, corpus.recipe, pairs, repaired)
    _write_notes(corpus, paths, folder)
    _write_source(corpus, paths, fetched)
    return fetched


def _unpack(corpus: Corpus, paths: dict[Download, Path], folder: Path) -> dict[str, Written]:
    """Every side of every part as a file of its own; each archive is read once."""
    written: dict[str, Written] = {}
    for wanted, path in paths.items():
        sides = {
            side.member: (_aside(split, number, side), part.format)
            for split, parts in corpus.splits.items()
            for number, part in enumerate(parts)
            for side in (part.source, part.target)
            if side.download == wanted
        }
        with readable(path):
            for member, stream in members(path, sides):
                name, kind = sides[member]
                with (folder / name).open("wb") as file:
                    written[name] = write_text(stream, file, kind)
    for split, parts in corpus.splits.items():
        for number, part in enumerate(parts):
            _check_aligned(part, *(written[_aside(split, number, side)] for side in (part.source, part.target)))
    return written


def _check_aligned(part: Part, source: Written, target: Written) -> None:
    names = [side.member or side.download.url for side in (part.source, part.target)]
    if source.lines != target.lines:
        raise UserError(
            f"{names[0]} has {source.lines:,} lines and {names[1]} has {target.lines:,}: they are not aligned."
        )
    if source.names != target.names:
        raise UserError(f"{names[0]} and {names[1]} don't have the same segments in the same order.")
    if not source.lines:
        raise UserError(f"{names[0]} has no text; is its format in the table right?")


def _aside(split: str, number: int, side: Side) -> str:
    return f".{split}-{number}.{side.language}"


def _append(whole: Path, part: Path) -> None:
    """Put a file at the end of another."""
    if not whole.exists():
        part.rename(whole)
        return
    with whole.open("ab") as file, part.open("rb") as rest:
        shutil.copyfileobj(rest, file, 1 << 20)
    part.unlink()


def _write_notes(corpus: Corpus, paths: dict[Download, Path], folder: Path) -> None:
    """Licences that lie in the archives; those of one name stand one behind the other."""
    notes = dict.fromkeys((part.source.download, part.notes) for parts in corpus.splits.values() for part in parts)
    for wanted, names in notes:
        for name, content in optional_members(paths[wanted], names, LARGEST_NOTE).items():
            with (folder / Path(name).name).open("ab") as file:
                file.write((b"\n\n" if file.tell() else b"") + content)


def _write_source(corpus: Corpus, paths: dict[Download, Path], fetched: Fetched) -> None:
    downloads = [
        {"url": each.url, "bytes": path.stat().st_size, "sha256": digest(path), "expected": each.checksum}
        for each, path in paths.items()
    ]
    today = datetime.now(UTC).date().isoformat()
    facts = {
        "corpus": corpus.name,
        "title": corpus.title,
        "languages": corpus.languages,
        "licence": corpus.licence,
        "homepage": corpus.homepage,
        "cite": corpus.cite,
        "recipe": corpus.recipe,
        "pairs": fetched.pairs,
        "repaired": fetched.repaired,
        "fetched": today,
        "downloads": downloads,
    }
    (fetched.folder / FACTS).write_text(to_json(facts), encoding="utf-8")
    lines = [
        f"# {corpus.title}",
        "",
        f"Licence: {corpus.licence}",
        *([f"Homepage: {corpus.homepage}"] if corpus.homepage else []),
        *([f"To be cited: {corpus.cite}"] if corpus.cite else []),
        "",
        f"Fetched as `{corpus.name}` on {today}. Taken out of archives and mark-up, and joined in this order:",
        "",
        *(f"* {split}: {fetched.pairs[split]:,} pairs: {_origin(parts)}" for split, parts in corpus.splits.items()),
        "",
        "From:",
        "",
        *(f"* {each['url']} ({each['bytes']:,} bytes, SHA-256 {each['sha256']})" for each in downloads),
    ]
    if fetched.repaired:
        lines += ["", f"{fetched.repaired:,} lines had bytes that are not UTF-8; they are U+FFFD now."]
    (fetched.folder / SOURCE).write_text("\n".join(lines) + "\n", encoding="utf-8")


def _origin(parts: tuple[Part, ...]) -> str:
    return ", ".join(Path(part.source.member or part.source.download.url).stem for part in parts)
