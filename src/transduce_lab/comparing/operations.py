"""Counts the floating-point operations of training runs: their budget, and their cost."""

import math
import re
from collections.abc import Mapping
from typing import Any

from transduce import model_folder
from transduce.config.parse import configure
from transduce.system.errors import UserError
from transduce_lab.comparing.runs import Result
from transduce_lab.operations import per_target_token

SENTENCE_TOKENS = 17  # assumed length of a sentence
RELEVANT = re.compile(r"model\.(?!\w*dropout)")
SHAPE = ("data.vocab_size", "data.max_tokens", "model.d_model", "model.num_encoder_layers")


def updates_for(operations: float, options: Mapping[str, Any]) -> int:
    """The number of updates whose matrix products have `operations` floating-point operations.

    Raises UserError if the options lack the shape of the model, or if one update has more operations.
    """
    if missing := [name for name in SHAPE if name not in options]:
        raise UserError(f"A budget in operations needs the shape of the models. Set {', '.join(missing)} for all rows.")
    if options.get("train.risk_steps"):
        raise UserError("A budget in operations can't count minimum-risk training. Set updates or minutes instead.")
    # Dropout has no operations; without it, the points of a grid are counted once.
    relevant = {name: options[name] for name in filter(RELEVANT.match, options)}
    config = configure(relevant, {"model.vocab_size": options["data.vocab_size"]})
    flops = per_target_token(config.model, SENTENCE_TOKENS, SENTENCE_TOKENS) * options["data.max_tokens"]
    if operations < flops:
        raise UserError(f"One update has {flops:.1e} operations, so the budget of {operations:.1e} is too small.")
    return max(1, round(operations / flops))


def flops(run: Result) -> float:
    """The floating-point operations of the matrix products of a training run; nan with minimum-risk training."""
    config = model_folder.read_config(run.folder)
    if config.train.risk_steps:
        return math.nan  # samples are not counted
    each = per_target_token(config.model, SENTENCE_TOKENS, SENTENCE_TOKENS)
    return run.target_tokens * each
