"""Finds the tags of blocks and line breaks, such as `<li>` and `<br>`, in masked texts.

The words before and behind such a tag belong to different sentences.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import pairwise

from transduce.inline.placeholders import BLANK_BEFORE, BLANK_BEHIND, Masked, Patch, weave
from transduce.tokens.spans import Span

NAMES = r"(?:p|div|[bht]r|li|[uod]l|d[dt]|t[dh]|table|thead|tbody|caption|h[1-6]|blockquote|section|note)(?![\w.:-])"
# In XLIFF and TMX, elements can also stand for tags: <x ctype="lb"/>, <ph>&lt;br/&gt;</ph>.
BLOCK_TAG = re.compile(
    rf"""(?:<|&lt;)/?{NAMES} | (?-i:\\[nr])
    | <(?:\w+:)?(?:x|g|ph|it|ut|bpt|ept|bx|ex|pc|sc|ec)\b
        .*?(?:&lt;/?{NAMES}|\b(?:c?type|subType)=["'](?:x-|xlf:)?(?:lb|{NAMES})["'])""",
    re.VERBOSE | re.IGNORECASE | re.DOTALL,
)
# "<table>" in plain text may also be a placeholder.
BREAK = re.compile(r"(?:<|&lt;)/?[bh]r|(?-i:\\[nr])", re.IGNORECASE)


def edges(masked: Masked, *, with_words: bool) -> list[int]:
    """The places in a masked text that the tags of blocks separate, in order.

    If `with_words` is true, line breaks that are placeholders are included.
    """
    blocks = (mark for mark in masked.marks if BLOCK_TAG.match(mark.opening))
    counted = (
        mark for mark in blocks if mark.kind != "word" or (with_words and BREAK.match(mark.opening))
    )
    return sorted({edge for mark in counted for edge in (mark.begin, mark.end)})


def cut_at_blocks(masked: Masked, spans: Sequence[Span]) -> list[Span]:
    """Cut the spans of sentences at the tags of blocks."""
    found = edges(masked, with_words=True)
    parts = list[Span]()
    for begin, end in spans:
        inside = found[bisect_right(found, begin) : bisect_left(found, end)]
        for first, last in pairwise([begin, *inside, end]):
            part = masked.text[first:last]
            if part.strip():
                parts.append((first + len(part) - len(part.lstrip()), first + len(part.rstrip())))
    return parts


def spaced(masked: Masked) -> str:
    """The masked text, with a blank where only the tag of a block separated two words."""
    found = edges(masked, with_words=False)
    places = (edge for edge in found if BLANK_BEHIND.match(masked.text[edge - 1 : edge]))
    return weave(
        masked.text,
        [Patch(edge, edge, " ") for edge in places if BLANK_BEFORE.match(masked.text, edge)],
    )
