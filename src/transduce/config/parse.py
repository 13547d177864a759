"""Read configurations from TOML and `section.key=value` arguments, and check them."""

import contextlib
import dataclasses
import difflib
import functools
import re
import sys
import tomllib
import typing
from collections.abc import Sequence
from typing import Any, Literal

import tomli_w

from transduce.config.families import DOT_PRODUCTS, families
from transduce.config.schema import (
    MAX_INTEGER,
    SECTIONS,
    WORD_TOKENIZERS,
    CorpusConfig,
    DataConfig,
    DecodeConfig,
    FamilyConfig,
    ModelConfig,
    Options,
    RunConfig,
    TrainConfig,
    default_of,
    fields_of,
    model_options,
    options,
    value_of,
    with_options,
)
from transduce.system.errors import Hint, UserError
from transduce.system.registry import plugins

MAX_FLOAT = sys.float_info.max
# Maximum in a line of a recipe; tomllib needs quadratic memory for a key with many dots.
MAX_DOTS = 100
TOO_MANY_DOTS = re.compile(rf"(?:\.[^.\n]*+){{{MAX_DOTS + 1}}}")
TOML_STRING = re.compile(r"""["][^"\n]*+["]|'[^'\n]*+'""")
# File names contain the code, so no slashes.
CODE_FORM = re.compile(r"(?!\.)[^\s/\\\x00-\x1f\x7f]{1,40}")
DIRECTION_FORM = re.compile(
    r"(?!\.)([^\s/\\\x00-\x1f\x7f-]{1,40})-(?!\.|\1$)[^\s/\\\x00-\x1f\x7f-]{1,40}"
)
LISTS = (tuple[str, ...], tuple[int, ...])  # types of options
CONFIG_FORMAT = 1  # version of config.toml; other versions are rejected
ABOUT_LAB = "Other models of the paper need the lab: pip install 'transduce[lab]'."
VALUES_IN_LAB = ("model.kind", "model.attention")  # options to which the lab adds values
FORMER = {  # option of earlier versions, which old models still have in config.toml -> why it was removed
    "train.consistency": "it gained nothing",
    "train.consistency_weight": "it gained nothing",
    "train.cutoff": "it gained nothing",
    "train.balance": "it is always 0.01",
    "train.optimizer": "the optimizer is always Adam",
    "decode.shortlist": "it saved a tenth of the time at most",
}
TRAINED_WITH = {  # values of former options with which a training can still resume
    "train.balance": 0.01,
    "train.consistency": "none",
    "train.optimizer": "adam",
}


def configure(*layers: Options) -> RunConfig:
    """Merge options into a configuration; later layers override earlier ones. Raises UserError for invalid options."""
    sections: dict[str, dict[str, Any]] = {section: {} for section in SECTIONS}
    for layer in layers:
        for name, value in layer.items():
            kind = _kind(name)
            section, key = name.split(".")
            sections[section][key] = _convert(name, value, kind)
    config = RunConfig(
        with_options(ModelConfig(), **sections["model"]),
        DataConfig(**sections["data"]),
        TrainConfig(**sections["train"]),
        DecodeConfig(**sections["decode"]),
    )
    check(config)
    return config


def parse_assignments(arguments: Sequence[str]) -> dict[str, Any]:
    """The options in `section.key=value` arguments; raises UserError for unknown names and wrong types."""
    values: dict[str, Any] = {}
    for argument in arguments:
        name, equals, text = argument.partition("=")
        if not equals:
            raise UserError(
                f"'{argument}' is not an option.", "Write options as section.key=value."
            )
        values[name] = _parse(name, text, _kind(name))
    return values


def read_recipe(text: str, file: str) -> dict[str, Any]:
    """The options in the text of the TOML file `file`; raises UserError if the text is invalid."""
    return options_in(read_toml(text, file), file)


def read_toml(text: str, file: str) -> dict[str, Any]:
    """The values in the text of the TOML file `file`; raises UserError if the text is invalid."""
    if TOO_MANY_DOTS.search(TOML_STRING.sub("", text)):
        raise UserError(
            f"{file}: a line has more than {MAX_DOTS} dots outside strings.",
            "Give each option its own line.",
        )
    try:
        tables = tomllib.loads(text)
        str(tables)  # ValueError: a number is too long to be printed
    except (ValueError, RecursionError) as error:
        raise UserError(f"{file}: not valid TOML: {error}.") from None
    return tables


