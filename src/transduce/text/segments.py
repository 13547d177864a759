"""A text of paragraphs and sentences, taken apart and put together again.

join(split(text)) == text for every text: what stands between sentences (blanks, tabs, line ends of any kind, the
bullets of lists) is kept beside them, one separator more than sentences. Where a sentence ends is up to sentencex,
which knows the abbreviations of many languages.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import NamedTuple

from transduce.system.errors import UserError

# What ends a paragraph, and a tab, which stands between columns. \x1c-\x1e are what str.splitlines() breaks at, too.
PARAGRAPH = re.compile("[\t\n\v\f\r\x1c-\x1e\x85\u2028\u2029]+")
BULLET = re.compile(r"\s*(?:[-*+•‣–—·]|\d{1,3}[.)]|[A-Za-z]\))\s+(?=\S)")  # what begins an item of a list: no text
SURROGATE = re.compile("[\ud800-\udfff]")  # half a character, which Rust doesn't know
CLAUSE = re.compile(r"(?<=[;:,)\]–؛،])\s+|(?<=[—、，；：。])\s*|\s+(?=[(\[–—])")  # where to cut what is too long, best
BLANK = re.compile(r"\s+")


class Segments(NamedTuple):
    """The sentences of a text and what stands before, between and behind them: one separator more."""

    sentences: list[str]  # none is blank, none holds a line break
    separators: list[str]


def split(text: str, language: str) -> Segments:
    """The sentences of a text in a language, given by its code ("de", also "de-AT").

    Raises UserError where sentencex isn't installed.
    """
    segments, at = Segments([], []), 0
    for begin, end in _sentences(text, re.split("[-_]", language.lower())[0]):
        segments.separators.append(text[at:begin])
        segments.sentences.append(text[begin:end])
        at = end
    segments.separators.append(text[at:])
    return segments


def whole(text: str) -> Segments:
    """The text as one sentence, without the blanks around it."""
    sentence = text.strip()
    begin = text.index(sentence)
    return Segments([sentence], [text[:begin], text[begin + len(sentence) :]]) if sentence else Segments([], [text])


def join(separators: Sequence[str], sentences: Sequence[str]) -> str:
    """The sentences with their separators; raises ValueError unless there is one separator more."""
    return "".join(chain.from_iterable(zip(separators, [*sentences, ""], strict=True)))


def shorten(sentence: str, lengths: Callable[[Sequence[str]], Sequence[int]], longest: int) -> Segments:
    """The sentence, which begins and ends with no blank, in parts of at most `longest`, as `lengths` measures them.

    What is too long is cut in two near its middle: at the end of a clause, else at a blank, else anywhere. A single
    character stays, however long it is said to be.
    """
    parts, separators = [sentence], ["", ""]
    while True:
        too_long = [i for i, length in enumerate(lengths(parts)) if length > longest and len(parts[i]) > 1]
        if not too_long:
            return Segments(parts, separators)
        for i in reversed(too_long):
            left, between, right = _halves(parts[i])
            parts[i : i + 1] = [left, right]
            separators.insert(i + 1, between)


def _sentences(text: str, language: str) -> Iterator[tuple[int, int]]:
    """Where the sentences begin and end."""
    at = 0
    for gap in chain(PARAGRAPH.finditer(text), [None]):
        end = gap.start() if gap else len(text)
        bullet = BULLET.match(text, at, end)
        at = bullet.end() if bullet else at
        if text[at:end].strip():
            for piece in _cut(text[at:end], language):
                if content := piece.strip():
                    begin = at + len(piece) - len(piece.lstrip())
                    yield begin, begin + len(content)
                at += len(piece)
        at = gap.end() if gap else end


def _cut(paragraph: str, language: str) -> list[str]:
    """A paragraph in pieces, each a sentence with the blanks around it; all of it is in one of them."""
    try:
        from sentencex import segment
    except ImportError:
        raise UserError("Splitting texts into sentences needs a package: pip install 'transduce[documents]'.") from None
    pieces, at = list[str](), 0
    for piece in segment(language, SURROGATE.sub("\ufffd", paragraph)):
        pieces.append(paragraph[at : at + len(piece)])
        at += len(piece)
    return pieces if at == len(paragraph) else [paragraph]


def _halves(sentence: str) -> tuple[str, str, str]:
    """Two parts and the blanks between them."""
    middle = len(sentence) / 2
    for pattern, farthest in ((CLAUSE, 0.8 * middle), (BLANK, middle)):
        cuts = [cut for cut in pattern.finditer(sentence) if cut.start() > 0 and cut.end() < len(sentence)]
        if cuts:
            cut = min(cuts, key=lambda cut: abs(cut.start() - middle))
            if abs(cut.start() - middle) < farthest:
                return sentence[: cut.start()], cut.group(), sentence[cut.end() :]
    half = len(sentence) // 2
    return sentence[:half], "", sentence[half:]
