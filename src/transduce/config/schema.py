"""Defines all options as fields of frozen dataclasses.

The defaults describe the paper's base model (Table 3 and section 5).
"""

import dataclasses
import functools
import math
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, ClassVar, Literal, NamedTuple, Self

from transduce.config.families import attentions, families
from transduce.system.registry import load, plugins

PAD, BOS, EOS, UNK = 0, 1, 2, 3
# Characters that replace placeholders, one token each (inline); Unicode reserves them for use inside programs.
PLACEHOLDER_TOKENS = "".join(map(chr, range(0xFDD0, 0xFDF0)))
SYNTHETIC_TAG = "<BT> "  # begins each source of a synthetic corpus (Caswell et al., 2019)
MAX_INTEGER = 2**31  # libraries have 32-bit integers
WORD_TOKENIZERS = ("word", "wordpiece")  # values of data.tokenizer without a SentencePiece model
SECTIONS = ("model", "data", "train", "decode")

Options = Mapping[str, Any]  # section.key -> value, as in a recipe or on the command line


def option(
    default: Any,
    help: str,
    *,
    unit: str = "",
    paper: str = "",
    least: float = 0,
    below: float = math.inf,
    among: Callable[[], Iterable[str]] | None = None,
) -> Any:
    """A dataclass field for an option with `least` <= value < `below`. An integer is below MAX_INTEGER by default.

    `among` lists the values that a registry allows.
    """
    below = MAX_INTEGER if type(default) is int and below == math.inf else below
    described = {
        "help": help,
        "unit": unit,
        "paper": paper,
        "least": least,
        "below": below,
        "among": among,
    }
    return field(default=default, metadata=described)


@dataclass(frozen=True)
class FamilyConfig:
    """The shape of a model of any family (Table 3 of the paper)."""

    kind: str = option("transformer", "model family", paper="transformer", among=families)
    vocab_size: int = option(
        37000, "size of the target vocabulary (set by the tokenizer)", paper="37000", least=1
    )
    source_vocab_size: int = option(
        0, "size of the source vocabulary (set by the tokenizer); 0: joint", paper="0"
    )
    num_encoder_layers: int = option(
        6, "number of encoder layers, N", paper="6", least=1, below=1000
    )
    num_decoder_layers: int = option(
        6, "number of decoder layers, N", paper="6", least=1, below=1000
    )
    d_model: int = option(
        512, "width of every layer's input and output", unit="channels", paper="512", least=1
    )
    d_ff: int = option(
        2048, "inner width of the feed-forward layers", unit="channels", paper="2048", least=1
    )
    num_heads: int = option(8, "number of attention heads, h", paper="8", least=1)
    dropout: float = option(
        0.1, "dropout rate of sublayer outputs and embeddings, P_drop", paper="0.1", below=1
    )
    max_positions: int = option(
        1024, "maximum sequence length if model.positions is learned", unit="tokens", least=1
    )
    # Options of `ModelOptions` that are not at their defaults, by name.
    more: tuple[tuple[str, Any], ...] = ()


