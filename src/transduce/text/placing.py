"""Marks put back into a translation, where the words that they belonged to have gone.

Which word has become which, links say: spans of characters in both texts, with a weight. Where there are none, a mark
is put at the same share of the text, and that is reported. Whatever the links say, each mark is put back exactly once,
pairs are properly nested, and what was within a pair stays within.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

from transduce.text.placeholders import QUOTES, Mark, Masked, Patch, Span, moved, weave

Links = Sequence[tuple[Span, Span, float]]  # of a word in the source and a word in the translation
WORD = re.compile(r"\w+(?:[-'’]\w+)*")
DOUBT = 0.4  # a word with a weaker link to what is within a pair isn't taken in for its own sake
PUNCTUATION = ".,:;!?…。，：；！？"


class Restored(NamedTuple):
    """A translation with its marks."""

    text: str
    guessed: bool  # no link said where one of them belongs
    moved: Callable[[Span], Span]  # from a span of the translation to the same words in `text`


class _Word(NamedTuple):
    """A word that has a mark, and has been copied."""

    source: Span
    target: Span
    raw: str


class _Node(NamedTuple):
    """A mark with those inside it."""

    mark: Mark
    inner: list["_Node"]


class _Placed(NamedTuple):
    """A mark in the translation with those inside it."""

    begin: int
    end: int
    mark: Mark
    inner: list["_Placed"]


def copied(masked: Masked, translation: str) -> bool:
    """Whether a model has copied each word that has a mark, exactly as often as it stands in the text."""
    words: dict[str, list[int]] = {}
    for mark in masked.marks:
        if mark.kind == "word":
            words.setdefault(masked.text[mark.begin : mark.end], []).append(mark.begin)
    for word, places in words.items():
        found = _occurrences(word, masked.text)
        if not set(places) <= set(found) or len(found) != len(_occurrences(word, translation)):
            return False
    return True


def restore(
    masked: Masked, translation: str, links: Links, spell: Callable[[str], str] = str, without: Sequence[Patch] = ()
) -> Restored:
    """The translation of a masked text, with every mark; its words must have been `copied`.

    without: more that is to be changed in the translation, in order.
    """
    words = sorted(_words(masked, translation), key=lambda word: word.target)
    placing = _Placing(masked.text, translation, [*links, *((word.source, word.target, 2.0) for word in words)])
    placed = placing.place(_tree([mark for mark in masked.marks if mark.kind != "word"]), (0, len(translation)))
    changes = sorted([*(Patch(*word.target, word.raw) for word in words), *without])
    patches = _around_words(list(_patches(placed)), changes)

    return Restored(
        weave(translation, patches, spell), placing.guessed, partial(moved, translation, patches, spell=spell)
    )


def _occurrences(word: str, text: str) -> list[int]:
    """Where a word stands by itself, not within a longer one."""
    left = r"(?<!\w)" if word[0].isalnum() or word[0] == "_" else ""
    right = r"(?!\w)" if word[-1].isalnum() or word[-1] == "_" else ""
    return [found.start() for found in re.finditer(left + re.escape(word) + right, text)]


def _words(masked: Masked, translation: str) -> Iterator[_Word]:
    """The words with marks where they were copied to: the first of a kind to the first, and so on."""
    places: dict[str, dict[int, int]] = {}
    for mark in masked.marks:
        if mark.kind == "word":
            word = masked.text[mark.begin : mark.end]
            if word not in places:
                pairs = zip(_occurrences(word, masked.text), _occurrences(word, translation), strict=True)
                places[word] = dict(pairs)
            at = places[word][mark.begin]
            yield _Word((mark.begin, mark.end), (at, at + len(word)), mark.opening)


def _tree(marks: Sequence[Mark]) -> list[_Node]:
    """Pairs with what they hold; marks are in the order in which they begin."""
    roots: list[_Node] = []
    around: list[_Node] = []
    for mark in marks:
        while around and around[-1].mark.order[1] < mark.order[0]:
            around.pop()
        node = _Node(mark, [])
        (around[-1].inner if around else roots).append(node)
        if mark.kind == "pair":
            around.append(node)
    return roots


def _patches(placed: Sequence[_Placed]) -> Iterator[Patch]:
    for begin, end, mark, inner in placed:
        point = mark.kind == "point"
        yield Patch(begin, begin, mark.opening, point and mark.before, point and mark.after)
        if mark.kind == "pair":
            yield from _patches(inner)
            yield Patch(end, end, mark.closing)


def _around_words(patches: list[Patch], words: list[Patch]) -> list[Patch]:
    """Both in order; what is within a word, which is one thing, goes to its nearer edge."""
    merged: list[Patch] = []
    rest = iter([*words, None])
    word = next(rest)
    for patch in patches:
        while word and word.end <= patch.begin:
            merged.append(word)
            word = next(rest)
        if word and word.begin < patch.begin:
            if 2 * patch.begin < word.begin + word.end:
                patch = patch._replace(begin=word.begin, end=word.begin)
            else:
                patch = patch._replace(begin=word.end, end=word.end)
                merged.append(word)
                word = next(rest)
        merged.append(patch)
    return [*merged, *([word] if word else []), *filter(None, rest)]


class _Placing:
    """Where marks go in one translation."""

    def __init__(self, source: str, target: str, links: Links) -> None:
        self.source, self.target, self.guessed = source, target, False
        best: dict[Span, tuple[float, Span]] = {}  # each word of the translation comes from one of the source
        for spoken, heard, weight in links:
            word = _core(target, heard)
            if word not in best or weight > best[word][0]:
                best[word] = weight, _core(source, spoken)
        self.links = sorted((word, origin, weight) for word, (weight, origin) in best.items())
        self.begins = [word.start() for word in WORD.finditer(target)] or [0]
        self.ends = [word.end() for word in WORD.finditer(target)] or [len(target)]

    def place(self, nodes: Sequence[_Node], within: Span) -> list[_Placed]:
        """Siblings in the order in which they stand in the translation; they don't overlap."""
        pairs: list[_Placed] = []
        at = within[0]
        wanted = [(*self._span(node.mark), node) for node in nodes if node.mark.kind == "pair"]
        for begin, end, node in sorted(wanted, key=lambda each: each[:2]):
            begin, end = self._free((max(begin, at), min(end, within[1])), (at, within[1]))
            at = end
            pairs.append(_Placed(begin, end, node.mark, self.place(node.inner, (begin, end))))
        points: list[_Placed] = []
        half = within[0]  # halves keep their order: one may end what another begins
        for mark in (node.mark for node in nodes if node.mark.kind != "pair"):
            place = _outside(min(max(self._point(mark), within[0]), within[1]), pairs)
            if mark.kind == "half":
                half = place = _behind(max(place, half), pairs)
            points.append(_Placed(place, place, mark, []))
        return sorted([*pairs, *points], key=lambda each: (each.begin, each.end, each.mark.order))

    def _free(self, wanted: Span, within: Span) -> Span:
        """The span, or if another pair has taken all of it, the next word; nothing where there is none."""
        if wanted[0] < wanted[1]:
            return wanted
        self.guessed = True
        free = (word for word in zip(self.begins, self.ends, strict=False) if within[0] <= word[0])
        begin, end = next(free, (within[1], within[1]))
        return (begin, end) if end <= within[1] else (within[1], within[1])

    def _span(self, mark: Mark) -> Span:
        """The stretch of words that come from within a pair: as many as possible, with as few others as possible."""
        best, run, begin = 0.0, 0.0, 0
        inside = [link for link in self.links if link[1][0] < mark.end and mark.begin < link[1][1]]
        found = max(inside, key=lambda link: link[2])[0] if inside else None
        for link in self.links:
            if run <= 0:
                run, begin = 0.0, link[0][0]
            run += link[2] - DOUBT if link in inside else -link[2]
            if run > best:
                best, found = run, (begin, link[0][1])
        if found is None or not any(map(str.isalnum, self.target[slice(*found)])):
            self.guessed = True
            found = self._share(mark.begin, self.begins), self._share(mark.end, self.ends)
            if found[0] >= found[1]:
                found = found[0], next((end for end in self.ends if end > found[0]), len(self.target))
        last_of_both = self.source[mark.end - 1 : mark.end], self.target[found[1] : found[1] + 1]
        return found[0], found[1] + all(character and character in PUNCTUATION for character in last_of_both)

    def _point(self, mark: Mark) -> int:
        """Before the word that comes next in the source, or behind the last, if the mark was attached to it."""
        if mark.begin in (0, len(self.source)):
            return 0 if not mark.begin else len(self.target)
        behind = [origin for _, origin, _ in self.links if origin[1] <= mark.begin]
        ahead = [origin for _, origin, _ in self.links if origin[0] >= mark.begin]
        if behind and (not ahead or not mark.before):
            return self._become(max(behind))[1]
        if ahead:
            at = self._become(min(ahead))[0]
        else:
            self.guessed = True
            at = self._share(mark.begin, self.begins if mark.before else self.ends)
        return self._before_quotes(at) if mark.before else at

    def _become(self, origin: Span) -> Span:
        """The word that is linked most with a word of the source."""
        return max((link for link in self.links if link[1] == origin), key=lambda link: link[2])[0]

    def _before_quotes(self, at: int) -> int:
        """Before the quotes or brackets that a word begins with."""
        while at and self.target[at - 1] in QUOTES:
            at -= 1
        return at

    def _share(self, at: int, edges: list[int]) -> int:
        """The edge of a word that is nearest to the same share of the translation."""
        wanted = at * len(self.target) / max(1, len(self.source))
        return min(edges, key=lambda edge: abs(edge - wanted))


def _core(text: str, span: Span) -> Span:
    """A word without the punctuation around it, unless it is nothing else."""
    begin, end = span
    while begin < end and not _is_of_word(text[begin]):
        begin += 1
    while begin < end and not _is_of_word(text[end - 1]):
        end -= 1
    return (begin, end) if begin < end else span


def _is_of_word(character: str) -> bool:
    return character.isalnum() or character == "_"


def _outside(place: int, pairs: Sequence[_Placed]) -> int:
    """The place itself, or the nearer edge of a pair that it is within."""
    for begin, end, *_ in pairs:
        if begin < place < end:
            return begin if place - begin < end - place else end
    return place


def _behind(place: int, pairs: Sequence[_Placed]) -> int:
    """The place itself, or the end of a pair that it is within."""
    return next((end for begin, end, *_ in pairs if begin < place < end), place)
