"""What isn't text in a text: tags, placeholders that a program fills in, code, addresses.

`mask` takes tags out and says where they stood. What stands for a word (`{0}`, `%(name)s`, an address) stays in the
text, where a model that knows such things copies it; `without_words` takes it out, too, for one that doesn't.
`placing.py` puts everything back into a translation. A text is plain, or it is markup: then it holds entities, and
blanks are one blank.
"""

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import accumulate
from typing import Literal, NamedTuple

from transduce.text.inline import MARKUP_BLANKS, Event, events

NUMBER = re.compile(r"\d+")
THOUSANDS = re.compile(r"(?<=\d)[.,'’ \u00a0\u2009\u202f](?=\d{3}(?!\d))")
QUOTES = {'"': '"', "'": "'", "(": ")", "[": "]", "<": ">", "«": "»", "»": "«", "“": "”", "„": "“", "‘": "’", "‚": "‘"}
CLOSING = ".,:;!?…%)]}>”’»"  # what a blank comes behind
BEGINNING = re.compile(r"[\w([{<„“‘«]|[\"']\w")  # of what a blank comes before
LONGEST_WORD = 60  # characters of what may stand in the text for an element that holds nothing but placeholders


Span = tuple[int, int]


class Mark(NamedTuple):
    """Something that isn't text, and the characters of the text that it is about."""

    kind: Literal["pair", "point", "half", "word"]  # tags around words; between words; one of a pair alone; a word
    begin: int
    end: int  # of a point and a half: begin
    opening: str  # as it stood; of a pair, what begins it
    closing: str = ""  # of a pair, what ends it
    before: bool = False  # a point: whether a blank belongs before it
    after: bool = False  # and behind it
    order: tuple[int, int] = (0, 0)  # among all that begins and ends: when it began and ended


class Masked(NamedTuple):
    """A text without markup, and its marks in the order in which they begin, the outer ones first."""

    text: str
    marks: tuple[Mark, ...]


class Patch(NamedTuple):
    """Characters of a text that something takes the place of, as it stands."""

    begin: int
    end: int
    raw: str
    before: bool = False  # a blank comes before it, if there is none
    after: bool = False  # and behind it, but for punctuation


def mask(text: str, *, markup: bool = False, preserve: bool = False) -> Masked:
    """Take out what isn't text; preserve: in markup, blanks mean what they are."""
    builder = _Builder(collapse=markup and not preserve)
    for order, event in enumerate(events(text, markup=markup)):
        builder.add(order, event)
    return builder.masked()


def is_text(masked: Masked) -> bool:
    """Whether there is anything to translate beside what stands for words."""
    words = [Patch(mark.begin, mark.end, "") for mark in masked.marks if mark.kind == "word"]
    return any(map(str.isalpha, weave(masked.text, words)))


def has_words(masked: Masked) -> bool:
    """Whether something in the text stands for a word."""
    return any(mark.kind == "word" for mark in masked.marks)


def weave(text: str, patches: Iterable[Patch], spell: Callable[[str], str] = str) -> str:
    """The text, as `spell` writes it, with the patches, which are in order and don't overlap."""
    parts, at, wanted = list[str](), 0, False  # wanted: a blank behind the last patch
    for patch in patches:
        between = text[at : patch.begin]
        if wanted and between and BEGINNING.match(text, at):
            parts.append(" ")
        parts.append(spell(between))
        last = text[patch.begin - 1 : patch.begin]
        needed = patch.before and (last.isalnum() or (last and last in CLOSING))
        if needed or (wanted and not between):
            parts.append(" ")
        parts.append(patch.raw)
        at, wanted = patch.end, patch.after
    if wanted and BEGINNING.match(text, at):
        parts.append(" ")
    return "".join([*parts, spell(text[at:])])