@dataclass(frozen=True)
class ModelConfig(FamilyConfig):
    """The shape of a model, with the options of the Transformer."""

    d_k: int = option(
        0, "width of a head's queries and keys; 0: d_model / num_heads", unit="channels", paper="64"
    )
    d_v: int = option(
        0, "width of a head's values; 0: d_model / num_heads", unit="channels", paper="64"
    )
    attention_dropout: float = option(0.0, "dropout rate of attention weights", paper="0", below=1)
    attention: str = option(
        "scaled",
        "attention score; scaled: q k / sqrt(d_k); dot: q k; additive: v tanh(q + k)",
        paper="scaled",
        among=attentions,
    )
    num_kv_heads: int = option(
        0, "heads of keys and values, which query heads share; 0: num_heads", paper="0"
    )
    bias: bool = option(True, "biases in linear layers and layer normalization", paper="true")
    activation: Literal["relu", "gelu", "silu", "swiglu"] = option(
        "relu", "feed-forward activation", paper="relu"
    )
    output_bias: bool = option(
        False, "add a bias to the output logits, as in Marian", paper="false"
    )
    zero_start: bool = option(
        False,
        "the decoder starts with zeros, as in Marian, not with a trained vector",
        paper="false",
    )
    norm: Literal["post", "pre"] = option(
        "post",
        "layer normalization; post: after each residual sum; pre: before each sublayer",
        paper="post",
    )
    rms_norm: bool = option(False, "RMSNorm instead of layer normalization", paper="false")
    positions: Literal["sinusoidal", "t2t", "fairseq", "learned", "rotary"] = option(
        "sinusoidal",
        "token positions; t2t: with the rates of tensor2tensor and Marian; fairseq: those, from 2 on",
        paper="sinusoidal",
    )
    embedding_norm: bool = option(
        False, "layer normalization of embeddings, as in mBART", paper="false"
    )
    target_tag: bool = option(
        False,
        "the decoder reads the tag of the target language before the translation, as in M2M-100",
        paper="false",
    )
    init: Literal["transduce", "xavier", "t2t", "fairseq"] = option(
        "transduce", "method for the initial weights"
    )

    @property
    def shape(self) -> str:
        """A description of the model's family and sizes, for messages."""
        is_transformer = self.kind == "transformer"
        inner = f", d_ff {self.d_ff}" if is_transformer else ""
        heads = f", {self.num_heads} heads, {self.norm}-norm" if is_transformer else ""
        layers = f"{self.num_encoder_layers}+{self.num_decoder_layers} layers"
        notes = "".join(each.of(self).note for each in model_options())
        return f"{self.kind}, {layers}, d_model {self.d_model}{inner}{heads}{notes}"


class ModelOptions:
    """The base of frozen dataclasses with further options of models, which other rings and packages register."""

    families: ClassVar[tuple[str, ...]]  # families that use the options
    # If true, exports and CTranslate2 don't support the options.
    has_own_layers: ClassVar[bool] = True

    @classmethod
    def of(cls, model: FamilyConfig) -> Self:
        """The options that a model has."""
        values = dict(model.more)
        return cls(**{name: values[name] for name in cls.changed(model)})

    @classmethod
    def changed(cls, model: FamilyConfig) -> list[str]:
        """The names of these options that are not at their defaults."""
        own = [name for name, *_ in fields_of(cls)]
        return [name for name, _ in model.more if name in own]

    @property
    def note(self) -> str:
        """The text about these options in descriptions of the model's shape, such as ", 8 experts"."""
        return ""

    def check(self, config: "RunConfig") -> None:
        """Raise UserError if the options contradict each other or those in `config`."""


@functools.cache
def model_options() -> tuple[type[ModelOptions], ...]:
    """The registered classes of further options of models."""
    return tuple(load(name) for name in plugins("model_options").values())


@dataclass(frozen=True)
class CorpusConfig:
    """A training corpus and its weight."""

    files: tuple[str, ...] = option((), "two line-aligned text files, or one bilingual file")
    weight: float = option(
        1.0,
        "how often each pair occurs in an epoch (before data.temperature); 0.5: half of the pairs",
    )
    synthetic: bool = option(
        False, "the sources are machine translations: they get a tag, and are never held out"
    )
    source: str = option("", "language code of the first text of each pair; empty: data.source")
    target: str = option("", "language code of the second text of each pair; empty: data.target")

    @property
    def tag(self) -> str:
        """The text before each source: a tag for synthetic corpora, otherwise empty."""
        return SYNTHETIC_TAG if self.synthetic else ""


