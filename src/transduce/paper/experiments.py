"""Trainings that a table is made of: each in a folder of its own, so that they add up over time.

folder/NAME/seed-1/ is a run as `transduce train` leaves it, with .experiment.json, which says by which revision of the
code it was started, and with what. A figure is read from its run each time; without the run there is none.
"""

import json
import math
import statistics
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

from transduce import bundle
from transduce.errors import UserError
from transduce.files import MANIFEST, to_json, write_text
from transduce.journal import say
from transduce.runs.train import train

RECORD = ".experiment.json"


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

    def __str__(self) -> str:
        scores = f"BLEU {self.bleu:.2f}, " * (not math.isnan(self.bleu)) + f"perplexity {self.perplexity:.3f}"
        return f"{self.folder}, by {self.revision}: {scores}, {self.seconds / 60:.1f} minutes"


class Figure(NamedTuple):
    """A figure over seeds."""

    mean: float
    deviation: float  # between seeds; nan for one
    seeds: int

    def __str__(self) -> str:
        return f"{self.mean:.2f}" + (f" ± {self.deviation:.2f}" if self.seeds > 1 else "") if self.seeds else "–"


def carry_out(experiments: Sequence[Experiment], seeds: Sequence[int], folder: Path, minutes: float) -> bool:
    """Make or continue runs, the first seed of all experiments first, until all are there or the minutes are used up.

    A run that is cut short is saved and goes on the next time. Returns whether all are there. Raises UserError if a run
    was made with other options than the experiment has now.
    """
    until = time.monotonic() + 60 * minutes
    for seed in seeds:
        for experiment in experiments:
            out = folder / experiment.name / f"seed-{seed}"
            if _record(experiment, out) is None:
                out.mkdir(parents=True, exist_ok=True)
                record = {"revision": revision(), "seed": seed, "options": _plain(experiment.options)}
                write_text(out / RECORD, to_json(record))
            if (out / MANIFEST).exists():
                continue
            if time.monotonic() >= until:
                return False
            say(f"{experiment.name}, seed {seed}: {out}")
            if train({**experiment.options, "train.seed": seed}, out, until=until).reason == "interrupted":
                return False
    return True


def results(experiment: Experiment, folder: Path) -> list[Result]:
    """The finished runs of an experiment, by seed; raises UserError if one was made with other options."""
    found = []
    for out in sorted((folder / experiment.name).glob("seed-*"), key=lambda path: int(path.name.removeprefix("seed-"))):
        record = _record(experiment, out)
        if record is None or not (out / MANIFEST).exists():
            continue
        metrics = json.loads((out / bundle.METRICS).read_text(encoding="utf-8"))
        scores = {score["name"]: score["value"] for score in metrics.get("test", {}).get("scores", [])}
        found.append(
            Result(
                out,
                record["revision"],
                record["seed"],
                scores.get("BLEU", math.nan),
                metrics.get("validation", {}).get("perplexity", math.nan),
                metrics["training"]["seconds"],
                metrics["training"]["target_tokens"],
            )
        )
    return found


def _record(experiment: Experiment, out: Path) -> dict[str, Any] | None:
    """By which revision a run was started, if it was."""
    if not (out / RECORD).exists():
        return None
    record: dict[str, Any] = json.loads((out / RECORD).read_text(encoding="utf-8"))
    was, now = record["options"], _plain(experiment.options)
    for name in sorted(was.keys() | now.keys()):
        if was.get(name) != now.get(name):
            raise UserError(
                f"{out} was made with {name} = {was.get(name)}, now it would be {now.get(name)}; give the same options "
                "and files as then, or another --out."
            )
    return record


def _plain(options: Mapping[str, Any]) -> dict[str, Any]:
    """As JSON gives it back."""
    return json.loads(to_json(dict(options)))


def kept(path: Path, files: Sequence[Path | str], compute: Callable[[], Mapping[str, float]]) -> dict[str, float]:
    """What was computed from files, read from `path` for as long as none of them has changed, computed otherwise."""
    made_of = [sha256(Path(file).read_bytes()).hexdigest() for file in files]
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


def resolved(one: Figure, other: Figure) -> bool | None:
    """Whether two means differ by more than twice the standard error of the difference; None with one seed."""
    if min(one.seeds, other.seeds) < 2:
        return None
    error = (one.deviation**2 / one.seeds + other.deviation**2 / other.seeds) ** 0.5
    return abs(one.mean - other.mean) > 2 * error


def revision() -> str:
    """The version of the code, and its commit where it is a checkout."""
    command = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty"]
    try:
        commit = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return version("transduce")
    return f"{version('transduce')} ({commit})"
