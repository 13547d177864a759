"""Reads the definition of a table: its rows, and what all rows share."""

import dataclasses
import itertools
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from transduce.commands.recipes import read_text
from transduce.config.parse import configure, options_in, parse_assignments, read_recipe, read_toml
from transduce.config.schema import Options
from transduce.system.errors import Hint, UserError
from transduce_lab.comparing.outcomes import PERPLEXITY, measures_of
from transduce_lab.comparing.runs import FAILURE, TUNING_SEED, Experiment, Run, results

TUNING = "tuning"  # the folder of a row's grid
STAGE_OPTIONS = (  # options of the first stage that also determine the model and the vocabulary of the second stage
    "data.corpora",
    "data.valid",
    "data.test",
    "data.source",
    "data.target",
    "data.bleu_tokenize",
    "data.max_tokens",
    "train.threads",
    "train.precision",
    "train.clip_norm",
    "decode.",
)
KEYS: dict[str, type] = {
    "title": str,
    "recipe": str,
    "rows": dict,
    "options": dict,
    "grid": dict,
    "seeds": int,
    "base": str,
    "judge": str,
    "notes": list,
}
NOT_IN_FOLDERS = re.compile(r"[^\w.=,-]+")
# Names of other files beside the rows' folders.
RESERVED_NAMES = re.compile(r"table.*\.(md|json|png)|table[234]|ensembles")
MAX_NAME_BYTES = 150
NO_OPTIONS: Options = {}
# Options data.* that don't change the vocabulary; all others may.
SAME_VOCABULARY = (
    "data.max_tokens",
    "data.bleu_tokenize",
    "data.augment",
)


class RowDefinition(NamedTuple):
    """One row: its own options, a second training after another row, or an ensemble of rows."""

    name: str
    options: Mapping[str, Any]
    # Names of rows; a single name: the models of all seeds of this row.
    ensemble: tuple[str, ...] = ()
    init: str = ""  # the row whose models are trained further, seed by seed

    @property
    def is_of_seeds(self) -> bool:
        """Whether the row is one ensemble of all seeds of another row."""
        return len(self.ensemble) == 1

    @property
    def folder(self) -> str:
        """The name of the row's folder."""
        return NOT_IN_FOLDERS.sub("-", self.name).strip("-.") or "row"


@dataclass(frozen=True)
class Definition:
    """A table of training runs that are compared."""

    title: str
    rows: Sequence[RowDefinition]
    options: Mapping[str, Any] = field(default_factory=dict)  # options of all rows
    # Option -> the values that are tried for every row.
    grid: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    seeds: int = 3
    base: str = ""  # the row that the others are compared with; "": the first
    judge: str = PERPLEXITY  # the measure of the verdicts
    parent: str = ""  # the folder of the rows' folders
    notes: Sequence[str] = ()

    @property
    def trained(self) -> list[RowDefinition]:
        """The rows that are no ensembles."""
        return [row for row in self.rows if not row.ensemble]

    @property
    def base_row(self) -> RowDefinition:
        """The row that the others are compared with."""
        return self.row(self.base) if self.base else self.rows[0]

    @property
    def measures(self) -> tuple[str, ...]:
        """The measures of the table, which differ for trees and for translations."""
        return measures_of(self.options.get("data.test", ()))

    def row(self, name: str) -> RowDefinition:
        """The row with this name."""
        return next(row for row in self.rows if row.name == name)

    def vocabulary(self, row: RowDefinition) -> dict[str, Any]:
        """The options of a row that may change its vocabulary.

        Rows with equal options of this kind have the same vocabulary.
        """
        if row.init:
            return self.vocabulary(self.row(row.init))
        options = row.options.items()
        return {
            name: value
            for name, value in options
            if name.startswith("data.") and name not in SAME_VOCABULARY
        }

    def tunings(self, row: RowDefinition) -> list[Experiment]:
        """The experiments that try the points of the grid for a row; none for a second stage."""
        if not self.grid or row.init:
            return []
        experiments = list[Experiment]()
        for values in itertools.product(*self.grid.values()):
            point = dict(zip(self.grid, values, strict=True))
            name = ",".join(f"{key.partition('.')[2]}={value}" for key, value in point.items())
            # 1e+3 and 1e-3 need different folders.
            name = NOT_IN_FOLDERS.sub("-", name.replace("e+", "e"))
            folder = f"{self._folder(row)}/{TUNING}/{name}"
            experiments.append(self._experiment(row, folder, point))
        return experiments

    def costs(self, row: RowDefinition, folder: Path) -> list[float]:
        """The perplexity of each point of a row's grid (inf: diverged), or [] until all points are trained."""
        costs = list[float]()
        for experiment in self.tunings(row):
            found = results(experiment, folder)
            if not found and not (experiment.folder(folder, TUNING_SEED) / FAILURE).exists():
                return []
            costs.append(
                math.inf if not found or found[0].diverged else found[0].validation_perplexity
            )
        return costs

    def refusals(self, folder: Path) -> list[str]:
        """A sentence for each row that diverged with every point of its grid, so that no point can be chosen."""
        return [
            f"The row '{row.name}' diverged with every value of the grid, so it is not trained with any: see "
            f"{folder / self._folder(row) / TUNING}. Add other values to the grid, or change the row."
            for row in self.trained
            if {*self.costs(row, folder)} == {math.inf}
        ]

    def experiment(self, row: RowDefinition, folder: Path) -> Experiment | None:
        """The experiment of a row, with the best point of its grid; None until this point is known."""
        tunings = self.tunings(row)
        if not tunings:
            return self._experiment(row, self._folder(row))
        costs = self.costs(row, folder)
        if {*costs} <= {math.inf}:  # not all points are tried, or all diverged
            return None
        return tunings[costs.index(min(costs))]._replace(name=self._folder(row))

    def planned_runs(self, folder: Path) -> Iterator[Run]:
        """The runs in order: the grids, then all rows with the first seed, then with the next one, and so on.

        The runs of the rows are known when the grids' runs are finished.
        """
        for row in self.trained:
            for experiment in self.tunings(row):
                yield experiment, TUNING_SEED
        chosen = [each for row in self.trained if (each := self.experiment(row, folder))]
        for seed in range(1, self.seeds + 1):
            for experiment in chosen:
                yield experiment, seed

    def _folder(self, row: RowDefinition) -> str:
        return f"{self.parent}/{row.folder}" if self.parent else row.folder

    def _experiment(self, row: RowDefinition, name: str, point: Options = NO_OPTIONS) -> Experiment:
        if row.init:
            first = self.row(row.init)
            both = {**self.options, **first.options}
            kept = {name: value for name, value in both.items() if name.startswith(STAGE_OPTIONS)}
            return Experiment(name, {**kept, **row.options}, init=self._folder(first))
        return Experiment(name, {**self.options, **row.options, **point})


