"""A file as characters, with slots where its texts stand.

A reader for a format finds the slots; everything else of the file is never touched. A file that holds texts in two
languages has them in pairs, and its slots are where translations are missing.
"""

import codecs
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Literal, NamedTuple

from transduce.system.errors import UserError

Kind = Literal["plain", "markup", "preserved"]  # of a text; preserved: markup whose blanks mean what they are

MARKS = {  # byte order marks; the longer first
    codecs.BOM_UTF32_LE: "utf-32-le",
    codecs.BOM_UTF32_BE: "utf-32-be",
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF16_LE: "utf-16-le",
    codecs.BOM_UTF16_BE: "utf-16-be",
}
NO_CHARSETS = {"idna", "punycode", "unicode_escape", "raw_unicode_escape", "undefined", "utf_7"}  # for other ends
MARKED = {"utf_8_sig", "utf_16", "utf_32"}  # begin with a mark, which says more than they do
UNTOLD = ("src", "tgt", "source", "target")  # a model's languages where nobody has told them


class Slot(NamedTuple):
    """A place for a translation."""

    text: str  # what is to be translated
    present: str  # what stands there: the text itself or, if the file holds both, its translation so far
    line: int
    begin: int  # characters of the file, whose place what is written takes
    end: int
    write: Callable[[str], str]  # a translation as it is written there
    kind: Kind = "plain"
    within: int | None = None  # an attribute of a tag that is part of another slot: the number of that slot
    tag: tuple[int, int] = (0, 0)  # where that tag begins and ends


class Known(NamedTuple):
    """A text with its translation, both plain, and the line it stands in."""

    source: str
    target: str
    line: int


@dataclass(frozen=True)
class Document:
    """What a reader has found in a file; slots are in its order, attributes behind what they are part of."""

    name: str
    content: str
    codec: str
    slots: tuple[Slot, ...]

    @cached_property
    def texts(self) -> list[str]:
        """What is to be translated."""
        return [slot.text for slot in self.slots]

    @cached_property
    def kinds(self) -> list[Kind]:
        """Of each text."""
        return [slot.kind for slot in self.slots]

    @cached_property
    def lines(self) -> list[int]:
        """Where each text stands."""
        return [slot.line for slot in self.slots]

    @cached_property
    def present(self) -> list[str]:
        """What stands where translations go; `write` of it is the file, byte for byte."""
        return [slot.present for slot in self.slots]

    def write(self, translations: Sequence[str]) -> bytes:
        """The file with the translations, one for each text; an empty one leaves what is there.

        Raises UserError if the file's encoding lacks a character of a translation.
        """
        if len(translations) != len(self.slots):
            raise ValueError(f"{len(translations)} translations for {len(self.slots)} texts")
        final = [new or slot.present for slot, new in zip(self.slots, translations, strict=True)]
        parts, at = list[str](), 0
        for i, slot in enumerate(self.slots):
            new = self._with_attributes(i, final)
            if slot.within is None and new != slot.present:
                parts += [self.content[at : slot.begin], self._encodable(slot.write(new), slot)]
                at = slot.end
        return "".join([*parts, self.content[at:]]).encode(self.codec)

    @cached_property
    def _attributes(self) -> dict[int, dict[tuple[int, int], list[int]]]:
        """The slots of attributes by the slot and by the tag that they are part of."""
        found: dict[int, dict[tuple[int, int], list[int]]] = {}
        for i, slot in enumerate(self.slots):
            if slot.within is not None:
                found.setdefault(slot.within, {}).setdefault(slot.tag, []).append(i)
        return found

    def _with_attributes(self, place: int, final: list[str]) -> str:
        """A translation in which the attributes of its tags are translated."""
        new = final[place]
        for (begin, end), slots in self._attributes.get(place, {}).items():
            parts, at = list[str](), begin
            for slot, text in ((self.slots[i], final[i]) for i in slots):
                parts += [self.content[at : slot.begin], text if text == slot.present else slot.write(text)]
                at = slot.end
            new = new.replace(self.content[begin:end], "".join([*parts, self.content[at:end]]), 1)
        return new

    def _encodable(self, text: str, slot: Slot) -> str:
        """The text as the file's encoding can hold it: markup has references for what it can't."""
        try:
            text.encode(self.codec)
        except UnicodeEncodeError as error:
            if slot.kind != "plain":
                return text.encode(self.codec, "xmlcharrefreplace").decode(self.codec)
            raise UserError(
                f"{self.name}, line {slot.line}: the translation has {text[error.start]!r}, which the file's encoding "
                f"{self.codec} lacks; convert the file to UTF-8 first."
            ) from None
        return text


