"""A streaming XML parser that finds the translation units of a file.

The file must be well-formed and must not declare entities. External DTDs are never read.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from xml.parsers import expat

from transduce.inline.events import ENTITY
from transduce.inline.markup import attributes, pieces
from transduce.inline.placeholders import mask
from transduce.system.errors import UserError
from transduce.text.formats import MARKUP_TEXT, PLAIN_TEXT, PRESERVED_TEXT, TextKind
from transduce.wings.documents.document import Edit, Slot, decode, decode_pieces

XML_ENCODING = re.compile(rb"\A(?:\xef\xbb\xbf)?<\?xml[^>]*?\sencoding\s*=\s*[\"']([\w.:-]+)[\"']")
UTF16_BY_FIRST_BYTES = {b"<\0": "utf-16-le", b"\0<": "utf-16-be"}  # without a byte order mark
XML_DECLARATION_BYTES = 1024
INHERITED_ATTRIBUTES = (  # attributes that also apply to the elements inside
    "srclang",
    "state",
    "approved",
    "translate",
    "xml:space",
    "restype",
    "target-language",
    "trgLang",
)
MAX_BYTES_WITHOUT_UNIT = 50_000_000  # all these bytes are kept in memory
XML_ATTRIBUTES = r"""(?:[^"'<>]++|"[^"<]*+"|'[^'<]*+')*+"""
TAG_BYTES = re.compile(rb"<" + XML_ATTRIBUTES.encode() + rb">")
INDENTATION = re.compile(r"(?:\r?\n)?[ \t]*\Z")
WHOLE_CDATA = re.compile(r"\s*<!\[CDATA\[(?P<text>(?:[^\]]|\](?!\]>))*+)\]\]>\s*")
ILLEGAL = "[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]"
ILLEGAL_CHARACTER = re.compile(ILLEGAL)
# Would end CDATA after the illegal characters are removed.
HIDDEN_END = re.compile(rf"\]{ILLEGAL}*\]{ILLEGAL}*>")
# Error messages of expat.
TRUNCATION_ERRORS = (
    "no element found",
    "unclosed token",
    "unclosed CDATA section",
)


@dataclass(slots=True, eq=False)
class Element:
    """An element in a unit; `begin` and `last` are byte offsets in `Unit.content`."""

    full_name: str
    attributes: dict[str, str]
    begin: int
    last: int = 0  # where the closing tag begins; for an empty element, its end
    children: list["Element"] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The name without its namespace prefix."""
        return self.full_name.rpartition(":")[2]


class Unit(NamedTuple):
    """A translation unit: an element that contains a text in several languages."""

    children: list[Element]
    content: bytes  # in UTF-8, from the opening tag to the beginning of the closing tag
    begin: int  # number of characters before the unit in the file
    line: int
    attributes: dict[str, str]  # INHERITED_ATTRIBUTES of the unit or else of the enclosing elements

    @property
    def opening(self) -> str:
        """The opening tag."""
        return self._tag(0).decode()

    def text(self, element: Element) -> str:
        """The content of an element, as XML."""
        return self.content[element.begin + len(self._tag(element.begin)) : element.last].decode()

    def character(self, byte: int) -> int:
        """Convert a byte offset in the unit to the index of a character in the file."""
        return self.begin + len(self.content[:byte].decode())

    def end(self, element: Element) -> int:
        """The index in the file of the first character after an element."""
        is_empty = self._tag(element.begin).endswith(b"/>")
        return self.character(
            element.last if is_empty else self.content.index(b">", element.last) + 1
        )

    def inside(self, element: Element) -> tuple[int, int, str, str]:
        """The begin and end of an element's content in the file, and the tags that an empty element needs around it."""
        tag = self._tag(element.begin)
        end = self.character(element.last)
        if tag.endswith(b"/>"):
            opening = f"{tag[:-2].decode().rstrip()}>"
            return self.character(element.begin), end, opening, f"</{element.full_name}>"
        return self.character(element.begin + len(tag)), end, "", ""

    def with_attribute(self, element: Element | None, name: str, value: str) -> Edit:
        """The edit that gives an attribute of an element, or of the unit itself, a value."""
        begin = element.begin if element else 0
        tag = self._tag(begin).decode()
        end = len(tag.rstrip("/>").rstrip())
        span = attributes(tag).get(name)
        first = self.character(begin)
        if span is None:
            return Edit(first + end, first + end, f' {name}="{value}"')
        return Edit(first + span[0], first + span[1], value)

    def _tag(self, begin: int) -> bytes:
        tag = TAG_BYTES.match(self.content, begin)
        assert tag is not None
        return tag.group()


@dataclass
class UnitReader:
    """Finds translation units in a stream of bytes."""

    name: str  # name of the file
    root: str  # the name of the root element
    units: Collection[str]  # the names of the units' elements
    levels: int  # limits the depth of the descendants in each unit
    # For each element outside the units, receives the name without its prefix, and the attributes.
    on_start: Callable[[str, dict[str, str]], object] = lambda *_: None

    def __post_init__(self) -> None:
        self._expat = expat.ParserCreate("utf-8")
        self._expat.StartElementHandler = self._start
        self._expat.EndElementHandler = self._end
        self._expat.StartDoctypeDeclHandler = self._doctype
        self._expat.EntityDeclHandler = self._refuse_declaration
        self._buffer = bytearray()  # bytes of the file from the open unit or the last tag
        self._buffer_begin = 0
        self._characters = 0  # number of characters before the buffer
        self._last_tag = self._last_unit_end = 0  # byte offsets in the file
        self._line = 0  # line of the open unit
        # Inherited attributes of the open elements around a unit (see Unit.attributes).
        self._attributes: list[dict[str, str]] = [{}]
        self._depth = 0  # number of open elements in the open unit, itself included
        self._open: list[Element] = []  # the recorded open elements
        self._complete: list[Unit] = []  # units that are not yet yielded
        self._has_root = False

    def read(self, pieces: Iterable[bytes]) -> Iterator[Unit]:
        """The file's units; raises UserError for malformed XML, declared entities and long gaps between units.

        Raises UserError at the end of a file that lacks the root element.
        """
        for text in decode_pieces(pieces, self.name, _declared, XML_DECLARATION_BYTES):
            yield from self._parse(text.encode())
            if (
                self._buffer_begin + len(self._buffer) - self._last_unit_end
                > MAX_BYTES_WITHOUT_UNIT
            ):
                raise UserError(
                    f"{self.name}:{self._expat.CurrentLineNumber}: more than "
                    f"{MAX_BYTES_WITHOUT_UNIT:,} bytes without a translation unit.",
                    "Remove these bytes.",
                )
        yield from self._parse(b"", last=True)
        if not self._has_root:
            raise UserError(
                f"{self.name} is XML but not {self.root.upper()}: it has no element <{self.root}>."
            )

    def _parse(self, content: bytes, *, last: bool = False) -> list[Unit]:
        """Parse the next bytes of the file; returns the units that end in these bytes."""
        if not self._depth:
            self._drop_before(self._last_tag)
        self._buffer += content
        try:
            self._expat.Parse(content, last)
        except expat.ExpatError as error:
            raise ill_formed(self.name, error, is_last=last) from None
        units = self._complete
        self._complete = []
        return units

    def _drop_before(self, byte: int) -> None:
        """Remove the bytes before the file offset `byte`, a character boundary, from the buffer."""
        count = byte - self._buffer_begin
        self._characters += len(self._buffer[:count].decode())
        del self._buffer[:count]
        self._buffer_begin = byte

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        if self._depth > self.levels:
            self._depth += 1
            return
        place = self._expat.CurrentByteIndex
        if not self._depth:
            self._last_tag = place
            own = {key: value for key, value in attributes.items() if key in INHERITED_ATTRIBUTES}
            self._attributes.append(self._attributes[-1] | own)
            local_name = name.rpartition(":")[2]
            self._has_root |= local_name == self.root
            if local_name not in self.units:
                self.on_start(local_name, attributes)
                return
            self._line = self._expat.CurrentLineNumber
            self._drop_before(place)
        element = Element(name, attributes, place - self._buffer_begin)
        if self._depth:
            self._open[-1].children.append(element)
        self._open.append(element)
        self._depth += 1

    def _end(self, _name: str) -> None:
        if self._depth > self.levels + 1:
            self._depth -= 1
            return
        place = self._expat.CurrentByteIndex
        if self._depth:
            self._depth -= 1
            element = self._open.pop()
            element.last = place - self._buffer_begin
            if self._depth:
                return
            content = bytes(self._buffer[: element.last])
            self._last_unit_end = place
            self._complete.append(
                Unit(element.children, content, self._characters, self._line, self._attributes[-1])
            )
        self._last_tag = place
        self._attributes.pop()

    def _doctype(
        self, _name: str, _system: str | None, _public: str | None, has_internal_subset: int
    ) -> None:
        if has_internal_subset:
            self._refuse_declaration()

    def _refuse_declaration(self, *_: Any) -> None:
        refuse_declaration(self.name, self._expat)


def refuse_declaration(name: str, parser: expat.XMLParserType, *_: Any) -> None:
    """Raise UserError for a declaration of an entity or element."""
    raise UserError(
        f"{name}:{parser.CurrentLineNumber}: the document type "
        "declares entities or elements, which can expand the file without limit "
        "or include other files.",
        "Remove the declarations.",
    )


def ill_formed(name: str, error: expat.ExpatError, *, is_last: bool) -> UserError:
    """The error for malformed XML; `is_last`: whether the file has ended."""
    reason = expat.ErrorString(error.code)
    is_truncated = is_last and reason.startswith(TRUNCATION_ERRORS)
    truncated = ", or the file is cut short" if is_truncated else ""
    return UserError(f"{name}:{error.lineno}: not well-formed XML: {reason}{truncated}.")


def decode_xml(content: bytes, name: str) -> tuple[str, str]:
    """The text of an XML file, and the file's codec."""
    return decode(content, name, _declared(content))


def indentation(text: str, place: int) -> str:
    """The line break, spaces and tabs directly before a position."""
    match = INDENTATION.search(text, max(0, place - 200), place)
    return match.group() if match else ""


def target_slot(
    unit: Unit,
    source: Element,
    target: Element | None,
    text: tuple[str, TextKind],
    new: tuple[int, str, str],
) -> Slot:
    """The slot for the translation of a source element, whose text and kind are `text`.

    `new` is the place in the file, the opening and the closing of a target element that is missing.
    """
    begin, end, opening, closing = unit.inside(target) if target else (new[0], *new)

    def write(translation: str) -> str:
        return f"{opening}{as_content(translation, unit.text(source))}{closing}"

    present = unit.text(target) if target else ""
    return Slot(text[0], present, unit.line, begin, end, write, text[1])


def has_text(content: str) -> bool:
    """Whether the content of an element has more than tags, comments and blanks."""
    if "<" not in content and "&" not in content:
        return bool(content.strip())
    text, kind = source_text(content, preserve=True)
    return bool(mask(text, kind).text.strip())


def source_text(content: str, *, preserve: bool) -> tuple[str, TextKind]:
    """The text of a source element and the text's kind; white space is unchanged if `preserve` is true."""
    if cdata := WHOLE_CDATA.fullmatch(content):
        text = cdata["text"]
        is_html = ENTITY.search(text) or any(
            piece.kind != "text" for piece in pieces(text, html=True)
        )
        return text, PRESERVED_TEXT if is_html else PLAIN_TEXT
    if "\n" in content and not preserve:
        return content.strip(), MARKUP_TEXT
    return content, PRESERVED_TEXT


def as_content(translation: str, source: str) -> str:
    """The content of a target: without characters that XML forbids, and in CDATA if the source's content is CDATA."""
    if WHOLE_CDATA.fullmatch(source):
        return f"<![CDATA[{ILLEGAL_CHARACTER.sub('', translation).replace(']]>', ']]]]><![CDATA[>')}]]>"
    ends_cdata = "<![CDATA[" in translation
    escaped = HIDDEN_END.sub(
        lambda end: end[0] if ends_cdata and end[0] == "]]>" else "]]&gt;", translation
    )
    content = ILLEGAL_CHARACTER.sub("", escaped)
    if "\n" not in source:
        return content
    begin = len(source) - len(source.lstrip())
    end = len(source.rstrip())
    return source[:begin] + content.strip() + source[end:]  # `source_text` has removed these blanks


def _declared(content: bytes) -> str | None:
    declared = XML_ENCODING.search(content)
    return UTF16_BY_FIRST_BYTES.get(content[:2]) or (declared[1].decode() if declared else None)
