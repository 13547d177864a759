"""Checks of a whole configuration: bounds, and options that contradict each other."""

import math
import re

from transduce.config.families import READ_BY
from transduce.config.schema import ModelConfig, RunConfig, options, value_of
from transduce.system.errors import UserError


def check(config: RunConfig) -> None:
    """Raise UserError for values that no run can have."""
    _check_bounds(config)
    _check_model(config.model)
    if config.train.shard and config.model.experts:
        raise UserError("train.shard is not for models with experts; leave it out.")  # FSDP needs all gradients
    if config.data.symbols and config.data.joint:
        raise UserError("data.symbols makes a vocabulary for the target side alone: set data.joint=false, too.")
    _check_family(config)


def _check_bounds(config: RunConfig) -> None:
    for option in options():
        value = value_of(config, option.name)
        if option.kind in (int, float) and not option.least <= value < option.below:
            limit = f" and below {option.below}" if option.below < math.inf else ""
            raise UserError(f"{option.name} must be at least {option.least}{limit}, not {value}.")


def _check_family(config: RunConfig) -> None:
    """Raise UserError for options that the model's family does not read."""
    defaults = RunConfig()
    for name, families in READ_BY.items():
        if config.model.kind not in families and value_of(config, name) != value_of(defaults, name):
            kinds = " or ".join(families)
            raise UserError(f"{name} is for models of the kind {kinds}, not {config.model.kind}; leave it out.")


def _check_model(model: ModelConfig) -> None:
    """Sizes that don't fit each other."""
    if model.d_model % 2:
        raise UserError(f"model.d_model must be even, not {model.d_model}: positions are pairs of sine and cosine.")
    if model.kind == "transformer" and model.d_model % model.num_heads and not (model.d_k and model.d_v):
        raise UserError(
            f"model.d_model ({model.d_model}) must be a multiple of model.num_heads ({model.num_heads}), "
            "or set model.d_k and model.d_v."
        )
    if model.experts and model.experts_per_token > model.experts:
        raise UserError(
            f"model.experts_per_token ({model.experts_per_token}) must not exceed model.experts ({model.experts})."
        )
    layers = max(model.num_encoder_layers, model.num_decoder_layers)
    if any(not 1 <= layer <= layers for layer in model.expert_layers):
        raise UserError(f"model.expert_layers must be from 1 to {layers}, the number of layers.")
    for text in model.convolutions:
        if not re.fullmatch(r"[1-9]\d*x[1-9]\d*x[1-9]\d*", text):
            raise UserError(f"model.convolutions: '{text}' is not written COUNTxCHANNELSxKERNEL, such as 9x512x3.")
