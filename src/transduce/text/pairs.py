"""Reads pairs of a source text and its translation from files."""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice, zip_longest
from pathlib import Path
from typing import NamedTuple, TypeVar

from transduce.system.errors import UserError
from transduce.system.files import MANIFEST
from transduce.text.encoding_errors import UNDECODED, readable
from transduce.text.file_kinds import UNREADABLE
from transduce.text.formats import (
    FILE_FORMATS,
    CorpusFile,
    TextPair,
    bilingual_suffixes,
    format_of,
)
from transduce.text.languages import Direction, languages_of, main_language
from transduce.text.plain import (
    STANDARD_INPUT,
    display_name,
    read_lines,
    suffixes,
    without_byte_order_mark,
)

Item = TypeVar("Item")
# Maximum difference of the numbers of lines of two files, if `lenient`.
MAX_MISSING_LINES = 20
LINE_BREAKS = re.compile(r"[\r\n]+")
LINE_BLANKS = " \t"
DOCTORS_LISTS = (".left-out.jsonl", ".mended.jsonl")  # written beside a repaired corpus


class Origin(NamedTuple):
    """The file and the line number (from 1) of the source text of a pair."""

    file: str
    line: int


class Pair(NamedTuple):
    """A text, its translation and its origin."""

    source: str
    target: str
    origin: Origin
    direction: str = ""  # such as en-de, for a held-out pair of a multilingual corpus