@dataclass(frozen=True)
class DataConfig:
    """Options for the text, its cleaning, its vocabulary and its batches."""

    corpora: tuple[CorpusConfig, ...] = option(
        (), "training corpora: tables with files and an optional weight"
    )
    valid: tuple[str, ...] = option((), "validation files; empty: data.holdout pairs of the corpus")
    test: tuple[str, ...] = option((), "test files, translated and scored once after the training")
    source: str = option("src", "language code of the source side")
    target: str = option("tgt", "language code of the target side")
    directions: tuple[str, ...] = option(
        (), "directions of a multilingual model, such as en-de; empty: one direction"
    )
    temperature: float = option(
        3.0, "T: the share of a direction with n pairs is proportional to n ** (1/T)", least=1
    )
    replay: str = option(
        "",
        "prepared corpus of the model to which languages are added; it preserves the old directions",
    )
    like: str = option(
        "", "language of the model to which a language is added; the new tag begins as its tag"
    )
    remember: str = option(
        "",
        "prepared corpus, parts of which each epoch repeats, so that a fine-tuned model keeps what it knows",
    )
    tokenizer: Literal["bpe", "unigram", "char", "word", "wordpiece"] = option(
        "bpe", "type of SentencePiece model; word, wordpiece: for comparisons only", paper="bpe"
    )
    source_kind: str = option(
        "text",
        "what the sources are: text, or paths of files of a kind that another package reads (lab: image, audio)",
        paper="text",
    )
    joint: bool = option(True, "share one vocabulary between source and target", paper="true")
    symbols: bool = option(
        False, "one token per word on the target side, for linearised parse trees"
    )
    placeholders: Literal["auto", "masked", "kept"] = option(
        "auto",
        "masked: one token per placeholder, no tags; auto: masked for documents, otherwise kept",
        paper="kept",
    )
    translation_memory: bool = option(
        False,
        "repeat pairs with the translation of a similar source: the model learns to use a translation memory",
    )
    terms: bool = option(
        False,
        "repeat pairs with dictionary forms of translated words: the model learns to inflect a glossary's terms",
    )
    vocab_size: int = option(37000, "number of tokens in each vocabulary", paper="37000", least=1)
    max_tokens: int = option(
        25000,
        "maximum tokens per update in each language, padding included",
        unit="tokens",
        paper="25000",
        least=1,
    )
    pack: int = option(
        0,
        "tokens in a row of several sentences, so that all batches have one shape; 0: a sentence in a row",
        unit="tokens",
        paper="0",
    )
    max_length: int = option(
        256,
        "maximum length of a text; pairs with a longer text are left out of training",
        unit="tokens",
        least=1,
    )
    max_ratio: float = option(
        0.0,
        "maximum characters of a side: this times those of the other side, plus 10; 0: no limit",
    )
    deduplicate: bool = option(True, "leave out exact duplicates of pairs")
    rules: tuple[str, ...] = option(
        (), "leave out pairs that break these rules of `transduce doctor`; all: all rules"
    )
    bleu_tokenize: str = option(
        "auto", "sacreBLEU's tokenizer; auto: by target language; none: for tokenized text"
    )
    augment: Literal["none", "default"] = option(
        "none",
        "default: every epoch changes 14 % of the pairs: lower case, typing errors, list markers",
    )
    synthetic_ratio: float = option(
        4.0,
        "maximum ratio of back-translated pairs to other pairs; above it, other pairs are repeated",
        least=0.01,
    )
    licence: str = option(
        "", "licence of the model, for its card; imported models bring their own, as in cc-by-4.0"
    )
    holdout: int = option(
        1000, "number of pairs to hold out for validation if data.valid is empty", unit="pairs"
    )

    @property
    def languages(self) -> str:
        """The directions, for messages."""
        return ", ".join(self.directions) or f"{self.source} to {self.target}"