def read(path: Path, own: Mapping[str, Any]) -> Definition:
    """Read the definition of a table from a TOML file. `own` are the options of the command line, for all rows.

    Raises UserError if the file is invalid.
    """
    table = _read_keys(path)
    rows = table.pop("rows", {})
    if len(rows) < 2:
        raise UserError(
            f'{path}: a table needs two or more rows, such as "no dropout" = "model.dropout=0", in [rows].'
        )
    options = read_recipe(*read_text(table.pop("recipe"))) if "recipe" in table else {}
    options |= options_in(table.pop("options", {}), f"{path}: [options]")
    if "data.corpora" in options:
        options["data.corpora"] = [dataclasses.asdict(corpus) for corpus in options["data.corpora"]]
    definition = Definition(
        title=table.pop("title", path.stem),
        rows=[_row(path, name, value) for name, value in rows.items()],
        options={**options, **own},
        grid=_grid(path, table.pop("grid", {})),
        notes=[*map(str, table.pop("notes", ()))],
        **table,
    )
    return checked(definition, own, str(path))


def _read_keys(path: Path) -> dict[str, Any]:
    """Read the keys of a TOML file; raises UserError for unknown keys and wrong types."""
    try:
        table = read_toml(path.read_text(encoding="utf-8"), str(path))
    except OSError as error:
        raise UserError(f"{path} can't be read: {error.strerror}.") from None
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: not valid TOML: {error}.") from None
    if isinstance(table.get("notes"), str):
        table["notes"] = [table["notes"]]
    for key, value in table.items():
        if key not in KEYS:
            raise UserError(
                f"{path}: there is no key '{key}'. The keys are {', '.join(sorted(KEYS))}."
            )
        if type(value) is not KEYS[key]:  # isinstance would take true for an int
            raise UserError(
                f"{path}: {key} has the wrong type. docs/guides/compare.md describes the keys of a table."
            )
    return table


def _row(path: Path, name: str, value: Any) -> RowDefinition:
    try:
        match value:
            case str():
                return RowDefinition(name, parse_assignments(value.split()))
            case {"ensemble": [_, *_] as members, **others} if not others:
                return RowDefinition(name, {}, tuple(map(str, members)))
            case {"init": init, "options": str(options), **others} if not others:
                return RowDefinition(name, parse_assignments(options.split()), init=str(init))
    except UserError as error:
        raise UserError(f"{path}, row '{name}': {error}") from None
    raise UserError(
        f"{path}: the row '{name}' must be options, such as \"model.dropout=0 train.warmup=800\", or "
        '{ ensemble = ["another row"] }, or { init = "another row", options = "train.steps=500" }.'
    )


