"""Counts the floating-point operations of training runs."""

import math
from collections.abc import Mapping
from typing import Any

from transduce import model_folder
from transduce.config.parse import configure
from transduce.config.schema import RunConfig
from transduce.system.errors import UserError
from transduce_lab.comparing.runs import Result
from transduce_lab.operations import per_target_token

SENTENCE_TOKENS = 17  # assumed length of a sentence


def updates_for(operations: float, options: Mapping[str, Any]) -> int:
    """The number of updates whose matrix products have `operations` floating-point operations.

    Raises UserError for minimum-risk training, and if one update has more operations.
    """
    config = configure(options, {"model.vocab_size": options["data.vocab_size"]})
    if config.train.risk_steps:
        raise UserError(
            "The operations of minimum-risk training can't be counted.",
            "Leave out train.risk_steps.",
        )
    update = config.data.max_tokens * _per_token(config)
    if operations < update:
        raise UserError(
            f"One update has {update:.1e} operations, more than the {operations:.1e} of a whole run."
        )
    return round(operations / update)


def flops(run: Result) -> float:
    """The floating-point operations of the matrix products of a training run; nan with minimum-risk training."""
    config = model_folder.read_config(run.folder)
    if config.train.risk_steps:
        return math.nan  # samples are not counted
    return run.target_tokens * _per_token(config)


def _per_token(config: RunConfig) -> float:
    return per_target_token(config.model, SENTENCE_TOKENS, SENTENCE_TOKENS)
