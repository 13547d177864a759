"""Plans the runs of a table, and collects what the finished runs of each row say."""

import math
from collections.abc import Iterable, Iterator, Sequence, Set
from itertools import count
from pathlib import Path
from typing import NamedTuple

from transduce.system.errors import UserError
from transduce_lab.comparing.definition import Definition, RowDefinition
from transduce_lab.comparing.outcomes import OUTCOME, EvaluationText, Judge, Outcome, Row, outcome
from transduce_lab.comparing.runs import FAILURE, LAST_ERROR, TUNING_SEED, Experiment, Result, Run, results
from transduce_lab.comparing.statistics import Difference, Spread, holm, seeds_needed

ENSEMBLES = "ensembles"  # the folder of their results


class Standing(NamedTuple):
    """A row with its finished runs, its scores and its differences from the base."""

    definition: RowDefinition
    experiment: Experiment | None  # None: an ensemble, or a row whose grid has chosen no values
    runs: Sequence[Result]  # of an ensemble: of all its members
    failures: dict[Path, str]  # as the function of this name returns them; of an ensemble: none
    row: Row
    spreads: dict[str, Spread]  # by measure; for perplexity, of its logarithm
    differences: dict[str, Difference]  # by measure; empty for the base, and if it or the row lacks runs or diverged
    p_value: float  # of the measure that judges, corrected for the number of rows; nan without a test
    more_seeds: int | None  # that would make the difference significant; None: no number would, or it is significant

    @property
    def seeds(self) -> set[int]:
        """The seeds of the runs."""
        return {run.seed for run in self.runs}

    @property
    def is_open(self) -> bool:
        """Whether more seeds could make the difference significant."""
        return self.more_seeds is not None


class Standings:
    """All rows of a table, with the runs that are finished."""

    def __init__(self, definition: Definition, folder: Path, text: EvaluationText) -> None:
        """If the test text is empty, the runs are ignored."""
        self.definition, self.folder, self.text = definition, folder, text
        self.failures = list[str]()  # of this call: sentences for the end of the command
        vocabularies = [definition.vocabulary(row) for row in definition.trained]
        self.per_word = bool(text.trees) or any(each != vocabularies[0] for each in vocabularies)
        self._judge = Judge(text, per_word=self.per_word)
        self.sentences = self._judge.sentences

    def rows(self) -> list[Standing]:
        """The standing of each row, in the order of the table."""
        trained = {row.name: self.definition.experiment(row, self.folder) for row in self.definition.trained}
        runs = {name: results(each, self.folder) if each and self.text.pairs else [] for name, each in trained.items()}
        found = list[tuple[RowDefinition, Sequence[Result], Row]]()
        for row in self.definition.rows:
            if row.ensemble:
                groups = self._groups([runs[name] for name in row.ensemble])
                members = [run for group in groups for run in group]
                outcomes = self._outcomes((group, self._ensemble_file(row, group)) for group in groups)
            else:
                members = runs[row.name]
                outcomes = self._outcomes(([run], run.folder / OUTCOME) for run in members)
            found.append((row, members, self._judge.row(outcomes)))
        return self._judged(found, trained)

    def _judged(
        self, found: Sequence[tuple[RowDefinition, Sequence[Result], Row]], trained: dict[str, Experiment | None]
    ) -> list[Standing]:
        judge, standings, p_values = self.definition.judge, list[Standing](), list[float]()
        base_runs, base = next(each[1:] for each in found if each[0] == self.definition.base_row)
        for definition, members, row in found:
            is_ensemble = len(definition.ensemble) == 1  # one ensemble of all seeds
            spreads = {name: row.spread(name, is_ensemble=is_ensemble) for name in self._judge.measures}
            differences, more = dict[str, Difference](), None
            diverged = any(run.diverged for run in (*members, *base_runs))
            if definition != self.definition.base_row and row.scores[judge] and base.scores[judge] and not diverged:
                pairs = {name: self._judge.difference(name, row, base, is_ensemble=is_ensemble) for name in spreads}
                differences = {name: each for name, (each, _) in pairs.items()}
                if not definition.ensemble:
                    sides = spreads[judge], base.spread(judge), pairs[judge][1], self._judge.sentences
                    more = seeds_needed(*sides, self.definition.level)
            p_values.append(differences[judge].p_value * self.definition.looks if differences else math.nan)
            experiment = trained.get(definition.name)
            told = failures(experiment, self.folder) if experiment else {}
            standings.append(Standing(definition, experiment, members, told, row, spreads, differences, math.nan, more))
        return [
            each._replace(p_value=p, more_seeds=each.more_seeds if math.isnan(p) or p >= 0.05 else None)
            for each, p in zip(standings, holm(p_values, len(found) - 1), strict=True)
        ]

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
    files = [file for name in (FAILURE, LAST_ERROR) for file in sorted(folder.glob(f"{experiment.name}/seed-*/{name}"))]
    own = [file for file in files if file.parent.name.removeprefix("seed-").isdigit()]  # others were put aside
    return {file: file.read_text(encoding="utf-8", errors="replace").strip() for file in own}


def planned_runs(standings: Standings) -> Iterator[Run]:
    """The runs of a table in order, each decided when the one before is finished.

    First come the grids, then all rows with the first seed, and so on. Rows without a verdict get more seeds, up to
    `max_seeds`: the row whose difference has the largest standard error is next, or the base if its runs differ more.
    """
    definition, folder = standings.definition, standings.folder
    for point in definition.points():
        for row in definition.tuned_rows:
            yield definition.tuning(row, point), TUNING_SEED
    chosen = [each for row in definition.trained if (each := definition.experiment(row, folder))]
    for seed in range(1, definition.seeds + 1):
        for experiment in chosen:
            yield experiment, seed
    asked = set[tuple[str, int]]()
    while definition.max_seeds > definition.seeds:
        run = _most_uncertain(standings.rows(), definition, asked)
        if run is None:
            return
        asked.add((run[0].name, run[1]))
        yield run


def _most_uncertain(rows: Sequence[Standing], definition: Definition, asked: Set[tuple[str, int]]) -> Run | None:
    """The next run of the row or of the base, whichever adds more to the largest standard error of an open row.

    Runs that were `asked` for before are left out: they failed, or another process trains them.
    """
    judge, base = definition.judge, next(each for each in rows if each.definition == definition.base_row)
    open_rows = [each for each in rows if each.is_open and min(len(each.runs), len(base.runs)) < definition.max_seeds]

    def variance(each: Standing) -> float:
        return _or_infinity(each.spreads[judge].deviation ** 2 / max(1, len(each.runs)))

    by_name = {each.definition.name: each for each in rows}
    for widest in sorted(open_rows, key=lambda each: -_or_infinity(each.differences[judge].error)):
        for chosen in sorted((widest, base), key=variance, reverse=True):
            tried = {seed for name, seed in asked if chosen.experiment and name == chosen.experiment.name}
            seed = next(seed for seed in count(1) if seed not in chosen.seeds | tried)
            while (first := by_name.get(chosen.definition.init)) and seed not in first.seeds:
                chosen = first  # trained first
            if chosen.experiment and seed <= definition.max_seeds and (chosen.experiment.name, seed) not in asked:
                return chosen.experiment, seed
    return None


def _or_infinity(value: float) -> float:
    return math.inf if math.isnan(value) else value
