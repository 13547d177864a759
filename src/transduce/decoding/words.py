"""Split a text into words and punctuation marks."""

import unicodedata
from collections.abc import Collection
from functools import lru_cache
from typing import Literal

from transduce.tokens.spans import Span

Kind = Literal["letter", "unspaced", "mark", "sign", "space"]

# The first words of the Unicode names of characters, in scripts without spaces between words.
UNSPACED = (
    "CJK",
    "HIRAGANA",
    "IDEOGRAPHIC",
    "KATAKANA",
    "KHMER",
    "LAO",
    "MYANMAR",
    "THAI",
    "TIBETAN",
)
INSIDE = "'’-\u00ad\u2010\u2011"  # signs that may stand between two letters of a word


def words(text: str, cuts: Collection[int], inside: str = INSIDE) -> list[Span]:
    """The spans of words and punctuation marks in a text, without white space and control characters.

    In scripts without spaces, words begin at the offsets `cuts`. Characters in `inside` do not split a word.
    """
    spans: list[Span] = []
    before: Kind = "space"  # the kind of the last character that was not a mark
    for place, character in enumerate(text):
        now = kind(character)
        if (
            character in inside
            and before == "letter"
            and kind(text[place + 1 : place + 2]) == "letter"
        ):
            now = "letter"
        continues = (
            now == "mark"
            or now == before == "letter"
            or (now == before == "unspaced" and place not in cuts)
        )
        if now == "space":
            before = now
        elif continues and before != "space":
            spans[-1] = (spans[-1][0], place + 1)
        else:
            spans.append((place, place + 1))
            before = "letter" if now == "mark" else now
    return spans


@lru_cache(10_000)
def kind(character: str) -> Kind:
    """Classify a character. An empty string counts as a space."""
    if not character or character.isspace():
        return "space"
    category = unicodedata.category(character)
    if category[0] == "M" or category == "Cf":
        return "mark"
    if category[0] in "LN" or category in ("Pc", "Co", "Cs"):
        return "unspaced" if unicodedata.name(character, "").startswith(UNSPACED) else "letter"
    return "space" if category[0] == "Z" or category == "Cc" else "sign"
