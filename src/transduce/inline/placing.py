"""Places the tags of a source text in its translation.

A tag is placed at the translation of the words that the tag marks. Weighted links connect words with their
translations. If no link shows the place, the tag's relative position in the source serves as a guess. Pairs of tags
stay properly nested.
"""

import re
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from transduce.inline.events import VOWEL_SIGNS
from transduce.inline.placeholders import (
    CLOSING_QUOTES,
    Mark,
    Masked,
    Patch,
    moved,
    restoring,
    weave,
)
from transduce.tokens.spans import Span

# A word in the source, a word in the translation, the weight.
Link = tuple[Span, Span, float]
Links = Sequence[Link]
WORD_PATTERN = re.compile(rf"\w[\w{VOWEL_SIGNS}]*(?:[-'’]\w[\w{VOWEL_SIGNS}]*)*")
WITHIN_PUNCTUATION = re.compile(rf"\w(?:.*[\w{VOWEL_SIGNS}])?", re.DOTALL)
# A word with a weaker link to a tagged word is tagged only between tagged words.
MIN_LINK_WEIGHT = 0.4
QUOTES = "".join(CLOSING_QUOTES)
PUNCTUATION = ".,:;!?…。，：；！？"


class Restored(NamedTuple):
    """A translation with its tags and placeholders."""

    text: str
    guessed: bool  # whether a mark was placed without a link
    moved: Callable[[Span], Span]  # converts a span of the translation to the same words in `text`


class _Placed(NamedTuple):
    """A mark and its place in the translation, with the marks that it encloses."""

    begin: int
    end: int
    mark: Mark
    inner: list["_Placed"]


def copied(masked: Masked, translation: str) -> bool:
    """Whether the translation contains each placeholder exactly as often as the source."""
    for word, begins in _begins(masked).items():
        occurrences = _occurrences(word, masked.text)
        if not set(begins) <= set(occurrences) or len(occurrences) != len(
            _occurrences(word, translation)
        ):
            return False
    return True


def restore(
    masked: Masked,
    translation: str,
    links: Links,
    spell: Callable[[str], str] = str,
    without: Sequence[Patch] = (),
    whole: Collection[str] = (),
) -> Restored:
    """Restore tags and placeholders in a translation, and apply the patches `without`. Requires `copied` to be true.

    No tag or placeholder is put inside an occurrence of a text in `whole`, unless several pairs of tags share this
    occurrence.
    """
    words = _words(masked, translation)
    copies: Links = [
        ((mark.begin, mark.end), (patch.begin, patch.end), 2.0) for mark, patch in words
    ]
    in_words = {place for mark, _ in words for place in range(mark.begin, mark.end)}
    links = [*(link for link in links if in_words.isdisjoint(range(*link[0]))), *copies]
    spans = [found.span() for text in whole for found in re.finditer(re.escape(text), translation)]
    placing = _Placing(masked.text, translation, links, _merged(spans))
    placed = placing.place(
        [mark for mark in masked.marks if mark.kind != "word"], (0, len(translation))
    )
    patches = _around_words(_patches(placed), sorted([*(patch for _, patch in words), *without]))
    text = weave(translation, patches, spell)
    return Restored(text, placing.guessed, partial(moved, translation, patches, spell=spell))


def _occurrences(word: str, text: str) -> list[int]:
    """The offsets of a word in a text, except inside longer words."""
    left = r"(?<!\w)" if word[0].isalnum() or word[0] == "_" else ""
    right = r"(?!\w)" if word[-1].isalnum() or word[-1] == "_" else ""
    return [match.start() for match in re.finditer(left + re.escape(word) + right, text)]


def _begins(masked: Masked) -> dict[str, list[int]]:
    """Map each distinct placeholder to its offsets in the masked text."""
    begins: dict[str, list[int]] = {}
    for mark in masked.words:
        begins.setdefault(masked.text[mark.begin : mark.end], []).append(mark.begin)
    return begins


def _words(masked: Masked, translation: str) -> list[tuple[Mark, Patch]]:
    """Pair each placeholder with the patch that restores it in the translation."""
    places = {
        word: dict(
            zip(_occurrences(word, masked.text), _occurrences(word, translation), strict=True)
        )
        for word in _begins(masked)
    }
    words = []
    for mark in masked.words:
        word = masked.text[mark.begin : mark.end]
        begin = places[word][mark.begin]
        words.append((mark, Patch(begin, begin + len(word), mark.opening)))
    return words


