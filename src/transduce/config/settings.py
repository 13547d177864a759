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
# A value from one of these sources was chosen by the user.
CHOSEN = (
    RECIPE,
    COMMAND_LINE,
    FILE_NAMES,
    CALLER,
)


class Settings(Mapping[str, Any]):
    """An immutable mapping from dotted option names to values, with the source of each value."""

    def __init__(self, source: str = DEFAULT, values: Options | None = None) -> None:
        self._entries = {name: (value, source) for name, value in (values or {}).items()}

    @classmethod
    def of(cls, values: Options) -> "Settings":
        """Convert a mapping of options to Settings with the source CALLER, unless it is a Settings object."""
        return values if isinstance(values, Settings) else cls(CALLER, values)

    @classmethod
    def of_config(cls, config: RunConfig) -> Self:
        """All options of a configuration, with their recorded sources."""
        sources = config.sources or {}
        return cls()._with(
            {name: (value, sources.get(name, DEFAULT)) for name, value in flatten(config).items()}
        )

    def over(self, source: str, values: Options) -> Self:
        """A copy with the new `values`. An option gets `source` only if its value changes."""
        entries = dict(self._entries)
        defaults = flatten(RunConfig())
        for name, value in values.items():
            is_same = _is_same(self.get(name, defaults[name]), value)
            entries[name] = (value, self.source(name) if is_same else source)
        return self._with(entries)

    def under(self, source: str, values: Options) -> Self:
        """A copy that takes missing options from `values`."""
        return self._with(Settings(source, values)._entries | self._entries)

    def updated(self, other: "Settings") -> Self:
        """A copy with the values of `other`. An option gets the source in `other` only if its value changes."""
        new = {
            name: entry
            for name, entry in other._entries.items()
            if name not in self or not _is_same(self[name], entry[0])
        }
        return self._with(self._entries | new)

    def without(self, *names: str) -> Self:
        """A copy without the named options."""
        return self._with(
            {name: entry for name, entry in self._entries.items() if name not in names}
        )

    def source(self, name: str) -> str:
        """The source of an option's value."""
        return self._entries.get(name, (None, DEFAULT))[1]

    def is_chosen(self, name: str) -> bool:
        """Whether the user chose an option's value."""
        return self.source(name) in CHOSEN

    def config(self) -> RunConfig:
        """The configuration with the source of every option; raises UserError for invalid options."""
        sources = {option.name: self.source(option.name) for option in options()}
        return dataclasses.replace(configure(self), sources=sources)

    def _with(self, entries: dict[str, tuple[Any, str]]) -> Self:
        settings = type(self)()
        settings._entries = entries
        return settings

    def __getitem__(self, name: str) -> Any:
        return self._entries[name][0]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)


def _is_same(one: Any, other: Any) -> bool:
    """Whether two values are equal after lists are converted to tuples."""
    return bool(
        (tuple(one) if isinstance(one, list) else one)
        == (tuple(other) if isinstance(other, list) else other)
    )
