"""A document is the content of a file with slots for translations.

The content outside the slots is written back byte for byte.
"""

import codecs
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Literal, NamedTuple, Protocol

from transduce.decoding.translator import Translator
from transduce.decoding.types import PLAIN, TranslationOptions
from transduce.system.errors import UserError
from transduce.text.file_kinds import utf_16
from transduce.text.formats import PLAIN_TEXT, TextKind, read_document
from transduce.text.languages import main_language, script_of

BYTE_ORDER_MARKS = {  # the longest first: UTF-32's mark begins with UTF-16's
    codecs.BOM_UTF32_LE: "utf-32-le",
    codecs.BOM_UTF32_BE: "utf-32-be",
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF16_LE: "utf-16-le",
    codecs.BOM_UTF16_BE: "utf-16-be",
}
# Rejected codecs.
NOT_CHARSETS = {
    "idna",
    "punycode",
    "unicode_escape",
    "raw_unicode_escape",
    "undefined",
    "utf_7",
}
NEED_BYTE_ORDER_MARK = {"utf_8_sig", "utf_16", "utf_32"}
# Default values of the configuration: no real languages.
UNSPECIFIED_LANGUAGES = (
    "src",
    "tgt",
    "source",
    "target",
    "und",
    "mul",
)
# Tags around parts of a markup text that must not change: around words, and around pictures and the like.
KEPT_WORD = ('<kept-by-transduce translate="no">', "</kept-by-transduce>")
KEPT_OBJECT = ("<svg kept-by-transduce>", "</svg kept-by-transduce>")


class Edit(NamedTuple):
    """New content for the characters of a file from `begin` to before `end`."""

    begin: int
    end: int
    text: str


class Branches(Protocol):
    """Several texts that one slot holds. `write` puts their translations together, or returns "" if one is missing."""

    @property
    def texts(self) -> list[str]: ...
    def write(self, translations: Sequence[str]) -> str: ...


class Slot(NamedTuple):
    """A place in a file where a translation is written."""

    text: str  # the text to translate
    present: str  # the current content: the text or, in a file with both languages, its existing translation
    line: int
    begin: int  # index of the first character of the file that the translation replaces
    end: int  # index after the last character that it replaces
    write: Callable[[str], str]  # converts a translation to the syntax of the file
    kind: TextKind = PLAIN_TEXT
    # For an attribute of a tag, or a text in an embedded element, inside another slot: the index of that slot.
    within: int | None = None
    # If `within` is set: begin and end of that tag or element in the file.
    tag: tuple[int, int] = (
        0,
        0,
    )
    branched: Branches | None = (
        None  # such as the branches of an ICU message, translated one by one
    )
    # Edits outside the slot, which say that a person must review a new translation.
    marks: tuple[Edit, ...] = ()

    @property
    def texts(self) -> list[str]:
        return self.branched.texts if self.branched else [self.text]


