"""XML read unit by unit: one parser checks a file of any length and says where its units and their texts stand.

The file must be well-formed, in a known encoding, and free of entities of its own. Nothing outside of it is read.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any
from xml.parsers import expat

from transduce.system.errors import UserError
from transduce.wings.documents.document import decode, decode_pieces

XML_ENCODING = re.compile(rb"\A(?:\xef\xbb\xbf)?<\?xml[^>]*?\sencoding\s*=\s*[\"']([\w.:-]+)[\"']")
UTF16_BY_FIRST_BYTES = {b"<\0": "utf-16-le", b"\0<": "utf-16-be"}  # without a byte order mark
XML_DECLARATION_BYTES = 1024
MAX_BYTES_WITHOUT_UNIT = 50_000_000  # a stream keeps what follows the last unit in memory
TAG_BYTES = re.compile(rb"""<(?:[^"'>]++|"[^"]*+"|'[^']*+')*+>""")
INDENTATION = re.compile(r"(?:\r?\n)?[ \t]*\Z")
ILLEGAL_CHARACTER = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
TRUNCATION_ERRORS = ("no element found", "unclosed token", "unclosed CDATA section", "partial character")  # of expat


@dataclass(slots=True, eq=False)
class Element:
    """An element and its place, in bytes of the file as UTF-8. Around units, only the beginning is known."""

    name: str  # without its prefix
    full_name: str
    attributes: dict[str, str]
    line: int
    begin: int
    parent: "Element | None" = None  # of a unit and the elements around it
    children: list["Element"] = field(default_factory=list)
    end: int = 0  # exact unless the element is empty and no text
    # Only of texts:
    content_begin: int = 0
    content_end: int = 0
    is_empty: bool = False  # written `<target/>`
    tag: str = ""  # of an empty text, as the file writes it
    content: str = ""  # as the file writes it

    def inherited(self, attribute: str) -> str | None:
        """The attribute's value here or on the nearest element around."""
        element: Element | None = self
        while element is not None and attribute not in element.attributes:
            element = element.parent
        return element.attributes[attribute] if element else None


class UnitReader:
    """Finds the units of a file and their texts.

    units, texts: names of the elements that are a unit and, within a unit, a text; what is in a text is not looked at.
    on_start: called with each element around the units when it begins.
    """

    def __init__(
        self, name: str, units: Iterable[str], texts: Iterable[str], on_start: Callable[[Element], object]
    ) -> None:
        self._name, self._unit_names, self._text_names, self._on_start = name, {*units}, {*texts}, on_start
        self._expat = expat.ParserCreate("utf-8")
        self._expat.StartElementHandler = self._start
        self._expat.EndElementHandler = self._end
        self._expat.StartDoctypeDeclHandler = self._doctype
        self._expat.EntityDeclHandler = self._refuse_declaration
        self._buffer, self._buffer_begin = bytearray(), 0  # the file's bytes from the open unit or the last tag on
        self._last_tag = self._last_unit_end = 0  # bytes of the file
        self._open: list[Element] = []  # from the outermost on
        self._unit: Element | None = None
        self._inside_text = 0  # open elements from the text on
        self._units: list[Element] = []  # complete, not yet yielded

    def read(self, texts: Iterable[str]) -> Iterator[Element]:
        """The units of a file whose characters come in pieces.

        Raises UserError that names the line that is not XML or declares entities, and for a stretch without units
        that would fill the memory.
        """
        for text in texts:
            yield from self._parse(text.encode())
            if self._buffer_begin + len(self._buffer) - self._last_unit_end > MAX_BYTES_WITHOUT_UNIT:
                raise UserError(
                    f"{self._name}:{self._expat.CurrentLineNumber}: more than {MAX_BYTES_WITHOUT_UNIT:,} bytes "
                    "without a unit. Remove them."
                )
        yield from self._parse(b"", last=True)

    def _parse(self, content: bytes, *, last: bool = False) -> list[Element]:
        """The units that end in the next bytes of the file."""
        kept = self._unit.begin if self._unit else self._last_tag
        del self._buffer[: kept - self._buffer_begin]
        self._buffer_begin = kept
        self._buffer += content
        try:
            self._expat.Parse(content, last)
        except expat.ExpatError as error:
            reason = expat.ErrorString(error.code)
            truncated = ", or the file is cut short" if last and reason.startswith(TRUNCATION_ERRORS) else ""
            raise UserError(f"{self._name}:{error.lineno}: not well-formed XML: {reason}{truncated}.") from None
        units, self._units = self._units, []
        return units

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        if self._inside_text:
            self._inside_text += 1
            return
        begin, line = self._expat.CurrentByteIndex, self._expat.CurrentLineNumber
        self._last_tag = begin
        element = Element(name.rpartition(":")[2], name, attributes, line, begin)
        if self._unit:
            self._open[-1].children.append(element)
            if element.name in self._text_names:
                self._inside_text = 1
                element.content_begin = self._tag_end(begin)
                if self._buffer.startswith(b"/>", element.content_begin - 2 - self._buffer_begin):
                    element.is_empty, element.tag = True, self._text(begin, element.content_begin)
        else:
            element.parent = self._open[-1] if self._open else None
            if element.name in self._unit_names:
                self._unit = element
            else:
                self._on_start(element)
        self._open.append(element)

    def _end(self, _name: str) -> None:
        if self._inside_text > 1:
            self._inside_text -= 1
            return
        element, at = self._open.pop(), self._expat.CurrentByteIndex
        self._last_tag = at
        if not self._unit:
            return
        if self._inside_text:
            element.content_end, element.content = at, self._text(element.content_begin, at)
            self._inside_text = 0
        if element.is_empty:
            element.end = at  # expat's place is already behind the tag
        else:
            element.end = self._buffer.find(b">", at - self._buffer_begin) + 1 + self._buffer_begin
        if element is self._unit:
            self._units.append(element)
            self._unit, self._last_unit_end = None, element.end

    def _tag_end(self, begin: int) -> int:
        tag = TAG_BYTES.match(self._buffer, begin - self._buffer_begin)
        assert tag is not None
        return self._buffer_begin + tag.end()

    def _text(self, begin: int, end: int) -> str:
        return self._buffer[begin - self._buffer_begin : end - self._buffer_begin].decode()

    def _doctype(self, _name: str, _system: str | None, _public: str | None, has_internal_subset: int) -> None:
        if has_internal_subset:
            self._refuse_declaration()

    def _refuse_declaration(self, *_: Any) -> None:
        raise UserError(
            f"{self._name}:{self._expat.CurrentLineNumber}: the document type declares entities or elements, which "
            "can make a file endless or read other files. Remove the declaration."
        )


class Characters:
    """Converts places in bytes of a text's UTF-8 to places in its characters; places that ascend are fast."""

    def __init__(self, text: str) -> None:
        self._content = text.encode()
        self._is_ascii = len(self._content) == len(text)
        self._byte = self._character = 0

    def __call__(self, byte: int) -> int:
        if self._is_ascii:
            return byte
        if byte < self._byte:
            self._character -= len(self._content[byte : self._byte].decode())
        else:
            self._character += len(self._content[self._byte : byte].decode())
        self._byte = byte
        return self._character


def decode_xml(content: bytes, name: str) -> tuple[str, str]:
    """The characters of a file and its codec."""
    return decode(content, name, _declared(content))


def decode_xml_pieces(pieces: Iterable[bytes], name: str) -> Iterator[str]:
    """The characters of a file that comes in pieces."""
    return decode_pieces(pieces, name, _declared, XML_DECLARATION_BYTES)


def indentation(text: str, place: int) -> str:
    """The blanks before a place, with the line end before them."""
    match = INDENTATION.search(text, max(0, place - 200), place)
    return match.group() if match else ""


def fill(element: Element, content: str) -> str:
    """An empty element, `<target/>`, with this content."""
    return fill_tag(element.tag, element.full_name, content)


def fill_tag(tag: str, full_name: str, content: str) -> str:
    """The element of an empty tag with this content."""
    return re.sub(r"\s*/>\Z", ">", tag) + f"{content}</{full_name}>"


def without_illegal(text: str) -> str:
    """The text without characters that XML cannot hold; a model may produce them."""
    return ILLEGAL_CHARACTER.sub("", text)


def _declared(content: bytes) -> str | None:
    declared = XML_ENCODING.search(content)
    return UTF16_BY_FIRST_BYTES.get(content[:2]) or (declared[1].decode() if declared else None)
