"""Reads the translatable texts and attributes of HTML pages and fragments."""

import codecs
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

from transduce.inline.events import unescape
from transduce.inline.markup import Piece, attribute, attributes, pieces
from transduce.inline.markup_events import MAY_BE_UNCLOSED, is_kept, is_protected, last_piece
from transduce.inline.placeholder_removal import is_text
from transduce.inline.placeholders import mask
from transduce.text.formats import MARKUP_TEXT, DocumentFile
from transduce.text.plain import BYTE_ORDER_MARK
from transduce.wings.documents.document import (
    KEPT_OBJECT,
    KEPT_WORD,
    Document,
    Slot,
    decode,
    spoken_language,
    without_kept_marks,
)
from transduce.wings.documents.xml import XML_ENCODING

META_CHARSET = re.compile(rb"<meta[^>]{1,200}?charset\s*=\s*[\"']?\s*([\w.:-]+)", re.IGNORECASE)
META_CHARSET_BYTES = 4096  # searched at the beginning of the file
AS_BROWSERS_READ = {  # codecs that browsers replace by codecs with more characters (WHATWG, Encoding, 4.2)
    **{
        "iso8859-1": "cp1252",
        "ascii": "cp1252",
        "iso8859-9": "cp1254",
        "iso8859-11": "cp874",
        "euc_kr": "cp949",
    },
    **{
        "gb2312": "gb18030",
        "gbk": "gb18030",
        "x-gbk": "gb18030",
        "shift_jis": "cp932",
        "x-sjis": "cp932",
    },
}
INLINE_NAMES = (
    "a abbr acronym b bdi bdo big cite code data del dfn em embed font i img ins kbd mark nobr q rb rp rt rtc ruby s "
    "samp small span strike strong sub sup time tt u var wbr "
)
# Elements that stand for a picture, a player and the like in a sentence; texts inside are for browsers that can't show
# them.
EMBEDDED = frozenset(
    ["audio", "canvas", "iframe", "map", "math", "object", "picture", "svg", "video"]
)
INLINE = frozenset(INLINE_NAMES.split()) | EMBEDDED
CLOSED = frozenset(
    ["svg", "math", "iframe"]
)  # elements of EMBEDDED whose content is not translated
MAX_EMBEDDED_LEVELS = 4
SKIPPED = frozenset(["pre", "listing", "template"])  # in addition to protected elements
SPOKEN = (
    "alt",
    "title",
    "placeholder",
    "aria-label",
    "aria-description",
    "aria-placeholder",
    "aria-roledescription",
    "aria-valuetext",
)
LABELLED = frozenset(["optgroup", "option", "track"])
DESCRIPTIONS = frozenset(
    [
        "description",
        "keywords",
        "og:title",
        "og:description",
        "og:image:alt",
        "twitter:title",
        "twitter:description",
        "twitter:image:alt",
    ]
)
META_NAMES = ("name", "property", "itemprop")
BUTTONS = ("submit", "button", "reset")
# Their lang attributes are ignored: they are often wrong, and the user wants a translation.
PAGE_ELEMENTS = (
    "html",
    "body",
)
# An address, hashtag or name of a user, which sites often cut into several elements.
SHOWN_ADDRESS = re.compile(r"(?:https?://|ftp://|www\.|mailto:)\S+|[#@]\w[\w.@-]*")
PART_OF_ADDRESS = re.compile(r"\S*\w[./:@]\w\S*")
MAX_LINK_PIECES = 20


@dataclass
class _Run:
    """Text and inline elements between two block boundaries."""

    begin: int = -1  # -1: empty
    end: int = -1
    tags: list[Piece] = field(default_factory=list)
    embedded: list[range] = field(default_factory=list)  # indices of the pieces of elements
    # Elements that must not change, although the page does not declare it.
    kept: list[range] = field(default_factory=list)


class _Place(NamedTuple):
    """The place of a text inside another text: in the tag or element from `begin` to `end` in the file."""

    within: int | None = None  # index of the slot of the other text
    begin: int = 0
    end: int = 0


TOP = _Place()


def read_html(file: DocumentFile) -> Document:
    """The texts of blocks and attributes, except in elements that must not be translated.

    Texts are left out if their elements are declared to be in another language than `file.source`.
    """
    text, codec = decode(file.content, file.name, _encoding(file.content))
    return Document(file.name, text, codec, tuple(html_slots(text, file.source)))


def html_slots(text: str, source: str) -> list[Slot]:
    """The slots of a page or of a part of a page in the language `source`."""
    reader = _Reader(text, spoken_language(source))
    reader.read(range(len(reader.elements)), TOP, MAX_EMBEDDED_LEVELS)
    return reader.slots


