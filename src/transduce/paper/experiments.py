"""Trainings that a table is made of: each in a folder of its own, so that they add up over time.

folder/NAME/seed-1/ is a run as `transduce train` leaves it, with .experiment.json, which says by which revisions of the
code it was made, with which options, and of which files. A figure is read from its run each time; without the run there
is none.
"""

import json
import math
import statistics
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

from transduce import bundle
from transduce.errors import UserError
from transduce.files import MANIFEST, digest, to_json, write_text
from transduce.journal import say
from transduce.ranks import refuse_several
from transduce.runs.train import train

RECORD = ".experiment.json"
FILES = ("data.corpora", "data.valid", "data.test")
KEPT = 1  # of files that `kept` writes; to be raised when what they hold is computed in another way
# Student's t that 95 % lie below in size, for 1 to 10 degrees of freedom
QUANTILES = (12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23)
RESOLVED = (
    "A difference is resolved if Welch's t test finds it at 5 %, with the spread of the seeds: of twenty rows that do "
    "not differ, one is called so by chance."
)


class Experiment(NamedTuple):
    """A training to be repeated with several seeds."""

    name: str
    options: Mapping[str, Any]


class Result(NamedTuple):
    """A finished run."""

    folder: Path
    revision: str
    seed: int
    bleu: float
    perplexity: float  # per token of the validation text
    seconds: float
    target_tokens: int
    parameters: int

    def __str__(self) -> str:
        scores = f"BLEU {self.bleu:.2f}, " * (not math.isnan(self.bleu)) + f"perplexity {self.perplexity:.3f}"
        return f"{self.folder}, by {self.revision}: {scores}, {self.seconds / 60:.1f} minutes"

    def as_json(self) -> dict[str, Any]:
        """For the data of a table."""
        return {**self._asdict(), "folder": str(self.folder)}


class Figure(NamedTuple):
    """A figure over seeds."""

    mean: float  # nan of none
    deviation: float  # between seeds; nan for one
    seeds: int

    def __str__(self) -> str:
        if math.isnan(self.mean):
            return "–"
        return f"{self.mean:.2f}" + (f" ± {self.deviation:.2f}" if self.seeds > 1 else "")


def carry_out(
    experiments: Sequence[Experiment],
    seeds: Sequence[int],
    folder: Path,
    minutes: float,
    clock: Callable[[], float] = time.monotonic,
) -> bool:
    """Make or continue runs, the first seed of all experiments first, until all are there or the minutes are used up.

    A run that is cut short is saved and goes on the next time; one that can't be trained does not keep the others from
    it. clock: what the minutes are measured by, in seconds. Returns whether all are there. Raises UserError in the end
    for those that can't be trained, and at once for a second experiment that can't begin for the same reason, or a run
    that was made with other options than its experiment has now; KeyboardInterrupt if the user stops it.
    """
    refuse_several("transduce reproduce")
    until, failures = clock() + 60 * minutes, list[Path]()
    hopeless = dict[str, str]()  # experiments that can't begin, and why
    runs = [
        (experiment, seed, folder / experiment.name / f"seed-{seed}") for seed in seeds for experiment in experiments
    ]
    records = [_record(experiment, out) for experiment, _, out in runs]
    finished = [(out / MANIFEST).exists() for *_, out in runs]
    for (*_, out), record, done in zip(runs, records, finished, strict=True):
        if done and record is None:
            raise UserError(f"{out} holds a model without {RECORD}, so that no table can have made it; move it away.")
    begun = sum(record is not None and not done for record, done in zip(records, finished, strict=True))
    say(f"{sum(finished)} of {len(runs)} runs are finished, {begun} begun.")
    for (experiment, seed, out), record, done in zip(runs, records, finished, strict=True):
        if done or experiment.name in hopeless:
            continue
        if clock() >= until:
            return False
        _write_record(experiment, seed, record, out)
        say(f"{experiment.name}, seed {seed}: {out}")
        # One that has begun has its text, which may lie elsewhere now.
        left_out = FILES[:2] if record and (out / bundle.DATA).is_dir() else ()
        known = {name: value for name, value in experiment.options.items() if name not in left_out}
        try:
            result = train({**known, "train.seed": seed}, out, stop=lambda: clock() >= until)
        except UserError as error:
            if not (out / bundle.CONFIG).exists():
                if str(error) in hopeless.values():
                    raise
                hopeless[experiment.name] = str(error)
            say(str(error))
            failures.append(out)
            continue
        if result.reason == "interrupted":
            if clock() < until:
                raise KeyboardInterrupt
            return False
    if failures:
        raise UserError(f"No model could be trained in {', '.join(map(str, failures))}; the reason stands above.")
    return True


def results(experiment: Experiment, folder: Path) -> list[Result]:
    """The finished runs of an experiment, by seed; raises UserError if one was made with other options."""
    found = []
    for out in (folder / experiment.name).glob("seed-*"):
        record = _record(experiment, out)
        if record is None or not (out / MANIFEST).exists() or out.name != f"seed-{record['seed']}":
            continue  # another one is a copy that somebody has put aside
        metrics = json.loads((out / bundle.METRICS).read_text(encoding="utf-8"))
        scores = {score["name"]: score["value"] for score in metrics.get("test", {}).get("scores", [])}
        found.append(
            Result(
                out,
                " and ".join(record["revisions"]),
                record["seed"],
                scores.get("BLEU", math.nan),
                metrics.get("validation", {}).get("perplexity", math.nan),
                metrics["training"]["seconds"],
                metrics["training"]["target_tokens"],
                metrics["parameters"],
            )
        )
    return sorted(found, key=lambda result: result.seed)