@dataclass(frozen=True)
class Document:
    """A file and its slots in file order, with each text before the attributes inside the text."""

    name: str
    content: str
    codec: str
    slots: tuple[Slot, ...]
    completions: tuple[Edit, ...] = ()  # made if any slot gets a translation
    notes: tuple[str, ...] = ()  # what the user should know about the file

    @cached_property
    def texts(self) -> list[str]:
        """The texts to translate."""
        return [text for slot in self.slots for text in slot.texts]

    @cached_property
    def kinds(self) -> list[TextKind]:
        return [slot.kind for slot in self.slots for _ in slot.texts]

    @cached_property
    def lines(self) -> list[int]:
        return [slot.line for slot in self.slots for _ in slot.texts]

    def write(self, translations: Sequence[str], *, complete: bool = False) -> bytes:
        """The translated file; an empty translation leaves its slot unchanged.

        If `complete` is true, makes the completions even if no slot changes. Raises UserError if the file's encoding
        lacks a character of a translation.
        """
        if len(translations) != len(self.texts):
            raise ValueError(f"{len(translations)} translations of {len(self.texts)} texts")
        rest = iter(translations)
        final = [_translation(slot, rest) or slot.present for slot in self.slots]
        edits = list[Edit]()
        for i, slot in enumerate(self.slots):
            new = self._changed(i, final) if slot.within is None else None
            if new is not None:
                edits += [Edit(slot.begin, slot.end, self._encodable(new, slot)), *slot.marks]
        if edits or complete:
            edits = [*self.completions, *edits]
        in_order = sorted(dict.fromkeys(edits), key=lambda edit: edit.begin)
        return self._edited(0, len(self.content), in_order).encode(self.codec)

    def _edited(self, begin: int, end: int, edits: Iterable[Edit]) -> str:
        """The file's characters from `begin` to `end`, with edits in the order of the file."""
        parts = list[str]()
        for edit in edits:
            parts += [self.content[begin : edit.begin], edit.text]
            begin = edit.end
        return "".join([*parts, self.content[begin:end]])

    @cached_property
    def _attributes(self) -> dict[int, dict[tuple[int, int], list[int]]]:
        """The indices of slots inside others, grouped by enclosing slot and then by tag or element."""
        attributes: dict[int, dict[tuple[int, int], list[int]]] = {}
        for i, slot in enumerate(self.slots):
            if slot.within is not None:
                attributes.setdefault(slot.within, {}).setdefault(slot.tag, []).append(i)
        return attributes

    def _changed(self, number: int, final: list[str]) -> str | None:
        """The new content of a slot, with the texts in its tags and embedded elements; None if nothing changes."""
        slot = self.slots[number]
        inside = dict[str, str]()
        edits = list[Edit]()
        for (begin, end), numbers in self._attributes.get(number, {}).items():
            inner = [(self.slots[i], self._changed(i, final)) for i in numbers]
            its = [Edit(each.begin, each.end, text) for each, text in inner if text is not None]
            edits += its
            inside[self.content[begin:end]] = self._edited(begin, end, its)
        if final[number] == slot.present:
            in_order = sorted(edits, key=lambda edit: edit.begin)
            return self._edited(slot.begin, slot.end, in_order) if edits else None
        written = slot.write(final[number])
        if not edits:
            return written
        places = sorted(map(re.escape, inside), key=len, reverse=True)  # an element before its tag
        return re.sub("|".join(places), lambda place: inside[place.group()], written)

    def _encodable(self, text: str, slot: Slot) -> str:
        """Replace characters outside the codec by character references; raises UserError in plain text."""
        try:
            text.encode(self.codec)
        except UnicodeEncodeError as error:
            if slot.kind.markup:
                return text.encode(self.codec, "xmlcharrefreplace").decode(self.codec)
            raise UserError(
                f"{self.name}:{slot.line}: the translation has {text[error.start]!r}, "
                f"which the file's encoding {self.codec} lacks.",
                "Convert the file to UTF-8 first.",
            ) from None
        return text


def _translation(slot: Slot, rest: Iterator[str]) -> str:
    """The translation of a slot, from the next items of `rest`, the translations of the slot's texts."""
    its = [next(rest) for _ in slot.texts]
    return slot.branched.write(its) if slot.branched else its[0]


