"""Gives texts that look alike the same characters before they are encoded.

All texts are brought into Unicode's form NFC. In sources, other spaces become blanks, forms of other widths and
ligatures become usual letters, and invisible characters that carry no meaning are removed. NFKC would change more, such
as x² to x2.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

from transduce.tokens.spans import Span

# Scripts in which the joiners U+200C and U+200D change words, such as those of Arabic, Persian and India.
JOINING = (
    r"\u0600-\u0dff\u0f00-\u109f\u1780-\u18af\u1a20-\u1cff\ua800-\uabff\ufb50-\ufdcf\ufdf0-\ufdff\ufe70-\ufefc"
    r"\U00010a00-\U00011fff"
)
WITHOUT_BLANKS = (
    r"\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff"  # scripts in which U+200B separates words
)
PICTOGRAMS = (
    r"\xa9\xae\u203c\u2049\u2122\u2139\u2190-\u21ff\u2300-\u27bf\u2900-\u29ff\u2b00-\u2bff\u3030\u303d\u3297\u3299"
    r"\U0001f000-\U0001faff"
)
CONTROLS = r"\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f"
NEVER_VISIBLE = (  # marks for the direction of text, for line breaks, for other programs
    rf"{CONTROLS}\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200e\u200f\u202a-\u202e\u2060-\u206f\u3164\ufeff\uffa0"
    r"\ufff9-\ufffb\U0001d173-\U0001d17a\U000e0001\U000e0100-\U000e01ef"
)
SOMETIMES_VISIBLE = r"\u200b-\u200d\ufe00-\ufe0f\U000e0020-\U000e007f"
MEANINGLESS = re.compile(
    rf"""
    [{NEVER_VISIBLE}]
    | (?<![{WITHOUT_BLANKS}])\u200b | \u200b(?![{WITHOUT_BLANKS}])
    | (?<![{JOINING}])\u200c
    | (?<![{JOINING}{PICTOGRAMS}])(?<![{PICTOGRAMS}]\ufe0f)\u200d
    | (?<![{PICTOGRAMS}0-9\#*])[\ufe00-\ufe0f]  # how a picture looks
    | (?<![\U0001f3f4\U000e0020-\U000e007f])[\U000e0020-\U000e007f]+  # tags of flags such as England's
    """,
    re.VERBOSE,
)
BLANKS_AROUND = re.compile(r"\A +| +\Z")
BLANKS = re.compile(" {2,}")
OTHER_SPACES = "\t\v\f\r\x1c\x1d\x1e\x1f\x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(
    map(chr, range(0x2000, 0x200B))
)
WIDE_PUNCTUATION = "".join(each for each in map(chr, range(0xFF01, 0xFF5F)) if not each.isalnum())
# Next to Chinese or Japanese characters, wide signs are usual and stay.
WITH_WIDE_PUNCTUATION = re.compile(
    r"[\u3040-\u30ff\u3400-\u9fff\uff66-\uff9f\U00020000-\U0003ffff]"
)
COMPATIBLE = "Ĳĳﬀﬁﬂﬃﬄﬅﬆ" + "".join(  # ligatures, wide Latin letters, narrow kana and Hangul
    each
    for each in map(chr, range(0xFF01, 0xFFEF))
    if unicodedata.decomposition(each) and " " not in unicodedata.normalize("NFKC", each)
)
CURLY_QUOTES = dict(zip("“”„‟‘’‚‛", "\"\"\"\"''''", strict=True))
FOLDED = {
    **dict.fromkeys(OTHER_SPACES, " "),
    **{each: unicodedata.normalize("NFKC", each) for each in COMPATIBLE},
    **dict.fromkeys("\u2010\u2011", "-"),
    **CURLY_QUOTES,
}


MIN_QUOTE_SHARE = 1e-4  # minimum share of the sources; the model does not know rarer quotes


class Tracked(NamedTuple):
    """A normalised text, and for each of its characters the span of the original text that became this character."""

    text: str
    origins: list[Span]

    def original(self, span: Span) -> Span:
        """The span of the original text for a span of `text`, which is not empty."""
        return self.origins[span[0]][0], self.origins[span[1] - 1][1]

    def replaced(self, spans: Iterable[Span], replace: Callable[[str], str]) -> "Tracked":
        """Replace the texts of spans, which are in order."""
        texts: list[str] = []
        origins: list[Span] = []
        done = 0
        for begin, end in spans:
            new = replace(self.text[begin:end])
            its = self.origins[begin:end]
            if len(new) != len(its):
                its = [(its[0][0], its[-1][1])] * len(new)
            texts += [self.text[done:begin], new]
            origins += [*self.origins[done:begin], *its]
            done = end
        return Tracked("".join([*texts, self.text[done:]]), origins + self.origins[done:])


class Normalizer:
    """Normalises sources, except for the characters in `keep`, which the model knows as they are.

    With `only_composed`, texts are only brought into Unicode's form NFC.
    """

    def __init__(self, keep: Iterable[str] = (), *, only_composed: bool = False) -> None:
        self.keep = frozenset(keep)
        self._only_composed = only_composed
        self._folded = {each: form for each, form in FOLDED.items() if each not in self.keep}
        folded = "".join(map(re.escape, self._folded))
        folded = folded or "\uffff"  # a character that no text has
        self._all = re.compile(f"[{folded}]")
        self._beside_wide_signs = re.compile(f"(?![{WIDE_PUNCTUATION}])[{folded}]")
        self._unusual = re.compile(f"[{NEVER_VISIBLE}{SOMETIMES_VISIBLE}{folded}]")

    def __call__(self, texts: Sequence[str]) -> list[str]:
        """The normalised texts. A quick test returns batches that need no change, as most do."""
        joined = "\n".join(["", *texts, ""])
        is_normalised = (
            not any(blanks in joined for blanks in ("  ", "\n ", " \n"))
            and not self._unusual.search(joined)
            and unicodedata.is_normalized("NFC", joined)
        )
        return [*texts] if is_normalised else [self.tracked(text).text for text in texts]

    def tracked(self, text: str) -> Tracked:
        """A normalised text with the origins of its characters."""
        tracked = Tracked(text, [(place, place + 1) for place in range(len(text))])
        if self._only_composed:
            return _tracked_composed(tracked)
        folded = self._beside_wide_signs if WITH_WIDE_PUNCTUATION.search(text) else self._all
        tracked = _tracked_composed(tracked)
        tracked = tracked.replaced(_found(MEANINGLESS, tracked.text), lambda _: "")
        tracked = tracked.replaced(_found(folded, tracked.text), self._folded.__getitem__)
        tracked = _tracked_composed(tracked)
        tracked = tracked.replaced(_found(BLANKS_AROUND, tracked.text), lambda _: "")
        return tracked.replaced(_found(BLANKS, tracked.text), lambda _: " ")


def common_quotes(sources: Collection[str]) -> str:
    """The curly quotes that the model will know from the sources of its training."""
    counts = Counter[str]()
    for text in sources:
        counts.update(CURLY_QUOTES.keys() & set(text) if not text.isascii() else ())
    least = len(sources) * MIN_QUOTE_SHARE
    return "".join(sorted(each for each in counts if counts[each] >= least))


def composed(texts: Sequence[str]) -> list[str]:
    """The texts in Unicode's form NFC."""
    is_composed = unicodedata.is_normalized("NFC", "\n".join(texts))  # true of most batches
    return [*texts] if is_composed else [_composed(text) for text in texts]


def _composed(text: str) -> str:
    return unicodedata.normalize("NFC", text)


def _tracked_composed(tracked: Tracked) -> Tracked:
    if unicodedata.is_normalized("NFC", tracked.text):
        return tracked
    return tracked.replaced(_with_marks(tracked.text), _composed)


def _found(pattern: re.Pattern[str], text: str) -> Iterator[Span]:
    return (match.span() for match in pattern.finditer(text))


def _with_marks(text: str) -> Iterator[Span]:
    """The spans of the characters of a text, each with its combining marks. NFC never joins two of them."""
    begin = 0
    for place, character in enumerate(text):
        is_mark = unicodedata.category(character)[0] == "M" or "\u1160" <= character <= "\u11ff"
        if place and not is_mark:
            yield begin, place
            begin = place
    yield begin, len(text)
