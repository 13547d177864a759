"""How similar two texts are, and by which words an index finds similar texts."""

import hashlib
import re
import unicodedata
from collections.abc import Sequence
from itertools import pairwise

from transduce.system.errors import needing

with needing("serve", "A translation memory"):
    from rapidfuzz.distance import Levenshtein

# Scripts without spaces between words: each character is a token.
WITHOUT_SPACES = r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
WORD_OR_MARK = re.compile(rf"[{WITHOUT_SPACES}]|[^\W{WITHOUT_SPACES}]+|[^\w\s]")
JOINER = "_"  # between the two words of a pair; the index counts it among letters


def form(text: str) -> str:
    """The text as exact matches are compared: composed characters, one space between words, the same lines."""
    lines = unicodedata.normalize("NFC", text).strip().split("\n")
    return "\n".join(" ".join(line.split()) for line in lines)


def number_of(*texts: str) -> int:
    """A number of 64 bits, the same for the same texts, such as SQLite stores."""
    digest = hashlib.blake2b("\0".join(texts).encode("utf-8", "surrogatepass"), digest_size=8)
    return int.from_bytes(digest.digest(), "big", signed=True)


def tokens(text: str) -> list[str]:
    """The words and punctuation marks of a text, without capitals."""
    return WORD_OR_MARK.findall(text.casefold())


def terms(of: Sequence[str]) -> list[str]:
    """What the index holds of a text with these tokens: its words, and its pairs of neighbouring words."""
    words = [each for each in of if each[0].isalnum()]
    return words + [f"{one}{JOINER}{other}" for one, other in pairwise(words)]


def similarity(one: Sequence[str], other: Sequence[str]) -> float:
    """1 - edit distance / length of the longer text, in tokens."""
    return Levenshtein.normalized_similarity(one, other)
