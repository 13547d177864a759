"""The parts of a random valid document, for the attack on documents.

A document is a list of parts: text that must stay, and places where a translation is written. A generator knows by
itself which texts are translated, so that it can judge the readers of transduce.
"""

import random
import re
from typing import NamedTuple

Draw = random.Random
WORDS = [
    "open",
    "the",
    "file",
    "close",
    "all",
    "windows",
    "now",
    "press",
    "key",
    "no",
    "yes",
    "please",
]
LATIN = ["schön", "ß", "é", "¿qué", "naïve", "«là»", "½", "\u00a0"]
MARKS = ["e\u0301", "👩\u200d👧", "\u200f", "\u2028", "\u0085", "ŉ", "…", "\ufffd", "𝔄", "𐍈"]
UNICODE = [*LATIN, "你好。", "नमस्ते", "مرحبا", *MARKS]
PLACEHOLDERS = [
    "%s",
    "%(name)s",
    "{0}",
    "{{ x }}",
    "${y}",
    "https://example.org/a?b=1",
    "12",
    "3.5",
    "%d",
]
MARKUP = ["&amp;", "<b>", "</b>", "<br>", "`code`", "**x**"]
SIGNS = ["&", "<", ">", '"', "'", "\\", "--", *MARKUP, "]", "{", "%", "|", "#", "~"]


class Place(NamedTuple):
    """A place where a translation is written."""

    before: str  # what the document has there
    after: (
        str  # what it has afterwards, as a regular expression whose group `text` is the translation
    )
    source: str  # the text that is translated, in the syntax of the file
    word: str  # a word of the source that occurs nowhere else


Part = str | Place
ANY = "(?P<text>.*?)"


class Text(NamedTuple):
    """A random text with a word that occurs nowhere else."""

    plain: str
    word: str


class Style(NamedTuple):
    """What a document of any format may vary."""

    codec: str
    newline: str
    redo: bool

    @property
    def characters(self) -> list[str]:
        return {"ascii": ["a"], "iso-8859-1": LATIN, "cp1252": LATIN}.get(self.codec, UNICODE)

    @property
    def declared(self) -> str:
        return re.sub("-(le|be|sig)$", "", self.codec)


def unique_word(draw: Draw) -> str:
    """A word that occurs nowhere else in the document."""
    return f"q{''.join(draw.choices('bcdfghjklmnprstvwxyz', k=6))}a"


def text(draw: Draw, style: Style, signs: bool = True) -> Text:
    """A text of one to three sentences, rarely a long one."""
    word = unique_word(draw)
    pieces = list[str]()
    for _ in range(draw.choice([1, 1, 2, 3])):
        for _ in range(draw.randint(0, 60 if draw.random() < 0.03 else 6)):
            kind = draw.random()
            more = style.characters if kind < 0.15 else PLACEHOLDERS if kind < 0.25 else WORDS
            pieces.append(draw.choice(SIGNS if signs and kind > 0.9 else more))
        pieces.append(draw.choice(["it. The", "so! no", "key", "well;"]))
    pieces.insert(draw.randint(0, len(pieces)), word)
    return Text(draw.choice([" ", " ", "  "]).join(pieces), word)
