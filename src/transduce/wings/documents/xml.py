"""XML that is safe to read: well-formed, in a known encoding, without entities of its own.

A file is read whole, as characters, or as a stream of any length. Nothing outside of it is ever looked at.
"""

import re
from collections.abc import Iterable, Iterator
from html import unescape
from typing import Any
from xml.parsers import expat

from transduce.system.errors import UserError
from transduce.wings.documents.document import decode, decoded

DECLARED = re.compile(rb"\A(?:\xef\xbb\xbf)?<\?xml[^>]*?\sencoding\s*=\s*[\"']([\w.:-]+)[\"']")
WITHOUT_MARK = {b"<\0": "utf-16-le", b"\0<": "utf-16-be"}  # UTF-16 by its first bytes
HEAD = 1024  # bytes that its declaration is in
LONGEST = 50_000_000  # bytes between units that a stream may hold
INDENTATION = re.compile(r"(?:\r?\n)?[ \t]*\Z")
ILLEGAL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")  # characters that XML can't hold
ENDS = ("no element found", "unclosed token", "unclosed CDATA section", "partial character")  # of what is cut short


def read_xml(content: bytes, name: str) -> tuple[str, str]:
    """The characters of a file and its codec; raises UserError that names the line that isn't XML or is dangerous."""
    text, codec = decode(content, name, _declared(content))
    Parser(name).feed(text, last=True)
    return text, codec


class Parser:
    """expat's parser, whose handlers may be set, with our errors."""

    def __init__(self, name: str) -> None:
        self.name, self.fed = name, 0  # bytes
        self.unit = 0  # byte of the tag that ended the last unit, which who reads a stream sets
        self.expat = expat.ParserCreate("utf-8")
        self.expat.buffer_text = True
        self.expat.StartDoctypeDeclHandler = self._doctype
        self.expat.EntityDeclHandler = self._refuse

    @property
    def line(self) -> int:
        """Where the parser is."""
        return self.expat.CurrentLineNumber

    def feed(self, text: str, *, last: bool = False) -> None:
        """The next part of the file; raises UserError that names the line that isn't XML or declares entities."""
        content = text.encode()
        self.fed += len(content)
        try:
            self.expat.Parse(content, last)
        except expat.ExpatError as error:
            what = expat.ErrorString(error.code)
            short = ", or the file is cut short" if last and what.startswith(ENDS) else ""
            raise UserError(f"{self.name}, line {error.lineno}: this is not well-formed XML: {what}{short}.") from None

    def entity(self, name: str) -> str:
        """The character of an entity that only a document type could tell, which isn't read; HTML's are known."""
        character = unescape(f"&{name};")
        if character == f"&{name};":
            raise UserError(f"{self.name}, line {self.line}: &{name}; is no entity that is known without a DTD.")
        return character

    def _doctype(self, _name: str, _system: str | None, _public: str | None, inner: int) -> None:
        if inner:
            self._refuse()

    def _refuse(self, *_: Any) -> None:
        raise UserError(
            f"{self.name}, line {self.line} declares a document type of its own, which can make a file "
            "endless or read others; take the declaration out."
        )


def stream_xml(pieces: Iterable[bytes], name: str, parser: Parser) -> Iterator[str]:
    """The characters of a file that comes in pieces, each when the parser has had it.

    Raises UserError as `Parser.feed` does, and for a stretch without units that would fill the memory.
    """
    for text in decoded(pieces, name, _declared, HEAD):
        parser.feed(text)
        if parser.fed - parser.unit > LONGEST:
            raise UserError(f"{name}, line {parser.line}: more than {LONGEST:,} bytes without a unit; take them out.")
        yield text
    parser.feed("", last=True)


def indentation(text: str, at: int) -> str:
    """The blanks before a place, with the line end before them."""
    found = INDENTATION.search(text, max(0, at - 200), at)
    return found.group() if found else ""


def element_name(tag: str) -> str:
    """What a tag that opens an element, or is empty, calls it."""
    found = re.match(r"<([^\s/>]+)", tag)
    return found[1] if found else ""


def filled(tag: str, content: str) -> str:
    """An element with this content, given its tag, which is empty: <target/>."""
    return re.sub(r"\s*/>\Z", ">", tag) + f"{content}</{element_name(tag)}>"


def legal(text: str) -> str:
    """The text without characters that XML can't hold, which a model may make up."""
    return ILLEGAL.sub("", text)


def _declared(content: bytes) -> str | None:
    declared = DECLARED.search(content)
    return WITHOUT_MARK.get(content[:2]) or (declared[1].decode() if declared else None)