def moved(text: str, patches: Sequence[Patch], span: Span, spell: Callable[[str], str] = str) -> Span:
    """Where a span of the text is when the text is woven with the patches."""
    begin = weave(text[: span[0]], [patch for patch in patches if patch.end <= span[0]], spell)
    end = weave(text[: span[1]], [patch for patch in patches if patch.begin < span[1]], spell)
    return len(begin), max(len(begin), len(end))


def in_place(masked: Masked) -> list[Patch]:
    """The marks as they stand in their text."""
    return [patch for _, patch in sorted(end for mark in masked.marks for end in _ends(mark))]


def original(masked: Masked, spell: Callable[[str], str] = str) -> str:
    """What was masked: `mask` undone, but for blanks that were collapsed."""
    return weave(masked.text, in_place(masked), spell)


def whole_words(masked: Masked, spans: Sequence[Span]) -> list[Span]:
    """The spans, those put together that a word with a mark reaches over."""
    words = [mark for mark in masked.marks if mark.kind == "word"]
    begins = [word.begin for word in words]
    whole: list[Span] = []
    for begin, end in spans:
        before = bisect_left(begins, begin) - 1  # the last word that begins before the span
        if whole and before >= 0 and words[before].end > whole[-1][1]:
            whole[-1] = (whole[-1][0], end)
        else:
            whole.append((begin, end))
    return whole


def cut(masked: Masked, spans: Sequence[Span], spell: Callable[[str], str] = str) -> tuple[list[str], list[Masked]]:
    """What is between the spans, as it stood, one more than spans; and what is in each span.

    A tag at the edge of a span is outside. Of a pair that is only partly in a span, a half is there. The spans are in
    order, and cut no word in two.
    """
    begins, ends = [begin for begin, _ in spans], [end for _, end in spans]
    inside: list[list[Mark]] = [[] for _ in spans]
    outside: list[list[tuple[int, Patch]]] = [[] for _ in range(len(spans) + 1)]
    for mark in masked.marks:
        i = bisect_right(begins, mark.begin) - 1
        if i >= 0 and mark.begin < mark.end <= ends[i] and (mark.kind == "word" or (mark.begin, mark.end) != spans[i]):
            inside[i].append(_moved(mark, -begins[i]))
            continue
        for order, patch in _ends(mark):
            i = bisect_right(begins, patch.begin) - 1
            if i >= 0 and begins[i] < patch.begin < ends[i]:
                inside[i].append(_moved(_half(mark, order, patch), -begins[i]))
            else:
                gap = bisect_right(ends, patch.begin)
                start = ends[gap - 1] if gap else 0
                outside[gap].append((order, patch._replace(begin=patch.begin - start, end=patch.end - start)))
    gaps = [
        weave(masked.text[begin:end], [patch for _, patch in sorted(patches)], spell)
        for begin, end, patches in zip([0, *ends], [*begins, len(masked.text)], outside, strict=True)
    ]
    return gaps, [Masked(masked.text[b:e], _sorted(marks)) for b, e, marks in zip(begins, ends, inside, strict=True)]


def without_words(masked: Masked) -> Masked:
    """The words among the marks are taken out of the text, too, and become points; so do quotes around them."""
    holes: list[Mark] = []  # points, whose begin and end are yet those of what is taken out
    others = [mark for mark in masked.marks if mark.kind != "word"]
    edges = {at for mark in others for at in (mark.begin, mark.end)}
    for mark in masked.marks:
        if mark.kind == "word":
            gap = masked.text[holes[-1].end : mark.begin] if holes else " "
            if not any(map(_is_word_or_blank, gap)) and not edges & set(range(holes[-1].end, mark.begin + 1)):
                before = holes.pop()
                mark = mark._replace(
                    begin=before.begin, opening=before.opening + gap + mark.opening, order=before.order
                )
            holes.append(_quoted(masked.text, mark, edges))
    return _without(masked.text, [_with_blanks(masked.text, hole, edges) for hole in holes], others)


