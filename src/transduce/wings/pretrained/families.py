"""The families of models that can be imported, and what their files must say."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from transduce.system.errors import Hint, UserError
from transduce.wings.export import marian

FAIRSEQ_OPTIONS: dict[str, Any] = {"model.norm": "pre", "model.target_tag": True}


class Family(NamedTuple):
    """Models of one architecture, by several names."""

    title: str
    options: Mapping[str, Any]  # of the model
    # Entries of config.json, and the values that can be imported. The first is the default, unless it is in NEEDED.
    values: Mapping[str, tuple[object, ...]]
    is_multilingual: bool = True
    first_position: int = 0  # rows of a table of positions before the first position
    licence: str = ""  # unless the model's own card names another
    program: str = "transformers"  # which runs the originals


# Entries whose absence means another value than the one that can be imported.
NEEDED = ("scale_embedding", "activation_function")
COMMON_VALUES: dict[str, tuple[object, ...]] = {
    "scale_embedding": (True,),
    "tie_word_embeddings": (True,),
    "quantization_config": (None,),
    "activation_function": tuple(marian.MARIAN_ACTIVATIONS),
}
MARIAN = Family(
    "Marian",
    {"model.norm": "post", "model.output_bias": True},
    {
        **COMMON_VALUES,
        "normalize_before": (False,),
        "normalize_embedding": (False,),
        "add_final_layer_norm": (False,),
        "share_encoder_decoder_embeddings": (True, False),
    },
    is_multilingual=False,
)
M2M = Family(
    "M2M-100",
    {**FAIRSEQ_OPTIONS, "model.positions": "fairseq"},
    COMMON_VALUES,
    first_position=2,
)
NLLB = M2M._replace(title="NLLB-200", licence="cc-by-nc-4.0")
SMALL_100 = M2M._replace(title="SMaLL-100", options={**M2M.options, "model.target_tag": False})
MBART = Family(
    "mBART-50",
    {**FAIRSEQ_OPTIONS, "model.positions": "learned", "model.embedding_norm": True},
    COMMON_VALUES,
    first_position=2,
)
KNOWN = "Marian (OPUS-MT), M2M-100, NLLB-200, SMaLL-100 and mBART-50"
BY_MODEL_TYPE = {"marian": MARIAN, "m2m_100": M2M, "mbart": MBART}
# By what their files say instead: why they can't be imported.
REFUSED = {
    "t5": "its attention adds learnt distances to the scores",
    "nllb-moe": "it is a mixture of experts; there are dense models with 600 million to 3.3 billion parameters",
}


def family_of(folder: Path, config: Mapping[str, Any], described: Mapping[str, Any]) -> Family:
    """The family of a model with these configuration files. Raises UserError for other models."""
    kind = config.get("model_type")
    tokenizer = str(described.get("tokenizer_class") or "").removesuffix("Fast")
    family = BY_MODEL_TYPE.get(str(kind))
    why = REFUSED.get(str(kind), "")
    if tokenizer == "MBartTokenizer":
        why = "mBART-25 reads the language after the text; mBART-50 can be imported"
    if described.get("legacy_behaviour"):
        why = "it was made for the tokenizer of 2022, with the language after the text"
    if family is None or why:
        raise UserError(
            f"{folder / marian.CONFIG_FILE}: the model's type is {kind}, which can't be imported"
            + (f": {why}." if why else "."),
            Hint(f"Models of these families can: {KNOWN}."),
        )
    if family is M2M and tokenizer == "NllbTokenizer":
        return NLLB
    is_small = tokenizer == "SMALL100Tokenizer" or (folder / "tokenization_small100.py").exists()
    return SMALL_100 if family is M2M and is_small else family


def check(file: Path, family: Family, config: Mapping[str, Any]) -> None:
    """Raise UserError for a configuration that our model can't express."""
    for name, supported in family.values.items():
        value = config.get(name, None if name in NEEDED else supported[0])
        if value not in supported:
            known = ", ".join(map(str, supported))
            raise UserError(f"{file}: {name} is {value}; only {known} can be imported.")
    for name in marian.SIZES:
        if type(config.get(name)) is not int:
            raise UserError(
                f"{file}: {name} is missing or not a whole number.",
                "Use another copy of the model.",
            )
    start = config.get("decoder_start_token_id", 0)
    if type(start) is not int or start < 0:
        raise UserError(f"{file}: decoder_start_token_id is {start}; expected a token id.")
    for name in ("attention_heads", "ffn_dim"):
        if config[f"encoder_{name}"] != config[f"decoder_{name}"]:
            raise UserError(
                f"{file}: encoder_{name} and decoder_{name} differ; they must be equal."
            )