class _Opened(NamedTuple):
    """An element whose closing tag is still to come."""

    first: int  # index of its opening tag
    name: str
    is_foreign: bool  # in another language than the source
    is_kept: bool  # declared as not to be translated

    @property
    def stays(self) -> bool:
        return self.is_foreign or self.is_kept


class _Reader:
    """Collects the slots of a page."""

    def __init__(self, text: str, source: str) -> None:
        self.text = text
        self.elements = list(pieces(text, html=True))
        self.slots = list[Slot]()
        self._line_ends = [match.start() for match in re.finditer("\n", text)]
        # For each piece, whether it must not change.
        self._stays = [False] * len(self.elements)
        # Untranslated elements with an inner element that is translated.
        self._mixed = set[int]()
        if re.search(r"(?i)\blang=|\btranslate=.?yes", text):
            self._find_untranslated(source)

    def _raw(self, piece: Piece) -> str:
        return self.text[piece.begin : piece.end]

    def _find_untranslated(self, source: str) -> None:
        """Find what is in another language than `source`, or must not be translated; elements inside may differ."""
        opened = [_Opened(-1, "", is_foreign=False, is_kept=False)]
        names = Counter[str]()
        for i, piece in enumerate(self.elements):
            self._stays[i] = opened[-1].stays
            closes_itself = piece.name in MAY_BE_UNCLOSED and opened[-1].name == piece.name
            closes = piece.kind == "close" and names[piece.name]
            if closes or (piece.kind == "open" and closes_itself):
                closed = ""
                while closed != piece.name:
                    closed = opened.pop().name
                    names[closed] -= 1
            if piece.kind not in ("open", "empty"):
                continue
            outer = opened[-1]
            inner = self._opened(i, outer, source)
            self._stays[i] = inner.stays
            if outer.stays and not inner.stays:
                for element in reversed(opened):
                    if element.first in self._mixed:
                        break  # then all outer elements are in `_mixed`, too
                    if element.stays:
                        self._mixed.add(element.first)
            if piece.kind == "open":
                opened.append(inner)
                names[piece.name] += 1

    def _opened(self, i: int, outer: "_Opened", source: str) -> "_Opened":
        """The element that begins at a piece, inside the element `outer`."""
        piece = self.elements[i]
        tag = self._raw(piece)
        declared = attribute(tag, "lang") or attribute(tag, "xml:lang") or ""
        language = spoken_language(declared) if source and piece.name not in PAGE_ELEMENTS else ""
        says_yes = (attribute(tag, "translate") or "").lower() == "yes"
        return _Opened(
            i,
            piece.name,
            is_foreign=language != source if language else outer.is_foreign,
            is_kept=not says_yes and (outer.is_kept or is_kept(tag)),
        )

    def read(self, span: range, place: _Place, levels: int) -> None:
        """Append the slots of pieces; `levels` limits the depth of embedded elements."""
        run = _Run()
        i = span.start
        while i < span.stop:
            first = self.elements[i]
            tag = self._raw(first)
            stays = self._stays[i]
            is_inline = first.name in INLINE and i not in self._mixed
            is_marked = first.kind == "open" and is_inline and (stays or self._is_address(i))
            begin = i
            is_embedded = first.kind == "open" and first.name in EMBEDDED and is_inline
            if is_marked or is_embedded or (first.kind == "open" and self._is_skipped(i)):
                i = last_piece(self.elements, i)
            is_comment = first.kind == "other" and tag.startswith("<!--")
            if (is_inline and first.kind != "close") or (
                not stays and (is_inline or is_comment or first.kind == "text")
            ):
                run.begin = first.begin if run.begin < 0 else run.begin
                run.end = self.elements[i].end
                if is_marked or (first.name in EMBEDDED and i > begin):
                    run.kept.append(range(begin, i + 1))
                if first.kind in ("open", "empty") and not stays:
                    run.tags.append(first)
                    if first.name in EMBEDDED - CLOSED and levels and i > begin:
                        run.embedded.append(range(begin, i + 1))
            else:
                self._end(run, place, levels)
                run = _Run()
                if first.kind in ("open", "empty") and not stays:
                    self._add_attributes(first, place)
            i += 1
        self._end(run, place, levels)

    def _is_skipped(self, i: int) -> bool:
        piece = self.elements[i]
        tag = self._raw(piece)
        is_whole = i not in self._mixed or not is_kept(tag)
        return piece.name in SKIPPED or (is_whole and is_protected(piece, tag))

    def _is_address(self, i: int) -> bool:
        """Whether a link's text is an address, a hashtag or the like, which would not be recognised in its elements."""
        if self.elements[i].name != "a":
            return False
        link = self.elements[i : i + MAX_LINK_PIECES]
        last = last_piece(link, 0)
        texts = [self._raw(piece) for piece in link[:last] if piece.kind == "text"]
        shown = unescape("".join(texts)).strip()
        if link[last].name != "a" or (len(texts) == 1 and "://" in shown):
            return False
        shown = shown.rstrip("…")
        address = attribute(self._raw(link[0]), "href") or ""
        is_part = PART_OF_ADDRESS.fullmatch(shown) is not None and shown in address
        return is_part or SHOWN_ADDRESS.fullmatch(shown) is not None

    def _end(self, run: _Run, place: _Place, levels: int) -> None:
        """Append the slots of a run's text, of its tags' attributes and of its embedded elements."""
        if run.begin < 0:
            return
        raw = self.text[run.begin : run.end]
        begin = run.begin + len(raw) - len(raw.removeprefix(BYTE_ORDER_MARK).lstrip())
        raw = self.text[begin : run.end].rstrip()
        marked = self._marked(begin, begin + len(raw), run.kept)
        number = len(self.slots)
        has_text = is_text(mask(marked, MARKUP_TEXT))
        if has_text:
            write = without_kept_marks if run.kept else str
            self._add(marked, place, begin, begin + len(raw), write)

        def inside(begin: int, end: int) -> _Place:
            return _Place(number, begin, end) if has_text else place

        wholes = {self.elements[span[0]]: self.elements[span[-1]].end for span in run.embedded}
        for tag in run.tags:
            self._add_attributes(tag, inside(tag.begin, wholes.get(tag, tag.end)))
        for span in run.embedded:
            first = self.elements[span[0]]
            if not is_kept(self._raw(first)):
                inner = range(span.start + 1, span.stop)
                self.read(inner, inside(first.begin, wholes[first]), levels - 1)

    def _marked(self, begin: int, end: int, kept: list[range]) -> str:
        """The text between two places, with marks around elements."""
        parts = list[str]()
        for span in kept:
            first = self.elements[span[0]]
            element_end = self.elements[span[-1]].end
            opening, closing = KEPT_OBJECT if first.name in EMBEDDED else KEPT_WORD
            element = self.text[first.begin : element_end]
            parts += [self.text[begin : first.begin], opening, element, closing]
            begin = element_end
        return "".join([*parts, self.text[begin:end]])

    def _add_attributes(self, piece: Piece, place: _Place) -> None:
        """Append the slots of a tag's attributes that readers see or hear."""
        tag = self._raw(piece)
        if is_kept(tag):
            return
        places = attributes(tag)
        for begin, end in sorted(places[name] for name in _spoken(piece, tag) if name in places):
            if is_text(mask(tag[begin:end], MARKUP_TEXT)):
                write = partial(_write_value, tag[begin - 1])
                self._add(tag[begin:end], place, piece.begin + begin, piece.begin + end, write)

    def _add(
        self, text: str, place: _Place, begin: int, end: int, write: Callable[[str], str]
    ) -> None:
        line = bisect_left(self._line_ends, begin) + 1
        whole = (place.begin, place.end)
        present = self.text[begin:end]
        self.slots.append(
            Slot(text, present, line, begin, end, write, MARKUP_TEXT, place.within, whole)
        )


