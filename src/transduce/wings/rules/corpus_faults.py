"""Finds and repairs faults that a whole corpus has: its texts are tokenised, quoted, cut into pieces or escaped.

Such a corpus was made for another program. A model that learns from it writes the same marks.
"""

import html
import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import cache
from importlib.util import find_spec
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from transduce.system.console import log
from transduce.text.pair_batch import TextColumn
from transduce.text.pairs import Origin
from transduce.tokens.normalization import MEANINGLESS, composed

Ints = NDArray[np.int64]

LINE_SPACES = re.compile(r"[\t\n\r]+")  # white space that an entity can stand for
# Line breaks as two characters, but not LaTeX commands such as \nu.
ESCAPED_LINE_BREAK = re.compile(
    r" *\\(?:r\\n|n(?!u\b|e\b|eq|abla|ot\b|ewline|oindent|ewcommand|ormal)|r(?!\w)) *"
)
UNICODE_ESCAPES = re.compile(r"(?:\\u[0-9a-fA-F]{4})+")
HTML_ENTITY = r"&(?:[a-zA-Z]{2,8}|#\d{1,7}|#[xX][0-9a-fA-F]{1,6});"


class CorpusFault(NamedTuple):
    """A fault of texts that counts if at least the share `least` of the texts of a side have it.

    `pattern` finds the fault in a side's texts joined with line feeds, so it must not match line feeds.
    """

    meaning: str  # continues a sentence such as "98 % of the sources …"
    pattern: re.Pattern[str]
    least: float
    # Repairs a text; its arguments are the text and its language code.
    repair: Callable[[str, str], str]
    among: re.Pattern[str] | None = None  # the share is computed among the texts with this pattern

    def rows(self, column: TextColumn) -> Ints:
        """The indices of the texts with the fault."""
        return column.rows_with(self.pattern)

    def num_among(self, column: TextColumn) -> int:
        """The number of texts among which the share is computed."""
        return len(column.rows_with(self.among)) if self.among else len(column.texts)


class _Decomposed(CorpusFault):
    """Texts that are not in Unicode's form NFC."""

    def rows(self, column: TextColumn) -> Ints:
        """The indices of the texts with the fault."""
        if composed([column.joined])[0] == column.joined:
            return np.empty(0, dtype=np.int64)
        changed = zip(column.texts, composed(column.texts), strict=True)
        return np.flatnonzero([before != after for before, after in changed])


def _removed(pattern: re.Pattern[str]) -> Callable[[str, str], str]:
    return lambda text, _: pattern.sub("", text).strip()


def _unquoted(text: str, _: str) -> str:
    is_quoted = len(text) > 1 and text[0] == text[-1] == '"'
    return (text[1:-1] if is_quoted else text).replace('""', '"')


def _joined(mark: str) -> Callable[[str, str], str]:
    """Joins pieces of which `mark` begins or ends each word."""
    return lambda text, _: (
        text.replace(" ", "").replace(mark, " ").strip() if mark in text else text
    )


def _without_entities(text: str, _: str) -> str:
    once = html.unescape(text)
    return html.unescape(once) if once != text else text


def _unescaped(text: str, _: str) -> str:
    text = UNICODE_ESCAPES.sub(lambda found: _of_json(found[0]), text)
    return re.sub(r"""\\(["'/])""", r"\1", text)


def _of_json(escapes: str) -> str:
    text = str(json.loads(f'"{escapes}"'))
    is_half = any("\ud800" <= character <= "\udfff" for character in text)
    return escapes if is_half else text


@cache
def _detokenizer(code: str) -> Any:
    from sacremoses import MosesDetokenizer

    return MosesDetokenizer(lang=code)


def _detokenised(text: str, code: str) -> str:
    return str(_detokenizer(code).detokenize(text.split()))


