"""Parallel text: pairs of a source and its translation, each with the place it comes from."""

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, count, islice, repeat, zip_longest
from pathlib import Path
from typing import NamedTuple

from transduce.system.errors import UserError
from transduce.system.files import MANIFEST
from transduce.text.encoding_errors import UNDECODED, readable
from transduce.text.jsonl import read_jsonl
from transduce.text.plain import (
    STANDARD_INPUT,
    display_name,
    read_lines,
    read_pieces,
    suffixes,
    without_byte_order_mark,
)
from transduce.text.tsv import read_tsv
from transduce.wings.paper.trees import linearise, marked_tags, marked_words, read_trees, simplify

__all__ = ["Origin", "Pair", "read_lines", "read_pairs"]

TREES = ".mrg"
DOCUMENTS = (".po", ".tmx", ".xlf", ".xliff")  # that hold both languages
SUBTITLES, PAGES = (".srt", ".vtt"), (".html", ".htm", ".xhtml")  # that face each other, a language each
TOGETHER = (".tsv", ".jsonl", *DOCUMENTS)  # what may be given several files at a time
BILINGUAL = (*TOGETHER, TREES)
SUPPORTED = (
    ".tsv (also .txt or .tab), .jsonl, .tmx, .xlf, .xliff, .po or .mrg (trees), each also compressed as .gz, .xz, .bz2 "
    "or .zst"
)
SPREADSHEETS = (".csv", ".ods", ".xls", ".xlsx")
LACKING = 20  # lines that one of two files may have less, where that is looked into
BREAK = re.compile(r"[\r\n]+")
BLANKS = " \t"


class Origin(NamedTuple):
    """Where a pair stands: in which file (of two, the source's), in which line, counted from 1."""

    file: str
    line: int


class Pair(NamedTuple):
    """Two texts that mean the same."""

    source: str
    target: str
    origin: Origin


def read_pairs(
    files: Sequence[str], languages: tuple[str, str] = ("source", "target"), *, lenient: bool = False
) -> Iterator[Pair]:
    """The pairs of two line-aligned text files, or of bilingual files, whose formats their suffixes name.

    A folder is all bilingual files in it. "-" is standard input; alone, it holds TAB-separated pairs. Objects in .jsonl
    files may use the codes of the `languages` as keys, and these decide what is read of a translation memory. Of text
    files, nothing is left out: an empty line is an empty text. Of documents, what has a translation is read, and a line
    break in a text becomes a blank. A byte order mark at the start of a file is not text and is removed.
    Raises UserError for an unknown suffix, unequal numbers of lines, and what the readers refuse. lenient: bytes that
    are not UTF-8 are given, too, but for XML and files that face each other, see `undecoded`; and of two text files one
    may lack up to 20 lines, instead of which the last pairs have an empty text.
    """
    match within(files):
        case [source, target] if facing := _facing(source, target):
            return map(_numbered, repeat(source), facing(source, target))
        case [source, target] if source in STANDARD_INPUT and target in STANDARD_INPUT:
            raise UserError("Both sides cannot come from standard input; give one of them as a file.")
        case [file]:
            return _read_bilingual(file, languages, lenient)
        case found if found and all(suffixes(file)[0] in TOGETHER for file in found):
            return chain.from_iterable(_read_bilingual(file, languages, lenient) for file in found)
        case [source, target]:
            for file in files:
                if suffixes(file)[0] in BILINGUAL:
                    raise UserError(
                        f"{file} is a bilingual file by its suffix; give it alone, or rename it if it is not."
                    )
            return map(
                _pair, _read_aligned(source, target, lenient), map(Origin, repeat(display_name(source)), count(1))
            )
        case found:
            raise UserError(
                f"A corpus is two text files, or bilingual files ({', '.join(TOGETHER)}), not {len(found)} files."
            )


def within(files: Sequence[str]) -> list[str]:
    """The files, with those in a folder, by name, in its place: the ones that hold both languages, and aren't hidden.

    Raises UserError for a folder that has none, and for a name that no text file could hold.
    """
    found: list[str] = []
    for file in files:
        if not Path(file).is_dir():
            found.append(file)
            continue
        if (Path(file) / MANIFEST).exists():  # a model, or what `prepare` wrote
            raise UserError(f"{file} is a folder; name a file in it.")
        inside = [path for path in Path(file).rglob("*") if suffixes(path.name)[0] in TOGETHER and not path.is_dir()]
        shown = [path for path in inside if not any(part.startswith(".") for part in path.relative_to(file).parts)]
        if not shown:
            raise UserError(f"{file} is a folder without files that hold two languages ({', '.join(TOGETHER)}).")
        found += sorted(map(str, shown))
    for file in found:
        if UNDECODED.search(file):
            raise UserError(f"{readable(file)}: this name is not UTF-8; rename the file.")
    return found


