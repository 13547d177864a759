"""Every option as a field of a frozen dataclass: its type, default, help and bounds.

The defaults are the base model of the paper (Table 3 and section 5). `size_table.py` chooses what a user leaves open.
"""

import dataclasses
import functools
import math
import typing
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from transduce.config.families import FAMILIES

PAD, BOS, EOS, UNK = 0, 1, 2, 3
# One-character tokens that replace placeholders (wings/inline): Unicode reserves them for programs.
PLACEHOLDER_TOKENS = "".join(map(chr, range(0xFDD0, 0xFDF0)))
SECTIONS = ("model", "data", "train", "decode")

Options = Mapping[str, Any]  # dotted name -> value, as a recipe or the command line gives them


def option(
    default: Any, help: str, *, unit: str = "", paper: str = "", least: float = 0, below: float = math.inf
) -> Any:
    """A field of a configuration. `transduce options` prints help, unit and the paper's value.

    least, below: bounds of a number.
    """
    return field(default=default, metadata={"help": help, "unit": unit, "paper": paper, "least": least, "below": below})


@dataclass(frozen=True)
class ModelConfig:
    """The shape of a model (Table 3 of the paper)."""

    kind: Literal[tuple(FAMILIES)] = option(  # type: ignore[valid-type]  # the registry is the list of names
        "transformer", "model family", paper="transformer"
    )
    vocab_size: int = option(37000, "size of the target vocabulary, taken from the tokenizer", paper="37000", least=1)
    source_vocab_size: int = option(
        0, "size of the source vocabulary; 0: one joint vocabulary for both sides", paper="0"
    )
    num_encoder_layers: int = option(6, "encoder layers, N", paper="6", least=1)
    num_decoder_layers: int = option(6, "decoder layers, N", paper="6", least=1)
    d_model: int = option(512, "width of every layer's input and output", unit="channels", paper="512", least=1)
    d_ff: int = option(2048, "inner width of the feed-forward layers", unit="channels", paper="2048", least=1)
    num_heads: int = option(8, "attention heads, h", paper="8", least=1)
    d_k: int = option(0, "width of a head's queries and keys; 0: d_model / num_heads", unit="channels", paper="64")
    d_v: int = option(0, "width of a head's values; 0: d_model / num_heads", unit="channels", paper="64")
    dropout: float = option(0.1, "dropout on each sublayer's output and the embeddings, P_drop", paper="0.1", below=1)
    attention_dropout: float = option(0.0, "dropout on the attention weights", paper="0", below=1)
    attention: Literal["scaled", "dot", "additive"] = option(
        "scaled", "attention score: scaled q k / sqrt(d_k), dot q k, additive v tanh(q + k)", paper="scaled"
    )
    activation: Literal["relu", "gelu", "silu"] = option(
        "relu", "activation function of the feed-forward layers", paper="relu"
    )
    output_bias: bool = option(False, "bias on the output logits, as in Marian", paper="false")
    norm: Literal["post", "pre"] = option(
        "post", "layer norm after each residual sum (post) or before each sublayer (pre)", paper="post"
    )
    positions: Literal["sinusoidal", "learned"] = option("sinusoidal", "position encoding", paper="sinusoidal")
    max_positions: int = option(1024, "longest sequence that learned positions can encode", unit="tokens", least=1)
    experts: int = option(0, "experts of a sparse feed-forward layer; 0: dense layers", paper="0")
    experts_per_token: int = option(2, "experts that each token uses", least=1)
    expert_layers: tuple[int, ...] = option(
        (), "layers of encoder and decoder that have experts, counted from 1; empty: all"
    )
    cell: Literal["lstm", "gru"] = option("lstm", "cell of recurrent models")
    kernel_size: int = option(3, "positions that a convolution sees", unit="tokens", least=1)
    convolutions: tuple[str, ...] = option(
        (), "layers of convolutional models, each COUNTxCHANNELSxKERNEL; empty: all are d_model wide"
    )
    window: int = option(
        0, "keys on each side in restricted self-attention, itself included; 0: all", unit="tokens", paper="0"
    )

    @property
    def shape(self) -> str:
        """Family and sizes, for messages."""
        sizes = f"{self.kind}, {self.num_encoder_layers}+{self.num_decoder_layers} layers, d_model {self.d_model}"
        if self.kind != "transformer":
            return sizes
        sparse = f", {self.experts_per_token} of {self.experts} experts" if self.experts else ""
        return f"{sizes}, d_ff {self.d_ff}{sparse}, {self.num_heads} heads, {self.norm}-norm"