def _grid(path: Path, table: Any) -> dict[str, list[Any]]:
    grid = dict[str, list[Any]]()
    for name, values in table.items():
        if not isinstance(values, list) or len({*map(repr, values)}) < max(2, len(values)):
            raise UserError(
                f"{path}.",
                'Write the grid as "section.key" = [value, value], with different values.',
            )
        section, _, key = name.partition(".")
        grid[name] = [
            options_in({section: {key: value}}, f"{path}: [grid]")[name] for value in values
        ]
    return grid


def checked(definition: Definition, own: Mapping[str, Any], file: str) -> Definition:
    """The same definition; raises UserError if it contradicts itself or the options `own` of the command line."""
    for fault, remedy in _faults(definition):
        raise UserError(f"{file}: {fault}", Hint(remedy) if remedy else None)
    for name in [*_differing(definition), *definition.grid]:
        if name in own:
            raise UserError(f"The rows of the table differ in {name}.", "Leave out this option.")
    for row in definition.trained:
        for experiment in [definition._experiment(row, ""), *definition.tunings(row)]:
            configure(experiment.options)
    return definition


def _differing(definition: Definition) -> set[str]:
    """The options that rows set."""
    return {name for row in definition.rows for name in row.options}


def _faults(definition: Definition) -> Iterator[tuple[str, str]]:
    """Yield each contradiction, and its remedy or "". Later checks rely on earlier ones."""
    names = [row.name for row in definition.rows]
    if (definition.base and definition.base not in names) or definition.base_row.ensemble:
        yield f"the base '{definition.base}' must be a row that is trained.", ""
    if definition.options.get("data.test") and definition.judge not in definition.measures:
        yield f"judge must be one of {', '.join(definition.measures)}.", ""
    if definition.seeds < 1:
        yield "seeds must be a whole number from 1.", ""
    if "train.seed" in {*_differing(definition), *definition.grid, *definition.options}:
        yield "`seeds` is the number of seeds of each row.", "Leave out train.seed."
    for name in definition.grid:
        if name.startswith("data.") and name not in SAME_VOCABULARY:
            yield f"the grid can't have {name}, since perplexity does not compare vocabularies.", ""
    for row in definition.rows:
        yield from _faults_of_row(definition, row)
    yield from _faults_between_rows(definition)


def _faults_of_row(definition: Definition, row: RowDefinition) -> Iterator[tuple[str, str]]:
    """Yield the contradictions in a row's name, its options and the rows that it names."""
    if len(row.folder.encode()) > MAX_NAME_BYTES or RESERVED_NAMES.fullmatch(row.folder):
        yield (
            f"a row can't be named '{row.name[:100]}', because a folder can't have this name.",
            "Rename it.",
        )
    rows_above = definition.rows[: definition.rows.index(row)]
    if row.init and row.init not in [each.name for each in rows_above if not each.ensemble]:
        yield (
            f"the row '{row.name}' continues '{row.init}', which is not a trained row above it.",
            "",
        )
    if len({*row.ensemble}) < len(row.ensemble):
        yield f"the ensemble '{row.name}' names a row twice.", "Name each row once."
    for member in row.ensemble:
        if member not in [each.name for each in definition.trained]:
            yield (
                f"the ensemble '{row.name}' names '{member}', which is not a row with options.",
                "",
            )
    if not row.init:
        for name in row.options.keys() & definition.grid.keys():
            yield f"the row '{row.name}' sets {name}, which the grid tries for every row.", ""


def _faults_between_rows(definition: Definition) -> Iterator[tuple[str, str]]:
    """Yield the contradictions between rows: equal rows, equal folders, ensembles of different vocabularies."""
    seen = dict[str, str]()
    folders = [row.folder for row in definition.rows]
    for row in definition.rows:
        vocabularies = [definition.vocabulary(definition.row(name)) for name in row.ensemble]
        if any(each != vocabularies[0] for each in vocabularies):
            yield f"the models of the ensemble '{row.name}' have different vocabularies.", ""
        changes = {
            name: value
            for name, value in row.options.items()
            if definition.options.get(name) != value
        }
        other = seen.setdefault(repr((sorted(changes.items()), row.ensemble, row.init)), row.name)
        if other != row.name:
            yield f"the rows '{other}' and '{row.name}' are equal.", "Leave out one of them."
        if folders.count(row.folder) > 1:
            yield (
                f"two rows have names that differ only in punctuation: '{row.name}'.",
                "Rename one.",
            )
