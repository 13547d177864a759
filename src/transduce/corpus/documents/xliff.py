"""XLIFF 1.0 to 1.2 and 2.x: units of a source and a target, with elements inside for what isn't text."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from transduce.corpus.documents.document import Document, Kind, Known, Slot, check_language
from transduce.corpus.documents.xml import read_xml
from transduce.corpus.markup import Piece, attribute, pieces
from transduce.corpus.placeholders import mask
from transduce.errors import UserError

UNITS = ("trans-unit", "segment")  # what holds a source and a target, in 1.x and in 2.x
NOT_TRANSLATED = ("new", "needs-translation")  # states of a target that say so, in 1.x
CDATA = re.compile(r"\s*<!\[CDATA\[(?P<text>(?:[^\]]|\](?!\]>))*+)\]\]>\s*")
FILES = re.compile(r"<(?:[\w.-]+:)?(?:file|xliff)\s[^>]*>")  # what says the languages
INDENTATION = re.compile(r"(?:\r?\n)?[ \t]*\Z")


@dataclass
class _Unit:
    """What is found of a unit; places are characters of the file."""

    line: int = 1
    source_tag: str = ""
    indentation: str = ""  # before the source
    source: tuple[int, int] = (0, 0)  # its content
    behind: int = 0  # where a target would follow
    target: tuple[int, int] | None = None  # its content, or the whole element if it is empty
    target_tag: str = ""
    empty: bool = False  # the target is <target/>
    cdata: bool = False  # the source is in a CDATA section


def read_xliff(content: bytes, name: str, source: str, target: str, *, redo: bool = False) -> Document:
    """The units without a target, or all with `redo`; those that aren't to be translated are left alone."""
    text, codec = read_xml(content, name)
    slots, known = list[Slot](), list[Known]()
    for tag in FILES.findall(text):
        check_language(name, "from", attribute(tag, "source-language") or attribute(tag, "srclang") or "", source)
        check_language(name, "into", attribute(tag, "target-language") or attribute(tag, "trglang") or "", target)
    is_xliff = False
    for unit, kept in _units(text):
        is_xliff = True
        if unit.behind:
            spoken, kind = _source(text, unit, kept)
            present = "" if unit.empty or unit.target is None else text[slice(*unit.target)]
            missing = not present.strip() or attribute(unit.target_tag, "state") in NOT_TRANSLATED
            if spoken.strip() and (redo or missing):
                slots.append(_slot(unit, spoken, present, kind, target))
            if spoken.strip() and not missing:
                known.append(Known(_said(spoken, kind), _said(present, kind), unit.line))
    if not is_xliff and not re.search(r"<(?:\w+:)?xliff[\s>]", text):
        raise UserError(f"{name} is XML but not XLIFF: it has no element <xliff>.")
    return Document(name, text, codec, tuple(slots), tuple(known))


def _said(content: str, kind: Kind) -> str:
    """What the content of a source or a target says."""
    cdata = CDATA.fullmatch(content)
    return mask(cdata["text"] if cdata else content, markup=True, preserve=kind == "preserved").text


def _units(text: str) -> Iterator[tuple[_Unit, bool]]:
    """The units to be translated, and whether their blanks are to be kept."""
    around: list[tuple[str, bool, bool]] = []  # names, whether they are translated, whether blanks are kept
    unit, line, at = _Unit(), 1, 0
    for piece in pieces(text):
        name, tag = piece.name.rpartition(":")[2], text[piece.begin : piece.end]
        inside = around[-1] if around else ("", True, False)
        if piece.kind in ("open", "empty"):
            if name in UNITS and piece.kind == "open":
                line, at = line + text.count("\n", at, piece.begin), piece.begin
                unit = _Unit(line)
            elif inside[0] in UNITS:
                _begin(unit, name, piece, tag, text)
            if piece.kind == "open":
                translated = inside[1] if (said := attribute(tag, "translate")) is None else said != "no"
                space = attribute(tag, "xml:space")
                around.append((name, translated, inside[2] if space is None else space == "preserve"))
        elif piece.kind == "close":
            around.pop()
            if around and around[-1][0] in UNITS:
                _end(unit, name, piece)
            if name in UNITS and inside[1]:
                yield unit, inside[2]


def _begin(unit: _Unit, name: str, piece: Piece, tag: str, text: str) -> None:
    if name == "source":
        indentation = INDENTATION.search(text, max(0, piece.begin - 200), piece.begin)
        unit.source_tag, unit.source = tag, (piece.end, piece.end)
        unit.indentation = indentation.group() if indentation else ""
    elif name == "target":
        unit.target_tag, unit.empty = tag, piece.kind == "empty"
        unit.target = (piece.begin, piece.end) if unit.empty else (piece.end, piece.end)


def _end(unit: _Unit, name: str, piece: Piece) -> None:
    if name == "source":
        unit.source, unit.behind = (unit.source[0], piece.begin), piece.end
    elif name == "seg-source":
        unit.behind = piece.end
    elif name == "target" and unit.target:
        unit.target = (unit.target[0], piece.begin)


def _source(text: str, unit: _Unit, kept: bool) -> tuple[str, Kind]:
    """The text of a unit; blanks around it and line ends in it count only where they are said to."""
    source = text[slice(*unit.source)]
    if cdata := CDATA.fullmatch(source):
        unit.cdata = True
        return cdata["text"], "preserved"
    return (source.strip(), "markup") if "\n" in source and not kept else (source, "preserved")


def _slot(unit: _Unit, source: str, present: str, kind: Kind, language: str) -> Slot:
    """Where the target is, or where it would be."""
    text_of_target, closing = _target_tag(unit, language)

    def write(new: str) -> str:
        new = f"<![CDATA[{new}]]>" if unit.cdata else new
        if unit.target is None:
            return unit.indentation + text_of_target + new + closing
        return text_of_target + new + closing if unit.empty else new

    begin, end = unit.target or (unit.behind, unit.behind)
    return Slot(source, present, unit.line, begin, end, write, kind)


def _target_tag(unit: _Unit, language: str) -> tuple[str, str]:
    """The tags of a target that isn't there, or has no content: as the source is called, with its language."""
    source = re.match(r"<((?:[^\s/>]*:)?)source", unit.source_tag)
    name = f"{source[1] if source else ''}target"
    if unit.empty:
        return re.sub(r"\s*/>\Z", ">", unit.target_tag), f"</{name}>"
    has_language = attribute(unit.source_tag, "xml:lang") is not None
    return (f'<{name} xml:lang="{language}">' if has_language else f"<{name}>"), f"</{name}>"