def options_in(tables: dict[str, Any], file: str, *, is_model: bool = False) -> dict[str, Any]:
    """The options in the tables of a recipe, or of a model's config.toml, which may have options of earlier versions.

    Raises UserError for an unknown option, or a value of another type.
    """
    version = tables.pop("format", CONFIG_FORMAT)
    if version != CONFIG_FORMAT:
        raise UserError(
            f"{file} has format {version}, but this version reads format {CONFIG_FORMAT}.",
            "Install a newer transduce.",
        )
    values = {}
    for section, table in tables.items():
        if not isinstance(table, dict):
            raise UserError(f"{file}: '{section}' stands outside a section such as [model].")
        for key, value in table.items():
            name = f"{section}.{key}"
            if is_model and name in FORMER:
                continue
            values[name] = _convert(f"{file}: {name}", value, _kind(name, f"{file}: unknown"))
    return values


def to_toml(config: RunConfig) -> str:
    """All options of a configuration as TOML text that `read_recipe` can read."""
    sections = {section: dataclasses.asdict(getattr(config, section)) for section in SECTIONS}
    sections["model"] |= dict(sections["model"].pop("more"))
    return tomli_w.dumps({"format": CONFIG_FORMAT, **sections})


@functools.cache
def _kinds() -> dict[str, Any]:
    return {option.name: option.kind for option in options()}


def is_key(name: str) -> bool:
    """Whether any section has an option with this name."""
    return any(each.partition(".")[2] == name for each in _kinds())


def _kind(name: str, unknown: str = "Unknown") -> Any:
    """The type of an option; raises UserError with a hint if no option has this name."""
    kinds = _kinds()
    if name in kinds:
        return kinds[name]
    if name in FORMER:
        raise UserError(f"{name} was removed in this version: {FORMER[name]}.", "Leave it out.")
    names = {other if "." in name else other.partition(".")[2]: other for other in reversed(kinds)}
    matches = difflib.get_close_matches(name, names, 1, 0.5)
    text = (
        f"Did you mean '{names[matches[0]]}'?"
        if matches
        else "`transduce options` lists all options."
    )
    if name.startswith("model.") and not plugins("families"):
        text += f" {ABOUT_LAB}"
    raise UserError(f"{unknown} option '{name}'.", text)


def _parse(name: str, text: str, kind: Any) -> Any:
    if kind is bool and text.lower() in ("true", "false"):
        return text.lower() == "true"
    if kind in LISTS:
        [item_kind, _] = typing.get_args(kind)
        parts = text.split(",") if text else []
        return _convert(name, [_parse(name, part, item_kind) for part in parts], kind)
    if kind in (int, float):
        with contextlib.suppress(ValueError):
            return kind(text.replace("_", ""))
    return _convert(name, text, kind)


def _convert(name: str, value: Any, kind: Any) -> Any:
    """Convert a value to the type of its option; raises UserError if the value has another type."""
    if typing.get_origin(kind) is Literal:
        if value in typing.get_args(kind):
            return value
        known = ", ".join(typing.get_args(kind))
        is_lab_missing = name.endswith(VALUES_IN_LAB) and not plugins("families")
        raise UserError(
            f"{name} must be one of {known}, not '{value}'.",
            Hint(ABOUT_LAB) if is_lab_missing else None,
        )
    if kind in LISTS and isinstance(value, (list, tuple)):
        [item_kind, _] = typing.get_args(kind)
        if all(type(item) is item_kind for item in value):
            return tuple(_convert(name, item, item_kind) for item in value)
    if kind == tuple[CorpusConfig, ...] and isinstance(value, (list, tuple)):
        return tuple(_corpus(name, item) for item in value)
    if (
        kind is float
        and isinstance(value, (int, float))
        and not isinstance(value, bool)
        and abs(value) <= MAX_FLOAT
    ):
        return float(value)
    if kind in (bool, int, str) and type(value) is kind:
        return _checked_text(name, value) if isinstance(value, str) else value
    expected = {int: "a whole number", float: "a number", bool: "true or false", str: "a text"}.get(
        kind, "a list"
    )
    raise UserError(f"{name} must be {expected}, not '{value}'.")


def _checked_text(name: str, text: str) -> str:
    """Return the text; raises UserError if the text is a file name that is not UTF-8."""
    if not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text):
        raise UserError(f"{name}: the file name {text!a} is not UTF-8.", "Rename the file.")
    return text