def intact(source: str, translation: str, *, markup: bool) -> bool:
    """Whether all that isn't text in the source is in the translation, as often, and nothing else; pairs as pairs."""
    return _tally(source, markup) == _tally(translation, markup)


def same_numbers(source: str, translation: str) -> bool:
    """Whether both hold the same numbers, however their decimals and thousands are written (3.5, 3,5)."""
    return any(
        sorted(NUMBER.findall(written(source))) == sorted(NUMBER.findall(written(translation)))
        for written in (str, partial(THOUSANDS.sub, ""))
    )


class _Opened(NamedTuple):
    """What has begun: its name, and how many parts of text, marks and events were there before it."""

    name: str
    parts: int
    marks: int
    raws: int


class _Builder:
    """Events, one after the other, become a text with marks."""

    def __init__(self, *, collapse: bool) -> None:
        self.collapse = collapse
        self.parts, self.length, self.marks, self.raws = [""], 0, list[Mark](), list[str]()
        self.opened: list[_Opened] = []
        self.names = Counter[str]()  # of what is opened

    def add(self, order: int, event: Event) -> None:
        mark = Mark("point", self.length, self.length, event.raw, before=self._at_blank(), order=(order, order))
        if event.kind == "text":
            self._append(event.raw)
        elif event.kind == "character":
            self._add(event.shown)
        elif event.kind == "word":
            self._add(event.shown)
            self.marks.append(mark._replace(kind="word", end=self.length))
        elif event.kind == "open":
            self.opened.append(_Opened(event.name, len(self.parts), len(self.marks), len(self.raws)))
            self.names[event.name] += 1
            self.marks.append(mark._replace(kind="half"))
        elif event.kind == "close":
            self._close(event.name, mark)
        else:
            self.marks.append(mark)
        self.raws.append(event.raw)

    def masked(self) -> Masked:
        return Masked("".join(self.parts), _sorted(self.marks))

    def _add(self, text: str) -> None:
        if text:
            self.parts.append(text)
            self.length += len(text)

    def _append(self, raw: str) -> None:
        """Add text; a blank behind a point that has one before it is the point's."""
        text = MARKUP_BLANKS.sub(" ", raw) if self.collapse else raw
        if self.collapse and text[0] == " " and self._at_blank():
            text = text[1:]
            if self.marks and self.marks[-1].kind == "point" and self.marks[-1].begin == self.length:
                self.marks[-1] = self.marks[-1]._replace(after=True)
        self._add(text)

    def _close(self, name: str, mark: Mark) -> None:
        """Make a pair of what was opened last under this name; what was opened since stays half."""
        if not self.names[name]:
            self.marks.append(mark._replace(kind="half"))
            return
        while (opened := self.opened.pop()).name != name:
            self.names[opened.name] -= 1
        self.names[name] -= 1
        opening, order = self.marks[opened.marks], (self.marks[opened.marks].order[0], mark.order[0])
        content = self._behind(opened.parts, LONGEST_WORD)
        if content is not None and _is_one_word(content, opening.begin, self.marks[opened.marks + 1 :]):
            kind: Literal["point", "word"] = "word" if content else "point"
            self.raws[opened.raws :] = ["".join(self.raws[opened.raws :])]
            raw = self.raws[-1] + mark.opening
            self.marks[opened.marks :] = [opening._replace(kind=kind, end=mark.begin, opening=raw, order=order)]
        else:
            self.marks[opened.marks] = opening._replace(kind="pair", end=mark.begin, closing=mark.opening, order=order)

    def _behind(self, first: int, longest: int) -> str | None:
        """The text from a part on; None if it is longer."""
        if len(self.parts) - first > longest:
            return None
        text = "".join(self.parts[first:])
        return text if len(text) <= longest else None

    def _at_blank(self) -> bool:
        return self.parts[-1][-1:].isspace()


