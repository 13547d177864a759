"""The families of models: what model.kind names, where its class stands, and which options it alone reads."""

from typing import NamedTuple


class Family(NamedTuple):
    """One kind of model."""

    model: str  # "module:class" of a Seq2Seq, imported when a model of this kind is built
    reads: tuple[str, ...] = ()  # options that not every family reads


FAMILIES = {
    "transformer": Family(
        "transduce.model.transformer:Transformer",
        (
            *(
                "model.attention",
                "model.attention_dropout",
                "model.d_k",
                "model.d_v",
                "model.window",
                "model.positions",
            ),
            *("model.experts", "model.experts_per_token", "model.expert_layers", "model.norm", "model.activation"),
            *("model.output_bias", "train.shard"),
        ),
    ),
    "recurrent": Family("transduce.wings.families.recurrent:Recurrent", ("model.attention", "model.cell")),
    "convolutional": Family(
        "transduce.wings.families.convolutional:Convolutional",
        ("model.positions", "model.kernel_size", "model.convolutions"),
    ),
    "bytenet": Family("transduce.wings.families.bytenet:ByteNet", ("model.kernel_size",)),
}


READ_BY = {  # option -> the families that read it; options that are not here are read by all
    option: [kind for kind, other in FAMILIES.items() if option in other.reads]
    for family in FAMILIES.values()
    for option in family.reads
}