@dataclass(frozen=True)
class TrainConfig:
    """The options of training (section 5 of the paper)."""

    steps: int = option(100_000, "number of updates", unit="updates", paper="100000", least=1)
    minutes: float = option(
        0.0,
        "limit on the training time, over all restarts; train.steps also applies; 0: no limit",
        unit="minutes",
    )
    warmup: int = option(
        4000, "updates until the learning rate peaks", unit="updates", paper="4000", least=1
    )
    cooldown: int = option(
        0,
        "number of final updates over which the learning rate falls to zero; 0: none",
        unit="updates",
        paper="0",
    )
    learning_rate: float = option(
        1.0, "factor on the paper's schedule, which peaks at 1 / sqrt(d_model * warmup)", paper="1"
    )
    sample_source: float = option(
        0.0,
        "draw source subwords anew every epoch; BPE: share of merges omitted; unigram: alpha",
        paper="0",
        below=1,
    )
    sample_target: float = option(
        0.0,
        "draw target subwords anew every epoch; BPE: share of merges omitted; unigram: alpha",
        paper="0",
        below=1,
    )
    word_dropout: float = option(
        0.0, "share of the decoder's input tokens that training replaces by UNK", paper="0", below=1
    )
    risk_steps: int = option(
        0,
        "final updates of minimum-risk training, which lower 1 - GLEU of samples",
        unit="updates",
        paper="0",
    )
    samples: int = option(
        16, "translations of each sentence that minimum-risk training draws", least=2
    )
    sharpness: float = option(
        0.005,
        "exponent on the probabilities of the sampled translations (alpha of Shen et al., 2016)",
    )
    likelihood_weight: float = option(0.0, "weight of cross-entropy in minimum-risk training")
    label_smoothing: float = option(
        0.1, "probability mass shared equally by all tokens", paper="0.1", below=1
    )
    accumulate: int = option(
        0, "micro-batches per update; 0: as few as the memory allows, found by trial"
    )
    precision: Literal["float32", "bfloat16", "auto"] = option(
        "auto",
        "precision of matrix products; auto: bfloat16 if it is faster than float32",
        paper="float32",
    )
    beta1: float = option(0.9, "decay rate of Adam's mean gradient", paper="0.9", below=1)
    beta2: float = option(0.98, "decay rate of Adam's mean squared gradient", paper="0.98", below=1)
    epsilon: float = option(1e-9, "Adam's epsilon", paper="1e-9")
    weight_decay: float = option(
        0.0, "an update removes this share of each weight, times the learning rate", paper="0"
    )
    clip_norm: float = option(0.0, "maximum norm of the gradient; 0: no clipping", paper="0")
    save_every: int = option(0, "updates between checkpoints; 0: at most one epoch", unit="updates")
    validate_every: int = option(
        0, "updates between validations; 0: depends on the length of an epoch", unit="updates"
    )
    keep_last: int = option(
        5,
        "number of newest checkpoints to keep besides the best, at least train.average",
        paper="5",
        least=1,
    )
    average: int = option(
        5,
        "average this many last checkpoints, if the average beats the last one; 1: no averaging",
        paper="5",
        least=1,
    )
    ema: float = option(
        0.0,
        "decay of a moving average of the weights, used if it is better, or without a validation set; 0: none",
        paper="0",
        below=1,
    )
    select_by: Literal["perplexity", "bleu", "chrf"] = option(
        "perplexity",
        "validation score for train.patience, the best checkpoint and the final weights",
    )
    low_rank: int = option(
        0,
        "rank of low-rank updates (LoRA), which fine-tune a model with less memory; 0: all weights",
        paper="0",
    )
    max_forgotten: float = option(
        1.0,
        "share of the score on other text that fine-tuning may lose; old and new weights are averaged; 1: all",
        paper="1",
    )
    patience: int = option(
        0, "number of validations without improvement after which training stops; 0: no limit"
    )
    seed: int = option(1, "random seed for initialization, batch order and dropout", below=2**63)
    threads: int = option(0, "CPU threads per process; 0: one per core", unit="threads", below=1025)
    shard: bool = option(False, "split the model into shards, one per process (FSDP)")


