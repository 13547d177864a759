"""Finds the texts of an XML fragment, and marks the elements that must not change.

An element with a text of its own, not only blanks, holds one text with everything inside. The tags around such elements
separate texts. DeepL calls this outline detection.
"""

import re
from collections.abc import Collection, Sequence
from itertools import pairwise
from typing import NamedTuple

from transduce.inline.markup import TAG_PATTERN, Piece, pieces
from transduce.inline.markup_events import is_kept
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

    def marked(tag: re.Match[str]) -> str:
        if tag["close"] or tag["name"] not in names:
            return tag.group()
        end = len(tag["name"]) + 1
        return f"{tag.group()[:end]}{KEPT_ATTRIBUTE}{tag.group()[end:]}"

    return TAG_PATTERN.sub(marked, text) if names else text


def without_marks(text: str) -> str:
    """Remove what `with_marks` has added."""
    return text.replace(KEPT_ATTRIBUTE, "")


def read_fragment(text: str, outline: Outline, kind: TextKind) -> Document:
    """The texts of an XML fragment. Comments, CDATA sections and marked elements are no texts."""
    elements = list(pieces(text))
    owners, kept = _owners(text, elements, outline.inline)
    has_text = [
        piece.kind == "text" and not inside and not text[piece.begin : piece.end].isspace()
        for piece, inside in zip(elements, kept, strict=True)
    ]
    with_text = {owner for owner, has in zip(owners, has_text, strict=True) if has}
    # Whether everything inside an element is one text, by the index of the opening tag.
    is_one = {WHOLE_FRAGMENT: not outline.detects or WHOLE_FRAGMENT in with_text}
    for i, piece in enumerate(elements):
        if piece.kind == "open":
            is_one[i] = i in with_text or is_one[owners[i]]
    cuts = list[int]()
    for i, piece in enumerate(elements):
        is_tag = piece.kind not in ("text", "other") and not kept[i]
        is_outer = not is_one[owners[i]] and piece.name not in outline.inline
        if is_tag and (is_outer or piece.name in outline.splitting):
            cuts.append(i)
    slots = [
        _slot(text, elements[cut + 1].begin, elements[next_cut - 1].end, kind)
        for cut, next_cut in pairwise([-1, *cuts, len(elements)])
        if any(has_text[cut + 1 : next_cut])
    ]
    return Document("text", text, "utf-8", tuple(slots))


def _owners(
    text: str, elements: Sequence[Piece], inline: Collection[str]
) -> tuple[list[int], list[bool]]:
    """For each piece, the opening tag of the element that owns it, and whether a kept element holds it.

    Elements named in `inline` own nothing.
    """
    opened = [
        ("", WHOLE_FRAGMENT, False)
    ]  # name, owner of the content, whether the content is kept
    owners = list[int]()
    kept = list[bool]()
    for i, piece in enumerate(elements):
        if piece.kind == "close" and opened[-1][0] == piece.name:
            opened.pop()
        _, owner, is_inside = opened[-1]
        owners.append(owner)
        kept.append(is_inside)
        if piece.kind == "open":
            stays = is_inside or is_kept(text[piece.begin : piece.end])
            opened.append((piece.name, owner if piece.name in inline else i, stays))
    return owners, kept


def _slot(text: str, begin: int, end: int, kind: TextKind) -> Slot:
    content = text[begin:end]
    first = begin + len(content) - len(content.lstrip())
    content = content.strip()
    line = text.count("\n", 0, first) + 1
    return Slot(content, content, line, first, first + len(content), str, kind)
