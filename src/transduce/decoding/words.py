"""What a word is: letters and digits with what combines with them, or one other sign."""

import unicodedata
from collections.abc import Collection
from typing import Literal

from transduce.tokens.spans import Span

Kind = Literal["letter", "unspaced", "mark", "sign", "space"]

# Scripts that put no spaces between words (ranges of code points).
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
INSIDE = "'’-\u00ad\u2010\u2011"  # may stand between two letters of a word


def words(text: str, cuts: Collection[int], inside: str = INSIDE) -> list[Span]:
    """The words of a text; every character but spaces is in one of them.

    cuts: where, in scripts without spaces, a word may begin. inside: signs that are part of a word between its letters.
    """
    found: list[Span] = []
    before: Kind = "space"  # the last character, marks left out
    for place, character in enumerate(text):
        now = kind(character)
        if character in inside and before == "letter" and kind(text[place + 1 : place + 2]) == "letter":
            now = "letter"
        continues = now == "mark" or now == before == "letter" or (now == before == "unspaced" and place not in cuts)
        if now == "space":
            before = now
        elif continues and before != "space":
            found[-1] = (found[-1][0], place + 1)
        else:
            found.append((place, place + 1))
            before = "letter" if now == "mark" else now
    return found


def kind(character: str) -> Kind:
    """What a character is to words; a space where there is none."""
    if not character or character.isspace():
        return "space"
    category = unicodedata.category(character)
    if category[0] == "M" or category == "Cf":
        return "mark"
    if category[0] in "LN" or category in ("Pc", "Co", "Cs"):
        code = ord(character)
        return "unspaced" if any(first <= code <= last for first, last in UNSPACED) else "letter"
    return "space" if category[0] == "Z" or category == "Cc" else "sign"


def joins(before: Kind, after: Kind) -> bool:
    """Whether two neighbours belong to one word, as far as that can be told from their kinds."""
    return before != "space" and (after == "mark" or (after == "letter" and before in ("letter", "mark")))
