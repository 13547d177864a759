"""Trains the models for a table of the paper and reads their scores.

Each run trains the model of one experiment with one seed, in a folder such as FOLDER/NAME/seed-1/. The folder's file
.experiment.json records the options, the hashes of the corpus files, and the revisions of the code.
"""

import json
import math
import statistics
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache, lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

from transduce import model_folder
from transduce.config.schema import RunConfig, flatten
from transduce.config.size_table import FROM_SCRATCH, SMALL
from transduce.decoding.types import PLAIN_SEARCH
from transduce.system.console import log
from transduce.system.errors import UserError
from transduce.system.files import MANIFEST, digest, to_json, write_text
from transduce.training.distributed import check_single_process
from transduce.training.run import train

RECORD = ".experiment.json"
FILE_OPTIONS = ("data.corpora", "data.valid", "data.test")
PLAIN_OPTIONS = {  # training and search as in the paper, also with a small corpus
    **{name: flatten(RunConfig())[name] for name in (*FROM_SCRATCH, *SMALL, "train.cooldown")},
    **{f"decode.{name}": value for name, value in PLAIN_SEARCH.items()},
}
CACHE_VERSION = 1  # of the files that `cached` writes; increase it if the computation changes
T_QUANTILES = (12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23)  # two-sided 5 %, by degrees of freedom
RESOLVED = (
    "A difference is significant if Welch's t test over the seeds rejects equal means at a level of 5 %. Where the "
    "true means are equal, one test in twenty still finds a significant difference."
)


class Experiment(NamedTuple):
    """The options for training one model of a table, once per seed."""

    name: str  # the name of its folder
    options: Mapping[str, Any]
    row: str = ""  # the name of its row in the table
    gold: str = ""  # parsers only: the file of trees for scoring


class Result(NamedTuple):
    """The scores and costs of a finished run."""

    folder: Path
    revision: str
    seed: int
    bleu: float
    perplexity: float  # on the validation text, per token
    seconds: float
    target_tokens: int
    parameters: int

    def __str__(self) -> str:
        scores = f"BLEU {self.bleu:.2f}, " * (not math.isnan(self.bleu)) + f"perplexity {self.perplexity:.3f}"
        return f"{self.folder}, by {self.revision}: {scores}, {self.seconds / 60:.1f} minutes"

    def as_json(self) -> dict[str, Any]:
        """The result as a dictionary for the JSON file of a table."""
        return {**self._asdict(), "folder": str(self.folder)}


class Figure(NamedTuple):
    """The mean and standard deviation of a value over several seeds."""

    mean: float  # nan without runs
    deviation: float  # nan for fewer than two runs
    seeds: int

    def __str__(self) -> str:
        if math.isnan(self.mean):
            return "–"
        return f"{self.mean:.2f}" + (f" ± {self.deviation:.2f}" if self.seeds > 1 else "")


def plan(
    table: str, shared: Mapping[str, Any], rows: Mapping[str, Mapping[str, Any]], own: Mapping[str, Any]
) -> list[Experiment]:
    """Make an experiment for each row of a table; raises UserError if `own` sets an option that differs between rows.

    `rows` maps folder names to options. The options of a row override `shared`. The user's options `own` override both.
    """
    first = next(iter(rows.values()))
    for name in own:
        if any(row.get(name) != first.get(name) for row in rows.values()):
            raise UserError(f"The rows of the table differ in {name}. Leave out this option.")
    return [Experiment(f"{table}/{name}", {**shared, **options, **own}) for name, options in rows.items()]


def carry_out(
    experiments: Sequence[Experiment],
    seeds: Sequence[int],
    folder: Path,
    minutes: float,
    clock: Callable[[], float] = time.monotonic,
) -> bool:
    """Train all experiments with all seeds for at most `minutes`; returns whether all runs are finished.

    The next call resumes an unfinished run. Raises UserError if an earlier run in `folder` had other options than its
    experiment, or if a run fails. Raises KeyboardInterrupt if the user interrupts the training.
    """
    check_single_process("transduce reproduce")
    until, failures = clock() + 60 * minutes, list[Path]()
    unstartable = dict[str, str]()  # name of an experiment that can't begin -> reason
    runs = [
        (
            experiment,
            seed,
            out := folder / experiment.name / f"seed-{seed}",
            _record(experiment, out),
            _is_finished(out),
        )
        for seed in seeds
        for experiment in experiments
    ]
    for *_, out, record, done in runs:
        if done and record is None:
            raise UserError(f"{out} holds a model without {RECORD}, so this command did not train it. Move it away.")
    states = [(record is not None, done) for *_, record, done in runs]
    log(f"{states.count((True, True))} of {len(runs)} runs are finished, {states.count((True, False))} have begun.")
    for experiment, seed, out, record, done in runs:
        if done or experiment.name in unstartable:
            continue
        if clock() >= until:
            return False
        _write_record(experiment, seed, record, out)
        log(f"{experiment.name}, seed {seed}: {out}")
        # A run that has begun holds a copy of its text: the original files may have moved.
        left_out = FILE_OPTIONS[:2] if record and (out / model_folder.DATA).is_dir() else ()
        known = {name: value for name, value in experiment.options.items() if name not in left_out}
        try:
            result = train({**PLAIN_OPTIONS, **known, "train.seed": seed}, out, stop=lambda: clock() >= until)
        except UserError as error:
            if not (out / model_folder.CONFIG).exists():
                if str(error) in unstartable.values():
                    raise
                unstartable[experiment.name] = str(error)
            log(str(error))
            failures.append(out)
            continue
        if result.reason == "interrupted":
            if clock() < until:
                raise KeyboardInterrupt
            return False
    if failures:
        raise UserError(f"Training failed in {', '.join(map(str, failures))}. The reasons are above.")
    return True


