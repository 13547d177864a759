"""Which engines and formats know which models: one table, for our own use of an engine and for exports."""

from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

from transduce.config.schema import RunConfig
from transduce.system.errors import UserError
from transduce.text.tree_symbols import are_of_trees

JOINT = "tokenizer.model"  # of a model folder, where one SentencePiece model serves both sides
Format = Literal["ctranslate2", "argos", "huggingface", "onnx"]
ENCODER, DECODER = "encoder.onnx", "decoder.onnx"  # the files by which an ONNX export is known
FORMATS: tuple[Format, ...] = get_args(Format)


class Known(NamedTuple):
    """The values of an option that a format can express; None: any."""

    ctranslate2: tuple[Any, ...] | None
    argos: tuple[Any, ...] | None
    huggingface: tuple[Any, ...] | None
    onnx: tuple[Any, ...] | None


ANY = None
ZERO = (0,)
#                              ctranslate2       argos             huggingface       onnx
TABLE = {
    "model.kind":              Known(*4 * [("transformer",)]),
    "model.experts":           Known(*4 * [ZERO]),
    "model.window":            Known(*4 * [ZERO]),
    "model.attention":         Known(("scaled",),      ("scaled",),      ("scaled",),      ("scaled", "dot")),
    "model.d_k":               Known(ZERO,             ZERO,             ZERO,             ANY),
    "model.d_v":               Known(ZERO,             ZERO,             ZERO,             ANY),
    "model.norm":              Known(ANY,              ANY,              ("post",),        ANY),
    "model.positions":         Known(ANY,              ANY,              ("sinusoidal",),  ANY),
    "model.source_vocab_size": Known(ANY,              ZERO,             ANY,              ANY),
}  # fmt: skip
IN_WORDS = {
    "model.kind": "it knows Transformers only, not model.kind = {}",
    "model.experts": "it knows no experts (model.experts)",
    "model.source_vocab_size": "it has one vocabulary for both sides (data.joint)",
}


def unknown_to(form: Format, config: RunConfig) -> str:
    """Why a format can't express a model; empty if it can."""
    for name, known in TABLE.items():
        allowed, value = getattr(known, form), _value(config, name)
        if allowed is not None and value not in allowed:
            return IN_WORDS.get(name, f"it does not know {name} = {{}}").format(value)
    return ""


def formats(folder: Path, config: RunConfig) -> list[Format]:
    """What the finished model of a folder can be exported to."""
    return [form for form in FORMATS if not unknown(form, folder, config)]


def unknown(form: Format, folder: Path, config: RunConfig) -> str:
    """The same as `unknown_to`, for the model of a folder with its tokenizer."""
    if config.data.symbols and _makes_trees(folder):
        return "it makes trees, by a search of its own: `transduce parse`"
    if why := unknown_to(form, config):
        return why
    if form == "argos" and not (folder / JOINT).exists():
        return f"it has one SentencePiece model for both sides, and there is no {folder / JOINT}"
    return ""


def _makes_trees(folder: Path) -> bool:
    """Whether the targets are linearised trees; a damaged vocabulary, which is told of elsewhere, has none."""
    from transduce.tokens.tokenizer import Tokenizer  # numpy: too slow for --help

    try:
        return are_of_trees(Tokenizer.load(folder).target_symbols().values())
    except UserError:
        return False


def _value(config: RunConfig, name: str) -> Any:
    """Of an option; a width of a head that is the usual one counts as 0, which means that."""
    section, key = name.split(".")
    value = getattr(getattr(config, section), key)
    usual = config.model.d_model / config.model.num_heads
    return 0 if key in ("d_k", "d_v") and value == usual else value
