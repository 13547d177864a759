"""Decides whether blanks stand between the translated sentences of a text."""

import re
from collections.abc import Sequence
from itertools import pairwise

from transduce.inline.events import IDEOGRAPHS, NO_BLANK, OTHER_STOPS, WIDE_SIGNS
from transduce.inline.placeholders import BLANK_BEFORE, BLANK_BEHIND

# Found in a sentence that may have no blank after it.
BLANKLESS = re.compile(rf"[{NO_BLANK}]|[{OTHER_STOPS}]\W?$")
# The beginning of a copied part such as <br>.
TAG_ALONE = re.compile("(?:<|&lt;)/?[a-z]", re.IGNORECASE)
UNSPACED_CHARACTER = rf"(?![０-９Ａ-Ｚａ-ｚ])[{IDEOGRAPHS}{WIDE_SIGNS}]"
# The end of a sentence of Chinese or Japanese, and the beginning of the next sentence.
UNSPACED_BORDER = re.compile(
    rf"{UNSPACED_CHARACTER}[”’…—]{{0,3}}\n[“‘…—]{{0,3}}{UNSPACED_CHARACTER}"
)


def target_gaps(
    source_gaps: Sequence[str], sources: Sequence[str], translated: Sequence[str]
) -> list[str]:
    """The gaps around the translated parts of a text.

    A gap changes if only one of the two scripts needs blanks between sentences.
    """
    gaps = list(source_gaps)
    for place, (before, after) in enumerate(
        zip(pairwise(sources), pairwise(translated), strict=True), start=1
    ):
        one, other = after
        is_needed = (BLANK_BEHIND.match(one[-1:]) or one[-1:] in ("'", '"')) and BLANK_BEFORE.match(
            other
        )
        is_changed = before != after and not any(
            text in before and TAG_ALONE.match(text) for text in after
        )
        if not gaps[place] and is_needed and BLANKLESS.search(before[0]) and is_changed:
            gaps[place] = " "
        elif gaps[place] == " " and _are_joined(*after) and not _are_joined(*before):
            gaps[place] = ""
    return gaps


def _are_joined(one: str, other: str) -> bool:
    return bool(UNSPACED_BORDER.search(f"{one[-4:]}\n{other[:4]}"))
