"""Every option: frozen dataclasses, TOML to and from them, `section.key=value` on top.

The defaults are the base model of the paper (Table 3 and section 5). What a user leaves open is
chosen from the size of the corpus by `sizing.py`.
"""

import dataclasses
import difflib
import functools
import math
import re
import tomllib
import typing
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import tomli_w

from transduce.config.families import FAMILIES, READ_BY
from transduce.system.errors import UserError

PAD, BOS, EOS, UNK = 0, 1, 2, 3
# One-character tokens that replace placeholders (text/placeholder_tokens.py): Unicode reserves them for programs.
PLACEHOLDER_TOKENS = "".join(map(chr, range(0xFDD0, 0xFDF0)))
FORMAT = 1  # of model folders; a newer one is refused

Options = Mapping[str, Any]  # dotted name -> value, as a recipe or the command line gives them


def option(
    default: Any, help: str, *, unit: str = "", paper: str = "", least: float = 0, below: float = math.inf
) -> Any:
    """A field of a configuration, with what `transduce options` prints of it and, for a number, its bounds."""
    return field(default=default, metadata={"help": help, "unit": unit, "paper": paper, "least": least, "below": below})


@dataclass(frozen=True)
class ModelConfig:
    """The shape of a model (Table 3 of the paper)."""

    kind: Literal[tuple(FAMILIES)] = option(  # type: ignore[valid-type]  # the registry is the list of names
        "transformer", "family of the model", paper="transformer"
    )
    vocab_size: int = option(
        37000, "pieces in the target vocabulary, filled in from the tokenizer", paper="37000", least=1
    )
    source_vocab_size: int = option(
        0, "pieces in the source vocabulary; 0: joint, one matrix embeds both sides and predicts", paper="0"
    )
    num_encoder_layers: int = option(6, "layers of the encoder, N", paper="6", least=1)
    num_decoder_layers: int = option(6, "layers of the decoder, N", paper="6", least=1)
    d_model: int = option(512, "width of every layer's input and output", unit="channels", paper="512", least=1)
    d_ff: int = option(2048, "inner width of the feed-forward layers", unit="channels", paper="2048", least=1)
    num_heads: int = option(8, "attention heads, h", paper="8", least=1)
    d_k: int = option(0, "width of a head's queries and keys; 0: d_model / num_heads", unit="channels", paper="64")
    d_v: int = option(0, "width of a head's values; 0: d_model / num_heads", unit="channels", paper="64")
    dropout: float = option(
        0.1, "dropped of every sublayer's output and of the embeddings, P_drop", paper="0.1", below=1
    )
    attention_dropout: float = option(0.0, "dropped of the attention weights", paper="0", below=1)
    attention: Literal["scaled", "dot", "additive"] = option(
        "scaled", "how a query meets a key: q k / sqrt(d_k), q k, or v tanh(q + k)", paper="scaled"
    )
    activation: Literal["relu", "gelu", "silu"] = option("relu", "between the feed-forward layers", paper="relu")
    output_bias: bool = option(False, "a bias for every token that is predicted, as Marian has it", paper="false")
    norm: Literal["post", "pre"] = option(
        "post", "layer norm after each residual sum, or before each sublayer", paper="post"
    )
    positions: Literal["sinusoidal", "learned"] = option("sinusoidal", "encoding of positions", paper="sinusoidal")
    max_positions: int = option(1024, "longest sequence that learned positions can encode", unit="tokens", least=1)
    experts: int = option(0, "experts of a sparse feed-forward layer; 0: the layers are dense", paper="0")
    experts_per_token: int = option(2, "experts that each token uses", least=1)
    expert_layers: tuple[int, ...] = option((), "layers of encoder and decoder, from 1, with experts; none named: all")
    cell: Literal["lstm", "gru"] = option("lstm", "of recurrent models")
    kernel_size: int = option(3, "positions that a convolution sees", unit="tokens", least=1)
    convolutions: tuple[str, ...] = option(
        (), "layers of convolutional models, COUNTxCHANNELSxKERNEL; none: d_model wide"
    )
    window: int = option(
        0, "restricted self-attention: keys on each side, itself counted; 0: all", unit="tokens", paper="0"
    )

    @property
    def shape(self) -> str:
        """Its kind and sizes, for people."""
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

    corpora: tuple[CorpusConfig, ...] = option((), "what is trained on")
    valid: tuple[str, ...] = option((), "held-out files; none: a leak-free part of the corpus is split off")
    test: tuple[str, ...] = option((), "files translated and scored once, at the end")
    source: str = option("src", "language code of the source side")
    target: str = option("tgt", "language code of the target side")
    tokenizer: Literal["bpe", "unigram"] = option("bpe", "how SentencePiece finds its pieces", paper="bpe")
    joint: bool = option(True, "one vocabulary for both sides", paper="true")
    symbols: bool = option(False, "every word of the target side is a piece of its own: linearised trees")
    placeholders: Literal["auto", "masked", "kept"] = option(
        "auto",
        "masked: a model sees a symbol for each placeholder, and no tags; auto: of documents",
        paper="kept",
    )
    vocab_size: int = option(37000, "pieces in a vocabulary", paper="37000", least=1)
    max_tokens: int = option(
        25000,
        "target tokens in an update's batch, padding counted, and as many source tokens",
        unit="tokens",
        paper="25000",
        least=1,
    )
    max_length: int = option(
        256, "longer sentences, on either side, are left out of training and counted", unit="tokens", least=1
    )
    max_ratio: float = option(0.0, "pairs whose lengths in characters differ by more are left out; 0: none")
    deduplicate: bool = option(True, "leave out exact repetitions of a pair")
    rules: tuple[str, ...] = option((), "faults for which pairs are left out, too: rules of `transduce doctor`")
    bleu_tokenize: str = option("13a", "how sacreBLEU splits words; none: the text is tokenised already")
    holdout: int = option(1000, "pairs split off for validation when no files are given", unit="pairs")