def _is_one_word(content: str, begin: int, inner: Sequence[Mark]) -> bool:
    """Whether the content of a pair is nothing, or nothing but words with marks: then they move together."""
    if any(mark.kind == "half" for mark in inner):
        return False
    words = [Patch(mark.begin - begin, mark.end - begin, "") for mark in inner if mark.kind == "word"]
    one = bool(words) and content == content.strip() and "\n" not in content
    return not content or (one and not any(map(str.isalnum, weave(content, words))))


def _sorted(marks: Iterable[Mark]) -> tuple[Mark, ...]:
    return tuple(sorted(marks, key=lambda mark: mark.order))


def _ends(mark: Mark) -> list[tuple[int, Patch]]:
    """What stands where, each with its order."""
    if mark.kind == "pair":
        closing = Patch(mark.end, mark.end, mark.closing)
        return [(mark.order[0], Patch(mark.begin, mark.begin, mark.opening)), (mark.order[1], closing)]
    point = mark.kind == "point"
    return [(mark.order[0], Patch(mark.begin, mark.end, mark.opening, point and mark.before, point and mark.after))]


def _half(mark: Mark, order: int, patch: Patch) -> Mark:
    """One end of a pair by itself, or what is no pair."""
    if mark.kind != "pair":
        return mark
    return Mark("half", patch.begin, patch.end, patch.raw, before=order == mark.order[0], order=(order, order))


def _moved(mark: Mark, by: int) -> Mark:
    return mark._replace(begin=mark.begin + by, end=mark.end + by)


def _is_word_or_blank(character: str) -> bool:
    return character.isalnum() or character.isspace()


def _quoted(text: str, hole: Mark, edges: set[int]) -> Mark:
    """The hole with the quotes or brackets around it, if there are any and no tag stands between."""
    begin, end = hole.begin - 1, hole.end
    if begin >= 0 and text[end : end + 1] == QUOTES.get(text[begin]) and not edges & {hole.begin, hole.end}:
        return hole._replace(begin=begin, end=end + 1, opening=text[begin] + hole.opening + text[end])
    return hole


def _with_blanks(text: str, hole: Mark, edges: set[int]) -> Mark:
    """The hole, as a point, with a blank of those around it: one is left where there were two."""
    begin, end, left, right = hole.begin, hole.end, text[: hole.begin][-1:], text[hole.end : hole.end + 1]
    before = not left.isalnum() and begin not in edges
    after = not right.isalnum() and end not in edges
    if left.isspace() and before and not right.isalnum():
        begin -= 1
    elif begin == 0 and right.isspace() and after:
        end += 1
    return hole._replace(kind="point", begin=begin, end=end, before=before, after=after)


def _without(text: str, holes: list[Mark], others: list[Mark]) -> Masked:
    """The text without the holes, whose places are moved, as are the others'."""
    holes = [
        hole._replace(begin=max(hole.begin, before))
        for hole, before in zip(holes, [0, *(h.end for h in holes)], strict=False)
    ]
    begins = [hole.begin for hole in holes]
    removed = [0, *accumulate(hole.end - hole.begin for hole in holes)]

    def moved(at: int) -> int:
        i = bisect_right(begins, at)
        left = max(0, holes[i - 1].end - at) if i else 0  # of the hole that the place is in
        return at - removed[i] + left

    left = weave(text, [Patch(hole.begin, hole.end, "") for hole in holes])
    points = [hole._replace(begin=moved(hole.begin), end=moved(hole.begin)) for hole in holes]
    rest = [mark._replace(begin=moved(mark.begin), end=moved(mark.end)) for mark in others]
    return Masked(left, _sorted([*points, *rest]))


def _tally(text: str, markup: bool) -> tuple[Counter[str], int]:
    """What isn't text, each with its number, and how many of it are halves."""
    raws = Counter(each.raw for each in events(text, markup=markup) if each.kind not in ("text", "character"))
    return raws, sum(mark.kind == "half" for mark in mask(text, markup=markup).marks)
