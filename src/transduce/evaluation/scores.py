"""BLEU, chrF and TER as sacreBLEU computes them, with signatures, confidence intervals and a significance test.

The metrics expect detokenised text, and compare it in Unicode's form NFC. Scores are comparable only if
their signatures are equal.
"""

import math
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from sacrebleu.metrics.base import Metric
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER
from sacrebleu.significance import PairedTest

from transduce.system.console import log
from transduce.system.errors import UserError
from transduce.text.languages import main_language
from transduce.tokens.normalization import composed

MIN_TESTED_SENTENCES = 30  # the bootstrap of fewer sentences underestimates the variance
# Resamples of the bootstrap; fewer for more than 10,000 sentences, since sacreBLEU keeps all resamples in memory.
MAX_RESAMPLES = 1000
SIGNIFICANCE_LEVEL = 0.05
AUTO = "auto"  # chooses the tokenisation for the references' language
TOKENISATIONS = {  # recommended by sacreBLEU, by language; all other languages: 13a
    **dict.fromkeys(("zh", "zho", "cmn", "yue", "wuu"), "zh"),
    **dict.fromkeys(("ja", "jpn"), "ja-mecab"),
    **dict.fromkeys(("ko", "kor"), "ko-mecab"),
    **dict.fromkeys(
        ("th", "lo", "km", "my", "bo", "dz"), "char"
    ),  # no blanks between words: 13a would give 0
}


class Score(NamedTuple):
    """A metric's score of an output, in per cent, with its bootstrap interval."""

    name: str  # BLEU, chrF2 or TER; a lower TER is better
    value: float
    low: float  # 95 % of bootstrap resamples lie between low and high
    high: float
    signature: str


class Comparison(NamedTuple):
    """A metric's scores of two outputs for the same sentences."""

    name: str
    first: Score
    second: Score
    # Probability of so large a difference in this direction by chance, as sacreBLEU estimates it; nan: too few
    # sentences.
    p_value: float
    error: float = 0.0  # standard error of the p-value, since the resamples are random

    def tested(self) -> str:
        """The p-value and what it says, as `describe_p` writes it."""
        return describe_p(self.p_value, self.error)


def describe_p(p_value: float, error: float = 0.0) -> str:
    """A p-value with its random error, two standard errors, and whether it is significant in spite of that error."""
    if math.isnan(p_value):
        return "–"
    doubt = 2 * error
    text = f"{p_value:.3f} ± {doubt:.3f}" if doubt else f"{p_value:.3f}"
    if p_value + doubt < SIGNIFICANCE_LEVEL:
        return f"{text} (significant)"
    return f"{text} (not resolved)" if p_value - doubt < SIGNIFICANCE_LEVEL else text


def score(
    hypotheses: Sequence[str],
    references: Sequence[str],
    *,
    tokenize: str = AUTO,
    language: str = "",
) -> list[Score]:
    """Compute BLEU, chrF2 and TER of one hypothesis per sentence, with 95 % bootstrap intervals.

    `tokenize` and `language` are described at `metrics`. Raises UserError if this tokenisation is unknown, if there are
    more or fewer hypotheses than references, or if there are no references.
    """
    return [
        first
        for (first,), _ in _bootstrap(
            {"hypotheses": hypotheses}, references, metrics(tokenize, language)
        )
    ]


def compare(
    first: Sequence[str],
    second: Sequence[str],
    references: Sequence[str],
    *,
    tokenize: str = AUTO,
    language: str = "",
    ter: bool = True,
) -> list[Comparison]:
    """Compare two outputs by Koehn's paired bootstrap test (2004), without the slow TER if `ter` is false.

    Raises UserError as `score` does.
    """
    outputs = {"hypotheses of the first output": first, "hypotheses of the second output": second}
    chosen = {
        name: metric for name, metric in metrics(tokenize, language).items() if ter or name != "TER"
    }
    return [
        Comparison(one.name, one, two, p, math.sqrt(p * (1 - p) / resamples_of(references)))
        for (one, two), p in _bootstrap(outputs, references, chosen)
    ]