@dataclass(frozen=True)
class TrainConfig:
    """How a model is trained (section 5 of the paper)."""

    steps: int = option(100_000, "updates", unit="updates", paper="100000", least=1)
    minutes: float = option(
        0.0, "wall-clock budget of all starts; training stops at whichever comes first; 0: none", unit="minutes"
    )
    warmup: int = option(4000, "updates over which the learning rate rises", unit="updates", paper="4000", least=1)
    cooldown: int = option(
        0, "updates before train.steps over which the learning rate falls to zero; 0: none", unit="updates", paper="0"
    )
    learning_rate: float = option(
        1.0, "factor on the paper's schedule, whose peak is 1 / sqrt(d_model * warmup)", paper="1"
    )
    label_smoothing: float = option(0.1, "probability spread over the vocabulary", paper="0.1", below=1)
    balance: float = option(0.01, "weight of the loss that spreads tokens over experts")
    accumulate: int = option(0, "micro-batches that an update's batch is cut into; 0: found by trying the worst batch")
    precision: Literal["float32", "bfloat16", "auto"] = option(
        "auto", "arithmetic of matrix products; auto: bfloat16 where the processor has it", paper="float32"
    )
    optimizer: Literal["adam", "adagrad", "rmsprop", "sgd"] = option("adam", "update rule", paper="adam")
    beta1: float = option(0.9, "Adam's decay of the mean gradient", paper="0.9", below=1)
    beta2: float = option(0.98, "Adam's decay of the mean squared gradient", paper="0.98", below=1)
    epsilon: float = option(1e-9, "Adam's epsilon", paper="1e-9")
    clip_norm: float = option(0.0, "largest norm of the gradient; 0: not clipped", paper="0")
    save_every: int = option(0, "updates between checkpoints; 0: an epoch", unit="updates")
    validate_every: int = option(0, "updates between validations; 0: an epoch", unit="updates")
    keep_last: int = option(5, "checkpoints kept besides the best", paper="5", least=1)
    average: int = option(
        5,
        "last checkpoints averaged, unless the last alone is better; 1: the best or the last",
        paper="5",
        least=1,
    )
    patience: int = option(0, "validations without improvement before training stops; 0: never")
    seed: int = option(1, "of the initialisation, the order of the batches and dropout", below=2**63)
    threads: int = option(0, "CPU threads of a process; 0: one for every core", unit="threads")
    shard: bool = option(False, "each of several processes keeps only a part of weights and optimiser (FSDP)")


