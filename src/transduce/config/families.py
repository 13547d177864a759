"""The registry of model families: where the class of each model.kind is, and which options only some families read.

To add a family, write its class in a module and name it in `FAMILIES`. The module is imported when a model of it is
built.
"""

from typing import NamedTuple


class Family(NamedTuple):
    """A kind of model."""

    model: str  # "module:class" of a Seq2Seq
    reads: tuple[str, ...] = ()  # those of its options that not every family reads


FAMILIES = {
    "transformer": Family(
        "transduce.model.transformer:Transformer",
        (
            *("model.attention", "model.attention_dropout", "model.d_k", "model.d_v", "model.window"),
            *("model.positions", "model.norm", "model.activation", "model.output_bias", "train.shard"),
            *("model.experts", "model.experts_per_token", "model.expert_layers"),
        ),
    ),
    "recurrent": Family("transduce.wings.families.recurrent:Recurrent", ("model.attention", "model.cell")),
    "convolutional": Family(
        "transduce.wings.families.convolutional:Convolutional",
        ("model.positions", "model.kernel_size", "model.convolutions"),
    ),
    "bytenet": Family("transduce.wings.families.bytenet:ByteNet", ("model.kernel_size",)),
}


READ_BY = {  # option -> the families that read it; all families read an option that is missing here
    option: [kind for kind, other in FAMILIES.items() if option in other.reads]
    for family in FAMILIES.values()
    for option in family.reads
}
