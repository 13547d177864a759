"""Option values with their sources, such as a recipe or the command line.

From lowest to highest priority, the sources are the defaults of the schema, the table of sizes, the model that
training continues from, a recipe, the command line, and the training's corpus, machine or trial run.
"""

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any, Self

from transduce.config.parse import configure
from transduce.config.schema import Options, RunConfig, flatten, options

DEFAULT, FROM_SIZES, MODEL = "default", "table of sizes", "inherited from the model"
RECIPE, COMMAND_LINE, FILE_NAMES, CALLER = "recipe", "command line", "file names", "calling program"
CORPUS, MACHINE, TRIAL = "corpus", "machine", "trial"
# These sources mean that the user chose the value.
CHOSEN = (
    RECIPE,
    COMMAND_LINE,
    FILE_NAMES,
    CALLER,
)


class Settings(Mapping[str, Any]):
    """An immutable mapping from dotted option names to values, with the source of each value."""

    def __init__(self, source: str = DEFAULT, values: Options | None = None) -> None:
        self._values: dict[str, Any] = dict(values or {})
        self._sources = dict.fromkeys(self._values, source)

    @classmethod
    def of(cls, values: Options) -> "Settings":
        """Convert a mapping of options to Settings with the source CALLER, unless it is a Settings object."""
        return values if isinstance(values, Settings) else cls(CALLER, values)

    @classmethod
    def of_config(cls, config: RunConfig) -> Self:
        """All options of a configuration, with their recorded sources."""
        settings = cls(DEFAULT, flatten(config))
        settings._sources |= config.sources or {}
        return settings

    def over(self, source: str, values: Options) -> Self:
        """A copy with the new `values`. An option gets `source` only if its value changes."""
        defaults = flatten(RunConfig())
        changed = [
            name
            for name, value in values.items()
            if not _is_same(self.get(name, defaults[name]), value)
        ]
        return self._with(
            self._values | dict(values), self._sources | dict.fromkeys(changed, source)
        )

    def under(self, source: str, values: Options) -> Self:
        """A copy that takes missing options from `values`."""
        return self._with({**values, **self._values}, dict.fromkeys(values, source) | self._sources)

    def updated(self, other: "Settings") -> Self:
        """A copy with the values of `other`. An option gets the source in `other` only if its value changes."""
        new = {
            name: value
            for name, value in other.items()
            if name not in self or not _is_same(self[name], value)
        }
        return self._with(
            self._values | new, self._sources | {name: other.source(name) for name in new}
        )

    def without(self, *names: str) -> Self:
        """A copy without the named options."""
        kept = {name: value for name, value in self.items() if name not in names}
        return self._with(kept, {name: self._sources[name] for name in kept})

    def source(self, name: str) -> str:
        """The source of an option's value."""
        return self._sources.get(name, DEFAULT)

    def is_chosen(self, name: str) -> bool:
        """Whether the user chose an option's value."""
        return self.source(name) in CHOSEN

    def config(self) -> RunConfig:
        """The configuration with the source of every option; raises UserError for invalid options."""
        sources = {option.name: self.source(option.name) for option in options()}
        return dataclasses.replace(configure(self), sources=sources)

    def _with(self, values: dict[str, Any], sources: dict[str, str]) -> Self:
        settings = type(self)()
        settings._values = values
        settings._sources = sources
        return settings

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


def _is_same(one: Any, other: Any) -> bool:
    """Whether two values are equal after lists are converted to tuples."""
    return bool(
        (tuple(one) if isinstance(one, list) else one)
        == (tuple(other) if isinstance(other, list) else other)
    )
