"""Reads spreadsheets (.xlsx). The first row of a sheet names the columns of the source and the target language.

Sheets without such columns stay as they are.
"""

import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple
from xml.sax.saxutils import escape

from transduce.inline.events import unescape
from transduce.inline.markup import attribute
from transduce.system.errors import UserError
from transduce.text.formats import MESSAGE, CorpusFile, DocumentFile, TextPair
from transduce.text.plain import display_name, read_pieces
from transduce.wings.documents.archive import SAVE_AGAIN, Archive, ArchiveDocument
from transduce.wings.documents.document import Document, Slot
from transduce.wings.documents.icu import branched
from transduce.wings.documents.keyed import is_readable
from transduce.wings.documents.named_columns import SOURCE_COLUMNS, TARGET_COLUMNS, find_column
from transduce.wings.documents.xml import ILLEGAL_CHARACTER
from transduce.wings.documents.xml_tree import Node, characters, find_elements, raw_name

SHARED_STRINGS = "xl/sharedStrings.xml"
SHEET = re.compile(r"xl/worksheets/sheet\d+\.xml")
CELL_NAME = re.compile(r"(?P<column>[A-Z]{1,3})(?P<line>[1-9][0-9]{0,6})")
CELL_STYLE = re.compile(r"""\ss=["']\d+["']""")


class _Row(NamedTuple):
    node: Node
    line: int
    cells: dict[str, Node]  # by the letters of the columns
    texts: dict[str, str]


class _Sheet(NamedTuple):
    content: str
    codec: str
    source: str  # the letters of the columns
    target: str
    rows: Iterator[_Row]


def read_excel(file: DocumentFile) -> ArchiveDocument:
    """The texts of the source columns without a translation, or all if `file.redo` is true."""
    archive = Archive(file.content, file.name)
    documents = {}
    for member, sheet in _sheets(archive, (file.source, file.target)):
        slots = list[Slot]()
        for row in sheet.rows:
            text = row.texts.get(sheet.source, "")
            present = row.texts.get(sheet.target, "")
            if is_readable(text) and (file.redo or not present.strip()):
                span = (row.line, *_place(sheet, row), MESSAGE)
                slots.append(Slot(text, present, *span, branched=branched(text, file.target)))
        documents[member] = Document(file.name, sheet.content, sheet.codec, tuple(slots))
    return ArchiveDocument(archive, documents)


def read_excel_pairs(file: CorpusFile) -> Iterator[TextPair]:
    """Pairs of the texts in the columns of the two languages."""
    archive = Archive(b"".join(read_pieces(file.path)), display_name(file.path))
    for _, sheet in _sheets(archive, file.languages):
        for row in sheet.rows:
            yield row.texts.get(sheet.source, ""), row.texts.get(sheet.target, ""), row.line


def _sheets(archive: Archive, languages: tuple[str, str]) -> Iterator[tuple[str, _Sheet]]:
    """The sheets with both columns, by their members. Raises UserError if there are none."""
    archive.require("xl/", "a workbook of Microsoft Excel")
    shared = list[str]()
    if SHARED_STRINGS in archive.names:
        text, name, _ = archive.read_xml(SHARED_STRINGS)
        shared = [_text(text, item) for item in find_elements(text, ("x:si",), (), name)]
    errors = [UserError(f"{archive.name} has no texts.")]
    has_columns = False
    for member in archive.matching(SHEET):
        text, name, codec = archive.read_xml(member)
        rows = _rows(text, name, shared)
        header = next(rows, None)
        columns = [*header.texts] if header else []
        names = [*header.texts.values()] if header else []
        try:
            source = find_column(names, SOURCE_COLUMNS, languages[0], archive.name)
            target = find_column(names, TARGET_COLUMNS, languages[1], archive.name)
        except UserError as error:
            errors.append(error)
        else:
            has_columns = True
            yield member, _Sheet(text, codec, columns[source], columns[target], rows)
    if not has_columns:
        raise errors[-1]


def _rows(text: str, name: str, shared: list[str]) -> Iterator[_Row]:
    """The rows of a sheet. Raises UserError for a text that the workbook lacks."""
    for node in find_elements(text, ("x:row",), (), name):
        line = 0
        cells = dict[str, Node]()
        texts = dict[str, str]()
        for cell in node.children:
            opening = text[cell.begin : cell.content_begin]
            place = CELL_NAME.fullmatch(attribute(opening, "r") or "")
            if place is None:
                continue
            line = int(place["line"])
            cells[place["column"]] = cell
            texts[place["column"]] = shown = _text(text, cell)
            if attribute(opening, "t") == "s":
                if not shown.isdecimal() or int(shown) >= len(shared):
                    raise UserError(f"{name}: {place[0]} has no text.", SAVE_AGAIN)
                texts[place["column"]] = shared[int(shown)]
        yield _Row(node, line, cells, texts)


def _place(sheet: _Sheet, row: _Row) -> tuple[int, int, Callable[[str], str]]:
    """The begin and the end of the target cell, or of the place for one, and what writes a text as this cell."""
    begin = row.node.content_end
    for column in sorted(row.cells, key=_order, reverse=True):
        if _order(column) > _order(sheet.target):
            begin = row.cells[column].begin
    end = begin
    style = None
    if cell := row.cells.get(sheet.target):
        begin, end, content_begin = cell[1:4]
        style = CELL_STYLE.search(sheet.content, begin, content_begin)
    tag = raw_name(sheet.content, row.node).removesuffix("row")
    name = f'{tag}c r="{sheet.target}{row.line}"{style.group() if style else ""}'
    return begin, end, partial(_cell, name, tag)


def _cell(name: str, tag: str, translation: str) -> str:
    written = ILLEGAL_CHARACTER.sub("", escape(translation))
    content = f'<{tag}t xml:space="preserve">{written}</{tag}t>'
    return f'<{name} t="inlineStr"><{tag}is>{content}</{tag}is></{tag}c>'


def _order(column: str) -> tuple[int, str]:
    return len(column), column


def _text(text: str, node: Node) -> str:
    """The characters of a cell, without the readings of Japanese words (rPh)."""
    if node.name in ("x:t", "x:v"):
        return unescape(characters(text, node))
    return "".join(_text(text, child) for child in node.children if child.name != "x:rPh")