@dataclass(frozen=True)
class CorpusConfig:
    """One training corpus of several."""

    files: tuple[str, ...] = option((), "two line-aligned text files, or one bilingual file")
    weight: float = option(1.0, "how often each of its pairs is seen per epoch; 0.5: half of them, 2: twice")


@dataclass(frozen=True)
class DataConfig:
    """The text, its vocabulary and its batches."""

    corpora: tuple[CorpusConfig, ...] = option((), "training corpora")
    valid: tuple[str, ...] = option((), "validation files; empty: a part of the corpus without overlap is split off")
    test: tuple[str, ...] = option((), "test files, translated and scored once at the end")
    source: str = option("src", "language code of the source side")
    target: str = option("tgt", "language code of the target side")
    tokenizer: Literal["bpe", "unigram"] = option("bpe", "SentencePiece's model of subwords", paper="bpe")
    joint: bool = option(True, "one vocabulary for both sides", paper="true")
    symbols: bool = option(False, "the target side is linearised trees, and each of its words is one token")
    placeholders: Literal["auto", "masked", "kept"] = option(
        "auto", "masked: the model sees a symbol for each placeholder and no tags; auto: for documents", paper="kept"
    )
    vocab_size: int = option(37000, "tokens in a vocabulary", paper="37000", least=1)
    max_tokens: int = option(
        25000,
        "target tokens in an update's batch, padding counted, and as many source tokens",
        unit="tokens",
        paper="25000",
        least=1,
    )
    max_length: int = option(
        256, "pairs with a longer sentence on either side are left out of training and counted", unit="tokens", least=1
    )
    max_ratio: float = option(0.0, "pairs with a larger ratio of lengths in characters are left out; 0: no limit")
    deduplicate: bool = option(True, "leave out exact repetitions of a pair")
    rules: tuple[str, ...] = option((), "rules of `transduce doctor`; pairs that break one are left out, too")
    bleu_tokenize: str = option("13a", "sacreBLEU's tokenization; none: the text is tokenized already")
    holdout: int = option(1000, "pairs split off for validation if there are no validation files", unit="pairs")


@dataclass(frozen=True)
class TrainConfig:
    """How a model is trained (section 5 of the paper)."""

    steps: int = option(100_000, "updates", unit="updates", paper="100000", least=1)
    minutes: float = option(
        0.0, "wall-clock limit over all starts of a training, beside train.steps; 0: none", unit="minutes"
    )
    warmup: int = option(4000, "updates over which the learning rate rises", unit="updates", paper="4000", least=1)
    cooldown: int = option(
        0, "last updates of train.steps, over which the learning rate falls to zero; 0: none", unit="updates", paper="0"
    )
    learning_rate: float = option(
        1.0, "factor on the paper's schedule, whose peak is 1 / sqrt(d_model * warmup)", paper="1"
    )
    label_smoothing: float = option(0.1, "probability spread over the vocabulary", paper="0.1", below=1)
    balance: float = option(0.01, "weight of the loss that balances the load of experts")
    accumulate: int = option(0, "micro-batches per update; 0: as few as fit into memory, measured at the start")
    precision: Literal["float32", "bfloat16", "auto"] = option(
        "auto", "precision of matrix products; auto: bfloat16 if the processor supports it", paper="float32"
    )
    optimizer: Literal["adam", "adagrad", "rmsprop", "sgd"] = option("adam", "update rule", paper="adam")
    beta1: float = option(0.9, "Adam's decay of the mean gradient", paper="0.9", below=1)
    beta2: float = option(0.98, "Adam's decay of the mean squared gradient", paper="0.98", below=1)
    epsilon: float = option(1e-9, "Adam's epsilon", paper="1e-9")
    clip_norm: float = option(0.0, "maximum norm of the gradient; 0: no clipping", paper="0")
    save_every: int = option(0, "updates between checkpoints; 0: one epoch", unit="updates")
    validate_every: int = option(0, "updates between validations; 0: one epoch", unit="updates")
    keep_last: int = option(5, "checkpoints kept besides the best", paper="5", least=1)
    average: int = option(
        5,
        "checkpoints averaged at the end, unless the last alone is better; 1: the best or the last",
        paper="5",
        least=1,
    )
    patience: int = option(0, "validations without improvement before training stops; 0: no limit")
    seed: int = option(1, "seed of the initialization, the order of batches and dropout", below=2**63)
    threads: int = option(0, "CPU threads of a process; 0: one per core", unit="threads")
    shard: bool = option(False, "several processes: each keeps only a shard of weights and optimizer state (FSDP)")


