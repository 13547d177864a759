"""Masks the tags and placeholders of a text before translation.

`mask` removes tags and records their places as marks. Placeholders, such as `{0}` or an address, stay in the text and
have marks, too. `without_words` removes placeholders for models that do not copy placeholders. `placing.py` restores
tags and placeholders in the translation.
"""

import math
import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate, takewhile
from typing import Literal, NamedTuple

from transduce.config.schema import PLACEHOLDER_TOKENS
from transduce.inline.events import (
    MARKUP_BLANKS,
    NO_BLANK,
    OTHER_STOPS,
    UNNUMBERED,
    VOWEL_SIGNS,
    Event,
)
from transduce.inline.markup_events import events
from transduce.inline.symbols import with_symbols
from transduce.text.formats import PLAIN_TEXT, TextKind
from transduce.tokens.spans import Span

Symbols = re.Pattern[str] | None  # see symbols.py
# Opening quote -> closing quote.
CLOSING_QUOTES = dict(zip("\"'([<«»“„‘‚", "\"')]>»«”“’‘", strict=True))
# Characters after which, and beginnings before which, a blank may be needed. Vowel signs of Hindi are not in \w.
BLANK_BEHIND = re.compile(
    rf"(?![{NO_BLANK}])[\w{PLACEHOLDER_TOKENS}{VOWEL_SIGNS}{OTHER_STOPS}.,:;!?…%)\]}}>”’»]"
)
BLANK_BEFORE = re.compile(
    rf"[^\s.,:;!?…%)\]}}>”’»\"'{NO_BLANK}{OTHER_STOPS}]|[\"'](?![{NO_BLANK}])\w"
)
# The name of an XML element, not of an escaped tag or of a pair of empty elements.
ELEMENT = re.compile("[^< ]+")
RAISED = ("sup", "sub")  # elements that may hold the number of a footnote or an exponent
MAX_OPEN_TAGS = 100  # nested tags beyond this number stay unpaired
# An element that contains only placeholders counts as one word, up to this length.
MAX_WORD_CHARACTERS = 60


class Mark(NamedTuple):
    """A tag, a pair of tags or a placeholder, with its offsets in the masked text."""

    # Tags around words; between words; half of a pair; a placeholder.
    kind: Literal["pair", "point", "half", "word"]
    begin: int
    end: int  # equals `begin` for a point or a half
    opening: str  # the characters in the original text; for a pair, the opening tag
    closing: str = ""  # the closing tag of a pair
    before: bool = False  # whether a point needs a blank before it
    after: bool = False  # whether a point needs a blank after it
    order: tuple[int, int] = (0, 0)  # the numbers of its opening and closing events


class Masked(NamedTuple):
    """A text without tags, and the ordered marks of its tags and placeholders."""

    text: str
    marks: tuple[Mark, ...]

    @property
    def words(self) -> list[Mark]:
        """The marks of the placeholders."""
        return [mark for mark in self.marks if mark.kind == "word"]

    @property
    def rest(self) -> str:
        """The text without its placeholders."""
        return weave(self.text, [Patch(mark.begin, mark.end, "") for mark in self.words])


class Patch(NamedTuple):
    """A replacement for a span of a text."""

    begin: int
    end: int
    raw: str  # the replacement
    # Whether a blank is added before the replacement, after a word or punctuation.
    before: bool = False
    after: bool = False  # whether a blank is added after the replacement, except before punctuation


def mask(text: str, kind: TextKind = PLAIN_TEXT, symbols: Symbols = None) -> Masked:
    """Mask the tags, the placeholders and the symbols of a text.

    In markup, runs of blanks are collapsed unless white space counts.
    """
    return _masked(text, kind, with_symbols(events(text, kind), symbols))


def _masked(text: str, kind: TextKind, found: Iterable[Event]) -> Masked:
    builder = _Builder(text, collapse=kind.markup and not kind.preserve)
    for order, event in enumerate(found):
        builder.add(order, event)
    return Masked("".join(builder.parts), in_order(builder.marks))


