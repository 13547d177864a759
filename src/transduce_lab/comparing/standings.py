"""Collects the results of the finished runs of each row of a table."""

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from transduce.system.errors import UserError
from transduce_lab.comparing.definition import Definition, RowDefinition
from transduce_lab.comparing.outcomes import OUTCOME, EvaluationText, Judge, Outcome, Row, outcome
from transduce_lab.comparing.runs import (
    FAILURE,
    LAST_ERROR,
    Experiment,
    Result,
    results,
)
from transduce_lab.comparing.statistics import Difference, holm

ENSEMBLES = "ensembles"  # the folder of the ensembles' results


class Standing(NamedTuple):
    """A row with its finished runs, its scores and its differences from the base."""

    definition: RowDefinition
    chosen: dict[str, Any]  # the row's values of the options of the grid
    runs: Sequence[Result]  # results of the runs; for an ensemble, of all its members
    failures: dict[Path, str]  # the result of the function `failures`; empty for an ensemble
    row: Row
    # Measure -> difference; empty for the base, and if the base or the row lacks runs or diverged.
    differences: dict[str, Difference]
    # For the judging measure, corrected for the number of rows; nan without a test.
    p_value: float


class Standings:
    """All rows of a table, with the runs that are finished."""

    def __init__(self, definition: Definition, folder: Path, text: EvaluationText) -> None:
        """If the test text is empty, the runs are ignored."""
        self.definition = definition
        self.folder = folder
        self.text = text
        # Sentences about failures in this call, for the end of the command.
        self.failures = list[str]()
        vocabularies = [definition.vocabulary(row) for row in definition.trained]
        self.per_word = bool(text.trees) or any(each != vocabularies[0] for each in vocabularies)
        self._judge = Judge(text, per_word=self.per_word)

    @cached_property
    def rows(self) -> list[Standing]:
        """The standing of each row, in the order of the table, by the runs that are finished at the first call."""
        trained = {
            row.name: self.definition.experiment(row, self.folder)
            for row in self.definition.trained
        }
        runs = {
            name: results(each, self.folder) if each and self.text.pairs else []
            for name, each in trained.items()
        }
        rows = [self._standing(row, trained.get(row.name), runs) for row in self.definition.rows]
        base = next(row for row in rows if row.definition == self.definition.base_row)
        rows = [row._replace(differences=self._differences(row, base)) for row in rows]
        judge = self.definition.judge
        p_values = [row.differences[judge].p_value if row.differences else math.nan for row in rows]
        corrected = holm(p_values, len(rows) - 1)
        return [row._replace(p_value=p) for row, p in zip(rows, corrected, strict=True)]

    def _standing(
        self,
        row: RowDefinition,
        experiment: Experiment | None,
        runs: Mapping[str, Sequence[Result]],
    ) -> Standing:
        """A row, not yet compared, with the finished runs and the outcomes of its models.

        `runs` holds the runs of each row.
        """
        if row.ensemble:
            groups = self._groups([runs[name] for name in row.ensemble])
            members: Sequence[Result] = [run for group in groups for run in group]
            outcomes = self._outcomes((group, self._ensemble_file(row, group)) for group in groups)
        else:
            members = runs[row.name]
            outcomes = self._outcomes(([run], run.folder / OUTCOME) for run in members)
        scored = self._judge.row(outcomes, is_ensemble=row.is_of_seeds)
        options = experiment.options if experiment else {}
        chosen = {name: options[name] for name in self.definition.grid if name in options}
        failed = failures(experiment, self.folder) if experiment else {}
        return Standing(row, chosen, members, failed, scored, {}, math.nan)

    def _differences(self, row: Standing, base: Standing) -> dict[str, Difference]:
        """The difference of a row from the base by each measure; nothing if they can't be compared."""
        judge = self.definition.judge
        diverged = any(run.diverged for run in (*row.runs, *base.runs))
        if row is base or diverged or not (row.row.scores[judge] and base.row.scores[judge]):
            return {}
        return {
            name: self._judge.difference(name, row.row, base.row) for name in self._judge.measures
        }

    def _groups(self, members: Sequence[Sequence[Result]]) -> list[list[Result]]:
        """The models of each ensemble: all seeds of one row, or one model of each row, seed by seed."""
        if len(members) == 1:
            return [list(members[0])] if len(members[0]) > 1 else []
        by_seed = [{run.seed: run for run in runs} for runs in members]
        seeds = sorted(set.intersection(*map(set, by_seed)))
        return [[runs[seed] for runs in by_seed] for seed in seeds]

    def _ensemble_file(self, row: RowDefinition, group: Sequence[Result]) -> Path:
        seeds = "-".join(dict.fromkeys(str(run.seed) for run in group))
        return self.folder / self.definition.parent / ENSEMBLES / f"{row.folder}-{seeds}.json"

    def _outcomes(self, groups: Iterable[tuple[Sequence[Result], Path]]) -> list[Outcome]:
        """The outcomes of models or ensembles, without those whose training diverged so far that they can't be used."""
        found = []
        for group, path in groups:
            try:
                found.append(outcome([run.folder for run in group], self.text, path))
            except UserError:
                if not any(run.diverged for run in group):
                    raise
        return found


def failures(experiment: Experiment, folder: Path) -> dict[Path, str]:
    """Why runs of an experiment failed, by the file that says so, FAILURE or LAST_ERROR."""
    files = [
        file
        for name in (FAILURE, LAST_ERROR)
        for file in sorted(folder.glob(f"{experiment.name}/seed-*/{name}"))
    ]
    # Folders with other names were put aside by the user.
    own = [file for file in files if file.parent.name.removeprefix("seed-").isdigit()]
    return {file: file.read_text(encoding="utf-8", errors="replace").strip() for file in own}
