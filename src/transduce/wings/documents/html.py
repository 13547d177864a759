"""HTML, whole pages or parts: the texts of its blocks, with the elements in them, and what attributes say to people."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from transduce.text.inline import is_protected, last_piece
from transduce.text.markup import Piece, attribute, attributes, pieces
from transduce.text.placeholders import is_text, mask
from transduce.text.plain import BYTE_ORDER_MARK
from transduce.wings.documents.document import Document, Slot, decode
from transduce.wings.documents.xml import DECLARED

CHARSET = re.compile(rb"<meta[^>]{1,200}?charset\s*=\s*[\"']?\s*([\w.:-]+)", re.IGNORECASE)
HEAD = 4096  # bytes in which the encoding is declared
ELEMENTS = (
    "a abbr acronym b bdi bdo big cite code data del dfn em font i img ins kbd mark nobr q s samp small span strike "
    "strong sub sup time tt u var wbr"
)
INLINE = frozenset(ELEMENTS.split())
SKIPPED = frozenset(["pre", "listing", "template"])  # beside what is protected anyway
SPOKEN = ("alt", "title", "placeholder", "aria-label")
DESCRIPTIONS = ("description", "keywords", "og:title", "og:description", "twitter:title", "twitter:description")
BUTTONS = ("submit", "button", "reset")


@dataclass
class _Run:
    """Text and inline elements between the edges of blocks."""

    begin: int = -1  # -1: nothing yet
    end: int = -1
    tags: list[Piece] = field(default_factory=list)


def read_html(content: bytes, name: str) -> Document:
    """The texts of blocks, without script, style, pre, code, and what has translate="no"."""
    declared = CHARSET.search(content, 0, HEAD) or DECLARED.search(content)
    text, codec = decode(content, name, declared[1].decode() if declared else None)
    found = list(pieces(text, html=True))
    lines, run, slots, i = _Lines(text), _Run(), list[Slot](), 0
    while i < len(found):
        piece = found[i]
        tag = text[piece.begin : piece.end]
        first = piece
        if piece.kind == "open" and (piece.name in SKIPPED or is_protected(piece, tag)):
            i = last_piece(found, i)
        if first.kind == "text" or (first.kind == "other" and tag.startswith("<!--")) or first.name in INLINE:
            run.begin = first.begin if run.begin < 0 else run.begin
            run.end = found[i].end
            run.tags += [first] * (first.kind in ("open", "empty"))
        else:
            slots += _slots(text, run, lines, len(slots))
            run = _Run()
            if first.kind in ("open", "empty"):
                slots += _attributes(text, first, lines, None)
        i += 1
    slots += _slots(text, run, lines, len(slots))
    return Document(name, text, codec, tuple(slots))


class _Lines:
    """The number of the line of a place; places are asked for in order, more or less."""

    def __init__(self, text: str) -> None:
        self.text, self.at, self.line = text, 0, 1

    def __call__(self, at: int) -> int:
        if at < self.at:
            return self.line - self.text.count("\n", at, self.at)
        self.line, self.at = self.line + self.text.count("\n", self.at, at), at
        return self.line


def _slots(text: str, run: _Run, lines: _Lines, number: int) -> list[Slot]:
    """The slot of a run, which has this number, and those of the attributes in it."""
    if run.begin < 0:
        return []
    raw = text[run.begin : run.end]
    begin = run.begin + len(raw) - len(raw.removeprefix(BYTE_ORDER_MARK).lstrip())
    raw = text[begin : run.end].rstrip()
    slots = list[Slot]()
    within = None
    if is_text(mask(raw, markup=True)):
        within = number
        slots.append(Slot(raw, raw, lines(begin), begin, begin + len(raw), str, "markup"))
    for tag in run.tags:
        slots += _attributes(text, tag, lines, within)
    return slots


def _attributes(text: str, piece: Piece, lines: _Lines, within: int | None) -> list[Slot]:
    """The attributes of a tag that people read or hear."""
    tag = text[piece.begin : piece.end]
    if attribute(tag, "translate") == "no":
        return []
    slots = []
    places = attributes(tag)
    for begin, end in sorted(places[name] for name in _spoken(piece, tag) if name in places):
        value, at = tag[begin:end], piece.begin + begin
        if is_text(mask(value, markup=True)):
            write, whole = _writer(tag[begin - 1]), (piece.begin, piece.end)
            slots.append(Slot(value, value, lines(at), at, piece.begin + end, write, "markup", within, whole))
    return slots


def _spoken(piece: Piece, tag: str) -> tuple[str, ...]:
    if piece.name == "meta":
        kind = attribute(tag, "name") or attribute(tag, "property") or ""
        return ("content",) if kind.lower() in DESCRIPTIONS else ()
    if piece.name == "input" and (attribute(tag, "type") or "").lower() in BUTTONS:
        return (*SPOKEN, "value")
    return SPOKEN


def _writer(quote: str) -> Callable[[str], str]:
    def write(new: str) -> str:
        if quote == "'":
            return new.replace("'", "&#39;")
        new = new.replace('"', "&quot;")
        return new if quote == '"' else f'"{new}"'

    return write
