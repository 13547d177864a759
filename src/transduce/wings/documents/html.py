"""Reads the translatable texts and attributes of HTML pages and fragments."""

import codecs
import re
from bisect import bisect_left
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial

from transduce.inline.markup import Piece, attribute, attributes, pieces
from transduce.inline.markup_events import is_kept, is_protected, last_piece
from transduce.inline.placeholder_removal import is_text
from transduce.inline.placeholders import mask
from transduce.text.formats import MARKUP_TEXT, DocumentFile
from transduce.text.plain import BYTE_ORDER_MARK
from transduce.wings.documents.document import Document, Slot, decode
from transduce.wings.documents.xml import XML_ENCODING

META_CHARSET = re.compile(rb"<meta[^>]{1,200}?charset\s*=\s*[\"']?\s*([\w.:-]+)", re.IGNORECASE)
META_CHARSET_BYTES = 4096  # searched at the beginning of the file
AS_BROWSERS_READ = {  # codecs that browsers replace by larger ones (WHATWG, Encoding, 4.2)
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
    "a abbr acronym b bdi bdo big cite code data del dfn em font i img ins kbd mark nobr q rb rp rt rtc ruby s samp "
    "small span strike strong sub sup time tt u var wbr"
)
INLINE = frozenset(INLINE_NAMES.split())
SKIPPED = frozenset(["pre", "listing", "template"])  # in addition to protected elements
SPOKEN = ("alt", "title", "placeholder", "aria-label")
DESCRIPTIONS = (
    "description",
    "keywords",
    "og:title",
    "og:description",
    "twitter:title",
    "twitter:description",
)
BUTTONS = ("submit", "button", "reset")


@dataclass
class _Run:
    """Text and inline elements between two block boundaries."""

    begin: int = -1  # -1: empty
    end: int = -1
    tags: list[Piece] = field(default_factory=list)


def read_html(file: DocumentFile) -> Document:
    """The texts of blocks and attributes, except in elements that must not be translated."""
    text, codec = decode(file.content, file.name, _encoding(file.content))
    elements = list(pieces(text, html=True))
    line_ends = [match.start() for match in re.finditer("\n", text)]
    run = _Run()
    slots = list[Slot]()
    i = 0
    while i < len(elements):
        first = elements[i]
        tag = text[first.begin : first.end]
        if first.kind == "open" and (first.name in SKIPPED or is_protected(first, tag)):
            i = last_piece(elements, i)
        if (
            first.kind == "text"
            or (first.kind == "other" and tag.startswith("<!--"))
            or first.name in INLINE
        ):
            run.begin = first.begin if run.begin < 0 else run.begin
            run.end = elements[i].end
            if first.kind in ("open", "empty"):
                run.tags.append(first)
        else:
            slots += _slots(text, run, line_ends, len(slots))
            run = _Run()
            if first.kind in ("open", "empty"):
                slots += _attributes(text, first, line_ends, None)
        i += 1
    slots += _slots(text, run, line_ends, len(slots))
    return Document(file.name, text, codec, tuple(slots))


def _encoding(content: bytes) -> str | None:
    """The declared encoding, or the one that browsers read instead, if the content can be read in it."""
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


def _slots(text: str, run: _Run, line_ends: list[int], number: int) -> list[Slot]:
    """The slots of a run's text and of its tags' attributes; `number` is the first slot's index."""
    if run.begin < 0:
        return []
    raw = text[run.begin : run.end]
    begin = run.begin + len(raw) - len(raw.removeprefix(BYTE_ORDER_MARK).lstrip())
    raw = text[begin : run.end].rstrip()
    slots = list[Slot]()
    within = None
    if is_text(mask(raw, MARKUP_TEXT)):
        within = number
        slots.append(
            Slot(
                raw,
                raw,
                bisect_left(line_ends, begin) + 1,
                begin,
                begin + len(raw),
                str,
                MARKUP_TEXT,
            )
        )
    for tag in run.tags:
        slots += _attributes(text, tag, line_ends, within)
    return slots


def _attributes(text: str, piece: Piece, line_ends: list[int], within: int | None) -> list[Slot]:
    """The slots of a tag's attributes that readers see or hear."""
    tag = text[piece.begin : piece.end]
    if is_kept(tag):
        return []
    slots = []
    places = attributes(tag)
    for begin, end in sorted(places[name] for name in _spoken(piece, tag) if name in places):
        value = tag[begin:end]
        first = piece.begin + begin
        if is_text(mask(value, MARKUP_TEXT)):
            write = partial(_write_value, tag[begin - 1])
            line = bisect_left(line_ends, first) + 1
            whole = (piece.begin, piece.end)
            slots.append(
                Slot(
                    value, value, line, first, piece.begin + end, write, MARKUP_TEXT, within, whole
                )
            )
    return slots


def _spoken(piece: Piece, tag: str) -> tuple[str, ...]:
    if piece.name == "meta":
        kind = attribute(tag, "name") or attribute(tag, "property") or ""
        return ("content",) if kind.lower() in DESCRIPTIONS else ()
    if piece.name == "input" and (attribute(tag, "type") or "").lower() in BUTTONS:
        return (*SPOKEN, "value")
    return SPOKEN


def _write_value(quote: str, translation: str) -> str:
    """Escape the value of an attribute, and add quotation marks if the file has none around the value."""
    if quote == "'":
        return translation.replace("'", "&#39;")
    escaped = translation.replace('"', "&quot;")
    return escaped if quote == '"' else f'"{escaped}"'
