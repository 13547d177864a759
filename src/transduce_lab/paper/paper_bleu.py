"""Computes BLEU like the paper's authors, on Moses tokens with compounds split at hyphens.

tensor2tensor's script get_ende_bleu.sh computes this score. docs/paper/bleu.md compares it with sacreBLEU's.
"""

import re
from collections.abc import Callable, Sequence
from typing import Any

from sacrebleu.metrics.bleu import BLEU

from transduce.evaluation.scores import check_counts
from transduce.system.errors import UserError, needing

LANGUAGES = "de", "fr"  # target languages in the paper
COMPOUND = re.compile(r"(\S)-(\S)")


def paper_bleu(language: str) -> Callable[[Sequence[str], Sequence[str]], float]:
    """Make a function that computes the BLEU of hypotheses against references, in per cent.

    Raises UserError as `moses_tokenizer` does. The returned function raises UserError if the numbers of hypotheses and
    references differ.
    """
    tokenizer = moses_tokenizer(language)

    def score(hypotheses: Sequence[str], references: Sequence[str]) -> float:
        sides = hypotheses, references
        return tokenised_bleu(
            *([split_compounds(tokenizer(text)) for text in side] for side in sides)
        )

    return score


def tokenised_bleu(hypotheses: Sequence[str], references: Sequence[str]) -> float:
    """Unsmoothed BLEU of tokenised text, as multi-bleu.perl computes it. Raises UserError as `paper_bleu` says."""
    check_counts(hypotheses, references)
    metric = BLEU(tokenize="none", smooth_method="none", force=True)
    return float(metric.corpus_score(list(hypotheses), [list(references)]).score)


def split_compounds(text: str) -> str:
    """Split words at hyphens, so that Rock-Konzert becomes Rock ##AT##-##AT## Konzert."""
    return COMPOUND.sub(r"\1 ##AT##-##AT## \2", text)


def moses_tokenizer(language: str) -> Any:
    """Make a function that splits a text into Moses tokens and joins the tokens with spaces.

    Raises UserError if the language is not one of LANGUAGES, or if sacremoses is not installed.
    """
    if language not in LANGUAGES:
        raise UserError(
            f"The paper reports BLEU for {' and '.join(LANGUAGES)}, not for '{language}'."
        )
    with needing("lab", "The BLEU of the paper"):
        from sacremoses import MosesTokenizer
    tokenizer = MosesTokenizer(lang=language)
    return lambda text: tokenizer.tokenize(text, return_str=True)
