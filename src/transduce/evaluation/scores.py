"""BLEU, chrF and TER as sacreBLEU computes them, with signatures, intervals and a test of significance.

Scores can be compared only between texts that were tokenised alike, so these read detokenised text and
tokenise it themselves; the signature says how.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from sacrebleu.metrics.base import Metric
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER
from sacrebleu.significance import PairedTest

from transduce.system.errors import UserError


class Score(NamedTuple):
    """One metric of one output, in per cent."""

    name: str  # BLEU, chrF2 or TER; of TER less is better
    value: float
    low: float  # 95 % of bootstrap resamples lie between low and high
    high: float
    signature: str


class Comparison(NamedTuple):
    """One metric of two outputs of the same sentences."""

    name: str
    first: Score
    second: Score
    p_value: float  # of a difference as large as this one by chance; below 0.05 it counts as significant


def score(hypotheses: Sequence[str], references: Sequence[str], *, tokenize: str = "13a") -> list[Score]:
    """BLEU, chrF2 and TER of an output, one sentence per entry, with 95 % bootstrap intervals.

    tokenize is sacreBLEU's option for BLEU ("13a", "intl", "char", "zh", "none" ...). Raises UserError for an
    unknown one, for unequal numbers of sentences and for none at all.
    """
    _check(hypotheses, references, "hypotheses")
    signatures, results = _bootstrap([("output", hypotheses)], references, tokenize)
    return [
        _score(name, results[name][0].score, results[name][0].mean, results[name][0].ci, signature)
        for name, signature in signatures.items()
    ]


def check_tokenisation(tokenize: str) -> None:
    """Raise UserError for an option of `score` that is unknown, or can't be used here, before there is an output."""
    _metrics(tokenize)


def bleu(hypotheses: Sequence[str], references: Sequence[str], *, tokenize: str = "13a") -> float:
    """BLEU alone and without an interval, for watching a training; raises UserError as `score` does."""
    _check(hypotheses, references, "hypotheses")
    return float(_metrics(tokenize)["BLEU"].corpus_score(hypotheses, [references]).score)


def tokenised_bleu(hypotheses: Sequence[str], references: Sequence[str]) -> float:
    """BLEU of tokenised text without smoothing, as multi-bleu.perl counts it; raises UserError as `score` does."""
    _check(hypotheses, references, "hypotheses")
    metric = BLEU(tokenize="none", smooth_method="none", force=True)
    return float(metric.corpus_score(list(hypotheses), [list(references)]).score)


def compare(
    first: Sequence[str], second: Sequence[str], references: Sequence[str], *, tokenize: str = "13a"
) -> list[Comparison]:
    """Whether two outputs differ by more than chance: the paired bootstrap test of Koehn (2004).

    Raises UserError as `score` does.
    """
    _check(first, references, "hypotheses of the first output")
    _check(second, references, "hypotheses of the second output")
    signatures, results = _bootstrap([("first", first), ("second", second)], references, tokenize)
    return [_comparison(name, results[name], signature) for name, signature in signatures.items()]


def _bootstrap(
    outputs: Sequence[tuple[str, Sequence[str]]], references: Sequence[str], tokenize: str
) -> tuple[dict[str, str], dict[str, Any]]:
    """Of every metric, by name, the signature and the results of one output or two."""
    test = PairedTest(
        list(outputs),
        _metrics(tokenize),
        [references],
        test_type="bs",
        n_samples=_resamples(len(references)),
        n_jobs=1,  # more would fork this process, threads and all
    )
    signatures, results = test()
    return {name: signature.format() for name, signature in signatures.items()}, results


def _comparison(name: str, results: Sequence[Any], signature: str) -> Comparison:
    first, second = (_score(name, result.score, result.mean, result.ci, signature) for result in results)
    # sacreBLEU counts only larger differences than the one found, and so calls an output different from itself.
    p_value = 1.0 if first.value == second.value else float(results[1].p_value)
    return Comparison(name, first, second, p_value)


def _score(name: str, value: float, mean: float, half_width: float, signature: str) -> Score:
    """sacreBLEU's interval lies around the mean of the resamples, also where it goes beyond what there can be."""
    most = math.inf if name == "TER" else 100.0
    low, high = max(0.0, float(mean - half_width)), min(most, float(mean + half_width))
    return Score(name, float(value), low, high, signature)


def _metrics(tokenize: str) -> dict[str, Metric]:
    """The three metrics; tokenize is BLEU's."""
    if tokenize not in BLEU.TOKENIZERS:
        raise UserError(f"There is no tokenisation '{tokenize}'; sacreBLEU has {', '.join(BLEU.TOKENIZERS)}.")
    try:
        # `force` silences a warning that the text looks tokenised, which "none" means it to be.
        bleu = BLEU(tokenize=tokenize, force=tokenize == "none")
    except (ImportError, OSError, RuntimeError) as error:
        reason = " ".join(str(error).split())
        raise UserError(f"The tokenisation '{tokenize}' can't be used here: {reason}") from None
    return {"BLEU": bleu, "chrF2": CHRF(), "TER": TER()}


def _resamples(sentences: int) -> int:
    """1000 up to 10,000 sentences; then fewer, down to 100, for sacreBLEU holds all of them in memory at once."""
    return max(100, min(1000, 10_000_000 // sentences))


def _check(hypotheses: Sequence[str], references: Sequence[str], name: str) -> None:
    if len(hypotheses) != len(references):
        raise UserError(
            f"There are {len(hypotheses)} {name} but {len(references)} references; "
            "line n of the one must be the translation that line n of the other is compared with."
        )
    if not references:
        raise UserError("There is nothing to score: the references are empty.")
