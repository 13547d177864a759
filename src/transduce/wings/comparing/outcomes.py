"""What the models of a table say about the test text, sentence by sentence, and the scores of rows."""

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
from transduce.text.pairs import Pair
from transduce.wings.comparing.runs import RECORD, cached
from transduce.wings.comparing.statistics import Difference, Spread, difference, resamples, spread

MEASURES = ("perplexity", "BLEU", "chrF2")
OUTCOME = ".test.json"  # in the folder of a run
Statistics = NDArray[np.float64]


class Outcome(NamedTuple):
    """The result of a model or an ensemble on the test text."""

    log_probs: Sequence[float]  # ln p(reference | source) of each sentence
    num_tokens: Sequence[int]  # of each reference, with EOS
    outputs: Sequence[str]


class EvaluationText(NamedTuple):
    """The test text, with the statistics that its outputs need."""

    files: Sequence[str]
    pairs: Sequence[Pair]
    direction: Direction
    tokenize: str  # of sacreBLEU, for BLEU

    @property
    def references(self) -> list[str]:
        """The target side."""
        return [pair.target for pair in self.pairs]


def outcome(folders: Sequence[Path], text: EvaluationText, path: Path) -> Outcome:
    """Translate and score the test text with a model or an ensemble; cached in `path`."""

    def compute() -> dict[str, list[float] | list[int] | list[str]]:
        log(f"Translating the {len(text.pairs):,} test sentences: {path.parent if len(folders) == 1 else path}")
        models = load_models(folders)
        found = evaluate(models, text.pairs, models[0].config.decode, tokenize=text.tokenize)
        return {
            "log_probs": [each.log_prob for each in found.scored],
            "num_tokens": [each.num_tokens for each in found.scored],
            "outputs": [each.text for each in found.translations],
        }

    made_of: list[Path | str] = [*text.files, *(folder / name for folder in folders for name in (MANIFEST, RECORD))]
    return Outcome(**cached(path, made_of, compute))


class Row(NamedTuple):
    """A row's scores on the test text, by measure: of each run, and in each resample (mean over the runs)."""

    scores: dict[str, list[float]]
    resampled: dict[str, NDArray[np.float64]]
    length_ratio: float  # words of the outputs to words of the references

    def spread(self, measure: str, *, is_ensemble: bool = False) -> Spread:
        """The mean and deviation over the runs. One ensemble of several seeds has no deviation: 0."""
        found = spread(self.scores[measure])
        return found._replace(deviation=0.0) if is_ensemble and found.runs == 1 else found


class Judge:
    """Computes the scores of rows and their differences, with the same resamples of the test sentences for all."""

    def __init__(self, text: EvaluationText, *, per_word: bool) -> None:
        """`per_word`: perplexity per word, because the rows have different vocabularies."""
        self.sentences = len(text.pairs)
        self._drawn = resamples(self.sentences)
        self._metrics = metrics(text.tokenize, text.direction.target)
        self._references = text.references
        self._words = [len(reference.split()) + 1 for reference in self._references] if per_word else None

    def row(self, outcomes: Sequence[Outcome]) -> Row:
        """The scores of a row with these runs."""
        scores, resampled = dict[str, list[float]](), dict[str, NDArray[np.float64]]()
        ratios = [sum(map(_words, each.outputs)) / max(1, sum(map(_words, self._references))) for each in outcomes]
        for measure in MEASURES:
            kinds = [self._statistics(measure, each) for each in outcomes]
            scores[measure] = [score(statistics.sum(axis=0)) for statistics, score in kinds]
            drawn = [[score(each) for each in self._drawn @ statistics] for statistics, score in kinds]
            resampled[measure] = np.mean(drawn, axis=0) if drawn else np.empty(0)
        return Row(scores, resampled, float(np.mean(ratios)) if ratios else math.nan)

    def _statistics(self, measure: str, outcome: Outcome) -> tuple[Statistics, Callable[[NDArray[np.float64]], float]]:
        """The statistics of each sentence, whose sum over a text gives the score of the text. Perplexity: ln."""
        if measure == "perplexity":
            counts = self._words or outcome.num_tokens
            return np.column_stack([outcome.log_probs, counts]).astype(np.float64), lambda sums: -sums[0] / sums[1]
        metric: Metric = self._metrics[measure]
        statistics = metric._extract_corpus_statistics(outcome.outputs, [self._references])
        compute = metric._compute_score_from_stats
        return np.array(statistics, dtype=np.float64), lambda sums: float(compute([*map(int, sums)]).score)

    def difference(self, measure: str, row: Row, base: Row, *, is_ensemble: bool) -> tuple[Difference, float]:
        """The difference `row` - `base` (perplexity: of its logarithm), and its standard error over the sentences."""
        error = float(np.std(row.resampled[measure] - base.resampled[measure]))
        spreads = row.spread(measure, is_ensemble=is_ensemble), base.spread(measure)
        return difference(*spreads, error, self.sentences), error


def _words(text: str) -> int:
    return len(text.split())
