"""XLIFF 1.0 to 1.2 and 2.x: units of a source and a target, with elements inside for what isn't text."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from transduce.system.errors import UserError
from transduce.text.markup import ENTITY, Piece, attribute, pieces
from transduce.text.placeholders import mask
from transduce.wings.documents.document import Document, Kind, Known, Slot, check_language
from transduce.wings.documents.xml import Parser, element_name, filled, indentation, legal, read_xml, stream_xml

UNITS = ("trans-unit", "segment")  # what holds a source and a target, in 1.x and in 2.x
NOT_TRANSLATED = ("new", "needs-translation")  # states of a target that say so, in 1.x
CDATA = re.compile(r"\s*<!\[CDATA\[(?P<text>(?:[^\]]|\](?!\]>))*+)\]\]>\s*")
FILES = ("xliff", "file")  # what says the languages


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
    slots = list[Slot]()
    for unit, kept, _ in _units([text], name, source, target):
        spoken, kind = _source(text, unit, kept)
        if spoken.strip() and (redo or _is_missing(text, unit)):
            slots.append(_slot(unit, spoken, _present(text, unit), kind, target))
    return Document(name, text, codec, tuple(slots))


def read_translated_xliff(pieces: Iterable[bytes], name: str, source: str, target: str) -> Iterator[Known]:
    """The units with a target, of a file that comes in pieces; raises UserError as `read_xliff` does."""
    for unit, kept, text in _units(_blocks(pieces, name), name, source, target):
        spoken, kind = _source(text, unit, kept)
        if spoken.strip() and not _is_missing(text, unit):
            yield Known(_said(spoken, kind), _said(_present(text, unit), kind), unit.line)


def _blocks(pieces: Iterable[bytes], name: str) -> Iterator[str]:
    """The characters of a file in blocks that end behind a unit, and a last one."""
    parser, content, begin = Parser(name), b"", 0

    def end(element: str) -> None:
        if element.rpartition(":")[2] in UNITS:
            parser.unit = parser.expat.CurrentByteIndex

    parser.expat.EndElementHandler = end
    for text in stream_xml(pieces, name, parser):
        content += text.encode()
        if parser.unit > begin and content.startswith(b"</", parser.unit - begin):
            cut = content.index(b">", parser.unit - begin) + 1
            yield content[:cut].decode()
            content, begin = content[cut:], begin + cut
    yield content.decode()


def _present(text: str, unit: _Unit) -> str:
    return "" if unit.empty or unit.target is None else text[slice(*unit.target)]


def _is_missing(text: str, unit: _Unit) -> bool:
    return not _present(text, unit).strip() or attribute(unit.target_tag, "state") in NOT_TRANSLATED


def _said(content: str, kind: Kind) -> str:
    """What the content of a source or a target says."""
    cdata = CDATA.fullmatch(content)
    return mask(cdata["text"] if cdata else content, markup=True, preserve=kind != "markup").text


def _units(blocks: Iterable[str], name: str, source: str, target: str) -> Iterator[tuple[_Unit, bool, str]]:
    """The units to be translated, whether their blanks are to be kept, and the block that they are in.

    A block ends where no unit is open. Raises UserError for a file in other languages, and for one that isn't XLIFF.
    """
    around: list[tuple[str, bool, bool]] = []  # names, whether they are translated, whether blanks are kept
    unit, line, is_xliff = _Unit(), 1, False
    for text in blocks:
        at = 0
        for piece in pieces(text):
            element, tag = piece.name.rpartition(":")[2], text[piece.begin : piece.end]
            inside = around[-1] if around else ("", True, False)
            if piece.kind in ("open", "empty"):
                if element in FILES:
                    is_xliff = True
                    _check_languages(tag, name, source, target)
                elif element in UNITS and piece.kind == "open":
                    line, at = line + text.count("\n", at, piece.begin), piece.begin
                    unit = _Unit(line)
                elif inside[0] in UNITS:
                    _begin(unit, element, piece, tag, text)
                if piece.kind == "open":
                    translated = inside[1] if (said := attribute(tag, "translate")) is None else said != "no"
                    space = attribute(tag, "xml:space")
                    around.append((element, translated, inside[2] if space is None else space == "preserve"))
            elif piece.kind == "close":
                around.pop()
                if around and around[-1][0] in UNITS:
                    _end(unit, element, piece)
                if element in UNITS and inside[1] and unit.behind:
                    yield unit, inside[2], text
        line += text.count("\n", at)
    if not is_xliff:
        raise UserError(f"{name} is XML but not XLIFF: it has no element <xliff>.")


def _check_languages(tag: str, name: str, source: str, target: str) -> None:
    check_language(name, "from", attribute(tag, "source-language") or attribute(tag, "srclang") or "", source)
    check_language(name, "into", attribute(tag, "target-language") or attribute(tag, "trglang") or "", target)


def _begin(unit: _Unit, name: str, piece: Piece, tag: str, text: str) -> None:
    if name == "source":
        unit.source_tag, unit.source = tag, (piece.end, piece.end)
        unit.indentation = indentation(text, piece.begin)
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
    """The text of a unit; blanks around it and line ends in it count only where they are said to.

    What a CDATA section holds is HTML if it has tags or entities, otherwise plain.
    """
    source = text[slice(*unit.source)]
    if cdata := CDATA.fullmatch(source):
        unit.cdata = True
        is_html = ENTITY.search(cdata["text"]) or any(each.kind != "text" for each in pieces(cdata["text"], html=True))
        return cdata["text"], "preserved" if is_html else "plain"
    return (source.strip(), "markup") if "\n" in source and not kept else (source, "preserved")


def _slot(unit: _Unit, source: str, present: str, kind: Kind, language: str) -> Slot:
    """Where the target is, or where it would be."""
    target = element_name(unit.source_tag).removesuffix("source") + "target"
    has_language = attribute(unit.source_tag, "xml:lang") is not None
    tag = f'<{target} xml:lang="{language}"/>' if has_language else f"<{target}/>"

    def write(new: str) -> str:
        new = legal(new)
        if unit.cdata:
            new = f"<![CDATA[{new.replace(']]>', ']]]]><![CDATA[>')}]]>"
        if unit.target is None:
            return unit.indentation + filled(tag, new)
        return filled(unit.target_tag, new) if unit.empty else new

    begin, end = unit.target or (unit.behind, unit.behind)
    return Slot(source, present, unit.line, begin, end, write, kind)
