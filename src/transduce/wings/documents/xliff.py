"""XLIFF 1.0 to 1.2 and 2.x: units of a source and a target, with elements inside for what is not text."""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from transduce.system.errors import UserError
from transduce.text.formats import CorpusFile, DocumentFile, TextKind, TextPair
from transduce.text.plain import display_name, read_pieces
from transduce.wings.documents.document import Document, Slot, check_language
from transduce.wings.documents.markup import pieces
from transduce.wings.documents.xml import (
    Characters,
    Element,
    UnitReader,
    decode_xml,
    decode_xml_pieces,
    fill,
    fill_tag,
    indentation,
    without_illegal,
)
from transduce.wings.inline.events import ENTITY
from transduce.wings.inline.placeholders import mask

UNIT_NAMES = ("trans-unit", "segment")  # in 1.x and in 2.x
TEXT_NAMES = ("source", "seg-source", "target")
UNTRANSLATED_STATES = ("new", "needs-translation")  # of a target, in 1.x
WHOLE_CDATA = re.compile(r"\s*<!\[CDATA\[(?P<text>(?:[^\]]|\](?!\]>))*+)\]\]>\s*")


class _Unit(NamedTuple):
    line: int
    source: Element
    target: Element | None
    source_end: int  # byte behind the source, where a target belongs
    text: str  # the source's
    kind: TextKind

    @property
    def translation(self) -> str:
        """The content of the target, or ""."""
        return self.target.content if self.target else ""

    @property
    def is_translated(self) -> bool:
        state = self.target.attributes.get("state") if self.target else None
        return bool(self.translation.strip()) and state not in UNTRANSLATED_STATES


def read_xliff(file: DocumentFile) -> Document:
    """The units without a target, or all with `redo`; units with translate="no" are left alone."""
    text, codec = decode_xml(file.content, file.name)
    characters = Characters(text)
    slots = [
        _slot(text, unit, file.target, characters)
        for unit in _units([text], file.name, file.source, file.target)
        if file.redo or not unit.is_translated
    ]
    return Document(file.name, text, codec, tuple(slots))


def read_xliff_pairs(file: CorpusFile) -> Iterator[TextPair]:
    """The units with a target."""
    return read_translated_xliff(read_pieces(file.path), display_name(file.path), *file.languages)


def read_translated_xliff(content: Iterable[bytes], name: str, source: str, target: str) -> Iterator[TextPair]:
    """The units with a target, of a file that comes in pieces."""
    for unit in _units(decode_xml_pieces(content, name), name, source, target):
        if unit.is_translated:
            yield _plain_text(unit.text, unit.kind), _plain_text(unit.translation, unit.kind), unit.line


def _plain_text(content: str, kind: TextKind) -> str:
    cdata = WHOLE_CDATA.fullmatch(content)
    return mask(cdata["text"] if cdata else content, markup=True, preserve=kind != "markup").text


def _units(texts: Iterable[str], name: str, source: str, target: str) -> Iterator[_Unit]:
    """The units to translate. Raises UserError for a file in other languages, and for one that is not XLIFF."""
    is_xliff = False

    def start(element: Element) -> None:
        nonlocal is_xliff
        if element.name in ("xliff", "file"):
            is_xliff, attributes = True, element.attributes
            spoken = attributes.get("source-language") or attributes.get("srcLang") or ""
            written = attributes.get("target-language") or attributes.get("trgLang") or ""
            check_language(name, "from", spoken, source)
            check_language(name, "into", written, target)

    for element in UnitReader(name, UNIT_NAMES, TEXT_NAMES, start).read(texts):
        children = {child.name: child for child in element.children}
        spoken = children.get("source")
        if spoken is None or spoken.is_empty or element.inherited("translate") == "no":
            continue
        text, kind = _source_text(spoken.content, preserve=element.inherited("xml:space") == "preserve")
        source_end = children.get("seg-source", spoken).end
        if text.strip():
            yield _Unit(element.line, spoken, children.get("target"), source_end, text, kind)
    if not is_xliff:
        raise UserError(f"{name} is XML but not XLIFF: it has no element <xliff>.")


def _source_text(content: str, *, preserve: bool) -> tuple[str, TextKind]:
    """The text of a source. Blanks around it and line ends in it count only with xml:space="preserve".

    A CDATA section with tags or entities holds HTML, otherwise plain text.
    """
    if cdata := WHOLE_CDATA.fullmatch(content):
        text = cdata["text"]
        is_html = ENTITY.search(text) or any(piece.kind != "text" for piece in pieces(text, html=True))
        return text, "preserved" if is_html else "plain"
    return (content.strip(), "markup") if "\n" in content and not preserve else (content, "preserved")


def _slot(text: str, unit: _Unit, language: str, characters: Characters) -> Slot:
    """The place of the target, or where it belongs."""
    source, target = unit.source, unit.target
    new_name = source.full_name.removesuffix("source") + "target"
    new_tag = f'<{new_name} xml:lang="{language}"/>' if "xml:lang" in source.attributes else f"<{new_name}/>"
    before = "" if target else indentation(text, characters(source.begin))
    is_cdata = WHOLE_CDATA.fullmatch(source.content)

    def write(translation: str) -> str:
        content = without_illegal(translation)
        if is_cdata:
            content = f"<![CDATA[{content.replace(']]>', ']]]]><![CDATA[>')}]]>"
        if target is None:
            return before + fill_tag(new_tag, new_name, content)
        return fill(target, content) if target.is_empty else content

    if target is None:
        begin = end = unit.source_end
    else:
        begin, end = (target.begin, target.end) if target.is_empty else (target.content_begin, target.content_end)
    return Slot(unit.text, unit.translation, unit.line, characters(begin), characters(end), write, unit.kind)
