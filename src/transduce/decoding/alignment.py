"""Which words of a source the words of its translation come from, by where the model looked when it wrote them.

Dimensions: s = source pieces, t = target pieces.
"""

import unicodedata
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from transduce.tokens.spans import Span

SHARE = 1 / 3  # of what a word looked at: as much as this is a link beside the best one
# Scripts that put no spaces between words (ranges of code points): there each piece is a word.
UNSPACED = (
    (0x0E00, 0x0EFF),  # Thai, Lao
    (0x0F00, 0x109F),  # Tibetan, Burmese
    (0x1780, 0x17FF),  # Khmer
    (0x3005, 0x3007),
    (0x3040, 0x30FF),  # kana
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),  # Chinese characters
    (0xF900, 0xFAFF),
    (0x20000, 0x3FFFF),
)
INSIDE = "'’-\u00ad\u2010\u2011"  # are part of a word between two of its letters


class Link(NamedTuple):
    """A word of a source and one of its translation; spans in code points."""

    source: Span
    target: Span
    weight: float  # how much of the attention of the target's word the source's word had, from 0 to 1


def find_links(
    weights: NDArray[np.floating],
    source: str,
    source_spans: Sequence[Span],
    target: str,
    target_spans: Sequence[Span],
) -> tuple[Link, ...]:
    """For each word of the translation the source's words that it looked at most, in the order of the translation.

    weights (t, s): what each piece looked at when it was predicted. What is missing from 1 went to the end of the
    sentence and to spaces. A word that looked at nothing has no link.
    """
    source_words, target_words = words(source, source_spans), words(target, target_spans)
    if not source_words or not target_words:
        return ()
    read, written = _shares(source_words, source_spans), _shares(target_words, target_spans)
    written = written / np.maximum(written.sum(axis=1, keepdims=True), 1e-9)
    found = written @ weights @ read.T  # (target words, source words)
    most, total = found.max(axis=1, keepdims=True), found.sum(axis=1, keepdims=True)
    chosen = ((found == most) | (found >= SHARE * total)) & (found > 0)
    return tuple(
        Link(source_words[j], target_words[i], round(float(found[i, j]), 4)) for i, j in np.argwhere(chosen).tolist()
    )


def words(text: str, spans: Sequence[Span]) -> list[Span]:
    """The words of a text, of whose pieces the spans are given; every character but spaces is in one of them.

    A word is letters and digits with what combines with them, or one other sign; in scripts without spaces, a piece.
    """
    begins = {begin for begin, _ in spans}
    found: list[Span] = []
    before = ""  # the kind of the last character
    for place, character in enumerate(text):
        kind = _kind(character)
        if character in INSIDE and before == "letter" and _kind(text[place + 1 : place + 2]) == "letter":
            kind = "letter"
        joins = kind == "mark" or kind == before == "letter" or (kind == before == "unspaced" and place not in begins)
        if kind == "space":
            before = kind
        elif joins and before not in ("", "space"):
            found[-1] = (found[-1][0], place + 1)
            before = before if kind == "mark" else kind
        else:
            found.append((place, place + 1))
            before = "letter" if kind == "mark" else kind
    return found


def _kind(character: str) -> str:
    """What a character is to words: letter, unspaced, mark, sign, space; a space where there is none."""
    if not character or character.isspace():
        return "space"
    category = unicodedata.category(character)
    if category[0] == "M" or category == "Cf":
        return "mark"
    if category[0] in "LN" or category in ("Pc", "Co", "Cs"):
        code = ord(character)
        return "unspaced" if any(first <= code <= last for first, last in UNSPACED) else "letter"
    return "space" if category[0] == "Z" or category == "Cc" else "sign"


def _shares(found: Sequence[Span], spans: Sequence[Span]) -> NDArray[np.float64]:
    """(words, pieces): how much of each piece is in each word; a piece of no characters goes to where it stands."""
    begin, end = np.array(spans, dtype=np.int64).reshape(-1, 2).T
    first, last = np.array(found, dtype=np.int64).T[:, :, None]
    common = np.minimum(np.maximum(end, begin + 1), last) - np.maximum(begin, first)
    shares = np.maximum(common, 0).astype(np.float64)
    return shares / np.maximum(shares.sum(axis=0), 1)