def weave(
    text: str,
    patches: Iterable[Patch],
    spell: Callable[[str], str] = str,
    begin: int = 0,
    end: int | None = None,
) -> str:
    """Apply patches to text[begin:end], in order and without overlap. `spell` escapes the text between the patches."""
    parts = list[str]()
    done = begin
    needs_blank = False
    had_before = False  # whether the last patch had a blank before it
    for patch in patches:
        between = text[done : patch.begin]
        if needs_blank and between and BLANK_BEFORE.match(text, done):
            parts.append(" ")
        parts.append(spell(between))
        last = text[max(begin, patch.begin - 1) : patch.begin]
        if (patch.before and (between or not had_before) and BLANK_BEHIND.match(last)) or (
            needs_blank and not between
        ):
            parts.append(" ")
        parts.append(patch.raw)
        done = patch.end
        needs_blank = patch.after
        had_before = patch.before
    if needs_blank and BLANK_BEFORE.match(text, done):
        parts.append(" ")
    return "".join([*parts, spell(text[done:end])])


def moved(
    text: str, patches: Sequence[Patch], span: Span, spell: Callable[[str], str] = str
) -> Span:
    """Convert a span of `text` to the corresponding span of the patched text."""
    # The first character is included and subtracted again, so that a blank before it stays outside the span.
    first = spell(text[span[0] : span[0] + 1])
    begin = len(
        weave(text[: span[0] + 1], [patch for patch in patches if patch.end <= span[0]], spell)
    ) - len(first)
    return begin, max(
        begin,
        len(weave(text[: span[1]], [patch for patch in patches if patch.begin < span[1]], spell)),
    )


def replace(masked: Masked, patches: Sequence[Patch]) -> Masked:
    """Apply patches to a masked text and shift its marks accordingly."""
    ends = [patch.end for patch in patches]
    shifts = [0, *accumulate(len(patch.raw) - patch.end + patch.begin for patch in patches)]

    def shifted(place: int) -> int:
        i = bisect_right(ends, place)
        return shifts[i] + (min(place, patches[i].begin) if i < len(patches) else place)

    marks = (
        mark._replace(begin=shifted(mark.begin), end=shifted(mark.end)) for mark in masked.marks
    )
    return Masked(weave(masked.text, patches), tuple(marks))


def in_place(masked: Masked) -> list[Patch]:
    """Return the patches that restore tags and placeholders in the masked text."""
    return [patch for _, patch in sorted(end for mark in masked.marks for end in restoring(mark))]


def original(masked: Masked, spell: Callable[[str], str] = str) -> str:
    """Restore the original text, except for the blanks that `mask` collapsed."""
    return weave(masked.text, in_place(masked), spell)


def cut(
    masked: Masked, spans: Sequence[Span], spell: Callable[[str], str] = str
) -> tuple[list[str], list[Masked]]:
    """Cut spans out of a masked text. Returns the unmasked texts around the spans, and a masked text for each span.

    The spans must be in order and must not cut placeholders.
    """
    begins = [begin for begin, _ in spans]
    ends = [end for _, end in spans]
    inside: list[list[Mark]] = [[] for _ in spans]
    outside: list[list[tuple[int, Patch]]] = [[] for _ in range(len(spans) + 1)]
    # The first and the last of the events inside each span.
    first = [math.inf] * len(spans)
    last = [-math.inf] * len(spans)
    others: list[tuple[Mark, int, Patch]] = []  # the ends of all marks that are not inside one span
    for mark in masked.marks:
        i = bisect_right(begins, mark.begin) - 1
        is_span = mark.kind != "word" and (mark.begin, mark.end) in spans[i : i + 1]
        if i < 0 or is_span or not mark.begin < mark.end <= ends[i]:
            others += [(mark, *end) for end in restoring(mark)]
            continue
        inside[i].append(_moved(mark, -begins[i]))
        if mark.begin == begins[i]:
            first[i] = min(first[i], mark.order[0])
        if mark.end == ends[i]:
            last[i] = max(last[i], mark.order[1])
    for mark, order, patch in others:
        # The spans that the patch touches.
        for i in range(bisect_left(ends, patch.begin), bisect_right(begins, patch.begin)):
            if (begins[i] < patch.begin or first[i] < order) and (
                patch.begin < ends[i] or order < last[i]
            ):
                inside[i].append(_moved(_half(mark, order, patch), -begins[i]))
                break
        else:
            outside[bisect_right(ends, patch.begin)].append((order, patch))
    gaps = [
        weave(masked.text, [patch for _, patch in sorted(patches)], spell, begin, end)
        for begin, end, patches in zip(
            [0, *ends], [*begins, len(masked.text)], outside, strict=True
        )
    ]
    return gaps, [
        Masked(masked.text[b:e], in_order(marks))
        for b, e, marks in zip(begins, ends, inside, strict=True)
    ]


