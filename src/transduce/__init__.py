"""transduce trains Transformer translation models on your parallel text, evaluates them and serves them.

    import transduce

    transduce.train("models/en-de", train=["train.en", "train.de"], options={"train.minutes": 30})
    transduce.evaluate("models/en-de", ["test.en", "test.de"]).scores
    translator = transduce.load("models/en-de")
    translator.translate(["A dog runs."])[0].text

The names in `__all__` are imported when they are first used, so `import transduce` is fast.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from transduce.commands.python_evaluate import evaluate
    from transduce.commands.python_train import train
    from transduce.decoding.loading import load
    from transduce.decoding.translator import Translator
    from transduce.decoding.types import Link, Term, Translation
    from transduce.evaluation.evaluate import Evaluation
    from transduce.system.errors import UserError
    from transduce.training.run import Result

__version__ = "0.1.0"
__all__ = [
    "Evaluation",
    "Link",
    "Result",
    "Term",
    "Translation",
    "Translator",
    "UserError",
    "evaluate",
    "load",
    "train",
]

_PLACES = {
    "Evaluation": "transduce.evaluation.evaluate",
    "evaluate": "transduce.commands.python_evaluate",
    "Link": "transduce.decoding.types",
    "load": "transduce.decoding.loading",
    "Term": "transduce.decoding.types",
    "Translation": "transduce.decoding.types",
    "Translator": "transduce.decoding.translator",
    "UserError": "transduce.system.errors",
    "Result": "transduce.training.run",
    "train": "transduce.commands.python_train",
}


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module 'transduce' has no attribute '{name}'")
    return getattr(import_module(_PLACES[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
