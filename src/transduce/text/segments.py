"""A text split into sentences, and joined again.

join(split(text)) == text for every text: the separators keep blanks, tabs, line ends of any kind and bullets of lists.
sentencex decides where a sentence ends: it knows the abbreviations of many languages.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import NamedTuple

from transduce.system.errors import UserError

# Ends of paragraphs, and TABs, which separate columns. str.splitlines() also breaks at \x1c to \x1e.
PARAGRAPH_END = re.compile("[\t\n\v\f\r\x1c-\x1e\x85\u2028\u2029]+")
BULLET = re.compile(r"\s*(?:[-*+•‣–—·]|\d{1,3}[.)]|[A-Za-z]\))\s+(?=\S)")  # before an item of a list
SURROGATE = re.compile("[\ud800-\udfff]")  # Rust, and so sentencex, has none
CLAUSE_END = re.compile(r"(?<=[;:,)\]–؛،])\s+|(?<=[—、，；：。])\s*|\s+(?=[(\[–—])")  # the best cuts of a long sentence
SENTENCE_BLANKS = re.compile(r"\s+")


class Segments(NamedTuple):
    """The sentences of a text, and the separators before, between and behind them: one more than sentences."""

    sentences: list[str]  # none is blank, none holds a line break
    separators: list[str]


def split(text: str, language: str) -> Segments:
    """The sentences of a text; the language is given by its code ("de", also "de-AT").

    Raises UserError if sentencex is not installed.
    """
    segments, done = Segments([], []), 0
    for begin, end in _sentences(text, re.split("[-_]", language.lower())[0]):
        segments.separators.append(text[done:begin])
        segments.sentences.append(text[begin:end])
        done = end
    segments.separators.append(text[done:])
    return segments


def whole(text: str) -> Segments:
    """The text as one sentence, without the blanks around it."""
    sentence = text.strip()
    begin = text.index(sentence)
    return Segments([sentence], [text[:begin], text[begin + len(sentence) :]]) if sentence else Segments([], [text])


def join(separators: Sequence[str], sentences: Sequence[str]) -> str:
    """The sentences with their separators; raises ValueError unless there is one separator more."""
    return "".join(chain.from_iterable(zip(separators, [*sentences, ""], strict=True)))


def shorten(sentence: str, lengths: Callable[[Sequence[str]], Sequence[int]], max_length: int) -> Segments:
    """Cut a sentence without blanks at its edges into parts of at most `max_length`, as `lengths` measures them.

    A part that is too long is cut near its middle: at the end of a clause, else at a blank, else anywhere. A single
    character is not cut, whatever its length.
    """
    parts, separators = [sentence], ["", ""]
    while True:
        too_long = [i for i, length in enumerate(lengths(parts)) if length > max_length and len(parts[i]) > 1]
        if not too_long:
            return Segments(parts, separators)
        for i in reversed(too_long):
            left, between, right = _halves(parts[i])
            parts[i : i + 1] = [left, right]
            separators.insert(i + 1, between)


def _sentences(text: str, language: str) -> Iterator[tuple[int, int]]:
    """The begin and end of each sentence."""
    place = 0
    for gap in chain(PARAGRAPH_END.finditer(text), [None]):
        end = gap.start() if gap else len(text)
        bullet = BULLET.match(text, place, end)
        place = bullet.end() if bullet else place
        if text[place:end].strip():
            for piece in _cut(text[place:end], language):
                if content := piece.strip():
                    begin = place + len(piece) - len(piece.lstrip())
                    yield begin, begin + len(content)
                place += len(piece)
        place = gap.end() if gap else end


def _cut(paragraph: str, language: str) -> list[str]:
    """A paragraph cut into sentences with the blanks around them; the pieces, joined, are the paragraph."""
    try:
        from sentencex import segment
    except ImportError:
        raise UserError("Splitting texts into sentences needs a package: pip install 'transduce[documents]'.") from None
    pieces, done = list[str](), 0
    for piece in segment(language, SURROGATE.sub("\ufffd", paragraph)):
        pieces.append(paragraph[done : done + len(piece)])
        done += len(piece)
    return pieces if done == len(paragraph) else [paragraph]


def _halves(sentence: str) -> tuple[str, str, str]:
    """Two parts of a sentence, and the blanks between them."""
    middle = len(sentence) / 2
    for pattern, max_distance in ((CLAUSE_END, 0.8 * middle), (SENTENCE_BLANKS, middle)):
        cuts = [cut for cut in pattern.finditer(sentence) if cut.start() > 0 and cut.end() < len(sentence)]
        if cuts:
            cut = min(cuts, key=lambda cut: abs(cut.start() - middle))
            if abs(cut.start() - middle) < max_distance:
                return sentence[: cut.start()], cut.group(), sentence[cut.end() :]
    half = len(sentence) // 2
    return sentence[:half], "", sentence[half:]