def _with_inner(marks: Sequence[Mark]) -> Iterator[tuple[Mark, Sequence[Mark]]]:
    """Yield each outermost mark with the marks inside it."""
    begin = 0
    while begin < len(marks):
        end = begin + 1
        while end < len(marks) and marks[end].order[0] < marks[begin].order[1]:
            end += 1
        yield marks[begin], marks[begin + 1 : end]
        begin = end


def _patches(placed: Sequence[_Placed]) -> Iterator[Patch]:
    for begin, end, mark, inner in placed:
        (_, opening), *closing = restoring(mark._replace(begin=begin, end=end))
        yield opening
        yield from _patches(inner)
        yield from (patch for _, patch in closing)


def _around_words(patches: Iterable[Patch], words: Sequence[Patch]) -> list[Patch]:
    """Merge the patches of tags and placeholders. Tags inside a placeholder move to the placeholder's nearer edge."""
    merged = list[Patch]()
    rest = deque(words)
    for patch in patches:
        while rest and rest[0].end <= patch.begin:
            merged.append(rest.popleft())
        if rest and rest[0].begin < patch.begin:
            if 2 * patch.begin < rest[0].begin + rest[0].end:
                patch = patch._replace(begin=rest[0].begin)
            else:
                merged.append(rest.popleft())
        # A tag inside a word moves behind the word.
        done = max(patch.begin, merged[-1].end) if merged else patch.begin
        merged.append(patch._replace(begin=done, end=done))
    return [*merged, *rest]


