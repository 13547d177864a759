"""Checks whether an export format or the CTranslate2 engine supports a model."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, get_args

from transduce.config.schema import ModelConfig, RunConfig, model_options
from transduce.decoding.types import Refusal
from transduce.system.errors import Hint, UserError
from transduce.text.tree_symbols import are_of_trees

# The file in a model folder whose two sides share one SentencePiece model.
JOINT_VOCABULARY = "tokenizer.model"
IMPORTED_PIECES = "tokenizer.pieces.json"
Format = Literal["ctranslate2", "argos", "huggingface", "onnx", "marian", "web"]
FORMATS: tuple[Format, ...] = get_args(Format)
MAX_POSITIONS = 4096  # maximum length for converted models with unlimited positions

ZERO = (0,)
YES = (True,)
NO = (False,)
SCALED, PRODUCTS = ("scaled",), ("scaled", "dot")
POST = ("post",)
UNGATED, SIMPLE = ("relu", "gelu", "silu"), ("relu", "silu")
SINUSOIDAL, NOT_SHIFTED = ("sinusoidal",), ("sinusoidal", "learned", "rotary")
VALUES_BY_OPTION: dict[str, Sequence[tuple[Any, ...] | None]] = {  # values that each of FORMATS supports; None: all
    #                          ctranslate2  argos    huggingface  onnx         marian    web
    "data.tokenizer":          6 * [("bpe", "unigram", "char")],
    "model.kind":              6 * [("transformer",)],
    "model.attention":         [SCALED,     SCALED,  SCALED,      PRODUCTS,    SCALED,   PRODUCTS],
    "model.d_k":               [ZERO,       ZERO,    ZERO,        None,        ZERO,     None],
    "model.d_v":               [ZERO,       ZERO,    ZERO,        None,        ZERO,     None],
    "model.norm":              [None,       None,    POST,        None,        POST,     None],
    "model.embedding_norm":    [None,       None,    NO,          NO,          NO,       NO],
    "model.target_tag":        [None,       None,    NO,          NO,          NO,       NO],
    "model.activation":        [None,       None,    UNGATED,      None,        SIMPLE,   None],
    "model.num_kv_heads":      [None,       None,    ZERO,        None,        ZERO,     None],
    "model.rms_norm":          [None,       None,    NO,          None,        NO,       None],
    "model.bias":              [None,       None,    YES,         None,        YES,      None],
    "model.source_vocab_size": [None,       ZERO,    None,        None,        None,     None],
    "model.positions":         [None,       None,    SINUSOIDAL,  NOT_SHIFTED, ("t2t",), NOT_SHIFTED],
    "model.zero_start":        [None,       None,    NO,          NO,          YES,      NO],
    "data.symbols":            [None,       None,    None,        None,        None,     NO],
}  # fmt: skip
MARIAN_OPTIONS = "it needs a model trained with model.positions=t2t and model.zero_start=true"
REASONS_BY_OPTION = {
    "model.kind": "it supports Transformers only, not model.kind = {}",
    "model.source_vocab_size": "it needs one vocabulary for both languages (data.joint=true)",
}


def max_positions(config: ModelConfig) -> int:
    """The maximum number of tokens in a converted model's source or target, including EOS."""
    return config.max_positions if config.positions == "learned" else MAX_POSITIONS


def refuse_config(form: Format, config: RunConfig) -> Refusal | None:
    """The reason why a format does not support a model with these options; None for a supported model."""
    for each in model_options():
        if each.has_own_layers and (changed := each.changed(config.model)):
            return Refusal(f"it does not support model.{changed[0]}")
    for name, values in VALUES_BY_OPTION.items():
        allowed = values[FORMATS.index(form)]
        value = _value(config, name)
        if allowed is None or value in allowed:
            continue
        if form == "marian" and name in ("model.positions", "model.zero_start"):
            return Refusal(MARIAN_OPTIONS)
        return Refusal(
            REASONS_BY_OPTION.get(name, f"it does not support {name} = {{}}").format(value)
        )
    return None


def refuse(form: Format, folder: Path, config: RunConfig) -> Refusal | None:
    """The reason why a format does not support a folder's model and tokenizer; None if the format supports them."""
    if config.data.symbols and makes_trees(folder):
        return Refusal("it can't restrict a parser's output to well-formed trees")
    if refusal := refuse_config(form, config):
        return refusal
    if form == "argos" and len(config.data.directions) > 1:
        return Refusal(
            "a package has one direction", Hint.about("Choose one, such as en-de.", "direction")
        )
    if form == "web" and (folder / IMPORTED_PIECES).exists():
        return Refusal("its page can't read imported vocabularies")
    if form == "argos" and not (vocabulary := folder / JOINT_VOCABULARY).exists():
        return Refusal(
            f"it needs one SentencePiece model for both languages, but {vocabulary} is missing"
        )
    return None


def formats(folder: Path, config: RunConfig) -> list[Format]:
    """The formats to which the finished model of a folder can be exported."""
    return [form for form in FORMATS if refuse(form, folder, config) is None]


def makes_trees(folder: Path) -> bool:
    """Whether the model of a folder is a parser; False if the vocabulary is damaged."""
    from transduce.tokens.tokenizer import Tokenizer  # imports numpy: too slow for --help

    try:
        return are_of_trees(Tokenizer.load(folder).target_symbols().values())
    except UserError:
        return False


def _value(config: RunConfig, name: str) -> Any:
    """The value of an option; returns 0 for the default value: d_model / num_heads, or keys for each head."""
    section, key = name.split(".")
    value = getattr(getattr(config, section), key)
    size = config.model.d_model / config.model.num_heads
    usual = {"d_k": size, "d_v": size, "num_kv_heads": config.model.num_heads}
    return 0 if usual.get(key) == value else value