def metrics(tokenize: str, language: str = "") -> dict[str, Metric]:
    """Make the metrics BLEU, chrF2 and TER.

    `tokenize` is sacreBLEU's name of the tokenisation for BLEU, such as "13a". AUTO chooses the tokenisation that
    sacreBLEU recommends for `language`. Raises UserError if the tokenisation is unknown or not installed.
    """
    if tokenize == AUTO:
        tokenize = _recommended(main_language(language))
    if tokenize not in BLEU.TOKENIZERS:
        raise UserError(
            f"There is no tokenisation '{tokenize}'.",
            f"Choose one of {', '.join(BLEU.TOKENIZERS)}.",
        )
    try:
        # `force` silences sacreBLEU's warning that a text looks tokenised.
        return {
            "BLEU": BLEU(tokenize=tokenize, force=tokenize == "none"),
            "chrF2": CHRF(),
            "TER": TER(),
        }
    except (ImportError, OSError, RuntimeError) as error:
        reason = " ".join(str(error).split())
        raise UserError(f"The tokenisation '{tokenize}' can't be used: {reason}") from None


@cache
def _recommended(language: str) -> str:
    """The tokenisation for a language; char, with a message, if the package that finds its words is missing."""
    name = TOKENISATIONS.get(language, "13a")
    try:
        BLEU(tokenize=name)
    except (ImportError, OSError, RuntimeError):
        package = f"sacrebleu[{name.partition('-')[0]}]"
        log(
            f"BLEU compares characters (tok:char), since {name} is not installed: pip install '{package}'"
        )
        return "char"
    return name


def _bootstrap(
    outputs: Mapping[str, Sequence[str]], references: Sequence[str], of_output: dict[str, Metric]
) -> list[tuple[list[Score], float]]:
    """For each metric, the scores of one or two outputs, and the p-value of their difference."""
    for name, hypotheses in outputs.items():
        check_counts(hypotheses, references, name)
    # More than one job would fork this process with all its threads.
    test = PairedTest(
        [(name, composed(texts)) for name, texts in outputs.items()],
        of_output,
        [composed(references)],
        test_type="bs",
        n_samples=resamples_of(references),
        n_jobs=1,
    )
    signatures, results = test()
    compared = list[tuple[list[Score], float]]()
    for name, signature in signatures.items():
        of_outputs: list[Any] = results[name]
        largest = math.inf if name == "TER" else 100.0
        # sacreBLEU's interval is centred on the mean of the resamples and may contain impossible values.
        scores = [
            Score(
                name,
                float(result.score),
                max(0.0, float(result.mean - result.ci)),
                min(largest, float(result.mean + result.ci)),
                signature.format(),
            )
            for result in of_outputs
        ]
        # sacreBLEU counts only differences larger than the observed difference, so equal outputs would seem to differ
        # significantly.
        equal = scores[0].value == scores[-1].value
        tested = len(references) >= MIN_TESTED_SENTENCES
        compared.append(
            (scores, (1.0 if equal else float(of_outputs[-1].p_value)) if tested else math.nan)
        )
    return compared


def resamples_of(references: Sequence[str]) -> int:
    """The number of resamples of the bootstrap for so many sentences."""
    return max(100, min(MAX_RESAMPLES, 10_000_000 // len(references)))


def check_counts(
    hypotheses: Sequence[str], references: Sequence[str], name: str = "hypotheses"
) -> None:
    """Raise UserError if there are more or fewer hypotheses than references, or if there are no references."""
    if len(hypotheses) != len(references):
        raise UserError(
            f"There are {len(hypotheses):,} {name} but {len(references):,} references. "
            "Line n of both files must belong to the same sentence."
        )
    if not references:
        raise UserError("The references contain no sentences, so there is nothing to score.")