@dataclass(frozen=True)
class DecodeConfig:
    """How a model is searched (section 6.1 of the paper)."""

    beam_size: int = option(4, "hypotheses kept per sentence; 1: greedy", paper="4", least=1)
    length_penalty: float = option(0.6, "alpha of ((5 + length) / 6) ^ alpha", paper="0.6")
    max_extra_tokens: int = option(50, "a translation's length may exceed the source's by", unit="tokens", paper="50")
    max_tokens: int = option(4096, "source tokens of all hypotheses translated at once", unit="tokens", least=1)
    shortlist: bool = option(False, "the fast engine chooses from pieces that went with the source's in training")


def length_penalty(length: int, alpha: float) -> float:
    """((5 + length) / 6) ^ alpha, which divides log-probabilities (Wu et al., 2016); length: tokens, EOS counted."""
    return ((5 + length) / 6) ** alpha


@dataclass(frozen=True)
class RunConfig:
    """Everything that a training, and the model that it leaves, depends on."""

    model: ModelConfig = ModelConfig()
    data: DataConfig = DataConfig()
    train: TrainConfig = TrainConfig()
    decode: DecodeConfig = DecodeConfig()


class Option(NamedTuple):
    """One line of `transduce options`."""

    name: str
    kind: Any
    default: Any
    help: str
    unit: str
    paper: str
    least: float  # smallest value of a number
    below: float  # what a number must stay under


@functools.cache  # reading the types takes milliseconds
def options() -> tuple[Option, ...]:
    """Every option by its dotted name."""
    return tuple(
        Option(f"{section.name}.{key}", kind, default, **metadata)
        for section in dataclasses.fields(RunConfig)
        for key, kind, metadata, default in _fields(section.type)
    )


def configure(*layers: Options) -> RunConfig:
    """A run's configuration from layers of options, the later over the earlier.

    Raises UserError for an unknown name (and names the nearest) or a value of the wrong type.
    """
    sections: dict[str, dict[str, Any]] = {field.name: {} for field in dataclasses.fields(RunConfig)}
    for layer in layers:
        for name, value in layer.items():
            kind = _kind(name)
            section, key = name.split(".")
            sections[section][key] = _convert(name, value, kind)
    config = RunConfig(
        ModelConfig(**sections["model"]),
        DataConfig(**sections["data"]),
        TrainConfig(**sections["train"]),
        DecodeConfig(**sections["decode"]),
    )
    _check(config)
    return config


def parse_assignments(arguments: Sequence[str]) -> dict[str, Any]:
    """`section.key=value` arguments as options; the value is read by the option's type.

    Raises UserError for an argument without `=`, an unknown name or a value of the wrong type.
    """
    found: dict[str, Any] = {}
    for argument in arguments:
        name, equals, text = argument.partition("=")
        if not equals:
            raise UserError(f"'{argument}' is not an option; options are written section.key=value.")
        found[name] = _read(name, text, _kind(name))
    return found


def read_recipe(text: str, file: str) -> dict[str, Any]:
    """The options of a TOML file; raises UserError that names `file` and the place."""
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"{file}: not valid TOML: {error}.") from None
    version = tables.pop("format", FORMAT)
    if version != FORMAT:
        raise UserError(
            f"{file} has format {version}, this transduce reads format {FORMAT}; install a newer transduce."
        )
    found = {}
    for section, table in tables.items():
        if not isinstance(table, dict):
            raise UserError(f"{file}: '{section}' stands outside a section such as [model].")
        for name, value in ((f"{section}.{key}", value) for key, value in table.items()):
            found[name] = _convert(f"{file}: {name}", value, _kind(name, f"{file}: unknown"))
    return found


def to_toml(config: RunConfig) -> str:
    """The whole configuration; `configure(read_recipe(to_toml(c), ...)) == c`."""
    return tomli_w.dumps({"format": FORMAT, **_plain(dataclasses.asdict(config))})


def flatten(config: RunConfig, sections: Sequence[str] = ("model", "data", "train", "decode")) -> dict[str, Any]:
    """The options of the given sections by dotted name; `configure(flatten(c)) == c`."""
    names = [option.name for option in options() if option.name.partition(".")[0] in sections]
    return {name: _value(config, name) for name in names}


def differences(old: RunConfig, new: RunConfig) -> dict[str, tuple[Any, Any]]:
    """What differs: dotted name -> (old value, new value)."""
    was, now = flatten(old), flatten(new)
    return {name: (was[name], now[name]) for name in was if was[name] != now[name]}


def _value(config: RunConfig, name: str) -> Any:
    section, key = name.split(".")
    return getattr(getattr(config, section), key)


