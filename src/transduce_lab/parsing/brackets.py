"""Scores parse trees by labelled brackets, as EVALB does (Sekine and Collins, 1997; Ellis, 2006)."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Literal, NamedTuple

from transduce.system.console import count
from transduce.system.errors import UserError
from transduce_lab.parsing.evalb import COLLINS, Parameters
from transduce_lab.parsing.trees import (
    TRACE,
    MalformedTreeError,
    Tree,
    category,
    delinearise,
    is_tag,
    linearise,
    parse_trees,
)

Status = Literal["valid", "error", "skipped"]
# The counts of rows that a summary adds up.
SUMMED = (
    "matched",
    "gold",
    "test",
    "crossing",
    "words",
    "tags",
)


class Row(NamedTuple):
    """The counts of one sentence; if its status isn't valid, all counts except `length` are 0."""

    length: int  # words without traces
    status: Status  # skipped: the parse has no words, as on the blank line of a failed parse
    matched: int = 0  # brackets that both trees have
    gold: int = 0  # brackets of the gold tree
    test: int = 0  # brackets of the parse
    crossing: int = 0
    words: int = 0  # scored words, without punctuation
    tags: int = 0  # correct tags
    reason: str = ""  # why the status is error


class Summary(NamedTuple):
    """Sums over sentences; `matched` and the fields after it are sums over valid sentences only."""

    sentences: int
    errors: int
    skipped: int
    valid: int
    matched: int
    gold: int
    test: int
    crossing: int
    words: int
    tags: int
    complete: int  # sentences whose brackets all match
    uncrossed: int  # sentences without crossing brackets
    crossed_twice: int  # sentences with at most two crossing brackets

    @property
    def figures(self) -> dict[str, float]:
        """EVALB's figures by EVALB's names, in percent except for "average crossing", and NaN if undefined."""
        return {
            "recall": _percent(self.matched, self.gold),
            "precision": _percent(self.matched, self.test),
            "F1": _percent(2 * self.matched, self.gold + self.test) if self.matched else math.nan,
            "complete match": _percent(self.complete, self.valid),
            "average crossing": self.crossing / self.valid if self.valid else math.nan,
            "no crossing": _percent(self.uncrossed, self.valid),
            "2 or less crossing": _percent(self.crossed_twice, self.valid),
            "tagging": _percent(self.tags, self.words),
        }


class BracketScores(NamedTuple):
    """The scores of all sentences, and of the sentences with at most `cutoff` words."""

    rows: list[Row]
    all: Summary
    short: Summary
    cutoff: int


def score_brackets(
    gold: Iterable[str], test: Iterable[str], parameters: Parameters = COLLINS
) -> BracketScores:
    """Score parses against the same number of gold trees; raises UserError for a malformed gold tree."""
    pairs = enumerate(zip(gold, test, strict=True), start=1)
    rows = [compare(one, other, parameters, number) for number, (one, other) in pairs]
    short = [row for row in rows if row.length <= parameters.cutoff]
    return BracketScores(rows, summarise(rows), summarise(short), parameters.cutoff)


def score_trees(
    gold: Sequence[Tree], test: Iterable[Tree | None], parameters: Parameters = COLLINS
) -> BracketScores:
    """Score parses of the gold trees' words with the gold trees' punctuation tags, so that no parse is excluded."""
    lines = (
        str(agree_on_punctuation(tree, parse, parameters)) if parse else ""
        for tree, parse in zip(gold, test, strict=True)
    )
    return score_brackets(map(str, gold), lines, parameters)


def agree_on_punctuation(gold: Tree, parse: Tree, parameters: Parameters = COLLINS) -> Tree:
    """The parse, with the gold tree's tag on each word that only one of the trees tags as punctuation.

    EVALB can exclude a parse because of such a word. Apart from traces, both trees must have the same words.
    """
    tags = (leaf.label for leaf in gold.leaves() if leaf.label != TRACE)
    symbols = linearise(parse)
    for place, symbol in enumerate(symbols):
        if is_tag(symbol):
            tag = next(tags)
            if (tag in parameters.deleted) != (symbol in parameters.deleted):
                symbols[place] = tag
    return delinearise(symbols, parse.words())