def intact(
    source: str, translation: str, kind: TextKind = PLAIN_TEXT, symbols: Symbols = None
) -> bool:
    """Whether both texts have the same tags, placeholders, symbols and unpaired tags, and the same order of %s, %d."""
    return _tally(source, kind, symbols) == _tally(translation, kind, symbols)


class _Opened(NamedTuple):
    """An unclosed tag, with the numbers of parts and marks before the tag."""

    name: str
    begin: int
    parts: int
    marks: int


class _Builder:
    """Builds a masked text from the events of a text."""

    def __init__(self, text: str, *, collapse: bool) -> None:
        self.text = text
        self.done = 0  # characters of the text that are processed
        self.collapse = collapse
        self.parts = [""]
        self.length = 0
        self.marks = list[Mark]()
        self.opened: list[_Opened] = []
        self.names = Counter[str]()  # counts of the open tags

    def add(self, order: int, event: Event) -> None:
        may_need = bool(re.match(rf"[\s{NO_BLANK}]", self.parts[-1][-1:]))
        mark = Mark(
            "point", self.length, self.length, event.raw, before=may_need, order=(order, order)
        )
        self.done += len(event.raw)
        if event.kind == "text":
            self._append(order, event.raw)
        elif event.kind == "character":
            self._add(event.shown)
        elif event.kind == "word":
            self._add(event.shown)
            self.marks.append(mark._replace(kind="word", end=self.length))
        elif event.kind == "open" and len(self.opened) == MAX_OPEN_TAGS:
            self.marks.append(mark._replace(kind="half"))
        elif event.kind == "open":
            self.opened.append(
                _Opened(event.name, self.done - len(event.raw), len(self.parts), len(self.marks))
            )
            self.names[event.name] += 1
            self.marks.append(mark._replace(kind="half"))
        elif event.kind == "close":
            self._close(event.name, mark)
        else:
            self.marks.append(mark)

    def _add(self, text: str) -> None:
        if text:
            self.parts.append(text)
            self.length += len(text)

    def _append(self, order: int, raw: str) -> None:
        """Add text.

        Two blanks around a tag become one blank, if blanks are collapsed or `weave` restores the second blank.
        """
        text = MARKUP_BLANKS.sub(" ", raw) if self.collapse else raw
        last = self.marks[-1] if self.marks else Mark("half", 0, 0, "")
        is_point = last.kind == "point" and last.begin == self.length
        is_behind_point = is_point and (self.collapse or last.order[1] == order - 1)
        if text[0] == " " and self.parts[-1][-1:].isspace():
            if is_behind_point:
                self.marks[-1] = last._replace(after=True)
            is_restored = BLANK_BEFORE.match(text, 1) or (
                text == " " and self.text.startswith("<", self.done)
            )
            text = text[1:] if self.collapse or (is_behind_point and is_restored) else text
        elif is_behind_point and re.match(
            rf"[{NO_BLANK}{'.,:;!?' if last.before else ''}]", text
        ):  # a word may take this place in the translation
            self.marks[-1] = last._replace(after=True)
        self._add(text)

    def _close(self, name: str, mark: Mark) -> None:
        """Pair a closing tag with the last open tag of the same name. Tags between these two stay unpaired."""
        # A pair that crosses an XML element, such as XLIFF's <sc/> and <ec/>, stays unpaired to keep the element
        # intact.
        later = takewhile(lambda each: each.name != name, reversed(self.opened))
        crosses = not ELEMENT.fullmatch(name) and any(
            ELEMENT.fullmatch(each.name) for each in later
        )
        if crosses or not self.names[name]:
            self.marks.append(mark._replace(kind="half"))
            return
        while (opened := self.opened.pop()).name != name:
            self.names[opened.name] -= 1
        self.names[name] -= 1
        opening = self.marks[opened.marks]
        order = (self.marks[opened.marks].order[0], mark.order[0])
        is_short = self.length - opening.begin <= MAX_WORD_CHARACTERS
        content = "".join(self.parts[opened.parts :]) if is_short else ""
        if is_short and _is_one_word(content, opening.begin, self.marks[opened.marks + 1 :]):
            kind: Literal["point", "word"] = "word" if content else "point"
            raw = self.text[opened.begin : self.done]
            self.marks[opened.marks :] = [
                opening._replace(kind=kind, end=mark.begin, opening=raw, order=order)
            ]
        elif is_short and self._is_point(content, opened, opening):
            raw = self.text[opened.begin : self.done]
            self.length = opening.begin
            del self.parts[opened.parts :]
            self.marks[opened.marks :] = [opening._replace(kind="point", opening=raw, order=order)]
        else:
            self.marks[opened.marks] = opening._replace(
                kind="pair", end=mark.begin, closing=mark.opening, order=order
            )

    def _is_point(self, content: str, opened: _Opened, opening: Mark) -> bool:
        """Whether an element has only blanks, or follows a word and has no letters, as in `dog<sup>1</sup>`."""
        if content.isspace() or opened.name.removeprefix("<") not in RAISED:
            return content.isspace() and opening.before
        before = self.parts[opened.parts - 1][-1:]
        after = self.text[self.done : self.done + 1]
        has_text = any(c.isalpha() or c.isspace() for c in content)
        return (
            bool(before.isalnum() or BLANK_BEHIND.match(before))
            and not after.isalnum()
            and not has_text
        )