def chunks(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    """Lists of `size` successive items; the last one may be shorter."""
    stream = iter(items)
    while chunk := list(islice(stream, size)):
        yield chunk


def spread(items: Sequence[Item], most: int) -> list[Item]:
    """At most `most` of the items, at equal distances."""
    count = min(most, len(items))
    return [items[place * len(items) // count] for place in range(count)]


def by_direction(pairs: Iterable[Pair]) -> dict[str, list[Pair]]:
    """The pairs of each direction; all pairs have the direction "" if their corpus is not multilingual."""
    directions: dict[str, list[Pair]] = {}
    for pair in pairs:
        directions.setdefault(pair.direction, []).append(pair)
    return directions


def first_of_each_direction(pairs: Sequence[Pair], count: int) -> list[Pair]:
    """The first pairs, up to `count` in all. In a multilingual corpus, equally many pairs of each direction."""
    directions = by_direction(pairs)
    each = max(1, count // max(1, len(directions)))
    return [pair for its in directions.values() for pair in its[:each]]


def usable(pairs: Iterable[Pair]) -> list[Pair]:
    """The pairs of two texts that have one line each and are not blank."""
    return [pair for pair in pairs if all(text.strip() and "\n" not in text for text in pair[:2])]


def single_lines(pairs: Iterable[Pair]) -> Iterator[Pair]:
    """The pairs; raises UserError for a text with a line break, which can't be translated as a sentence."""
    for pair in pairs:
        if "\n" in pair.source or "\n" in pair.target:
            file, line = pair.origin
            raise UserError(
                f"{file}:{line}: the text contains a line break.",
                "Give one sentence per text.",
            )
        yield pair


def read_pairs(
    files: Sequence[str],
    languages: tuple[str, str] = ("source", "target"),
    *,
    lenient: bool = False,
) -> Iterator[Pair]:
    """Read pairs from two line-aligned text files, from two parallel documents or from bilingual files.

    A folder stands for all bilingual files in it. The file "-" is standard input, with TAB-separated pairs if it is the
    only file. `languages` are the keys in .jsonl files and the language codes in translation memories. A blank line of
    a text file is an empty text. Texts without a translation are left out of bilingual documents.

    If `lenient` is true, bytes that are not UTF-8 are accepted, except in XML and parallel documents. One of two text
    files may then be up to 20 lines shorter than the other. Raises UserError for an unknown suffix, unequal numbers of
    lines and invalid files.
    """
    files = expand_folders(files)
    formats = [format_of(file) for file in files]
    check_file_names(files, languages)
    if len(files) == 2 and formats[0].parallel and formats[0].parallel == formats[1].parallel:
        return _pairs(files[0], formats[0].read_parallel(*files), join_lines=True)
    if len(files) == 2 and set(files) <= {*STANDARD_INPUT}:
        raise UserError(
            "Source and target can't both come from standard input.",
            "Name a file for one of them.",
        )
    if len(files) == 1:
        return _read_bilingual(files[0], languages, lenient)
    if files and all(form.is_bilingual for form in formats):
        return chain.from_iterable(_read_bilingual(file, languages, lenient) for file in files)
    if len(files) != 2:
        raise UserError(
            f"{len(files)} files can't be read as a corpus.",
            f"Give two text files, or only bilingual files ({', '.join(bilingual_suffixes())}).",
        )
    for file, form in zip(files, formats, strict=True):
        if form.is_bilingual:
            raise UserError(
                f"{file} has the suffix of a bilingual file.",
                "Give only this file, or rename it.",
            )
        if form.parallel:
            raise UserError(
                f"{file} is a document.",
                "Give its translation in the same format, or two text files.",
            )
    return _pairs(files[0], _read_aligned(files[0], files[1], lenient))


def check_file_names(files: Sequence[str], languages: tuple[str, str]) -> None:
    """Raise UserError if the names of two text files say that a text is in the language of the other text."""
    named = None if all(format_of(file).is_bilingual for file in files) else languages_of(files)
    if not named:
        return
    own, wanted = (Direction(*map(main_language, codes)) for codes in (named, languages))
    is_swapped = Direction(*named).as_codes == Direction(*languages).as_codes.reverse
    if own != wanted and own.source != own.target:
        is_swapped = own.source == wanted.target or own.target == wanted.source
    if is_swapped:
        raise UserError(
            f"{files[0]} and {files[1]} are for {languages[0]} and {languages[1]}, "
            f"but their names say {named[0]} and {named[1]}.",
            "Exchange the files, or the languages.",
            "data.source",
            "data.target",
        )


def are_line_aligned(files: Sequence[str]) -> bool:
    """Whether a corpus consists of two line-aligned text files."""
    formats = [format_of(file) for file in files]
    return len(files) == 2 and not any(
        Path(file).is_dir() or form.parallel or form.is_bilingual
        for file, form in zip(files, formats, strict=True)
    )


def expand_folders(files: Sequence[str]) -> list[str]:
    """Replace each folder by the bilingual files in it, without hidden files and the doctor's lists, sorted by name.

    Raises UserError for a folder without bilingual files, and for a file name that is empty or not UTF-8.
    """
    expanded: list[str] = []
    for file in files:
        if not file:
            raise UserError("The name of a corpus file is empty.")
        if not Path(file).is_dir():
            expanded.append(file)
            continue
        if (Path(file) / MANIFEST).exists():  # a model, or a prepared corpus
            raise UserError(f"{file} is a folder.", "Name a file in it.")
        known = bilingual_suffixes()
        paths = [path for path in Path(file).rglob("*") if not path.name.endswith(DOCTORS_LISTS)]
        bilingual = [
            path for path in paths if suffixes(path.name)[0] in known and not path.is_dir()
        ]
        visible = [
            path
            for path in bilingual
            if not any(part.startswith(".") for part in path.relative_to(file).parts)
        ]
        if not visible:
            raise UserError(
                f"{file} has no bilingual files ({', '.join(known)}).", "Name another folder."
            )
        expanded += sorted(map(str, visible))
    for file in expanded:
        if UNDECODED.search(file):
            raise UserError(f"{readable(file)}: this name is not UTF-8.", "Rename the file.")
    return expanded


def are_documents(files: Sequence[str]) -> bool:
    """Whether any of the files is a document, such as HTML or XLIFF."""
    return any(format_of(file).is_document for file in expand_folders(files))


def are_trees(files: Sequence[str]) -> bool:
    """Whether any of the files holds parse trees."""
    return any(format_of(file).symbols for file in expand_folders(files))


def _pairs(file: str, texts: Iterator[TextPair], *, join_lines: bool = False) -> Iterator[Pair]:
    name = display_name(file)
    as_read = _as_line if join_lines else str
    return (
        Pair(as_read(source), as_read(target), Origin(name, line)) for source, target, line in texts
    )


def _as_line(text: str) -> str:
    """Join the lines of a text with spaces, and remove the blanks around the line breaks."""
    first, *others = LINE_BREAKS.split(text)
    if not others:
        return text
    *between, last = others
    parts = (
        first.rstrip(LINE_BLANKS),
        *(part.strip(LINE_BLANKS) for part in between),
        last.lstrip(LINE_BLANKS),
    )
    return " ".join(filter(None, parts))


def _read_bilingual(file: str, languages: tuple[str, str], lenient: bool) -> Iterator[Pair]:
    form = FILE_FORMATS[".tsv"] if file in STANDARD_INPUT else format_of(file)
    if form.pairs:
        return _pairs(
            file, form.read_pairs(CorpusFile(file, languages, lenient)), join_lines=form.is_document
        )
    if form.parallel:
        raise UserError(
            f"{file} holds one language.",
            "Give two files, the source and its translation. Rename a .json file of pairs to .jsonl.",
        )
    if not Path(file).is_file():
        next(iter(read_lines(file)), None)  # raises the error for a missing file
    raise UserError(
        f"{file}: the suffix does not name a bilingual format.",
        UNREADABLE.get(
            suffixes(file)[0],
            "Such files end in .tsv, .jsonl, .tmx, .xlf or .po. If this file has one language, name the file with its "
            "translation, too. Rename a .json file of pairs to .jsonl.",
        ),
    )


def _read_aligned(source_file: str, target_file: str, lenient: bool) -> Iterator[TextPair]:
    sources = without_byte_order_mark(read_lines(source_file, lenient=lenient))
    targets = without_byte_order_mark(read_lines(target_file, lenient=lenient))
    for line, (source, target) in enumerate(zip_longest(sources, targets), 1):
        if source is not None and target is not None:
            yield source, target, line
            continue
        longer = targets if source is None else sources
        more = list(islice(longer, MAX_MISSING_LINES)) if lenient else []
        if not lenient or len(more) == MAX_MISSING_LINES:
            number_of_lines = line + len(more) + sum(1 for _ in longer)
            numbers = (line - 1, number_of_lines) if source is None else (number_of_lines, line - 1)
            raise UserError(
                f"{display_name(source_file)} has {numbers[0]:,} lines and {display_name(target_file)} has "
                f"{numbers[1]:,}. Line i of the second file must be the translation of line i of the first file."
            )
        for number, text in enumerate([source or target or "", *more], line):
            yield (text, "", number) if target is None else ("", text, number)
        return