def _encoding(content: bytes) -> str | None:
    """The declared encoding, or the larger encoding that browsers use instead, if it can decode the content."""
    declared = META_CHARSET.search(content, 0, META_CHARSET_BYTES) or XML_ENCODING.search(content)
    if declared is None:
        return None
    label = declared[1].decode()
    with suppress(LookupError, UnicodeDecodeError):  # `decode` raises the error
        known = label.lower() if label.lower() in AS_BROWSERS_READ else codecs.lookup(label).name
        if larger := AS_BROWSERS_READ.get(known):
            content.decode(larger)
            return larger
    return label


def _spoken(piece: Piece, tag: str) -> tuple[str, ...]:
    if piece.name == "meta":
        kind = next(filter(None, (attribute(tag, name) for name in META_NAMES)), "")
        return ("content",) if kind.lower() in DESCRIPTIONS else ()
    if piece.name == "input" and (attribute(tag, "type") or "").lower() in BUTTONS:
        return (*SPOKEN, "value")
    return (*SPOKEN, "label") if piece.name in LABELLED else SPOKEN


def _write_value(quote: str, translation: str) -> str:
    """Escape the value of an attribute, and add quotation marks if the file has none around the value."""
    if quote == "'":
        return translation.replace("'", "&#39;")
    escaped = translation.replace('"', "&quot;")
    return escaped if quote == '"' else f'"{escaped}"'