class LineCounter:
    """Finds the line numbers of indices in ascending order."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._counted = 0
        self._line = 1

    def line(self, index: int) -> int:
        """The number, from 1, of the line that has the character at an index."""
        self._line += self._text.count("\n", self._counted, index)
        self._counted = index
        return self._line


def without_kept_marks(translation: str) -> str:
    """Remove the tags KEPT_WORD and KEPT_OBJECT."""
    for mark in (*KEPT_WORD, *KEPT_OBJECT):
        translation = translation.replace(mark, "")
    return translation


def spoken_language(code: str) -> str:
    """The language of a code such as "en-GB", without its region or script; "" for codes such as "und"."""
    language = main_language(code.partition("@")[0])
    is_code = len(language) in (2, 3) and language.isalpha()
    if code in UNSPECIFIED_LANGUAGES or not is_code:  # src is also a code of Sardinian
        return ""
    return "nb" if language == "nn" else language


def check_language(
    name: str, direction: Literal["from", "into"], declared: str, wanted: str
) -> None:
    """Raise UserError if the languages or scripts of two codes differ; regions such as "-US" may differ."""
    codes = {spoken_language(code) for code in (declared, wanted)}
    scripts = {script_of(code) for code in (declared, wanted)} - {""}
    if "" not in codes and max(len(codes), len(scripts)) > 1:
        raise UserError(
            f"{name} declares translation {direction} {declared!r}, but the requested "
            f"translation is {direction} {wanted!r}.",
            "Use another model or other language codes, or correct the file.",
        )


def decode(content: bytes, name: str, declared: str | None = None) -> tuple[str, str]:
    """Decode a file; returns the text and the codec.

    Raises UserError if the codec can't decode the file or can't encode the text as the same bytes.
    """
    codec = choose_codec(content, name, declared)
    text = "".join(decode_pieces([content], name, lambda _: declared, 1))
    if text.encode(codec) != content:
        raise UserError(
            f"{name}: its encoding, {codec}, can't reproduce the file.",
            "Convert the file to UTF-8.",
        )
    return text, codec


def choose_codec(content: bytes, name: str, declared: str | None = None) -> str:
    """The codec of a file that begins with the bytes `content`; raises UserError for an unknown encoding."""
    found = next(
        (codec for mark, codec in BYTE_ORDER_MARKS.items() if content.startswith(mark)), declared
    )
    codec = found or utf_16(content) or "utf-8"
    try:
        canonical = codecs.lookup(codec).name.replace("-", "_")
        if canonical in NOT_CHARSETS:
            raise LookupError
        "".encode(codec)  # raises LookupError if the codec does not encode text
    except LookupError:
        raise UserError(
            f"{name} declares encoding {codec!r}, which is unknown.",
            "Correct the declaration, or convert the file to UTF-8.",
        ) from None
    if canonical in NEED_BYTE_ORDER_MARK:
        raise UserError(
            f"{name} declares the encoding {codec!r}, but does not begin with a byte order mark.",
            "Correct the declaration, or convert the file to UTF-8.",
        )
    return codec


def decode_pieces(
    pieces: Iterable[bytes],
    name: str,
    declared: Callable[[bytes], str | None],
    beginning_bytes: int,
    *,
    lenient: bool = False,
) -> Iterator[str]:
    """Decode a file that arrives in chunks of bytes.

    `declared` finds the declared encoding in the first `beginning_bytes` bytes. An undecodable byte raises UserError
    or, if `lenient`, becomes a lone surrogate.
    """
    stream = iter(pieces)
    beginning = b""
    while len(beginning) < beginning_bytes and (piece := next(stream, None)) is not None:
        beginning += piece
    declaration = declared(beginning)
    codec = choose_codec(beginning, name, declaration)
    decoder = codecs.getincrementaldecoder(codec)("surrogateescape" if lenient else "strict")
    line = 1
    for piece in chain([beginning], stream, [None]):  # None: the end
        try:
            text = decoder.decode(piece or b"", final=piece is None)
        except UnicodeDecodeError as error:
            line += error.object[: error.start].decode(codec, "ignore").count("\n")
            wrong = f"byte 0x{error.object[error.start]:02X} is not {codec.upper()}"
            declare = (
                "Correct the declared encoding"
                if declaration
                else "Declare the file's encoding if the format allows a declaration"
            )
            raise UserError(
                f"{name}:{line}: {wrong}.", f"{declare}, or convert the file to UTF-8."
            ) from None
        line += text.count("\n")
        yield text


class TranslatedDocument(NamedTuple):
    content: bytes
    texts: int  # number of translated texts
    # Line and flags of each text whose translation has flags.
    flagged: list[tuple[int, tuple[str, ...]]]
    notes: tuple[str, ...] = ()  # what the user should know about the file


def translate_document(
    translator: Translator,
    content: bytes,
    name: str,
    source: str,
    target: str,
    *,
    redo: bool = False,
    needs_review: bool = False,
    options: TranslationOptions = PLAIN,
    examine: Callable[[Sequence[str]], None] | None = None,
) -> TranslatedDocument:
    """Translate a file in the format that the suffix of `name` indicates.

    If `redo` is true, existing translations in the file are replaced. If `needs_review` is true, new translations in PO
    and XLIFF files are marked for review by a person. `examine` is called with the texts before they are translated.
    Raises UserError for an unreadable file.
    """
    document = read_document(content, name, source, target, redo=redo, needs_review=needs_review)
    if examine:
        examine(document.texts)
    options = options._replace(sentences=True)
    lines = document.lines
    translations = list(
        translator.translate_lines(document.texts, options, kinds=document.kinds, numbers=lines)
    )
    flagged = [
        (line, each.flags) for line, each in zip(lines, translations, strict=True) if each.flags
    ]
    content = document.write([each.text for each in translations])
    return TranslatedDocument(content, len(translations), flagged, document.notes)
