"""Reads .csv tables whose first row names the columns of the source and the target language."""

import re
from collections.abc import Iterator
from functools import partial
from itertools import repeat
from typing import NamedTuple

from transduce.system.errors import UserError
from transduce.text.formats import MESSAGE, CorpusFile, DocumentFile, TextPair
from transduce.text.plain import BYTE_ORDER_MARK, display_name, read_pieces
from transduce.wings.documents.document import (
    Document,
    Edit,
    LineCounter,
    Slot,
    decode,
    decode_pieces,
)
from transduce.wings.documents.icu import branched
from transduce.wings.documents.keyed import is_readable
from transduce.wings.documents.named_columns import (
    SOURCE_COLUMNS,
    TARGET_COLUMNS,
    find_column,
)

CSV_SEPARATORS = ",;\t"


class _Cell(NamedTuple):
    raw: str  # with quotation marks
    begin: int
    line: int

    @property
    def text(self) -> str:
        return self.raw[1:-1].replace('""', '"') if self.raw.startswith('"') else self.raw

    @property
    def end(self) -> int:
        return self.begin + len(self.raw)


class _Table:
    """The rows of a table and the places of its columns. Raises UserError if a column is missing."""

    def __init__(
        self, content: str, name: str, languages: tuple[str, str], *, needs_target: bool
    ) -> None:
        first = content.partition("\n")[0]
        self.separator = max(CSV_SEPARATORS, key=first.count)
        self._rows = _rows(content, name, self.separator)
        self.header = next(self._rows, [])
        self.names = [cell.text.strip() for cell in self.header]
        source, target = languages
        self.source = find_column(self.names, SOURCE_COLUMNS, source, name)
        self.target = find_column(self.names, TARGET_COLUMNS, target, name, is_needed=needs_target)

    def cells(self) -> Iterator[tuple[list[_Cell], _Cell, _Cell]]:
        """Each row with its source and its target. If these are missing, they are blank and at the end of the row."""
        for row in self._rows:
            missing = _Cell("", row[-1].end, row[-1].line)
            padded = [*row, *repeat(missing, len(self.names))]
            yield row, padded[self.source], padded[self.target]


def _rows(content: str, name: str, separator: str) -> Iterator[list[_Cell]]:
    """The rows that are not empty. Raises UserError for a quotation mark or a separator too many."""
    pattern = re.compile(rf'(?:"(?:[^"]|"")*+"|(?!")[^\r\n{separator}]*+)(?=[\r\n{separator}]|\Z)')
    row = list[_Cell]()
    at = len(content) - len(content.lstrip(BYTE_ORDER_MARK))
    lines = LineCounter(content)
    width = 0
    while at <= len(content):
        line = lines.line(at)
        cell = pattern.match(content, at)
        if cell is None or 0 < width == len(row):
            raise UserError(
                f"{name}:{line}: this row has text beside quotation marks, or too many columns.",
                'Put a text with a separator or a quotation mark in quotes, and double the mark: "a ""b""".',
            )
        row.append(_Cell(cell.group(), at, line))
        at = cell.end() + 1
        if not content.startswith(separator, at - 1):
            if len(row) > 1 or row[0].raw:
                width = width or len(row)
                yield row
            row = []


def read_csv(file: DocumentFile) -> Document:
    """The texts of the source column without a translation, or all if `file.redo` is true.

    If the table has no column for the target language, one is added.
    """
    content, codec = decode(file.content, file.name)
    table = _Table(content, file.name, (file.source, file.target), needs_target=False)
    slots = list[Slot]()
    added = list[Edit]()
    if table.target == len(table.names):
        end = table.header[-1].end
        added.append(Edit(end, end, f"{table.separator}{file.target}"))
    for row, cell, place in table.cells():
        missing = table.separator * (table.target + 1 - len(row))
        if is_readable(cell.text) and (file.redo or not place.text.strip()):
            is_quoted = '"' in (cell.raw[:1], place.raw[:1])
            write = partial(_written, missing, table.separator, is_quoted)
            span = (cell.line, place.begin, place.end, write, MESSAGE)
            branches = branched(cell.text, file.target)
            slots.append(Slot(cell.text, place.text, *span, branched=branches))
        elif added:
            added.append(Edit(place.end, place.end, missing))
    return Document(file.name, content, codec, tuple(slots), tuple(added))


def read_csv_pairs(file: CorpusFile) -> Iterator[TextPair]:
    """Pairs of the texts in the columns of the two languages."""
    name = display_name(file.path)
    pieces = decode_pieces(read_pieces(file.path), name, lambda _: None, 1, lenient=file.lenient)
    table = _Table("".join(pieces), name, file.languages, needs_target=True)
    for row, cell, place in table.cells():
        yield cell.text, place.text, row[0].line


def _written(before: str, separator: str, is_quoted: bool, translation: str) -> str:
    """A cell behind `before`, in quotes if necessary."""
    if is_quoted or re.search(rf'[\r\n"{separator}]|\A\s|\s\Z', translation):
        translation = '"{}"'.format(translation.replace('"', '""'))
    return f"{before}{translation}"
