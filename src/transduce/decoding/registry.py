"""The registries of engines and of export formats that `transduce translate` can read.

The engine CTranslate2 is in `wings/` because it needs an optional package and supports only one model family.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Literal

from transduce.decoding.types import Engine, ModelToOpen, Refusal
from transduce.system.errors import NotInstalledError
from transduce.system.registry import load, plugins

OpenEngine = Callable[[ModelToOpen], Engine | Refusal]

# The engines that users can name; each is an `OpenEngine`.
ENGINES = {
    "torch": "transduce.decoding.torch_engine:open_engine",  # our own beam search, for every model
    "ctranslate2": "transduce.wings.ct2.opening:open_engine",
}
# "auto" uses the first of these engines that returns no Refusal.
AUTOMATIC = (
    "ctranslate2",
    "torch",
)
# A file of an export -> OpenEngine.
EXPORT_FORMATS = {"encoder.onnx": "transduce.wings.export.onnx_engine:open_engine"}


def engines() -> Mapping[str, str]:
    """All engines; the engines of the core and the wings come first."""
    return {**ENGINES, **plugins("engines")}


if TYPE_CHECKING:
    EngineName = str
else:
    # The command line checks the name, and --help lists the choices.
    EngineName = Literal["auto", *engines()]


def open_engine(function: str, model: ModelToOpen) -> Engine | Refusal:
    """Open an engine by the registered name of its function. An engine that is not installed refuses the model."""
    try:
        opener: OpenEngine = load(function)
    except NotInstalledError as error:
        return Refusal(error.cause.rstrip("."), error.hint)
    return opener(model)
