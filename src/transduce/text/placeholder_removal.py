"""Placeholders removed from a masked text, for a model that does not copy them."""

from bisect import bisect_right
from itertools import accumulate

from transduce.text.placeholders import CLOSING_QUOTES, Mark, Masked, Patch, in_order, weave


def without_words(masked: Masked) -> Masked:
    """Remove the placeholders, with quotes around them, from the text: their marks become points."""
    removals: list[Mark] = []  # points that still have the begin and end of the removed text
    others = [mark for mark in masked.marks if mark.kind != "word"]
    edges = {edge for mark in others for edge in (mark.begin, mark.end)}
    for mark in masked.marks:
        if mark.kind == "word":
            gap = masked.text[removals[-1].end : mark.begin] if removals else " "
            if not any(map(_is_word_or_blank, gap)) and not edges & set(range(removals[-1].end, mark.begin + 1)):
                before = removals.pop()
                mark = mark._replace(
                    begin=before.begin, opening=before.opening + gap + mark.opening, order=before.order
                )
            removals.append(_with_quotes(masked.text, mark, edges))
    return _remove(masked.text, [_with_blanks(masked.text, removal, edges) for removal in removals], others)


def _is_word_or_blank(character: str) -> bool:
    return character.isalnum() or character.isspace()


def _with_quotes(text: str, removal: Mark, edges: set[int]) -> Mark:
    """The removal with the quotes or brackets around it, unless a tag is between."""
    begin, end = removal.begin - 1, removal.end
    if (
        begin >= 0
        and text[end : end + 1] == CLOSING_QUOTES.get(text[begin])
        and not edges & {removal.begin, removal.end}
    ):
        return removal._replace(begin=begin, end=end + 1, opening=text[begin] + removal.opening + text[end])
    return removal


def _with_blanks(text: str, removal: Mark, edges: set[int]) -> Mark:
    """The removal as a point, with one of the blanks around it if it has two."""
    begin, end, left, right = (
        removal.begin,
        removal.end,
        text[removal.begin - 1 : removal.begin],
        text[removal.end : removal.end + 1],
    )
    before = not left.isalnum() and begin not in edges
    after = not right.isalnum() and end not in edges
    if left.isspace() and before and not right.isalnum():
        begin -= 1
    elif begin == 0 and right.isspace() and after:
        end += 1
    return removal._replace(kind="point", begin=begin, end=end, before=before, after=after)


def _remove(text: str, removals: list[Mark], others: list[Mark]) -> Masked:
    """The text without the removals, and all marks at their new places."""
    previous_ends = [0, *(removal.end for removal in removals)]
    removals = [
        removal._replace(begin=max(removal.begin, end)) for removal, end in zip(removals, previous_ends, strict=False)
    ]
    begins = [removal.begin for removal in removals]
    removed = [0, *accumulate(removal.end - removal.begin for removal in removals)]

    def new_place(place: int) -> int:
        i = bisect_right(begins, place)
        inside = max(0, removals[i - 1].end - place) if i else 0  # characters of a removal behind the place
        return place - removed[i] + inside

    rest = weave(text, [Patch(removal.begin, removal.end, "") for removal in removals])
    points = [removal._replace(begin=new_place(removal.begin), end=new_place(removal.begin)) for removal in removals]
    moved = [mark._replace(begin=new_place(mark.begin), end=new_place(mark.end)) for mark in others]
    return Masked(rest, in_order([*points, *moved]))
