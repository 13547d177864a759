"""The registry of model families, with the class and the options of each family.

To add a family, write its class in a module and add an entry to `FAMILIES`.
"""

from typing import Any, NamedTuple

from transduce.system.registry import load


class Family(NamedTuple):
    """The class of a model family, and the options that only some families use."""

    model: str  # "module:class" of a Seq2Seq
    reads: tuple[str, ...] = ()  # options that this family uses, but not every family


EXPERT_OPTIONS = "model.experts", "model.experts_per_token", "model.gate_noise", "model.expert_layers"
FAMILIES = {
    "transformer": Family(
        "transduce.model.transformer:Transformer",
        (
            *("model.attention", "model.attention_dropout", "model.d_k", "model.d_v", "model.window"),
            *("model.num_kv_heads", "model.bias", "model.rms_norm", "model.block_size"),
            *("model.positions", "model.norm", "model.activation", "model.init", "model.output_bias", "train.shard"),
            *EXPERT_OPTIONS,
        ),
    ),
    "recurrent": Family(
        "transduce.wings.families.recurrent:Recurrent", ("model.attention", "model.cell", *EXPERT_OPTIONS)
    ),
    "convolutional": Family(
        "transduce.wings.families.convolutional:Convolutional",
        ("model.positions", "model.kernel_size", "model.convolutions", "model.separable"),
    ),
    "bytenet": Family("transduce.wings.families.bytenet:ByteNet", ("model.kernel_size",)),
}

PARTS = {  # of the Transformer, in place of the paper's
    "additive attention": "transduce.wings.families.additive:make_additive",  # model.attention
    "experts": "transduce.wings.families.experts:Experts",  # the feed-forward layer if model.experts is set
    "heads ahead": "transduce.wings.families.blockwise:Ahead",  # predict further tokens if model.block_size > 1
}

READ_BY = {  # option -> the families that use it; an option that is not listed is used by all families
    option: [kind for kind, other in FAMILIES.items() if option in other.reads]
    for family in FAMILIES.values()
    for option in family.reads
}


def part(name: str) -> Any:
    """The class or function that makes a part of the Transformer."""
    return load(PARTS[name])