def compare(gold_line: str, test_line: str, parameters: Parameters, number: int = 1) -> Row:
    """Compare line `number` of the parses with its gold tree; raises UserError for a malformed gold tree."""
    try:
        gold = _Sentence(gold_line, parameters)
    except MalformedTreeError as error:
        raise UserError(f"Gold tree {number} is malformed: {error}.") from None
    try:
        test = _Sentence(test_line, parameters)
    except MalformedTreeError as error:
        return Row(gold.length, "error", reason=str(error))
    if not test.words:
        return Row(gold.length, "skipped")
    if len(gold.words) != len(test.words):
        return Row(
            gold.length,
            "error",
            reason=f"the gold tree has {count(len(gold.words), 'word')}, the parse {len(test.words)}",
        )
    for (word, _), (other, _) in zip(gold.words, test.words, strict=True):
        if not parameters.same_word(word, other):
            return Row(
                gold.length, "error", reason=f"'{word}' in the gold tree is '{other}' in the parse"
            )
    return _counted(gold, test, parameters)


def summarise(rows: Sequence[Row]) -> Summary:
    """Count the sentences by status, and sum the counts of valid sentences."""
    valid = [row for row in rows if row.status == "valid"]
    numbers = Counter(row.status for row in rows)
    return Summary(
        sentences=len(rows),
        errors=numbers["error"],
        skipped=numbers["skipped"],
        valid=len(valid),
        **{name: sum(getattr(row, name) for row in valid) for name in SUMMED},
        complete=sum(row.matched == row.gold == row.test for row in valid),
        uncrossed=sum(row.crossing == 0 for row in valid),
        crossed_twice=sum(row.crossing <= 2 for row in valid),
    )


@dataclass
class _Bracket:
    label: str
    start: int
    end: int  # index after the last word


class _Sentence:
    """The brackets of a sentence, and the words that EVALB doesn't delete."""

    def __init__(self, line: str, parameters: Parameters) -> None:
        self.words: list[tuple[str, str]] = []  # words with their tags
        self.brackets: list[_Bracket] = []  # in order of opening
        self.length = 0
        around: list[_Bracket] = []  # the brackets that are open
        for node in chain.from_iterable(tree.walk() for tree, _ in parse_trees([line])):
            if node is None:
                around.pop().end = len(self.words)
            elif node.word is None:
                around.append(_Bracket(node.label, len(self.words), 0))
                self.brackets.append(around[-1])
            else:
                self.length += node.label not in parameters.deleted_for_length
                if node.label not in parameters.deleted:
                    self.words.append((node.word, node.label))

    def counted(self, parameters: Parameters) -> list[_Bracket]:
        """The brackets that EVALB scores, without function tags in their labels."""
        brackets = [
            _Bracket(category(b.label), b.start, b.end) for b in self.brackets if b.start < b.end
        ]
        return [bracket for bracket in brackets if not parameters.deletes(bracket.label)]


def _counted(gold: _Sentence, test: _Sentence, parameters: Parameters) -> Row:
    golds = gold.counted(parameters)
    tests = test.counted(parameters)
    unmatched = list(tests)
    for bracket in golds:
        for other in unmatched:
            same_span = bracket.start == other.start and bracket.end == other.end
            if same_span and (
                not parameters.labelled or parameters.same_label(bracket.label, other.label)
            ):
                unmatched.remove(other)
                break
    tags = (
        parameters.same_label(one, other)
        for (_, one), (_, other) in zip(gold.words, test.words, strict=True)
    )
    return Row(
        length=gold.length,
        status="valid",
        matched=len(tests) - len(unmatched),
        gold=len(golds),
        test=len(tests),
        crossing=sum(any(_cross(bracket, other) for bracket in golds) for other in tests),
        words=len(gold.words),
        tags=sum(tags),
    )


def _cross(one: _Bracket, other: _Bracket) -> bool:
    return (
        one.start < other.start < one.end < other.end
        or other.start < one.start < other.end < one.end
    )


def _percent(part: float, whole: float) -> float:
    return 100 * part / whole if whole else math.nan