DOUBLED_QUOTES = re.compile(r'^"(?:[^"\n]|"")*""(?:[^"\n]|"")*"$', re.MULTILINE)
BPE = re.compile(r"(?<=\S)@@(?: |$)", re.MULTILINE)
WORD_PIECES = re.compile(r"(?<=\w) ##(?=\w)")
JOINERS = re.compile(r" ?￭ ?")
MARKS = r"<s>|</s>|<bos>|<eos>|<sos>|\[CLS\]|\[SEP\]|\[BOS\]|\[EOS\]|<\|(?:startof|endof)text\|>"
SENTENCE_MARKS = re.compile(rf"^(?:{MARKS})|(?:{MARKS})$", re.MULTILINE)
TARGET_TAGS = re.compile(r"^(?:>>\w+<<|<2\w+>|__\w{2,3}__) ?", re.MULTILINE)
STOPS_AND_COMMAS = re.compile(r"[.,。।،۔](?= |$)", re.MULTILINE)
SIDE_NAMES = "sources", "targets"
QUOTED, TOKENISED, UNKNOWN_WORDS = "quoted", "tokenised", "unknown-words"
# In the order of their repair: marks are removed before detokenisation, which would also decode entities.
CORPUS_FAULTS = {
    QUOTED: CorpusFault(
        'are in double quotes, as in a .csv file ("")',
        re.compile(r'^"(?:[^"\n]|"")*"$', re.MULTILINE),
        0.5,
        _unquoted,
    ),
    "doubled-quotes": CorpusFault(
        'have doubled quotes in quotes, as in a .csv file ("a ""b""")',
        DOUBLED_QUOTES,
        0.002,
        lambda text, code: _unquoted(text, code) if DOUBLED_QUOTES.fullmatch(text) else text,
    ),
    "sentence-marks": CorpusFault(
        "have marks of sentences (<s>, </s>)", SENTENCE_MARKS, 0.05, _removed(SENTENCE_MARKS)
    ),
    "language-tags": CorpusFault(
        "begin with a tag of a language (>>de<<)", TARGET_TAGS, 0.05, _removed(TARGET_TAGS)
    ),
    "subwords": CorpusFault("are cut into pieces by BPE (@@)", BPE, 0.01, _removed(BPE)),
    "word-pieces": CorpusFault(
        "are cut into pieces (##)", WORD_PIECES, 0.01, _removed(WORD_PIECES)
    ),
    "joiners": CorpusFault(
        "are tokenised with joiners (￭)", re.compile("￭"), 0.01, _removed(JOINERS)
    ),
    "sentencepiece": CorpusFault(
        "are cut into pieces by SentencePiece (▁)",
        re.compile(r"▁\w"),
        0.01,
        _joined("▁"),
    ),
    "word-ends": CorpusFault(
        "are cut into pieces (</w>)", re.compile(r"\w</w>"), 0.01, _joined("</w>")
    ),
    "twice-escaped": CorpusFault(
        "have entities that were escaped twice (&amp;quot;)",
        re.compile(rf"&amp;{HTML_ENTITY[1:]}"),
        0.002,
        lambda text, code: _without_entities(_without_entities(text, code), code),
    ),
    TOKENISED: CorpusFault(
        "are tokenised, as by Moses: there are blanks before full stops and commas",
        re.compile(r"(?<=\S) [.,。।،۔](?= |$)", re.MULTILINE),
        0.7,
        _detokenised,
        among=STOPS_AND_COMMAS,
    ),
    "hyphens": CorpusFault(
        "have hyphens as Moses' tokenizer writes them (@-@)",
        re.compile(r" @([-/])@ "),
        0.002,
        lambda text, _: re.sub(r" @([-/])@ ", r"\1", text),
    ),
    "entities": CorpusFault(
        "have HTML entities (&amp;, &#39;)",
        re.compile(rf"(?!&amp;{HTML_ENTITY[1:]}){HTML_ENTITY}"),
        0.005,
        _without_entities,
    ),
    "line-breaks": CorpusFault(
        r"have line breaks as two characters (\n)",
        ESCAPED_LINE_BREAK,
        0.01,
        lambda text, _: ESCAPED_LINE_BREAK.sub(" ", text),
    ),
    "escapes": CorpusFault(
        r"have escapes of a program (\", \u00fc)",
        re.compile(r"""\\(?:["']|u[0-9a-fA-F]{4})"""),
        0.005,
        _unescaped,
    ),
    UNKNOWN_WORDS: CorpusFault(
        "have words that a program lost (<unk>)",
        re.compile(r"<unk>|<UNK>|\[UNK\]"),
        0.005,
        lambda text, _: text,
    ),
    "invisible": CorpusFault(
        "have invisible characters, such as zero-width spaces or soft hyphens",
        MEANINGLESS,
        0.01,
        _removed(MEANINGLESS),
    ),
    "decomposed": _Decomposed(
        "have letters and accents as separate characters, not in Unicode's form NFC",
        re.compile("[\u0300-\u036f]"),  # not used for searching: see `_Decomposed`
        0.001,
        lambda text, _: composed([text])[0],
    ),
}