def _is_one_word(content: str, begin: int, inner: Sequence[Mark]) -> bool:
    """Whether a pair of tags contains no words: nothing, or only placeholders and punctuation."""
    if any(mark.kind == "half" for mark in inner):
        return False
    words = [
        Patch(mark.begin - begin, mark.end - begin, "") for mark in inner if mark.kind == "word"
    ]
    one = bool(words) and content == content.strip() and "\n" not in content
    return not content or (one and not any(map(str.isalnum, weave(content, words))))


def in_order(marks: Iterable[Mark]) -> tuple[Mark, ...]:
    return tuple(sorted(marks, key=lambda mark: mark.order))


def restoring(mark: Mark) -> list[tuple[int, Patch]]:
    """Return the patches that restore a mark, each with the number of its event."""
    if mark.kind == "pair":
        closing = Patch(mark.end, mark.end, mark.closing)
        return [
            (mark.order[0], Patch(mark.begin, mark.begin, mark.opening)),
            (mark.order[1], closing),
        ]
    point = mark.kind == "point"
    return [
        (
            mark.order[0],
            Patch(mark.begin, mark.end, mark.opening, point and mark.before, point and mark.after),
        )
    ]


def _half(mark: Mark, order: int, patch: Patch) -> Mark:
    """If `mark` is a pair of tags, return a mark for the tag that `patch` restores. Otherwise return `mark`."""
    half = Mark(
        "half",
        patch.begin,
        patch.end,
        patch.raw,
        before=order == mark.order[0],
        order=(order, order),
    )
    return half if mark.kind == "pair" else mark


def _moved(mark: Mark, by: int) -> Mark:
    return mark._replace(begin=mark.begin + by, end=mark.end + by)


def _tally(text: str, kind: TextKind, symbols: Symbols) -> tuple[Counter[str], list[str], int]:
    """Count each tag and placeholder of a text, list its conversions without numbers, and count the unpaired tags."""
    found = list(with_symbols(events(text, kind), symbols))
    raws = [event.raw for event in found if event.kind not in ("text", "character")]
    halves = sum(mark.kind == "half" for mark in _masked(text, kind, found).marks) if raws else 0
    return Counter(raws), [raw for raw in raws if UNNUMBERED.fullmatch(raw)], halves
