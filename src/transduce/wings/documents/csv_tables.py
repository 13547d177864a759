"""Reads .csv tables whose first row names the columns of the source and the target language."""

import csv
import re
from collections.abc import Iterator, Sequence
from functools import partial
from typing import NamedTuple

from transduce.system.errors import UserError
from transduce.text.formats import MESSAGE, CorpusFile, DocumentFile, TextPair
from transduce.text.languages import language_name, nearest_code
from transduce.text.plain import (
    BYTE_ORDER_MARK,
    display_name,
    read_lines,
    without_byte_order_mark,
)
from transduce.wings.documents.document import Document, Edit, Slot, decode
from transduce.wings.documents.icu import branched
from transduce.wings.documents.keyed import LineNumbers, is_readable

CSV_SEPARATORS = (",", ";", "\t")
CSV_CELLS = {  # by separator
    separator: re.compile(rf'"(?P<quoted>(?:[^"]|"")*+)"|[^\r\n{separator}]*+')
    for separator in CSV_SEPARATORS
}
# Names of columns, if none is named by its language.
SOURCE_COLUMNS = ("source", "src")
TARGET_COLUMNS = ("target", "tgt", "translation")


class _Cell(NamedTuple):
    text: str
    begin: int
    end: int
    is_quoted: bool


class _Columns(NamedTuple):
    """The places of the columns in the rows of a table."""

    number: int
    source: int
    target: int | None


def read_csv(file: DocumentFile) -> Document:
    """The texts of the source column without a translation, or all if `file.redo` is true.

    If the table has no column for the target language, one is added.
    """
    content, codec = decode(file.content, file.name)
    begin = len(content) - len(content.removeprefix(BYTE_ORDER_MARK))
    languages = file.source, file.target
    header_end = re.compile(r"[\r\n]|\Z").search(content, begin)
    header = content[begin : header_end.start() if header_end else None]
    separator = _separator(header, languages)
    lines = LineNumbers(content)
    rows = _rows(content, begin, separator, file.name, lines)
    first = next(rows, [])
    columns = _columns([cell.text for cell in first], languages, file.name)
    slots = list[Slot]()
    added = list[Edit]()
    if columns.target is None and first:
        added.append(Edit(first[-1].end, first[-1].end, f"{separator}{file.target}"))
    for row in rows:
        _check_width(len(row), columns, file.name, lines.of(row[0].begin), separator)
        slot = _slot(row, columns, separator, file.redo, lines)
        if slot is None and columns.target is None:
            end = row[-1].end
            added.append(Edit(end, end, separator * (columns.number - len(row) + 1)))
        elif slot:
            slots.append(slot._replace(branched=branched(slot.text, file.target)))
    return Document(file.name, content, codec, tuple(slots), tuple(added))


def read_csv_pairs(file: CorpusFile) -> Iterator[TextPair]:
    """Pairs of the texts in the columns of the two languages."""
    name = display_name(file.path)
    lines = without_byte_order_mark(read_lines(file.path, lenient=file.lenient))
    first = next(lines, "")
    separator = _separator(first, file.languages)
    reader = csv.reader(_with_line_ends(first, lines), delimiter=separator, strict=True)
    line = 1
    columns: _Columns | None = None
    try:
        for row in reader:
            if columns is None:
                columns = _columns(row, file.languages, name)
                if columns.target is None:
                    raise _no_column(row, file.languages[1], name)
            elif row:
                _check_width(len(row), columns, name, line, separator)
                row += [""] * columns.number
                yield row[columns.source], row[columns.target or 0], line
            line = reader.line_num + 1
    except csv.Error as error:
        raise UserError(
            f"{name}:{line}: this row is no valid CSV: {error}.",
            'Put a text with a quotation mark in quotes, and write the mark twice: "a ""b""".',
        ) from None


def _with_line_ends(first: str, lines: Iterator[str]) -> Iterator[str]:
    yield f"{first}\n"
    for line in lines:
        yield f"{line}\n"


