"""Reads the units of XLIFF files, versions 1.0 to 1.2 and 2.x."""

import re
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple
from xml.sax.saxutils import quoteattr

from transduce.inline.blocks import spaced
from transduce.inline.markup import attribute, pieces
from transduce.inline.placeholders import mask
from transduce.text.formats import CorpusFile, DocumentFile, TextKind, TextPair
from transduce.text.plain import display_name, read_pieces
from transduce.wings.documents.document import (
    KEPT_WORD,
    Document,
    Slot,
    check_language,
    without_kept_marks,
)
from transduce.wings.documents.icu import branched
from transduce.wings.documents.xml import (
    Element,
    Unit,
    UnitReader,
    decode_xml,
    has_text,
    indentation,
    source_text,
    target_slot,
)

SEGMENT_TAG = re.compile(rb"<(?:[^\s:/>]+:)?segment[\s/>]")
UNIT_NAMES = ("trans-unit", "segment")  # in 1.x and in 2.x
PO_HEADER = "x-gettext-domain-header"  # the restype of a unit that po2xliff makes of the header of a PO file
MAX_LEVELS = 20  # maximum levels of elements around a unit's segments
# States of translated texts: of a target in 1.x, of a segment in 2.x.
UNTRANSLATED_STATES = (
    "new",
    "needs-translation",
    "initial",
)
APPROVED_STATES = ("final", "signed-off")
NEEDS_REVIEW = (
    "needs-review-translation"  # in 1.x; in 2.x, a translation that needs work is "initial"
)


class _Segment(NamedTuple):
    unit: Unit
    source: Element
    target: Element | None
    whole_target: Element | None  # the target with all segments of the unit
    before_target: Element  # the element after which a new target is inserted
    text: tuple[str, TextKind]  # text and kind of the source
    states: set[str | None]  # states of the unit and its target

    @property
    def translation(self) -> str:
        return self.unit.text(self.target) if self.target else ""

    @property
    def is_translated(self) -> bool:
        return has_text(self.translation) and self.states.isdisjoint(UNTRANSLATED_STATES)

    @property
    def is_approved(self) -> bool:
        approved = self.unit.attributes.get("approved") == "yes" or not self.states.isdisjoint(
            APPROVED_STATES
        )
        return approved and self.is_translated


def read_xliff(file: DocumentFile) -> Document:
    """The untranslated units; if `file.redo` is true, also those translated but not approved. Not translate="no"."""
    text, codec = decode_xml(file.content, file.name)
    slots = [
        _slot(text, segment, file)
        for segment in _segments([file.content], file.name, file.source, file.target)
        if not (segment.is_approved if file.redo else segment.is_translated)
    ]
    return Document(file.name, text, codec, tuple(slots))


def read_xliff_pairs(file: CorpusFile) -> Iterator[TextPair]:
    """Pairs of source and target from the translated units."""
    return read_translated_xliff(read_pieces(file.path), display_name(file.path), *file.languages)


def read_translated_xliff(
    content: Iterable[bytes], name: str, source: str, target: str
) -> Iterator[TextPair]:
    """Yield pairs of source and target from a file that arrives in chunks."""
    for segment in _segments(content, name, source, target):
        if segment.is_translated:
            text, kind = segment.text
            yield _plain_text(text, kind), _plain_text(segment.translation, kind), segment.unit.line


def _plain_text(content: str, kind: TextKind) -> str:
    return spaced(mask(source_text(content, preserve=True)[0], kind._replace(markup=True)))


def _segments(content: Iterable[bytes], name: str, source: str, target: str) -> Iterator[_Segment]:
    """The units that may be translated; raises UserError if the file is not XLIFF or declares other languages."""

    def start(element: str, attributes: dict[str, str]) -> None:
        if element in ("xliff", "file"):
            spoken = attributes.get("source-language") or attributes.get("srcLang") or ""
            written = attributes.get("target-language") or attributes.get("trgLang") or ""
            check_language(name, "from", spoken, source)
            check_language(name, "into", written, target)

    for unit in UnitReader(name, "xliff", UNIT_NAMES, MAX_LEVELS, start).read(content):
        is_protected = unit.attributes.get("translate") == "no"
        if not is_protected and unit.attributes.get("restype") != PO_HEADER:
            yield from _segments_of(unit)


