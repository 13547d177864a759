"""Splits a text at line breaks, TABs and bullets, and then into sentences with the package sentencex."""

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, pairwise
from unicodedata import category, combining

from transduce.inline.full_stops import mark, role
from transduce.inline.placeholders import Masked
from transduce.system.errors import needing
from transduce.text.languages import main_language
from transduce.text.plain import BYTE_ORDER_MARK
from transduce.tokens.spans import Span

# Line breaks as in str.splitlines(), and TABs, which separate columns.
PARAGRAPH_END = re.compile("[\t\n\v\f\r\x1c-\x1e\x85\u2028\u2029]+")
BULLET = re.compile(
    r"(?:\s*(?:[-*+•‣–—·]|\d{1,3}\)|[A-Za-z]\))|(\s*\d{1,3})\.)\s+(?=\S)"
)  # before a list item
SURROGATE = re.compile("[\ud800-\udfff]")  # sentencex, written in Rust, can't read surrogates
WIDE_BLANKS = re.compile(r"[^\S\x00-\x7f]")  # sentencex panics behind an initial: "A\u00a0."
# Sentence ends of Khmer (but ។ល។ means "and so on"), Tibetan and Amharic, which sentencex lacks.
MORE_SENTENCE_ENDS = re.compile(
    r"""[។៕།༎፡](?:(?<=[។៕])[។៕]*+(?!ល។)|(?<=[།༎])(?:\s*+[།༎])*+|(?<=፡)፡)[?!]*+(?:[”’»)\]]|["'](?!\S))*+\s*"""
)
# The best cuts.
CLAUSE_END = re.compile(r"(?<=[;:,)\]–؛،۔])\s+|(?<=[—、，；：。។៖၊။፣።।])\s*|(?<!\s)\s++(?=[(\[–—])")
WINDOW = 2000  # characters that sentencex reads at once: an unclosed quote takes quadratic time and hides sentence ends
# Characters at the end of a window: the text after them may show that they end no sentence.
MARGIN = 100
SENTENCE_BLANKS = re.compile(r"\s+")
ZERO_WIDTH_JOINER = "\u200d"
# Letters that belong to the letter before them.
TO_THE_LEFT = re.compile("[\u0e33\u0eb3\u1160-\u11ff]")
VIRAMA = 9  # the combining class of signs that join two letters, as in Hindi and Khmer


def split(text: str, language: str) -> list[Span]:
    """The spans of a text's sentences. Raises UserError if sentencex is missing."""
    return list(_sentences(text, main_language(language)))


def whole(text: str) -> list[Span]:
    """Return a list with the span of the stripped text, or an empty list if the text is blank."""
    sentence = text.removeprefix(BYTE_ORDER_MARK).strip()
    begin = text.index(sentence)
    return [(begin, begin + len(sentence))] if sentence else []


def whole_words(masked: Masked, spans: Sequence[Span]) -> list[Span]:
    """Merge neighbouring spans if a placeholder extends across their border."""
    words = masked.words
    begins = [word.begin for word in words]
    merged: list[Span] = []
    for begin, end in spans:
        # A word between two spans, such as a bullet, belongs to neither.
        borders = [*(merged_end for _, merged_end in merged[-1:]), begin]
        last = [(bisect_left(begins, border) - 1, border) for border in borders]
        if merged and any(word >= 0 and words[word].end > border for word, border in last):
            merged[-1] = (merged[-1][0], end)
        else:
            merged.append((begin, end))
    return merged


def shorten(
    text: str, span: Span, lengths: Callable[[Sequence[str]], Sequence[int]], max_length: int
) -> list[Span]:
    """Cut a sentence into parts of at most `max_length`, as measured by `lengths`.

    Parts are cut near the middle, preferably at the end of a clause or at a blank. Single characters are never cut.
    """
    parts = [span]
    while True:
        measured = zip(parts, lengths([text[begin:end] for begin, end in parts]), strict=True)
        too_long = {
            (begin, end)
            for (begin, end), length in measured
            if length > max_length and end - begin > 1
        }
        if not too_long:
            return parts
        parts = [
            piece
            for part in parts
            for piece in (_halves(text, *part) if part in too_long else [part])
        ]


def _sentences(text: str, language: str) -> Iterator[Span]:
    place = len(text) - len(text.removeprefix(BYTE_ORDER_MARK))
    for gap in chain(PARAGRAPH_END.finditer(text), [None]):
        end = gap.start() if gap else len(text)
        bullet = BULLET.match(text, place, end)
        number = bullet and bullet[1]  # an ordinal is part of the sentence: "3. října"
        if bullet and not (number and role(text[place:end], len(number), language) == ","):
            place = bullet.end()
        if text[place:end].strip():
            for piece in _cut(text[place:end], language):
                if content := piece.strip():
                    begin = place + len(piece) - len(piece.lstrip())
                    yield begin, begin + len(content)
                place += len(piece)
        place = gap.end() if gap else end


def _cut(paragraph: str, language: str) -> list[str]:
    """Split a paragraph into sentences that keep the blanks around them."""
    ends = [0]
    begin = 0
    while begin < len(paragraph):
        found = _ends(paragraph[begin : begin + WINDOW], language)
        if begin + WINDOW < len(paragraph):
            # The last sentence can continue behind the window.
            inner = [end for end in found if end < WINDOW]
            found = [end for end in inner if end <= WINDOW - MARGIN] or inner[:1]
        ends += [begin + end for end in found]
        begin = ends[-1] if found else begin + WINDOW
    return [paragraph[begin:end] for begin, end in pairwise(ends)]


def _ends(text: str, language: str) -> list[int]:
    """The positions where the sentences of a text end; the last one is the end of the text."""
    with needing("documents", "Splitting texts into sentences"):
        from sentencex import segment
    ends = list[int]()
    done = 0
    readable = text if text.isascii() else WIDE_BLANKS.sub(" ", SURROGATE.sub("\ufffd", text))
    for piece in filter(None, segment(language, mark(readable, language))):
        if not piece.isascii():
            ends += [done + match.end() for match in MORE_SENTENCE_ENDS.finditer(piece)]
        done += len(piece)
        ends.append(done)
    return ends if done == len(text) else [len(text)]


def _halves(text: str, begin: int, end: int) -> list[Span]:
    """Cut a sentence near its middle into two parts, without the blanks between them."""
    sentence = text[begin:end]
    middle = len(sentence) / 2
    for pattern, max_distance in ((CLAUSE_END, 0.8 * middle), (SENTENCE_BLANKS, middle)):
        cuts = [
            cut
            for cut in pattern.finditer(sentence)
            if cut.start() > 0 and cut.end() < len(sentence)
        ]
        if cuts:
            cut = min(cuts, key=lambda cut: abs(cut.start() - middle))
            if abs(cut.start() - middle) < max_distance:
                return [(begin, begin + cut.start()), (begin + cut.end(), end)]
    half = begin + len(sentence) // 2
    places = (
        place
        for far in range(half - begin + 1)
        for place in (half + far, half - far)
        if begin < place < end
    )
    half = next((place for place in places if _is_cuttable(text, place)), half)
    return [(begin, half), (half, end)]


def _is_cuttable(text: str, place: int) -> bool:
    """Whether a text may be cut at a place: not before a mark, behind a virama or beside a zero-width joiner."""
    before = text[place - 1]
    after = text[place]
    # Sk: colours of emojis.
    is_mark = category(after) in ("Mn", "Mc", "Me", "Sk") or TO_THE_LEFT.match(after)
    return not is_mark and combining(before) != VIRAMA and ZERO_WIDTH_JOINER not in (before, after)
