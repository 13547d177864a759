"""XML read unit by unit: one parser checks a file of any length and says where its units stand.

The file must be well-formed, in a known encoding, and free of entities of its own. Nothing outside of it is read.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from xml.parsers import expat

from transduce.system.errors import UserError
from transduce.wings.documents.document import decode, decode_pieces

XML_ENCODING = re.compile(rb"\A(?:\xef\xbb\xbf)?<\?xml[^>]*?\sencoding\s*=\s*[\"']([\w.:-]+)[\"']")
UTF16_BY_FIRST_BYTES = {b"<\0": "utf-16-le", b"\0<": "utf-16-be"}  # without a byte order mark
XML_DECLARATION_BYTES = 1024
MAX_BYTES_WITHOUT_UNIT = 50_000_000  # a stream keeps what follows the last unit in memory
XML_ATTRIBUTES = r"""(?:[^"'<>]++|"[^"<]*+"|'[^'<]*+')*+"""
TAG_BYTES = re.compile(rb"<" + XML_ATTRIBUTES.encode() + rb">")
INDENTATION = re.compile(r"(?:\r?\n)?[ \t]*\Z")
ILLEGAL_CHARACTER = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
TRUNCATION_ERRORS = ("no element found", "unclosed token", "unclosed CDATA section", "partial character")  # of expat


@dataclass(slots=True, eq=False)
class Element:
    """An element in a unit. Places are bytes of the unit as UTF-8."""

    full_name: str
    attributes: dict[str, str]
    begin: int
    last: int = 0  # where its last tag begins, or behind an empty element
    children: list["Element"] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The name without its prefix."""
        return self.full_name.rpartition(":")[2]


class Unit(NamedTuple):
    """An element that holds the texts of a unit."""

    children: list[Element]
    content: bytes  # as UTF-8, from its first to its last tag
    begin: int  # characters of the file before it
    line: int
    attributes: dict[str, str]  # its own, and those that it inherits from the elements around it

    def text(self, element: Element) -> str:
        """What is in an element, as the file writes it."""
        return self.content[element.begin + len(self._tag(element)) : element.last].decode()

    def character(self, byte: int) -> int:
        """The character of the file at a byte of the unit."""
        return self.begin + len(self.content[:byte].decode())

    def end(self, element: Element) -> int:
        """The character of the file behind an element."""
        is_empty = self._tag(element).endswith(b"/>")
        return self.character(element.last if is_empty else self.content.index(b">", element.last) + 1)

    def fill(self, element: Element, text: str) -> tuple[int, int, str]:
        """The characters of the file to replace, and what fills the element with a text: `<a/>` becomes two tags."""
        begin, tag = element.begin, self._tag(element)
        if tag.endswith(b"/>"):
            text = f"{tag[:-2].decode().rstrip()}>{text}</{element.full_name}>"
        else:
            begin += len(tag)
        return self.character(begin), self.character(element.last), text

    def _tag(self, element: Element) -> bytes:
        tag = TAG_BYTES.match(self.content, element.begin)
        assert tag is not None
        return tag.group()


class UnitReader:
    """Finds the units of a file.

    units: names of elements that are a unit. levels: how deep in a unit the elements are of interest. on_start: called
    with the name, without its prefix, and the attributes of each element around the units.
    """

    def __init__(
        self, name: str, units: Iterable[str], levels: int, on_start: Callable[[str, dict[str, str]], object]
    ) -> None:
        self._name, self._unit_names, self._levels, self._on_start = name, {*units}, levels, on_start
        self._expat = expat.ParserCreate("utf-8")
        self._expat.StartElementHandler = self._start
        self._expat.EndElementHandler = self._end
        self._expat.StartDoctypeDeclHandler = self._doctype
        self._expat.EntityDeclHandler = self._refuse_declaration
        self._buffer, self._buffer_begin = bytearray(), 0  # the file's bytes from the open unit or the last tag on
        self._characters = 0  # of the file, before the buffer
        self._last_tag = self._last_unit_end = 0  # bytes of the file
        self._line = 0  # of the open unit
        self._attributes: list[dict[str, str]] = [{}]  # of the open elements up to a unit, with those that they inherit
        self._depth = 0  # open elements in a unit; the unit, too
        self._open: list[Element] = []  # those of them that are of interest
        self._units: list[Unit] = []  # complete, not yet yielded

    def read(self, pieces: Iterable[bytes]) -> Iterator[Unit]:
        """The units of a file that comes in pieces.

        Raises UserError that names the line that is not XML or declares entities, and for a stretch without units
        that would fill the memory.
        """
        for text in decode_pieces(pieces, self._name, _declared, XML_DECLARATION_BYTES):
            yield from self._parse(text.encode())
            if self._buffer_begin + len(self._buffer) - self._last_unit_end > MAX_BYTES_WITHOUT_UNIT:
                raise UserError(
                    f"{self._name}:{self._expat.CurrentLineNumber}: more than {MAX_BYTES_WITHOUT_UNIT:,} bytes "
                    "without a unit. Remove them."
                )
        yield from self._parse(b"", last=True)

    def _parse(self, content: bytes, *, last: bool = False) -> list[Unit]:
        """The units that end in the next bytes of the file."""
        if not self._depth:
            self._drop_before(self._last_tag)
        self._buffer += content
        try:
            self._expat.Parse(content, last)
        except expat.ExpatError as error:
            reason = expat.ErrorString(error.code)
            truncated = ", or the file is cut short" if last and reason.startswith(TRUNCATION_ERRORS) else ""
            raise UserError(f"{self._name}:{error.lineno}: not well-formed XML: {reason}{truncated}.") from None
        units, self._units = self._units, []
        return units

    def _drop_before(self, byte: int) -> None:
        """Forget the bytes before a place of the file, which must not be within a character."""
        count = byte - self._buffer_begin
        self._characters += len(self._buffer[:count].decode())
        del self._buffer[:count]
        self._buffer_begin = byte

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        if self._depth > self._levels:
            self._depth += 1
            return
        place = self._expat.CurrentByteIndex
        if not self._depth:
            self._last_tag = place
            self._attributes.append(self._attributes[-1] | attributes)
            if (local_name := name.rpartition(":")[2]) not in self._unit_names:
                self._on_start(local_name, attributes)
                return
            self._line = self._expat.CurrentLineNumber
            self._drop_before(place)
        element = Element(name, attributes, place - self._buffer_begin)
        if self._depth:
            self._open[-1].children.append(element)
        self._open.append(element)
        self._depth += 1

    def _end(self, _name: str) -> None:
        if self._depth > self._levels + 1:
            self._depth -= 1
            return
        place = self._expat.CurrentByteIndex
        if self._depth:
            self._depth -= 1
            element = self._open.pop()
            element.last = place - self._buffer_begin
            if self._depth:
                return
            content, self._last_unit_end = bytes(self._buffer[: element.last]), place
            self._units.append(Unit(element.children, content, self._characters, self._line, self._attributes[-1]))
        self._last_tag = place
        self._attributes.pop()

    def _doctype(self, _name: str, _system: str | None, _public: str | None, has_internal_subset: int) -> None:
        if has_internal_subset:
            self._refuse_declaration()

    def _refuse_declaration(self, *_: Any) -> None:
        raise UserError(
            f"{self._name}:{self._expat.CurrentLineNumber}: the document type declares entities or elements, which "
            "can make a file endless or read other files. Remove the declaration."
        )


def decode_xml(content: bytes, name: str) -> tuple[str, str]:
    """The characters of a file and its codec."""
    return decode(content, name, _declared(content))


def indentation(text: str, place: int) -> str:
    """The blanks before a place, with the line end before them."""
    match = INDENTATION.search(text, max(0, place - 200), place)
    return match.group() if match else ""


def without_illegal(text: str) -> str:
    """The text without characters that XML cannot hold; a model may produce them."""
    return ILLEGAL_CHARACTER.sub("", text)


def _declared(content: bytes) -> str | None:
    declared = XML_ENCODING.search(content)
    return UTF16_BY_FIRST_BYTES.get(content[:2]) or (declared[1].decode() if declared else None)