def check_language(name: str, direction: Literal["from", "into"], declared: str, wanted: str) -> None:
    """Raise UserError if a file says that it is in another language than the one wanted; a dialect is no other."""
    codes = [re.split("[-_@]", code.lower())[0] for code in (declared, wanted)]
    codes = ["no" if code in ("nb", "nn") else code for code in codes]
    if all(len(code) in (2, 3) and code.isalpha() and code not in UNTOLD for code in codes) and codes[0] != codes[1]:
        raise UserError(
            f"{name} says that it is for translation {direction} {declared!r}, but this is translation {direction} "
            f"{wanted!r}; use another model, or mend what the file says."
        )


def decode(content: bytes, name: str, declared: str | None = None) -> tuple[str, str]:
    """The characters of a file and the codec to write them with: by its byte order mark, as declared, or UTF-8.

    Encoding them gives the same bytes. Raises UserError that names the line and byte that can't be read.
    """
    codec = chosen_codec(content, name, declared)
    try:
        text = content.decode(codec)
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise UserError(_undecodable(name, line, content[error.start], codec)) from None
    if text.encode(codec) != content:
        raise UserError(f"{name} is in {codec}, in which it can't be written as it was; write it in UTF-8.")
    return text, codec


def chosen_codec(content: bytes, name: str, declared: str | None = None) -> str:
    """The codec of a file that begins so; raises UserError if there is none."""
    codec = next((codec for mark, codec in MARKS.items() if content.startswith(mark)), declared or "utf-8")
    try:
        known = codecs.lookup(codec).name.replace("-", "_")
        if known in NO_CHARSETS:
            raise LookupError
        "".encode(codec)  # some codecs are none of text
    except LookupError:
        raise UserError(
            f"{name} says that it is in {codec!r}, which is no known encoding; write it in UTF-8."
        ) from None
    if known in MARKED:
        raise UserError(
            f"{name} says that it is in {codec!r}, but doesn't begin with a byte order mark; mend what it says, or "
            "write it in UTF-8."
        )
    return codec


def decoded(
    pieces: Iterable[bytes], name: str, declared: Callable[[bytes], str | None], head: int, *, lenient: bool = False
) -> Iterator[str]:
    """The characters of a file that comes in pieces; declared: says its encoding by its beginning, of `head` bytes.

    Raises UserError that names the line that can't be read. lenient: such bytes are given, too; see `undecoded`.
    """
    stream, beginning = iter(pieces), b""
    while len(beginning) < head and (piece := next(stream, None)) is not None:
        beginning += piece
    codec = chosen_codec(beginning, name, declared(beginning))
    decoder, line = codecs.getincrementaldecoder(codec)("surrogateescape" if lenient else "strict"), 1
    for piece, last in chain(((each, False) for each in chain((beginning,), stream)), ((b"", True),)):
        try:
            text = decoder.decode(piece, last)
        except UnicodeDecodeError as error:
            line += error.object[: error.start].decode(codec, "ignore").count("\n")
            raise UserError(_undecodable(name, line, error.object[error.start], codec)) from None
        line += text.count("\n")
        yield text


def _undecodable(name: str, line: int, byte: int, codec: str) -> str:
    return (
        f"{name}, line {line}: byte 0x{byte:02X} is not {codec.upper()}; "
        "say its encoding where the format has a place for it, or write it in UTF-8."
    )
