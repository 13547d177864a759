"""Finds the texts of an XML fragment, and marks the elements that must not change.

An element with a text of its own, not only blanks, holds one text with everything inside. The tags around such elements
separate texts. DeepL calls this outline detection.
"""

import re
from collections.abc import Collection, Iterator
from itertools import pairwise
from typing import NamedTuple

from transduce.inline.markup import Piece, pieces
from transduce.inline.markup_events import is_kept, last_piece
from transduce.text.formats import TextKind
from transduce.wings.documents.document import Document, Slot

# An attribute of elements that must not change.
KEPT_ATTRIBUTE = ' translate="no" kept-by-transduce=""'
WHOLE_FRAGMENT = -1  # stands for the whole fragment among the indices of opening tags


class Outline(NamedTuple):
    """Which tags separate texts, by the names of their elements."""

    detects: bool = True  # whether elements with a text of their own are found
    splitting: Collection[str] = ()  # elements whose tags separate texts everywhere
    inline: Collection[str] = ()  # elements whose text belongs to the element around them


def with_marks(text: str, names: Collection[str]) -> str:
    """Mark the elements with these names as not to be translated."""
    if not names:
        return text
    opening = rf"<({'|'.join(map(re.escape, names))})(?=[\s/>])"
    return re.sub(opening, rf"<\1{KEPT_ATTRIBUTE}", text)


def without_marks(text: str) -> str:
    """Remove what `with_marks` has added."""
    return text.replace(KEPT_ATTRIBUTE, "")


def read_fragment(text: str, outline: Outline, kind: TextKind) -> Document:
    """The texts of an XML fragment. Comments, CDATA sections and marked elements are no texts."""
    elements = list(_with_kept(list(pieces(text)), text))
    opened = [
        ("", WHOLE_FRAGMENT)
    ]  # the open elements, and the indices of the tags that own their texts
    owners = list[int]()
    with_text = set[int]() if outline.detects else {WHOLE_FRAGMENT}
    texts = set[int]()
    for i, piece in enumerate(elements):
        if piece.kind == "close" and opened[-1][0] == piece.name:
            opened.pop()
        owners.append(opened[-1][1])
        if piece.kind == "open":
            opened.append((piece.name, owners[i] if piece.name in outline.inline else i))
        elif piece.kind == "text" and not text[piece.begin : piece.end].isspace():
            texts.add(i)
            with_text.add(owners[i])
    cuts = list[int]()
    for i, piece in enumerate(elements):
        if owners[i] in with_text:
            with_text.add(i)  # whatever is inside belongs to the same text
        if piece.kind in ("text", "other"):
            continue
        is_outer = owners[i] not in with_text and piece.name not in outline.inline
        if is_outer or piece.name in outline.splitting:
            cuts.append(i)
    slots = [
        _slot(text, elements[cut + 1].begin, elements[end - 1].end, kind)
        for cut, end in pairwise([-1, *cuts, len(elements)])
        if not texts.isdisjoint(range(cut + 1, end))
    ]
    return Document("text", text, "utf-8", tuple(slots))


def _with_kept(elements: list[Piece], text: str) -> Iterator[Piece]:
    """The pieces of a fragment, with each element that must not change as one piece."""
    i = 0
    while i < len(elements):
        piece = elements[i]
        if piece.kind == "open" and is_kept(text[piece.begin : piece.end]):
            i = last_piece(elements, i)
            piece = Piece("other", piece.begin, elements[i].end)
        yield piece
        i += 1


def _slot(text: str, begin: int, end: int, kind: TextKind) -> Slot:
    content = text[begin:end]
    begin += len(content) - len(content.lstrip())
    content = content.strip()
    line = text.count("\n", 0, begin) + 1
    return Slot(content, content, line, begin, begin + len(content), str, kind)
