"""Double every dimension of a model without changing its translations.

    python benchmarks/enlarge.py MODEL OUT

This is for measuring the decoding speed of a base model without training one. A trained small model (3+3 layers,
d_model 256) becomes a model of the base size (6+6 layers, d_model 512, d_ff 2048, 8 heads) with the same translations.
Every channel, head and inner unit is duplicated; the new layers add zero to the residual stream. MODEL must be a
post-norm Transformer with one vocabulary. Its sinusoidal positions are stored as learned ones.
"""

import math
from dataclasses import replace
from pathlib import Path

import torch
from measuring import run_script
from torch import Tensor

from transduce import model_folder
from transduce.model.build import build
from transduce.model.embedding import sinusoids
from transduce.system.files import publish

MAX_POSITIONS = 1024


def main(model: Path, out: Path) -> None:
    """Enlarge a model."""
    loaded = model_folder.load(model)
    small = loaded.config.model
    assert small.kind == "transformer" and small.norm == "post" and not small.source_vocab_size
    large = replace(
        small,
        d_model=2 * small.d_model,
        d_ff=2 * small.d_ff,
        num_heads=2 * small.num_heads,
        num_encoder_layers=2 * small.num_encoder_layers,
        num_decoder_layers=2 * small.num_decoder_layers,
        positions="learned",
        max_positions=MAX_POSITIONS,
    )
    network = build(large)
    weights = enlarged(loaded.model.state_dict(), network.state_dict(), small.num_encoder_layers)
    network.load_state_dict(weights)
    config = replace(loaded.config, model=large)
    metrics = model_folder.describe(model).metrics
    card = f"{model}, enlarged to measure speed.\n"
    with publish(out) as aside:
        model_folder.fill(aside, config, loaded.tokenizer, network.state_dict(), metrics, card)


def enlarged(small: dict[str, Tensor], large: dict[str, Tensor], layers: int) -> dict[str, Tensor]:
    """Compute the weights of the large model, in which every second layer is new."""
    weights = {}
    for name, weight in large.items():
        stack, _, rest = name.partition(".")
        if stack not in ("encoder", "decoder"):
            weights[name] = outside(small, name, weight)
            continue
        number, _, rest = rest.partition(".")
        layer, is_new = divmod(int(number), 2)
        origin = small[f"{stack}.{layer}.{rest}"]
        last = max(int(other.split(".")[3]) for other in small if f"{stack}.0.residual" in other)
        if "norm" in rest:  # the last norm of a layer moves to the end of the new layer after it
            behind = f"residual.{last}." in rest
            plain = torch.ones_like if rest.endswith("weight") else torch.zeros_like
            weights[name] = (origin if behind == bool(is_new) else plain(origin)).repeat(2)
            if stack == "decoder" and is_new and behind and layer == layers - 1:
                # Because each logit sums twice as many products.
                weights[name] = weights[name] / math.sqrt(2)
        elif weight.dim() == 2:
            weights[name] = origin.repeat(2, 2) / 2
        else:
            weights[name] = origin.repeat(2)
        if is_new and rest.split(".")[-2] == "out":
            weights[name] = torch.zeros_like(weight)
    return weights


def outside(small: dict[str, Tensor], name: str, weight: Tensor) -> Tensor:
    """Compute the embedding, which the model multiplies by sqrt(d_model), the output bias and the positions."""
    if name in small and weight.dim() == 1:
        return small[name]
    if name in small:
        return small[name].repeat(1, 2) / math.sqrt(2)
    return sinusoids(MAX_POSITIONS, weight.size(1) // 2).repeat(1, 2)


if __name__ == "__main__":
    run_script(main, __doc__)