@dataclass(frozen=True)
class DecodeConfig:
    """How a model searches for a translation (section 6.1 of the paper)."""

    beam_size: int = option(4, "hypotheses kept per sentence; 1: greedy", paper="4", least=1)
    length_penalty: float = option(0.6, "alpha of the length penalty ((5 + length) / 6) ^ alpha", paper="0.6")
    max_extra_tokens: int = option(
        50, "tokens by which a translation may be longer than its source", unit="tokens", paper="50"
    )
    max_tokens: int = option(4096, "source tokens of all hypotheses of a batch", unit="tokens", least=1)
    shortlist: bool = option(False, "limit the fast engine to tokens that occurred with the source's in training")


@dataclass(frozen=True)
class RunConfig:
    """Everything that a training, and the model that it leaves, depends on."""

    model: ModelConfig = ModelConfig()
    data: DataConfig = DataConfig()
    train: TrainConfig = TrainConfig()
    decode: DecodeConfig = DecodeConfig()
    sources: Mapping[str, str] | None = field(default=None, compare=False)  # see settings.py; None: not recorded


class Option(NamedTuple):
    """One line of `transduce options`."""

    name: str
    kind: Any
    default: Any
    help: str
    unit: str
    paper: str
    least: float  # smallest value of a number
    below: float  # exclusive upper bound of a number


@functools.cache  # reading the types takes milliseconds
def options() -> tuple[Option, ...]:
    """Every option by its dotted name."""
    return tuple(
        Option(f"{section.name}.{key}", kind, default, **metadata)
        for section in dataclasses.fields(RunConfig)
        if section.name in SECTIONS
        for key, kind, metadata, default in fields_of(section.type)
    )


def flatten(config: RunConfig, sections: Sequence[str] = SECTIONS) -> dict[str, Any]:
    """The options of the given sections by dotted name; `configure(flatten(c)) == c`."""
    names = [option.name for option in options() if option.name.partition(".")[0] in sections]
    return {name: value_of(config, name) for name in names}


def differences(old: RunConfig, new: RunConfig) -> dict[str, tuple[Any, Any]]:
    """Options that differ: dotted name -> (old value, new value)."""
    was, now = flatten(old), flatten(new)
    return {name: (was[name], now[name]) for name in was if was[name] != now[name]}


def value_of(config: RunConfig, name: str) -> Any:
    """The value of an option by its dotted name."""
    section, key = name.split(".")
    return getattr(getattr(config, section), key)


def fields_of(kind: Any) -> Iterator[tuple[str, Any, Mapping[str, Any], Any]]:
    """Name, type, metadata and default of each field of a dataclass."""
    types = typing.get_type_hints(kind)
    for item in dataclasses.fields(kind):
        yield item.name, types[item.name], item.metadata, item.default
