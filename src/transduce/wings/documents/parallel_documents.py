"""Pairs the texts of two subtitle files by time, and the texts of two HTML pages by block."""

from collections.abc import Iterator, Sequence

from transduce.inline.placeholders import mask
from transduce.system.console import count
from transduce.system.errors import Hint, UserError
from transduce.text.formats import MARKUP_TEXT, DocumentFile, TextKind, TextPair
from transduce.text.plain import display_name, read_pieces
from transduce.wings.documents.document import Document, Slot
from transduce.wings.documents.html import read_html
from transduce.wings.documents.other_subtitles import cues_of
from transduce.wings.documents.subtitles import Cue

MIN_SHARED_TIME = 0.5  # share of the shorter cue during which two paired cues are both shown
MAX_CUES_COMPARED = 20  # last cues of a group that a new cue is compared with
NEED_SAME_BLOCKS = "Two pages are paired block by block and need the same blocks."
ALIGN = Hint("Align these pages with another program.")


def read_subtitle_pairs(source: str, target: str) -> Iterator[TextPair]:
    """Pairs of subtitle texts that are shown at the same time; raises UserError if no subtitles overlap in time.

    Subtitles that overlap with the same subtitle are joined. A subtitle without a counterpart is paired with "".
    """
    source_cues, target_cues = (
        cues_of(b"".join(read_pieces(file)), display_name(file)) for file in (source, target)
    )
    groups = list(_groups(source_cues, target_cues))
    if source_cues and target_cues and not any(spoken and written for spoken, written in groups):
        raise UserError(
            f"No texts of {source} and {target} appear at the same time.",
            "Use subtitles of the same film.",
        )
    for spoken, written in groups:
        yield _text(spoken), _text(written), (spoken or written)[0].slot.line


def read_page_pairs(source: str, target: str) -> Iterator[TextPair]:
    """Pairs of texts from the same block of two pages; raises UserError if the pages have different blocks."""
    source_page, target_page = (_page(file) for file in (source, target))
    for spoken, written in zip(source_page.slots, target_page.slots, strict=False):
        if _shape(spoken) != _shape(written):
            raise UserError(
                f"{source}:{spoken.line} and {target}:{written.line} do not match. {NEED_SAME_BLOCKS}",
                ALIGN,
            )
    if len(source_page.slots) != len(target_page.slots):
        raise UserError(
            f"{source} has {count(len(source_page.slots), 'text')} and {target} has {len(target_page.slots):,}. "
            f"{NEED_SAME_BLOCKS}",
            ALIGN,
        )
    for spoken, written in zip(source_page.slots, target_page.slots, strict=True):
        yield mask(spoken.text, MARKUP_TEXT).text, mask(written.text, MARKUP_TEXT).text, spoken.line


def _page(file: str) -> Document:
    return read_html(DocumentFile(b"".join(read_pieces(file)), display_name(file), "", ""))


def _shape(slot: Slot) -> tuple[TextKind, bool]:
    return slot.kind, slot.within is None


def _groups(
    sources: Sequence[Cue], targets: Sequence[Cue]
) -> Iterator[tuple[Sequence[Cue], Sequence[Cue]]]:
    """Group the cues of both languages by overlap in time."""
    i = j = 0
    while i < len(sources) or j < len(targets):
        source_first = j == len(targets) or (
            i < len(sources) and sources[i].begin <= targets[j].begin
        )
        source_end = i + source_first
        target_end = j + (not source_first)
        size = 0
        while size < source_end + target_end:
            size = source_end + target_end
            if target_end < len(targets) and _belongs(targets[target_end], sources[i:source_end]):
                target_end += 1
            if source_end < len(sources) and _belongs(sources[source_end], targets[j:target_end]):
                source_end += 1
        yield sources[i:source_end], targets[j:target_end]
        i = source_end
        j = target_end


def _belongs(cue: Cue, others: Sequence[Cue]) -> bool:
    """Whether a cue overlaps in time with the cue in `others` that comes last or ends last."""
    candidates = (
        [others[-1], max(others[-MAX_CUES_COMPARED:], key=lambda other: other.end)]
        if others
        else []
    )
    return any(
        _shared_seconds(cue, other)
        > MIN_SHARED_TIME * min(cue.end - cue.begin, other.end - other.begin)
        for other in candidates
    )


def _shared_seconds(cue: Cue, other: Cue) -> float:
    return min(cue.end, other.end) - max(cue.begin, other.begin)


def _text(cues: Sequence[Cue]) -> str:
    return " ".join(cue.slot.text for cue in cues)
