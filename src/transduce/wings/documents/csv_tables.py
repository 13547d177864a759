"""Reads .csv tables whose first row names the columns of the source and the target language."""

import re
from collections.abc import Iterator, Sequence
from functools import partial
from typing import NamedTuple

from transduce.system.errors import UserError
from transduce.text.formats import MESSAGE, CorpusFile, DocumentFile, TextPair
from transduce.text.languages import language_name, nearest_code
from transduce.text.plain import BYTE_ORDER_MARK, display_name, read_pieces
from transduce.wings.documents.document import Document, Edit, Slot, decode, decode_pieces
from transduce.wings.documents.icu import branched
from transduce.wings.documents.keyed import is_readable

CSV_SEPARATORS = ",;\t"
# Names of columns, if none is named by its language.
SOURCE_COLUMNS = ("source", "src")
TARGET_COLUMNS = ("target", "tgt", "translation")


class _Cell(NamedTuple):
    text: str
    begin: int
    end: int
    line: int
    is_quoted: bool


class _Table:
    """The rows of a table and the places of its columns. Raises UserError if no column is the source."""

    def __init__(self, content: str, name: str, languages: tuple[str, str]) -> None:
        self._content = content
        self._name = name
        first = content.lstrip(BYTE_ORDER_MARK).partition("\n")[0]
        self.separator = max(CSV_SEPARATORS, key=first.count)
        self.rows = self._rows()
        self.header = next(self.rows, [])
        self.names = [cell.text.strip() for cell in self.header]
        self.source = self._column(languages[0], SOURCE_COLUMNS)
        self.target = self._column(languages[1], TARGET_COLUMNS)
        if self.source == len(self.names):
            raise self.lacks(languages[0])

    def _column(self, language: str, others: Sequence[str]) -> int:
        """The index of the column for a language; behind the last column if there is none."""
        folded = [name.casefold() for name in self.names]
        nearest = nearest_code(language, filter(None, self.names)) or ""
        for wanted in filter(None, (nearest, language_name(language), *others)):
            if wanted.casefold() in folded:
                return folded.index(wanted.casefold())
        return len(folded)

    def lacks(self, language: str) -> UserError:
        """The error for a missing column."""
        return UserError(
            f"{self._name}: no column is named {language!r}. The first row has: {', '.join(map(repr, self.names))}.",
            f"Name the column by the language's code ({language}) or English name, or name the columns source and "
            "target.",
        )

    def _rows(self) -> Iterator[list[_Cell]]:
        """The rows that are not empty. Raises UserError for a quotation mark or a separator too many."""
        pattern = re.compile(rf'"(?P<quoted>(?:[^"]|"")*+)"|[^\r\n{self.separator}]*+')
        row = list[_Cell]()
        at = len(self._content) - len(self._content.lstrip(BYTE_ORDER_MARK))
        line = 1
        width = 0
        while at <= len(self._content):
            cell = pattern.match(self._content, at)
            assert cell is not None
            quoted = cell["quoted"]
            text = cell.group() if quoted is None else quoted.replace('""', '"')
            row.append(_Cell(text, *cell.span(), line, quoted is not None))
            line += cell.group().count("\n")
            at = cell.end() + 1
            following = self._content[at - 1 : at]
            width = width or (len(row) if following in "\r\n" else 0)
            is_whole = quoted is not None or not text.startswith('"')
            if not is_whole or following not in f"\r\n{self.separator}" or 0 < width < len(row):
                raise UserError(
                    f"{self._name}:{row[0].line}: this row has text beside quotation marks, or too many columns.",
                    'Put a text with a separator or a quotation mark in quotes, and double the mark: "a ""b""".',
                )
            if following != self.separator:
                if len(row) > 1 or row[0].begin < row[0].end:
                    yield row
                row = []
                line += following == "\n"


def read_csv(file: DocumentFile) -> Document:
    """The texts of the source column without a translation, or all if `file.redo` is true.

    If the table has no column for the target language, one is added.
    """
    content, codec = decode(file.content, file.name)
    table = _Table(content, file.name, (file.source, file.target))
    is_new = table.target == len(table.names)
    slots = list[Slot]()
    added = list[Edit]()
    if is_new:
        end = table.header[-1].end
        added.append(Edit(end, end, f"{table.separator}{file.target}"))
    for row in table.rows:
        cell = row[table.source] if table.source < len(row) else row[0]
        missing = table.separator * (table.target - len(row) + 1)
        end = row[-1].end
        place = row[table.target] if not missing else _Cell("", end, end, 0, cell.is_quoted)
        is_spoken = table.source < len(row) and is_readable(cell.text)
        if is_spoken and (file.redo or not place.text.strip()):
            is_quoted = cell.is_quoted or place.is_quoted
            write = partial(_written, missing, table.separator, is_quoted)
            span = (cell.line, place.begin, place.end, write, MESSAGE)
            branches = branched(cell.text, file.target)
            slots.append(Slot(cell.text, place.text, *span, branched=branches))
        elif is_new:
            added.append(Edit(end, end, missing))
    return Document(file.name, content, codec, tuple(slots), tuple(added))


def read_csv_pairs(file: CorpusFile) -> Iterator[TextPair]:
    """Pairs of the texts in the columns of the two languages."""
    name = display_name(file.path)
    pieces = decode_pieces(read_pieces(file.path), name, lambda _: None, 1, lenient=file.lenient)
    table = _Table("".join(pieces), name, file.languages)
    if table.target == len(table.names):
        raise table.lacks(file.languages[1])
    for row in table.rows:
        texts = [cell.text for cell in row] + [""] * len(table.names)
        yield texts[table.source], texts[table.target], row[0].line


def _written(before: str, separator: str, is_quoted: bool, translation: str) -> str:
    """A cell behind `before`, in quotes if necessary."""
    if is_quoted or re.search(rf'[\r\n"{separator}]|\A\s|\s\Z', translation):
        translation = '"{}"'.format(translation.replace('"', '""'))
    return f"{before}{translation}"