class Prevalence(NamedTuple):
    """How many texts of one side have a fault."""

    fault: str  # a key of CORPUS_FAULTS
    side: int  # 0: the sources, 1: the targets
    number: int
    among: int
    first: int  # index of the first of these texts

    @property
    def is_of_corpus(self) -> bool:
        """Whether enough texts have the fault to call it a fault of the corpus."""
        return self.share >= CORPUS_FAULTS[self.fault].least

    @property
    def share(self) -> float:
        """The share of the texts with the fault."""
        return self.number / max(1, self.among)


def prevalences(columns: Sequence[TextColumn]) -> list[Prevalence]:
    """How many texts have each fault, for each side."""
    found = []
    for name, fault in CORPUS_FAULTS.items():
        for side, column in enumerate(columns):
            rows = fault.rows(column)
            first = int(rows[0]) if len(rows) else 0
            found.append(Prevalence(name, side, len(rows), fault.num_among(column), first))
    return found


def faults_of_corpus(columns: Sequence[TextColumn], origins: Sequence[Origin]) -> Iterator[str]:
    """Yield a sentence for each fault of a whole corpus. `origins` are the origins of the pairs in `columns`."""
    found = (each for each in prevalences(columns) if each.is_of_corpus)
    return sentences([(each, origins[each.first]) for each in found])


def sentences(found: Sequence[tuple[Prevalence, Origin]]) -> Iterator[str]:
    """Yield a sentence for each fault, with the shares and the file and line of an example."""
    for name, its in groupby(found, key=lambda each: each[0].fault):
        sides = list(its)
        shares = (f"{each.share:.1%} of the {SIDE_NAMES[each.side]}" for each, _ in sides)
        first, origin = sides[0]
        # Of two text files, an origin names only the first.
        place = (
            f"the {SIDE_NAMES[first.side].removesuffix('s')} of {origin.file}, line {origin.line}"
        )
        yield f"{' and '.join(shares)} {CORPUS_FAULTS[name].meaning}, for example {place}."


def repaired(text: str, faults: Collection[str], code: str) -> str:
    """The text without `faults`, on one line. `code` is its language code."""
    before = text
    for name in faults:
        text = CORPUS_FAULTS[name].repair(text, code)
    return LINE_SPACES.sub(" ", text).strip() if text != before else text


def repairs(found: Iterable[Prevalence]) -> tuple[list[str], list[str]]:
    """The faults to repair in the sources and in the targets, in the order of repair. Prints why other faults can't be
    repaired.

    A fault of one side is repaired on both sides, except that a side is only detokenised or unquoted if it has this
    fault.
    """
    own = {(each.fault, each.side) for each in found}
    faults = {fault for fault, _ in own}
    if UNKNOWN_WORDS in faults:
        log("Words that were replaced by <unk> can't be restored.")
    faults.discard(UNKNOWN_WORDS)
    if TOKENISED in faults and find_spec("sacremoses") is None:
        log("The tokenisation is kept. To undo it, run pip install 'transduce[lab]' first.")
        faults.remove(TOKENISED)
    source, target = (
        [
            name
            for name in CORPUS_FAULTS
            if name in faults and ((name, side) in own or name not in (QUOTED, TOKENISED))
        ]
        for side in (0, 1)
    )
    return source, target