def _separator(header: str, languages: tuple[str, str]) -> str:
    """The separator with which the first row names the source column, or else has the most cells."""

    def score(separator: str) -> tuple[bool, int]:
        names = next(csv.reader([header], delimiter=separator), [])
        return _column(names, languages[0], SOURCE_COLUMNS) is not None, len(names)

    return max(CSV_SEPARATORS, key=score)


def _columns(names: Sequence[str], languages: tuple[str, str], name: str) -> _Columns:
    source = _column(names, languages[0], SOURCE_COLUMNS)
    if source is None:
        raise _no_column(names, languages[0], name)
    target = _column(names, languages[1], TARGET_COLUMNS)
    return _Columns(len(names), source, None if target == source else target)


def _column(names: Sequence[str], language: str, others: Sequence[str]) -> int | None:
    """The place of the column for a language, or None if there is no such column."""
    stripped = [name.strip() for name in names]
    folded = [name.casefold() for name in stripped]
    nearest = nearest_code(language, filter(None, stripped)) or ""
    for wanted in filter(None, (nearest, language_name(language), *others)):
        if wanted.casefold() in folded:
            return folded.index(wanted.casefold())
    return None


def _no_column(names: Sequence[str], language: str, name: str) -> UserError:
    return UserError(
        f"{name}: no column is named {language!r}. The first row has: {', '.join(map(repr, names))}.",
        f"Name the column by the language's code ({language}) or English name, or name the columns source and target.",
    )


def _check_width(width: int, columns: _Columns, name: str, line: int, separator: str) -> None:
    if width > columns.number:
        raise UserError(
            f"{name}:{line}: expected {columns.number} columns, found {width}.",
            f"Put texts with {separator!r} in quotes.",
        )


def _rows(
    content: str, at: int, separator: str, name: str, lines: LineNumbers
) -> Iterator[list[_Cell]]:
    """The rows of a table that are not empty."""
    pattern = CSV_CELLS[separator]
    row = list[_Cell]()
    while at <= len(content):
        cell = pattern.match(content, at)
        assert cell is not None
        quoted = cell["quoted"]
        text = cell.group() if quoted is None else quoted.replace('""', '"')
        at = cell.end()
        following = content[at : at + 1]
        if following not in (separator, "\r", "\n", "") or (
            quoted is None and text.startswith('"')
        ):
            raise UserError(
                f"{name}:{lines.of(cell.start())}: a quotation mark in this row has no partner.",
                'Put a text with a quotation mark in quotes, and write the mark twice: "a ""b""".',
            )
        row.append(_Cell(text, *cell.span(), quoted is not None))
        if following != separator:
            if len(row) > 1 or row[0].begin < row[0].end:
                yield row
            row = []
        at += 1


def _slot(
    row: Sequence[_Cell], columns: _Columns, separator: str, redo: bool, lines: LineNumbers
) -> Slot | None:
    """The slot of a row, unless its text is blank, or is translated and `redo` is false."""
    if len(row) <= columns.source or not is_readable(row[columns.source].text):
        return None
    source = row[columns.source]
    target = columns.number if columns.target is None else columns.target
    written = row[target] if target < len(row) else None
    if written and written.text.strip() and not redo:
        return None
    place = written or _Cell("", row[-1].end, row[-1].end, source.is_quoted)
    missing = separator * max(0, target - len(row) + 1)
    write = partial(_written, missing, separator, source.is_quoted or place.is_quoted)
    line = lines.of(source.begin)
    return Slot(source.text, place.text, line, place.begin, place.end, write, MESSAGE)


def _written(before: str, separator: str, is_quoted: bool, translation: str) -> str:
    """A cell behind `before`, in quotes if necessary."""
    needs_quotes = re.search(rf'[\r\n"{separator}]|\A\s|\s\Z', translation)
    if is_quoted or needs_quotes:
        translation = '"{}"'.format(translation.replace('"', '""'))
    return f"{before}{translation}"
