"""Removes placeholders from a masked text, for models that do not copy placeholders."""

import re
from collections.abc import Callable
from unicodedata import category

from transduce.inline.events import NO_BLANK
from transduce.inline.placeholders import CLOSING_QUOTES, Mark, Masked, Patch, in_order, replace

WORD_OR_BLANK = re.compile(r"[^\W_]|\s")
Spell = Callable[[str], str]
# Follows or precedes a placeholder that may be replaced by a word with a blank.
NEEDS_BLANK = re.compile(rf"[\s.,:;!?…{NO_BLANK}]|$")


def is_text(masked: Masked) -> bool:
    """Whether a masked text contains letters outside its placeholders."""
    return any(map(str.isalpha, masked.rest))


def without_words(masked: Masked, spell: Spell = str) -> Masked:
    """Remove placeholders, and quotes around them, from a masked text. Marks of kind "point" hold the removed text.

    `spell` escapes text for the markup in the marks.
    """
    removals: list[Mark] = []  # points that still have the beginning and end of the removed text
    others = [mark for mark in masked.marks if mark.kind != "word"]
    edges = {edge for mark in others for edge in (mark.begin, mark.end)}
    for mark in masked.marks:
        if mark.kind == "word":
            gap = masked.text[removals[-1].end : mark.begin] if removals else " "
            if not WORD_OR_BLANK.search(gap) and not edges & set(
                range(removals[-1].end, mark.begin + 1)
            ):
                last = removals.pop()
                opening = last.opening + spell(gap) + mark.opening
                mark = mark._replace(begin=last.begin, opening=opening, order=last.order)
            removals.append(_with_quotes(masked.text, mark, edges, spell))
    removals = [_with_blanks(masked.text, removal, edges) for removal in removals]
    previous_ends = [0, *(removal.end for removal in removals)]
    patches = [
        Patch(max(each.begin, end), each.end, "")
        for each, end in zip(removals, previous_ends, strict=False)
    ]
    return replace(Masked(masked.text, in_order([*removals, *others])), patches)


def _with_quotes(text: str, removal: Mark, edges: set[int], spell: Spell) -> Mark:
    """Also remove the quotes or brackets around a placeholder, unless a tag touches the placeholder."""
    left = text[: removal.begin][-1:]
    right = text[removal.end :][:1]
    if edges & {removal.begin, removal.end} or not right or right != CLOSING_QUOTES.get(left):
        return removal
    opening = spell(left) + removal.opening + spell(right)
    return removal._replace(begin=removal.begin - 1, end=removal.end + 1, opening=opening)


def _with_blanks(text: str, removal: Mark, edges: set[int]) -> Mark:
    """Convert a removal to a "point" mark, and also remove a blank that has become superfluous."""
    begin = removal.begin
    end = removal.end
    left = text[begin - 1 : begin]
    right = text[end : end + 1]
    # A symbol may be a closing quotation mark, which needs no blank before it.
    closes = category(removal.opening[0]) in ("Pe", "Pf") and not left.isspace()
    before = bool(NEEDS_BLANK.match(left)) and begin not in edges and not closes
    after = bool(NEEDS_BLANK.match(right)) and end not in edges
    if left.isspace() and before and not right.isalnum():
        begin -= 1
    elif begin == 0 and right.isspace() and after:
        end += 1
    return removal._replace(kind="point", begin=begin, end=end, before=before, after=after)