def _fields(kind: Any) -> Iterator[tuple[str, Any, Mapping[str, Any], Any]]:
    types = typing.get_type_hints(kind)
    for item in dataclasses.fields(kind):
        yield item.name, types[item.name], item.metadata, item.default


@functools.cache
def _kinds() -> dict[str, Any]:
    return {option.name: option.kind for option in options()}


def _kind(name: str, unknown: str = "Unknown") -> Any:
    """The type of an option; raises UserError with the nearest name, by the key alone if there is no section."""
    kinds = _kinds()
    if name in kinds:
        return kinds[name]
    names = {other if "." in name else other.partition(".")[2]: other for other in reversed(kinds)}
    matches = difflib.get_close_matches(name, names, 1, 0.5)
    hint = f"did you mean '{names[matches[0]]}'?" if matches else "`transduce options` lists them all."
    raise UserError(f"{unknown} option '{name}'; {hint}")


def _read(name: str, text: str, kind: Any) -> Any:
    """The value that a command-line text stands for."""
    if kind is bool and text.lower() in ("true", "false"):
        return text.lower() == "true"
    if kind in (tuple[str, ...], tuple[int, ...]):
        parts = text.split(",") if text else []
        return _convert(name, parts if kind == tuple[str, ...] else [_read(name, part, int) for part in parts], kind)
    if kind in (int, float):
        try:
            return kind(text.replace("_", ""))
        except ValueError:
            pass
    return _convert(name, text, kind)


def _convert(name: str, value: Any, kind: Any) -> Any:
    """`value` as the option's type, or a sentence."""
    if typing.get_origin(kind) is Literal:
        if value in typing.get_args(kind):
            return value
        raise UserError(f"{name} must be one of {', '.join(typing.get_args(kind))}, not '{value}'.")
    if kind in (tuple[str, ...], tuple[int, ...]) and isinstance(value, (list, tuple)):
        item = typing.get_args(kind)[0]
        if all(type(each) is item for each in value):
            return tuple(_text(name, each) for each in value) if item is str else tuple(value)
    if kind == tuple[CorpusConfig, ...] and isinstance(value, (list, tuple)):
        return tuple(_corpus(name, item) for item in value)
    if kind is float and isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value):
        return float(value)
    if kind in (bool, int, str) and type(value) is kind:
        return _text(name, value) if isinstance(value, str) else value
    expected = {int: "a whole number", float: "a number", bool: "true or false", str: "a text"}.get(kind, "a list")
    raise UserError(f"{name} must be {expected}, not '{value}'.")


def _text(name: str, text: str) -> str:
    """The text; raises UserError for the name of a file whose bytes no configuration can hold."""
    if not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text):
        raise UserError(f"{name}: the name {text!a} is not UTF-8; rename the file.")
    return text


def _corpus(name: str, item: Any) -> CorpusConfig:
    if isinstance(item, CorpusConfig):
        return item
    known = {key: kind for key, kind, _, _ in _fields(CorpusConfig)}
    if not isinstance(item, dict) or set(item) - set(known) or not item.get("files"):
        raise UserError(f"Each entry of [[{name}]] needs files = [...], and may have a weight.")
    corpus = CorpusConfig(**{key: _convert(f"{name}.{key}", value, known[key]) for key, value in item.items()})
    if corpus.weight < 0:
        raise UserError(f"{name}.weight must be at least 0, not {corpus.weight}.")
    return corpus


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, (list, tuple)) else value


def _check(config: RunConfig) -> None:
    """Raise UserError for values that no run can have."""
    for option in options():
        value = _value(config, option.name)
        if option.kind in (int, float) and not option.least <= value < option.below:
            limit = f" and below {option.below}" if option.below < math.inf else ""
            raise UserError(f"{option.name} must be at least {option.least}{limit}, not {value}.")
    model = config.model
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
    if config.train.shard and model.experts:
        raise UserError(
            "train.shard is not for models with experts, of which a batch may leave some out; leave it out."
        )
    if config.data.symbols and config.data.joint:
        raise UserError("data.symbols makes a vocabulary for the target side alone: set data.joint=false, too.")
    defaults = RunConfig()
    for name, kinds in READ_BY.items():
        if model.kind not in kinds and _value(config, name) != _value(defaults, name):
            raise UserError(f"{name} is for models of the kind {' or '.join(kinds)}, not {model.kind}; leave it out.")