def _segments_of(unit: Unit) -> Iterator[_Segment]:
    """The segments of a unit that have a text."""
    children = {child.name: child for child in unit.children}
    spoken = children.get("source")
    if spoken is None:
        return
    before_target = children.get("seg-source", spoken)
    written = children.get("target")
    states = {element.attributes.get("state") for element in (unit, written) if element}
    parts = _marked(before_target)
    translated = _marked(written)
    pairs: list[tuple[Element, Element | None]] = [(spoken, written)]
    if parts and parts.keys() == translated.keys():
        pairs = [(parts[number], element) for number, element in translated.items()]
    space = spoken.attributes.get("xml:space") or unit.attributes.get("xml:space")
    for own, other in pairs:
        text, kind = source_text(unit.text(own), preserve=space == "preserve")
        if text.strip():
            message = text, kind._replace(message=True)
            yield _Segment(unit, own, other, written, before_target, message, states)


def _marked(element: Element | None) -> dict[str, Element]:
    """The segments in an element, by their numbers, as XLIFF 1.2 marks them for translation tools."""
    found = dict[str, Element]()
    for child in element.children if element else []:
        found |= (
            {child.attributes.get("mid", ""): child}
            if child.attributes.get("mtype") == "seg"
            else _marked(child)
        )
    return found


def _slot(text: str, segment: _Segment, file: DocumentFile) -> Slot:
    """The slot at a unit's existing target, or at the place for a new target."""
    unit = segment.unit
    source = segment.source
    has_states = SEGMENT_TAG.match(unit.content) is not None  # 2.x, where targets have no states
    name = source.full_name.removesuffix("source") + "target"
    declared = unit.attributes.get("target-language") or unit.attributes.get("trgLang")
    same = {**source.attributes, "xml:lang": declared or file.target.replace("_", "-")}
    attributes = "".join(
        f" {key}={quoteattr(same[key])}"
        for key in ("xml:lang", "xml:space")
        if key in source.attributes
    )
    if file.needs_review and not has_states:
        attributes += f' state="{NEEDS_REVIEW}"'
    opening = f"{indentation(text, unit.character(source.begin))}<{name}{attributes}>"
    new = (unit.end(segment.before_target), opening, f"</{name}>")
    marked = _with_kept(segment.text[0])
    slot = target_slot(unit, source, segment.target, (marked, segment.text[1]), new)
    slot = slot._replace(branched=branched(slot.text, file.target))
    if marked != segment.text[0]:
        slot = slot._replace(write=_then(without_kept_marks, slot.write))
    if not file.needs_review or not (has_states or segment.whole_target):
        return slot
    mark = (
        unit.with_attribute(None, "state", "initial")
        if has_states
        else unit.with_attribute(segment.whole_target, "state", NEEDS_REVIEW)
    )
    if not slot.begin <= mark.begin < slot.end:
        return slot._replace(marks=(mark,))

    # The new text replaces an empty element.
    begin = mark.begin - slot.begin
    rest = mark.end - slot.begin
    return slot._replace(
        write=_then(slot.write, lambda content: content[:begin] + mark.text + content[rest:])
    )


def _then(first: Callable[[str], str], second: Callable[[str], str]) -> Callable[[str], str]:
    return lambda text: second(first(text))


def _with_kept(text: str) -> str:
    """Enclose the parts that XLIFF 2 declares untranslated, between two markers or up to the end."""
    if "<sm" not in text and ":sm" not in text:
        return text
    parts = [""]
    opened = ""  # the id of the marker that began the enclosed part
    for piece in pieces(text):
        tag = text[piece.begin : piece.end]
        name = piece.name.rpartition(":")[2]
        if not opened and name == "sm" and attribute(tag, "translate") == "no":
            parts.append(KEPT_WORD[0])
            opened = attribute(tag, "id") or ""
        parts.append(tag)
        if opened and name == "em" and attribute(tag, "startref") == opened:
            parts.append(KEPT_WORD[1])
            opened = ""
    return "".join(parts) + (KEPT_WORD[1] if opened else "")
