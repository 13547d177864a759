"""TMX as a document: the units of a translation memory that lack the target language get it."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from transduce.system.errors import UserError
from transduce.text.markup import Piece, attribute, pieces
from transduce.text.placeholders import mask
from transduce.wings.documents.document import Document, Slot
from transduce.wings.documents.tmx_pairs import chosen, code, distance
from transduce.wings.documents.xml import element_name, filled, indentation, legal, read_xml


class _Variant(NamedTuple):
    """A unit's text in one language; places are characters of the file."""

    language: str
    tag: str
    begin: int  # of the element
    end: int
    seg: tuple[int, int]  # its content, or the whole element if it is empty
    seg_tag: str


@dataclass
class _Unit:
    line: int
    source: str
    variants: list[_Variant] = field(default_factory=list)


def read_tmx_document(content: bytes, name: str, source: str, target: str, *, redo: bool = False) -> Document:
    """The units that have the source language, as `read_tmx` finds it, but not the target language; all with `redo`.

    What has both is for `read_tmx` to tell, which needs no memory for it.
    """
    text, codec = read_xml(content, name)
    if not re.search(r"<(?:\w+:)?tmx[\s>]", text):
        raise UserError(f"{name} is XML but not TMX: it has no element <tmx>.")
    units = list(_units(text))
    called = {
        variant.language: distance(code(variant.language), code(target)) for unit in units for variant in unit.variants
    }
    near = [each for wanted in (0, 1) for each, far in called.items() if far == wanted]
    language = near[0] if near else target
    slots = list[Slot]()
    for unit in units:
        codes = [code(variant.language) for variant in unit.variants]
        both = chosen(codes, unit.source, code(source), code(target))
        one = chosen(codes, unit.source, code(source))
        if both:
            spoken, written = (unit.variants[codes.index(each)] for each in both)
            present = "" if written.seg_tag.endswith("/>") else text[slice(*written.seg)]
            if redo or not present.strip():
                slots.append(_filled(text, unit, spoken, written, present))
        elif one:
            slots.append(_added(text, unit, unit.variants[codes.index(one[0])], language))
    return Document(name, text, codec, tuple(slot for slot in slots if mask(slot.text, markup=True).text.strip()))


def _filled(text: str, unit: _Unit, spoken: _Variant, written: _Variant, present: str) -> Slot:
    def write(new: str) -> str:
        return filled(written.seg_tag, legal(new)) if written.seg_tag.endswith("/>") else legal(new)

    return Slot(text[slice(*spoken.seg)], present, unit.line, *written.seg, write, "preserved")


def _added(text: str, unit: _Unit, spoken: _Variant, language: str) -> Slot:
    """A variant behind the one that is translated, and written like it."""
    before = indentation(text, spoken.begin)
    tuv, seg = element_name(spoken.tag), element_name(spoken.seg_tag)
    key = "xml:lang" if attribute(spoken.tag, "xml:lang") is not None else "lang"

    def write(new: str) -> str:
        return f'{before}<{tuv} {key}="{language}"><{seg}>{legal(new)}</{seg}></{tuv}>'

    return Slot(text[slice(*spoken.seg)], "", unit.line, spoken.end, spoken.end, write, "preserved")


def _units(text: str) -> Iterator[_Unit]:
    unit, header, line, at = _Unit(0, ""), "", 1, 0
    variant = segment = Piece("other", 0, 0)
    content = (0, 0)
    for piece in pieces(text):
        name, tag = piece.name.rpartition(":")[2], text[piece.begin : piece.end]
        match name, piece.kind:
            case "header", "open" | "empty":
                header = attribute(tag, "srclang") or ""
            case "tu", "open":
                line, at = line + text.count("\n", at, piece.begin), piece.begin
                srclang = attribute(tag, "srclang")
                unit = _Unit(line, code(header if srclang is None else srclang))
            case "tuv", "open":
                variant = piece
            case "seg", "open":
                segment, content = piece, (piece.end, piece.end)
            case "seg", "empty":
                segment, content = piece, (piece.begin, piece.end)
            case "seg", "close":
                content = (content[0], piece.begin)
            case "tuv", "close":
                opening = text[variant.begin : variant.end]
                language = attribute(opening, "xml:lang") or attribute(opening, "lang") or ""
                seg = text[segment.begin : segment.end]
                if segment.begin > variant.begin:
                    unit.variants.append(_Variant(language, opening, variant.begin, piece.end, content, seg))
            case "tu", "close":
                yield unit
