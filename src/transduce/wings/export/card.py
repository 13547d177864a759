"""README.md of an export: where it comes from, how it is used, what was proved."""

from importlib.metadata import version

from transduce.config.schema import RunConfig
from transduce.model_folder import Bundle
from transduce.wings.export.parity import Proof

TITLES = {
    "ctranslate2": "CTranslate2",
    "argos": "Argos Translate and LibreTranslate",
    "huggingface": "Hugging Face transformers",
    "onnx": "ONNX Runtime",
}
PLACEHOLDERS = """\
The model was trained without tags, and with symbols in the place of placeholders, code and addresses: in each sentence
U+FDD0 for the first, U+FDD1 for the next that differs, and so on to U+FDEF. It copies them. `transduce translate` puts
them there and takes them away; for any other program, put them in before, and what they stand for back behind it.
"""


def card(model: Bundle, form: str, compute_type: str, usage: str, proof: Proof) -> str:
    """Markdown."""
    placeholders = ["## Placeholders", "", PLACEHOLDERS, ""] if model.tokenizer.has_stand_ins else []
    return "\n".join(
        [
            f"# {languages(model.config)}, for {TITLES[form]}",
            "",
            f"Exported by transduce {version('transduce')} from the model {model.folder.resolve().name}: "
            f"{model.config.model.shape}; weights in {compute_type}.",
            "",
            usage,
            *placeholders,
            "## What was proved before it was written",
            "",
            " ".join(proof.report()),
            "",
        ]
    )


def languages(config: RunConfig) -> str:
    """From what to what."""
    return f"{config.data.source} → {config.data.target}"
