"""The outputs of a table's models for each test sentence, and the scores of the table's rows."""

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sacrebleu.metrics.base import Metric

from transduce.decoding.loading import load_models
from transduce.evaluation.evaluate import evaluate
from transduce.evaluation.scores import metrics
from transduce.system.console import log
from transduce.system.files import MANIFEST
from transduce.text.languages import Direction
from transduce.text.pairs import Pair, are_trees
from transduce_lab.comparing.runs import RECORD, cached
from transduce_lab.comparing.slices import words
from transduce_lab.comparing.statistics import (
    Difference,
    Spread,
    difference,
    jackknife_error,
    spread,
)
from transduce_lab.comparing.unknown_words import with_known_words
from transduce_lab.parsing.brackets import score_trees
from transduce_lab.parsing.parser import Parser
from transduce_lab.parsing.trees import Tree, parse_trees, simplify

PERPLEXITY, F1 = "perplexity", "F1"
OUTCOME = ".test.json"  # file in the folder of a run
Statistics = NDArray[np.float64]


def measures_of(files: Sequence[str]) -> tuple[str, ...]:
    """The measures for models that are compared on these test files."""
    return (PERPLEXITY, F1) if are_trees(files) else (PERPLEXITY, "BLEU", "chrF2")


class Outcome(NamedTuple):
    """The result of a model or an ensemble on the test text."""

    log_probs: Sequence[float]  # ln p(reference | source) of each sentence
    num_tokens: Sequence[int]  # number of tokens of each reference, with EOS
    outputs: Sequence[str]  # translations or parses


class EvaluationText(NamedTuple):
    """The test text, with the statistics that its outputs need."""

    files: Sequence[str]
    pairs: Sequence[Pair]
    direction: Direction
    tokenize: str  # sacreBLEU's tokenisation for BLEU
    trees: Sequence[Tree] = ()  # the gold trees of the pairs, for parsers


def outcome(folders: Sequence[Path], text: EvaluationText, path: Path) -> Outcome:
    """Translate or parse, and score, the test text with a model or an ensemble; cached in or beside `path`."""
    path = path.with_suffix(".trees.json") if text.trees else path

    def compute() -> dict[str, list[float] | list[int] | list[str]]:
        what = "Parsing" if text.trees else "Translating"
        log(
            f"{what} the {len(text.pairs):,} test sentences: {path.parent if len(folders) == 1 else path}"
        )
        models = load_models(folders)
        decode = models[0].config.decode
        if text.trees:
            parser = Parser(models, decode)
            scored = parser.score(text.pairs)
            outputs = [str(parse) for parse in parser.parse_gold(text.trees)]
        else:
            found = evaluate(models, text.pairs, decode, tokenize=text.tokenize)
            scored = found.scored
            outputs = with_known_words(models, text.pairs, found.translations)
        return {
            "log_probs": [each.log_prob for each in scored],
            "num_tokens": [each.num_tokens for each in scored],
            "outputs": outputs,
        }

    made_of: list[Path | str] = [
        *text.files,
        *(folder / name for folder in folders for name in (MANIFEST, RECORD)),
    ]
    return Outcome(**cached(path, made_of, compute))


class Row(NamedTuple):
    """A row's scores on the test text by measure: of each run, and the mean over the runs without each sentence."""

    scores: dict[str, list[float]]
    spreads: dict[str, Spread]  # mean and deviation over the runs
    left_out: dict[str, NDArray[np.float64]]
    # Words (for trees, brackets) of the outputs divided by those of the references.
    length_ratio: float


class Judge:
    """Computes the scores of rows and their differences."""

    def __init__(self, text: EvaluationText, *, per_word: bool) -> None:
        """`per_word`: perplexity per word, because the rows have different vocabularies."""
        self.sentences = len(text.pairs)
        self.measures = measures_of(text.files)
        self._metrics = metrics(text.tokenize, text.direction.target)
        self._references = [pair.target for pair in text.pairs]
        self._trees = text.trees
        counts = [len((simplify(tree) or tree).words()) for tree in text.trees]
        counts = counts or [len(reference.split()) for reference in self._references]
        self._words = [count + 1 for count in counts] if per_word else None

    def row(self, outcomes: Sequence[Outcome], *, is_ensemble: bool = False) -> Row:
        """The scores of a row with these runs. One ensemble of several seeds has no deviation: 0."""
        scores = dict[str, list[float]]()
        spreads = dict[str, Spread]()
        left_out = dict[str, NDArray[np.float64]]()
        texts = self._references, *(each.outputs for each in outcomes)
        length, *lengths = (sum(map(len, map(words, lines))) for lines in texts)
        ratios = [each / max(1, length) for each in lengths]
        for measure in self.measures:
            kinds = [self._statistics(measure, each) for each in outcomes]
            scores[measure] = [score(statistics.sum(axis=0)) for statistics, score in kinds]
            spreads[measure] = spread(scores[measure])
            if is_ensemble and len(outcomes) == 1:
                spreads[measure] = spreads[measure]._replace(deviation=0.0)
            if measure == F1:
                sums = [statistics.sum(axis=0) for statistics, _ in kinds]
                ratios = [float(found / max(1, gold)) for _, gold, found in sums]
            without = [
                [score(each) for each in statistics.sum(axis=0) - statistics]
                for statistics, score in kinds
            ]
            left_out[measure] = np.mean(without, axis=0) if without else np.empty(0)
        return Row(scores, spreads, left_out, float(np.mean(ratios)) if ratios else math.nan)

    def _brackets(self, outcome: Outcome) -> Statistics:
        """The numbers of matched brackets, gold brackets and brackets of the parse, for each sentence."""
        parses = (tree for tree, _ in parse_trees(outcome.outputs))
        rows = score_trees(self._trees, parses).rows
        return np.array([(row.matched, row.gold, row.test) for row in rows], dtype=np.float64)

    def _statistics(
        self, measure: str, outcome: Outcome
    ) -> tuple[Statistics, Callable[[NDArray[np.float64]], float]]:
        """The statistics of each sentence, whose sum over a text gives the score of the text. Perplexity: ln."""
        if measure == PERPLEXITY:
            counts = self._words or outcome.num_tokens
            return np.column_stack([outcome.log_probs, counts]).astype(
                np.float64
            ), lambda sums: -sums[0] / sums[1]
        if measure == F1:
            return self._brackets(outcome), lambda sums: float(
                200 * sums[0] / max(1, sums[1] + sums[2])
            )
        metric: Metric = self._metrics[measure]
        statistics = metric._extract_corpus_statistics(outcome.outputs, [self._references])
        compute = metric._compute_score_from_stats
        return np.array(statistics, dtype=np.float64), lambda sums: float(
            compute([*map(int, sums)]).score
        )

    def difference(self, measure: str, row: Row, base: Row) -> Difference:
        """The difference `row` - `base`; for perplexity, the difference of the logarithms."""
        error = jackknife_error(row.left_out[measure] - base.left_out[measure])
        return difference(row.spreads[measure], base.spreads[measure], error, self.sentences)