def refuse_varied(given: Mapping[str, Any], rows: Iterable[Mapping[str, Any]]) -> None:
    """Raises UserError if an option is given that the rows of a table, each given by its options, differ in."""
    rows = list(rows)
    for name in given:
        if any(row.get(name) != rows[0].get(name) for row in rows):
            raise UserError(f"{name} is what rows of the table differ in; leave it out.")


def _record(experiment: Experiment, out: Path) -> dict[str, Any] | None:
    """What a run was started with, if it was; an experiment without files has what its own options allow."""
    if not (out / RECORD).exists() or not (out / bundle.CONFIG).exists():
        return None
    record: dict[str, Any] = json.loads((out / RECORD).read_text(encoding="utf-8"))
    was, now = record["options"], _plain(experiment.options)
    names = was.keys() | now.keys() if "data.corpora" in now else now.keys()
    for name in sorted(names):
        if was.get(name) != now.get(name):
            what = "other files" if name in FILES else f"{name} = {was.get(name)}, now it would be {now.get(name)}"
            raise UserError(f"{out} was made with {what}; give the same options and files as then, or another --out.")
    return record


def _write_record(experiment: Experiment, seed: int, record: Mapping[str, Any] | None, out: Path) -> None:
    """Written at every start; a revision that goes on with what another began is named beside it."""
    before = record["revisions"] if record else []
    after = before if revision() in before else [*before, revision()]
    out.mkdir(parents=True, exist_ok=True)
    write_text(out / RECORD, to_json({"revisions": after, "seed": seed, "options": _plain(experiment.options)}))


def _plain(options: Mapping[str, Any]) -> dict[str, Any]:
    """As JSON gives it back, with the contents of files instead of their names."""
    found = {name: value for name, value in options.items() if name not in FILES}
    for name in FILES:
        if name == "data.corpora" and name in options:
            found[name] = [
                {**corpus, "files": [_content(file) for file in corpus["files"]]} for corpus in options[name]
            ]
        elif name in options:
            found[name] = [_content(file) for file in options[name]]
    plain: dict[str, Any] = json.loads(to_json(found))
    return plain


def _content(file: str) -> str:
    """The hash of a file, or of the manifest of a prepared folder; raises UserError if there is none."""
    path = Path(file) / MANIFEST if Path(file).is_dir() else Path(file)
    try:
        state = path.stat()
        return _hash(path, state.st_size, state.st_mtime_ns)
    except OSError as error:
        raise UserError(f"{file} cannot be read: {error.strerror}.") from None


@lru_cache
def _hash(path: Path, _size: int, _modified: int) -> str:  # which another file of that name has not
    return digest(path)


def kept(path: Path, files: Sequence[Path | str], compute: Callable[[], Mapping[str, float]]) -> dict[str, float]:
    """What was computed from files, read from `path` for as long as none of them has changed, computed otherwise."""
    made_of = [str(KEPT), *(_content(str(file)) for file in files)]
    if path.exists():
        known = json.loads(path.read_text(encoding="utf-8"))
        if known.pop("made_of") == made_of:
            return {name: math.nan if value is None else value for name, value in known.items()}
    found = dict(compute())
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, to_json({**found, "made_of": made_of}))
    return found


def figure(values: Sequence[float]) -> Figure:
    """Mean and deviation over seeds."""
    deviation = statistics.stdev(values) if len(values) > 1 else math.nan
    return Figure(statistics.fmean(values) if values else math.nan, deviation, len(values))


def difference(figure: Figure, first: Figure) -> str:
    """To the first, and whether it is resolved (RESOLVED); empty if one of them has no run."""
    if not (figure.seeds and first.seeds):
        return ""
    return (
        f"{figure.mean - first.mean:+.2f}"
        + {True: ", resolved", False: ", not resolved", None: ""}[resolved(first, figure)]
    )


def resolved(one: Figure, other: Figure) -> bool | None:
    """Whether two means differ, by Welch's t test at 5 %; None with one seed, or without any spread."""
    if min(one.seeds, other.seeds) < 2 or not one.deviation + other.deviation:
        return None
    squares = [each.deviation**2 / each.seeds for each in (one, other)]
    degrees = sum(squares) ** 2 / sum(
        square**2 / (each.seeds - 1) for square, each in zip(squares, (one, other), strict=True)
    )
    quantile = QUANTILES[min(int(degrees), len(QUANTILES)) - 1]
    return abs(one.mean - other.mean) > quantile * math.sqrt(sum(squares))


@cache
def revision() -> str:
    """The version of the code, and its commit where it is a checkout: at first asked, for later ones are not loaded."""
    root = Path(__file__).parents[3]
    command = ["git", "-C", str(root), "describe", "--always", "--dirty"]
    if not (root / ".git").exists():
        return version("transduce")
    try:
        commit = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return version("transduce")
    return f"{version('transduce')} ({commit})"