def results(experiment: Experiment, folder: Path) -> list[Result]:
    """The finished runs of an experiment, sorted by seed; raises UserError if a run had other options."""
    finished = []
    for out in (folder / experiment.name).glob("seed-*"):
        record = _record(experiment, out)
        if record is None or not _is_finished(out) or out.name != f"seed-{record['seed']}":
            continue  # not finished, or a copy under another name
        metrics = json.loads((out / model_folder.METRICS).read_text(encoding="utf-8"))
        scores = {score["name"]: score["value"] for score in metrics.get("test", {}).get("scores", [])}
        finished.append(
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
    return sorted(finished, key=lambda result: result.seed)


def _is_finished(out: Path) -> bool:
    return (out / MANIFEST).exists()


def _record(experiment: Experiment, out: Path) -> dict[str, Any] | None:
    """Read the record of a run; None if the run has not begun. Raises UserError if the run had other options."""
    if not (out / RECORD).exists() or not (out / model_folder.CONFIG).exists():
        return None
    record: dict[str, Any] = json.loads((out / RECORD).read_text(encoding="utf-8"))
    was, now = record["options"], _plain(experiment.options)
    names = was.keys() | now.keys() if "data.corpora" in now else now.keys()
    for name in sorted(names):
        if was.get(name) != now.get(name):
            what = "other files" if name in FILE_OPTIONS else f"{name} = {was.get(name)}, not {now.get(name)}"
            raise UserError(f"{out} was made with {what}. Use the same options and files, or another folder.")
    return record


def _write_record(experiment: Experiment, seed: int, record: Mapping[str, Any] | None, out: Path) -> None:
    """Write the record of a run, and add the current revision of the code to it."""
    before = record["revisions"] if record else []
    after = before if revision() in before else [*before, revision()]
    out.mkdir(parents=True, exist_ok=True)
    write_text(out / RECORD, to_json({"revisions": after, "seed": seed, "options": _plain(experiment.options)}))


def _plain(options: Mapping[str, Any]) -> dict[str, Any]:
    """Convert options to the JSON values that a record stores, with hashes in place of file names."""
    hashed = dict(options)
    for name in options.keys() & set(FILE_OPTIONS):
        hashed[name] = [
            {**each, "files": [_content(file) for file in each["files"]]} if name == "data.corpora" else _content(each)
            for each in options[name]
        ]
    plain: dict[str, Any] = json.loads(to_json(hashed))
    return plain


def _content(file: str) -> str:
    """The hash of a file, or of a prepared corpus's manifest; raises UserError if the file is unreadable."""
    path = Path(file) / MANIFEST if Path(file).is_dir() else Path(file)
    try:
        state = path.stat()
        return _hash(path, state.st_size, state.st_mtime_ns)
    except OSError as error:
        raise UserError(f"{file} cannot be read: {error.strerror}.") from None


@lru_cache
def _hash(path: Path, _size: int, _modified: int) -> str:  # size and time: part of the cache's key
    return digest(path)


def cached(path: Path, files: Sequence[Path | str], compute: Callable[[], Mapping[str, float]]) -> dict[str, float]:
    """Read values from the cache file `path`; computes them if the cache is missing or one of `files` has changed."""
    made_of = [str(CACHE_VERSION), *(_content(str(file)) for file in files)]
    if path.exists():
        known = json.loads(path.read_text(encoding="utf-8"))
        if known.pop("made_of") == made_of:
            return {name: math.nan if value is None else value for name, value in known.items()}
    figures = dict(compute())
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, to_json({**figures, "made_of": made_of}))
    return figures


def figure(values: Sequence[float]) -> Figure:
    """The mean and standard deviation of values."""
    deviation = statistics.stdev(values) if len(values) > 1 else math.nan
    return Figure(statistics.fmean(values) if values else math.nan, deviation, len(values))


def difference(figure: Figure, first: Figure) -> str:
    """The difference `figure` - `first` and its significance, as text; "" if `figure` or `first` has no runs."""
    if not (figure.seeds and first.seeds):
        return ""
    return (
        f"{figure.mean - first.mean:+.2f}"
        + {True: ", significant", False: ", not significant", None: ""}[resolved(first, figure)]
    )


def resolved(one: Figure, other: Figure) -> bool | None:
    """Whether two means differ significantly (Welch's t test, 5 %); None if the test can't be computed."""
    if min(one.seeds, other.seeds) < 2 or not one.deviation + other.deviation:
        return None
    squares = [each.deviation**2 / each.seeds for each in (one, other)]
    degrees = sum(squares) ** 2 / sum(
        square**2 / (each.seeds - 1) for square, each in zip(squares, (one, other), strict=True)
    )
    quantile = T_QUANTILES[min(int(degrees), len(T_QUANTILES)) - 1]
    return abs(one.mean - other.mean) > quantile * math.sqrt(sum(squares))


@cache
def revision() -> str:
    """The package's version and, if known, the git commit."""
    root, released = Path(__file__).parents[4], version("transduce")
    command = ["git", "-C", str(root), "describe", "--always", "--dirty"]
    if (root / ".git").exists():
        with suppress(OSError, subprocess.CalledProcessError):
            commit = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
            return f"{released} ({commit})"
    return released
