"""README.md of an export: its origin, how to use it, the result of the comparison."""

from importlib.metadata import version

from transduce.config.schema import RunConfig
from transduce.model_folder import Bundle
from transduce.wings.export.parity import Parity

FORMAT_TITLES = {
    "ctranslate2": "CTranslate2",
    "argos": "Argos Translate and LibreTranslate",
    "huggingface": "Hugging Face transformers",
    "onnx": "ONNX Runtime",
}
PLACEHOLDER_NOTE = """\
The model was trained without tags. Placeholders, code and addresses were replaced by symbols: in each sentence, U+FDD0
for the first, U+FDD1 for the next distinct one, up to U+FDEF. The model copies these symbols. `transduce translate`
replaces placeholders before translation and restores them afterwards; with any other program, do both yourself.
"""


def card(model: Bundle, form: str, compute_type: str, usage: str, parity: Parity) -> str:
    """The README.md of an export."""
    placeholders = ["## Placeholders", "", PLACEHOLDER_NOTE, ""] if model.tokenizer.has_placeholder_tokens else []
    return "\n".join(
        [
            f"# {languages(model.config)}, for {FORMAT_TITLES[form]}",
            "",
            f"Exported by transduce {version('transduce')} from the model {model.folder.resolve().name}: "
            f"{model.config.model.shape}; weights in {compute_type}.",
            "",
            usage,
            *placeholders,
            "## Comparison with the model",
            "",
            " ".join(parity.report()),
            "",
        ]
    )


def languages(config: RunConfig) -> str:
    """The language pair, for a title."""
    return f"{config.data.source} → {config.data.target}"