@dataclass(frozen=True)
class DecodeConfig:
    """The options of beam search (section 6.1 of the paper)."""

    beam_size: int = option(
        4, "number of hypotheses kept per sentence; 1: greedy search", paper="4", least=1
    )
    length_penalty: float = option(
        0.6, "exponent alpha of the penalty ((5 + length)/6)^alpha", paper="0.6", below=10
    )
    max_extra_tokens: int = option(
        50,
        "a translation has at most this many tokens more than its source",
        unit="tokens",
        paper="50",
    )
    max_tokens: int = option(
        4096,
        "maximum of decode.beam_size times source tokens in a batch; a GPU allows 16 times as many",
        unit="tokens",
        least=1,
    )
    precision: Literal["float32", "float16", "auto"] = option(
        "auto",
        "precision of the torch engine's matrix products; auto: float16 on a GPU, float32 on a CPU",
        paper="float32",
    )
    no_repeat_ngram: int = option(
        0, "no translation has an n-gram of this many tokens twice; 0: no limit", paper="0"
    )
    retry_loops: bool = option(
        True, "search again without repeated n-grams if a translation repeats itself", paper="false"
    )
    capitals: bool = option(
        True,
        "rewrite sentences in capitals or title case if they then have fewer tokens",
        paper="false",
    )
    mbr: Literal["none", "chrf"] = option(
        "none",
        "choose the hypothesis of the beam with the highest expected chrF (minimum Bayes risk)",
        paper="none",
    )


@dataclass(frozen=True)
class RunConfig:
    """All options that determine a training run and its model."""

    model: ModelConfig = ModelConfig()
    data: DataConfig = DataConfig()
    train: TrainConfig = TrainConfig()
    decode: DecodeConfig = DecodeConfig()
    # Option -> where its value came from; None: not recorded.
    sources: Mapping[str, str] | None = field(default=None, compare=False)


class Option(NamedTuple):
    """The description of an option in `transduce options`."""

    name: str
    kind: Any
    default: Any
    help: str
    unit: str
    paper: str
    least: float  # minimum of a number
    below: float  # exclusive upper bound of a number


@functools.cache  # reading the types takes milliseconds
def options() -> tuple[Option, ...]:
    """All options, with names such as model.d_model."""
    kinds = typing.get_type_hints(RunConfig)
    found: list[Option] = []
    for section in SECTIONS:
        classes = [kinds[section], *(model_options() if section == "model" else ())]
        for key, kind, metadata, default in chain.from_iterable(map(fields_of, classes)):
            found.append(Option(f"{section}.{key}", kind, default, **metadata))
    return tuple(found)


def flatten(config: RunConfig, sections: Sequence[str] = SECTIONS) -> dict[str, Any]:
    """The values of all options in `sections`, by dotted names such as model.d_model."""
    names = [option.name for option in options() if option.name.partition(".")[0] in sections]
    return {name: value_of(config, name) for name in names}


def differences(old: RunConfig, new: RunConfig) -> dict[str, tuple[Any, Any]]:
    """The options that differ between `old` and `new`, as {dotted name: (old value, new value)}."""
    was = flatten(old)
    now = flatten(new)
    return {name: (was[name], now[name]) for name in was if was[name] != now[name]}


def value_of(config: RunConfig, name: str) -> Any:
    """The value of the option with a dotted name such as model.d_model."""
    section, key = name.split(".")
    values = getattr(config, section)
    if hasattr(values, key):
        return getattr(values, key)
    return dict(values.more).get(key, default_of(name))


def with_options(model: ModelConfig, **values: Any) -> ModelConfig:
    """A copy of a model's configuration with other options, also those of registered `ModelOptions`."""
    own = {name: value for name, value in values.items() if hasattr(ModelConfig, name)}
    more = dict(model.more) | {name: value for name, value in values.items() if name not in own}
    kept = sorted(
        (name, value) for name, value in more.items() if value != default_of(f"model.{name}")
    )
    return dataclasses.replace(model, **own, more=tuple(kept))


@functools.cache  # each configuration is compared with the defaults
def default_of(name: str) -> Any:
    """The default of the option with a dotted name such as model.d_model."""
    return next(option.default for option in options() if option.name == name)


def fields_of(kind: Any) -> Iterator[tuple[str, Any, Mapping[str, Any], Any]]:
    """Name, type, metadata and default of each option of a dataclass."""
    types = typing.get_type_hints(kind)
    for item in dataclasses.fields(kind):
        if item.metadata:
            metadata = dict(item.metadata)
            among = metadata.pop("among")
            yield (
                item.name,
                Literal[tuple(among())] if among else types[item.name],
                metadata,
                item.default,
            )