def are_documents(files: Sequence[str]) -> bool:
    """Whether some of these files of a corpus are documents, in which placeholders and tags are usual."""
    return any(suffixes(file)[0] in (*DOCUMENTS, *SUBTITLES, *PAGES) for file in within(files))


def _facing(source: str, target: str) -> Callable[[str, str], Iterator[tuple[str, str, int]]] | None:
    """What reads two documents that face each other, if they are such."""
    formats = {suffixes(source)[0], suffixes(target)[0]}
    if not (formats <= {*SUBTITLES} or formats <= {*PAGES}):
        return None
    from transduce.wings.documents.parallel_documents import (  # too slow for every start, as below
        read_page_pairs,
        read_subtitle_pairs,
    )

    return read_subtitle_pairs if formats <= {*SUBTITLES} else read_page_pairs


def _numbered(file: str, found: tuple[str, str, int]) -> Pair:
    """A pair of a document, whose texts become lines."""
    source, target, line = found
    return Pair(_as_line(source), _as_line(target), Origin(display_name(file), line))


def _as_line(text: str) -> str:
    """Line breaks, with the blanks around them, become one blank; at the edges they go."""
    first, *others = BREAK.split(text)
    if not others:
        return text
    *between, last = others
    parts = first.rstrip(BLANKS), *(each.strip(BLANKS) for each in between), last.lstrip(BLANKS)
    return " ".join(filter(None, parts))


def _pair(texts: tuple[str, str], origin: Origin) -> Pair:
    return Pair(*texts, origin)


def _read_trees(file: str, lenient: bool) -> Iterator[Pair]:
    """The words of every tree, and the tree itself without them, marked; two empty texts for a tree of traces alone."""
    for tree, line in read_trees(file, lenient=lenient):
        simple = simplify(tree)
        words, symbols = (simple.words(), linearise(simple)) if simple else ([], [])
        yield Pair(marked_words(words), marked_tags(symbols), Origin(display_name(file), line))


def _read_bilingual(file: str, languages: tuple[str, str], lenient: bool) -> Iterator[Pair]:
    match ".tsv" if file in STANDARD_INPUT else suffixes(file)[0]:
        case ".mrg":
            return _read_trees(file, lenient)
        case ".tsv" | ".tab" | ".txt":
            return map(_pair, read_tsv(file, lenient=lenient), map(Origin, repeat(display_name(file)), count(1)))
        case ".jsonl":
            found = read_jsonl(file, languages, lenient=lenient)
            return map(_pair, found, map(Origin, repeat(display_name(file)), count(1)))
        case ".tmx":
            from transduce.wings.documents.tmx_pairs import read_tmx

            return map(_numbered, repeat(file), read_tmx(file, display_name(file), languages))
        case ".po":
            from transduce.wings.documents.po import read_translated_po

            messages = read_translated_po(read_pieces(file), display_name(file), languages[1], lenient=lenient)
            return map(_numbered, repeat(file), messages)
        case ".xlf" | ".xliff":
            from transduce.wings.documents.xliff import read_translated_xliff

            units = read_translated_xliff(read_pieces(file), display_name(file), *languages)
            return map(_numbered, repeat(file), units)
        case suffix if suffix in (*SUBTITLES, *PAGES):
            raise UserError(f"{file} holds one language; give two such files, the source and its translation.")
        case suffix:
            if not Path(file).is_file():
                next(iter(read_lines(file)), None)  # which says so
            if suffix in SPREADSHEETS:
                raise UserError(
                    f"{file}: of a spreadsheet, give two columns with a TAB between them, without quotes, as .tsv; "
                    "docs/reference/formats.md has a line that makes one of a .csv file."
                )
            raise UserError(
                f"{file}: its suffix does not say how it holds two languages. One bilingual file is {SUPPORTED}; "
                "two line-aligned text files may have any names."
            )


def _read_aligned(source_file: str, target_file: str, lenient: bool) -> Iterator[tuple[str, str]]:
    sources = without_byte_order_mark(read_lines(source_file, lenient=lenient))
    targets = without_byte_order_mark(read_lines(target_file, lenient=lenient))
    for number, (source, target) in enumerate(zip_longest(sources, targets)):
        if source is None or target is None:
            longer = targets if source is None else sources
            more = list(islice(longer, LACKING)) if lenient else []
            if lenient and len(more) < LACKING:
                yield source or "", target or ""
                yield from ((text, "") if target is None else ("", text) for text in more)
                return
            rest = 1 + len(more) + sum(1 for _ in longer)
            lines = (number, number + rest) if source is None else (number + rest, number)
            raise UserError(
                f"{display_name(source_file)} has {lines[0]:,} lines and {display_name(target_file)} has {lines[1]:,}; "
                "they must be line-aligned: line i of one is the translation of line i of the other."
            )
        yield source, target
