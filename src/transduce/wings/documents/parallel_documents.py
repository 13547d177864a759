"""Two documents that say the same in two languages: subtitles, paired by their times, and pages, by their blocks."""

from collections.abc import Iterator, Sequence

from transduce.system.errors import UserError
from transduce.text.placeholders import mask
from transduce.text.plain import display_name, read_pieces
from transduce.wings.documents.document import Slot
from transduce.wings.documents.html import read_html
from transduce.wings.documents.subtitles import Cue, read_cues

TOGETHER = 0.5  # of the shorter of two cues that must be shown at the same time
NEAR = 20  # cues of one side that may share their time with one of the other


def read_subtitle_pairs(source: str, target: str) -> Iterator[tuple[str, str, int]]:
    """The texts that are shown at the same time, and their lines in the source.

    Where several cues share their time with one, they are one text. A cue that has no counterpart is a pair with an
    empty text. Raises UserError if there are none at the same time.
    """
    here, there = (read_cues(b"".join(read_pieces(file)), display_name(file)) for file in (source, target))
    groups = list(_groups(here, there))
    if here and there and not any(cues and others for cues, others in groups):
        raise UserError(f"No texts of {source} and {target} are shown at the same time: are they of the same film?")
    for cues, others in groups:
        yield _text(cues), _text(others), (cues or others)[0].slot.line


def _groups(here: Sequence[Cue], there: Sequence[Cue]) -> Iterator[tuple[Sequence[Cue], Sequence[Cue]]]:
    """The cues of both sides in order, in the smallest groups that share no time with each other."""
    i = j = 0
    while i < len(here) or j < len(there):
        ours = j == len(there) or (i < len(here) and here[i].begin <= there[j].begin)
        last, other_last = i + ours, j + (not ours)
        grown = True
        while grown:
            grown = False
            if other_last < len(there) and _meets(there[other_last], here[i:last]):
                other_last, grown = other_last + 1, True
            if last < len(here) and _meets(here[last], there[j:other_last]):
                last, grown = last + 1, True
        yield here[i:last], there[j:other_last]
        i, j = last, other_last


def _meets(cue: Cue, others: Sequence[Cue]) -> bool:
    """Whether a cue is shown together with one of the others: the last, or the one that is there longest."""
    candidates = [others[-1], max(others[-NEAR:], key=lambda other: other.end)] if others else []
    return any(
        _shared(cue, other) > TOGETHER * min(cue.end - cue.begin, other.end - other.begin) for other in candidates
    )


def _shared(one: Cue, other: Cue) -> float:
    return min(one.end, other.end) - max(one.begin, other.begin)


def _text(cues: Sequence[Cue]) -> str:
    return " ".join(cue.slot.text for cue in cues)


def read_page_pairs(source: str, target: str) -> Iterator[tuple[str, str, int]]:
    """The texts of two pages with the same blocks, in order, and their lines in the source.

    Raises UserError if they have others.
    """
    here, there = (read_html(b"".join(read_pieces(file)), display_name(file)) for file in (source, target))
    for one, other in zip(here.slots, there.slots, strict=False):
        if _shape(one) != _shape(other):
            raise UserError(
                f"{source}, line {one.line} and {target}, line {other.line} are no counterparts: two pages are "
                "paired block by block, so they need the same blocks. Align them with another program."
            )
    if len(here.slots) != len(there.slots):
        raise UserError(
            f"{source} has {len(here.slots):,} texts and {target} has {len(there.slots):,}: two pages are paired "
            "block by block, so they need the same blocks. Align them with another program."
        )
    for one, other in zip(here.slots, there.slots, strict=True):
        yield mask(one.text, markup=True).text, mask(other.text, markup=True).text, one.line


def _shape(slot: Slot) -> tuple[str, bool]:
    return slot.kind, slot.within is None