class _Placing:
    """Places marks in one translation."""

    def __init__(self, source: str, target: str, links: Links, whole: Sequence[Span]) -> None:
        self.source = source
        self.target = target
        self.guessed = False
        self._whole = whole  # spans of the translation that no tag may divide
        best: dict[Span, tuple[float, Span]] = {}  # the best link of each word of the translation
        for origin, linked, weight in links:
            word = _without_punctuation(target, linked)
            if word not in best or weight > best[word][0]:
                best[word] = weight, _without_punctuation(source, origin)
        self.links = sorted((word, origin, weight) for word, (weight, origin) in best.items())
        strongest_last = sorted(self.links, key=lambda link: -link[2])[::-1]
        # The best translation of each source word.
        self.words = {origin: word for word, origin, _ in strongest_last}
        self.origins = sorted(self.words)
        self.begins = [word.start() for word in WORD_PATTERN.finditer(target)] or [0]
        self.ends = [word.end() for word in WORD_PATTERN.finditer(target)] or [len(target)]

    def place(self, marks: Sequence[Mark], within: Span) -> list[_Placed]:
        """Place marks inside a span of the translation. Returns the outermost marks in order."""
        pairs: list[_Placed] = []
        free = within[0]  # the end of the last pair
        outermost = list(_with_inner(marks))
        own = [(self._span(mark), mark, inner) for mark, inner in outermost if mark.kind == "pair"]
        whole = [each for each in self._whole if sum(_touch(each, span) for span, *_ in own) < 2]
        wanted = [(_undivided(span, whole), mark, inner) for span, mark, inner in own]
        for (begin, end), mark, inner in sorted(wanted, key=lambda pair: pair[0]):
            begin = min(max(begin, free), within[1])
            end = max(begin, min(end, within[1]))
            if self._has_words(mark):
                begin, end = self._free((begin, end), (free, within[1]))
            free = end
            pairs.append(_Placed(begin, end, mark, self.place(inner, (begin, end))))
        points: list[_Placed] = []
        half = within[0]  # halves keep their order: one may close what another opens
        for mark in (mark for mark, _ in outermost if mark.kind != "pair"):
            place = _undivided((self._point(mark),) * 2, whole)[not mark.before]
            place = min(max(place, within[0]), within[1])
            begin, end = _around(place, pairs)
            place = begin if place - begin < end - place else end
            if mark.kind == "half":
                half = place = _around(max(place, half), pairs)[1]
            points.append(_Placed(place, place, mark, []))
        return sorted(
            [*pairs, *points], key=lambda placed: (placed.begin, placed.end, placed.mark.order)
        )

    def _free(self, wanted: Span, within: Span) -> Span:
        """Return `wanted`, or the first word in `within` if `wanted` is empty."""
        if wanted[0] < wanted[1]:
            return wanted
        self.guessed = True
        free = (word for word in zip(self.begins, self.ends, strict=False) if within[0] <= word[0])
        begin, end = next(free, (within[1], within[1]))
        return (begin, end) if end <= within[1] else (within[1], within[1])

    def _has_words(self, mark: Mark) -> bool:
        return any(map(str.isalnum, self.source[mark.begin : mark.end]))

    def _span(self, mark: Mark) -> Span:
        """The span of the translation that best matches the content of a pair of tags."""
        if not self._has_words(mark):  # the same signs, or nothing
            place = self._point(mark)
            content = re.escape(self.source[mark.begin : mark.end].strip())
            spans = (found.span() for found in re.finditer(content, self.target))
            return min(spans, key=lambda span: abs(span[0] - place), default=(place, place))
        inside = {
            i: link
            for i, link in enumerate(self.links)
            if link[1][0] < mark.end and mark.begin < link[1][1]
        }
        span = self._heaviest(inside) if inside else None
        if span is None or not any(map(str.isalnum, self.target[slice(*span)])):
            self.guessed = True
            span = self._in_proportion(mark)
        for (first, behind), (begin, end), _ in inside.values():
            # A copied word: a tag may stay inside it.
            if self.source[begin:end] == self.target[first:behind]:
                left = max(0, mark.begin - begin) if first == span[0] else 0
                right = max(0, end - mark.end) if behind == span[1] else 0
                span = span[0] + left, span[1] - right
        last = self.source[mark.end - 1 : mark.end]
        next_character = self.target[span[1] : span[1] + 1]
        takes_punctuation = all(
            character and character in PUNCTUATION for character in (last, next_character)
        )
        return span[0], span[1] + takes_punctuation

    def _heaviest(self, inside: Mapping[int, Link]) -> Span:
        """The span whose links have the highest sum of weights. Links outside of `inside` count as negative."""
        span = max(inside.values(), key=lambda link: link[2])[0]
        best = 0.0
        run = 0.0  # the weight of the span that begins at `begin`; 0 begins a span
        for i in range(min(inside), max(inside) + 1):
            word, _, weight = self.links[i]
            if run <= 0:
                run = 0.0
                begin = word[0]
            run += weight - MIN_LINK_WEIGHT if i in inside else -weight
            if run > best:
                best = run
                span = (begin, word[1])
        return span

    def _in_proportion(self, mark: Mark) -> Span:
        """One or more words of the translation at the mark's relative position in the source."""
        begin = self._at_same_share(mark.begin, self.begins)
        end = self._at_same_share(mark.end, self.ends)
        if begin >= end:
            end = next((end for end in self.ends if end > begin), len(self.target))
        return begin, end

    def _point(self, mark: Mark) -> int:
        """The offset of a mark that is not a pair, next to the translation of a neighbouring word."""
        if mark.begin in (0, len(self.source)):
            return 0 if not mark.begin else len(self.target)
        first = bisect_left(self.origins, (mark.begin, mark.begin))
        behind = next(
            (self.origins[i] for i in range(first)[::-1] if self.origins[i][1] <= mark.begin), None
        )
        ahead = self.origins[first] if first < len(self.origins) else None
        if behind and not (ahead and mark.before):
            return self.words[behind][1]
        if ahead:
            place = self.words[ahead][0]
        else:
            self.guessed = True
            place = self._at_same_share(mark.begin, self.begins if mark.before else self.ends)
        # If a blank belongs before the mark, the mark goes before the word's opening quotes and brackets.
        return len(self.target[:place].rstrip(QUOTES)) if mark.before else place

    def _at_same_share(self, place: int, edges: list[int]) -> int:
        """Scale a source offset to the length of the translation, and return the nearest of `edges`."""
        wanted = place * len(self.target) / max(1, len(self.source))
        near = bisect_left(edges, wanted)
        return min(edges[max(0, near - 1) : near + 1], key=lambda edge: abs(edge - wanted))


def _touch(one: Span, other: Span) -> bool:
    """Whether two spans overlap, or an empty one is within the other."""
    return one[0] < other[1] and other[0] < one[1]


def _merged(spans: Iterable[Span]) -> list[Span]:
    """Merge overlapping spans. Returns the spans in order."""
    merged = list[Span]()
    for span in sorted(spans):
        if merged and _touch(merged[-1], span):
            span = merged[-1][0], max(merged.pop()[1], span[1])
        merged.append(span)
    return merged


def _undivided(span: Span, whole: Iterable[Span]) -> Span:
    """Widen a span so that its edges are not within a span of `whole`."""
    touched = [span, *(each for each in whole if _touch(each, span))]
    return min(begin for begin, _ in touched), max(end for _, end in touched)


def _without_punctuation(text: str, span: Span) -> Span:
    """Strip punctuation from the span of a word, unless the word is only punctuation."""
    return word.span() if (word := WITHIN_PUNCTUATION.search(text, *span)) else span


def _around(place: int, pairs: Sequence[_Placed]) -> Span:
    """Return the span of the pair of tags around `place`, or (place, place) if there is none."""
    return next(((begin, end) for begin, end, *_ in pairs if begin < place < end), (place, place))
