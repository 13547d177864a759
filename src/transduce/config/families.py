"""The registry of model families, and of modules that can replace parts of the Transformer.

To add a family, write its class in a module and add an entry to `FAMILIES`.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from transduce.system.errors import UserError
from transduce.system.registry import load, plugins

TEXT_SOURCES = "text"  # the kind of usual sources


class Family(NamedTuple):
    """The class of a model family, and the Transformer options that this family also uses."""

    model: str  # "module:class" of a subclass of Seq2Seq
    uses: tuple[str, ...] = ()


class SourceKind(NamedTuple):
    """A kind of sources that are not text."""

    read: str  # "module:function" that reads a file: path -> values (positions, vector), numpy's uint8
    vector: int  # values in each position


def kind_of(name: str) -> SourceKind:
    """The kind of sources with this name. Raises UserError if no installed package has it."""
    kinds = plugins("source_kinds")
    if name not in kinds:
        raise UserError(
            f"There is no kind of sources '{name}'.",
            f"Choose one of {', '.join([TEXT_SOURCES, *kinds])}.",
            "data.source_kind",
        )
    kind: SourceKind = kinds[name]
    return kind


FAMILIES = {
    "transformer": Family("transduce.model.transformer:Transformer"),
}
DOT_PRODUCTS = ("scaled", "dot")  # values of model.attention


def families() -> Mapping[str, Family]:
    """All model families, the Transformer first."""
    return {**FAMILIES, **plugins("families")}


def attentions() -> tuple[str, ...]:
    """All attention scores that model.attention may name, dot products first."""
    return (*DOT_PRODUCTS, *plugins("attentions"))


def make_part(slot: str, *arguments: Any, **options: Any) -> Any:
    """Make the module that replaces a part of the Transformer, or None if the options replace nothing."""
    makers = {**plugins("attentions"), **plugins("parts")}
    return load(makers[slot])(*arguments, **options) if slot in makers else None