def _corpus(name: str, item: Any) -> CorpusConfig:
    if isinstance(item, CorpusConfig):
        return item
    kinds = {key: kind for key, kind, _, _ in fields_of(CorpusConfig)}
    if not isinstance(item, dict) or set(item) - set(kinds) or not item.get("files"):
        raise UserError(f"Each entry of [[{name}]] needs files = [...]; a weight is optional.")
    corpus = CorpusConfig(
        **{key: _convert(f"{name}.{key}", value, kinds[key]) for key, value in item.items()}
    )
    if corpus.weight < 0:
        raise UserError(f"{name}.weight must be at least 0, not {corpus.weight}.")
    return corpus


def check(config: RunConfig) -> None:
    """Raise UserError for options that are invalid or contradict each other."""
    _check_bounds(config)
    _check_model(config.model)
    for each in model_options():
        each.of(config.model).check(config)
    if config.data.symbols and config.data.joint:
        raise UserError(
            "data.symbols needs separate vocabularies for source and target.",
            "Also set data.joint=false.",
        )
    if config.data.symbols and config.train.sample_target:
        raise UserError(
            "The target tokens are whole words, which can't be sampled.",
            "Leave train.sample_target out.",
        )
    if config.data.tokenizer in ("char", *WORD_TOKENIZERS) and (
        config.train.sample_source or config.train.sample_target
    ):
        what = "Characters" if config.data.tokenizer == "char" else "Words"
        raise UserError(
            f"{what} can't be sampled.",
            "Leave train.sample_source and train.sample_target out.",
        )
    _check_languages(config.data)
    _check_family(config)


def _check_languages(data: DataConfig) -> None:
    """Raise UserError for a language code of another form, and if a direction is not SOURCE-TARGET."""
    for name, code in {"data.source": data.source, "data.target": data.target}.items():
        if not CODE_FORM.fullmatch(code):
            raise UserError(
                f"{name} must be a language code, such as en, pt_BR or zh-Hant, not '{code}'."
            )
    for direction in data.directions:
        if not DIRECTION_FORM.fullmatch(direction):
            raise UserError(
                f"data.directions: '{direction}' is not of the form SOURCE-TARGET, such as en-de or en-pt_BR, with two "
                "different language codes."
            )


def _check_bounds(config: RunConfig) -> None:
    for option in options():
        value = value_of(config, option.name)
        if option.kind in (int, float) and not option.least <= value < option.below:
            limit = (
                f" and below {option.below}"
                if option.below < MAX_INTEGER or value >= option.below
                else ""
            )
            raise UserError(f"{option.name} must be at least {option.least}{limit}, not {value}.")


def _check_family(config: RunConfig) -> None:
    """Raise UserError for options that the model's family does not use."""
    users = {
        f"model.{name}": _users(name)
        for name, *_ in fields_of(ModelConfig)
        if not hasattr(FamilyConfig, name)
    }
    users["train.shard"] = _users("train.shard")
    users |= {
        f"model.{name}": each.families for each in model_options() for name, *_ in fields_of(each)
    }
    for name, kinds in users.items():
        if config.model.kind not in kinds and value_of(config, name) != default_of(name):
            wanted = f"models of the kind {' or '.join(kinds)}, not {config.model.kind}"
            raise UserError(f"{name} is for {wanted}.", "Leave the option out.")


def _users(name: str) -> Sequence[str]:
    """The families that use an option of the Transformer."""
    return [
        kind for kind, family in families().items() if kind == "transformer" or name in family.uses
    ]


def _check_model(model: ModelConfig) -> None:
    """Raise UserError if the sizes of a model are invalid or contradict each other."""
    if model.d_model % 2:
        raise UserError(
            f"model.d_model must be even, not {model.d_model}: position encodings are sine-cosine pairs."
        )
    if (
        model.kind == "transformer"
        and model.d_model % model.num_heads
        and not (model.d_k and model.d_v)
    ):
        raise UserError(
            f"model.d_model must be a multiple of model.num_heads ({model.num_heads}), unless model.d_k and "
            "model.d_v are set."
        )
    if model.num_kv_heads and model.num_heads % model.num_kv_heads:
        raise UserError(
            f"model.num_heads ({model.num_heads}) must be a multiple of model.num_kv_heads ({model.num_kv_heads})."
        )
    if model.positions == "rotary":
        width = model.d_k or model.d_model // model.num_heads
        if model.kind != "transformer" or model.attention not in DOT_PRODUCTS or width % 2:
            raise UserError(
                "model.positions=rotary needs a Transformer with dot products (model.attention) and an even width of "
                f"the heads (model.d_k is {width})."
            )
