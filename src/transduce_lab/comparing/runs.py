"""Trains the models for a table, and reads the costs of finished runs.

Each run trains the model of one experiment with one seed, in a folder such as FOLDER/NAME/seed-1/. The folder's file
.experiment.json records the options and the hashes of the corpus files. The run card (run.json) names the code.
"""

import hashlib
import json
import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, Literal, NamedTuple

from transduce import model_folder
from transduce.preparation.passes import reads_test
from transduce.system.console import log
from transduce.system.errors import DivergedError, UserError
from transduce.system.file_lock import file_lock
from transduce.system.files import MANIFEST, make_folder, read_manifest, to_json, verify, write_text
from transduce.system.revision import code_hash, revision
from transduce.text.multilingual import without_labels
from transduce.training.distributed import check_single_process
from transduce.training.finish import has_diverged
from transduce.training.run import train
from transduce.training.run_card import Session, fingerprint, read_run_card

RECORD, RUN_LOCK = ".experiment.json", ".run.lock"
# Why a training diverged; it is not tried again, because it would diverge again.
FAILURE = ".failed"
LAST_ERROR = ".error"  # why a training failed for another reason; the next call tries it again
# The seed of a grid's runs, which no row uses: the best run of a grid would make its row look too good.
TUNING_SEED = 0
FILE_OPTIONS = ("data.corpora", "data.valid", "data.test")
# Version of the files that `cached` writes; increase it if the computation changes.
CACHE_VERSION = 2


class Experiment(NamedTuple):
    """The options for training one model of a table, once per seed."""

    name: str  # the name of its folder
    options: Mapping[str, Any]
    # The folder of the experiment whose models are trained further; "": from scratch.
    init: str = ""

    def folder(self, parent: Path, seed: int) -> Path:
        """The folder of the run with this seed."""
        return parent / self.name / f"seed-{seed}"


Run = tuple[Experiment, int]  # an experiment with a seed


class Result(NamedTuple):
    """The code, device and costs of a finished run, and its perplexity on the validation text."""

    folder: Path
    revision: str
    code: str  # code_hash()
    seed: int
    validation_perplexity: float  # per token; nan without a validation text
    seconds: float
    target_tokens: int
    parameters: int
    device: str = "unknown device"  # device of the last session, with the version of torch
    diverged: bool = False  # if true, the scores mean nothing

    def __str__(self) -> str:
        return f"{self.folder}, by {self.revision}, {self.device}: {self.seconds / 60:.1f} minutes"

    def as_json(self) -> dict[str, Any]:
        """The result as a dictionary for the JSON file of a table."""
        return {**self._asdict(), "folder": str(self.folder)}


class RunsFailedError(UserError):
    """Some runs of a table failed, and the others are finished."""


def carry_out(
    runs: Iterable[Run],
    folder: Path,
    minutes: float,
    clock: Callable[[], float] = time.monotonic,
) -> bool:
    """Carry out the runs in order for at most `minutes`; returns whether all of them are finished.

    Each run is taken from `runs` when the one before is finished. The next call resumes an unfinished run. A run that
    another process trains is skipped, so that several processes can share the runs of a folder. Raises UserError if an
    earlier run in `folder` had other options or other code, or if a run fails. Raises KeyboardInterrupt if the user
    interrupts the training.
    """
    check_single_process("this command")
    until = clock() + 60 * minutes
    failures = list[Path]()
    passed_over = False
    unstartable = dict[str, str]()  # name of an experiment that can't begin -> reason
    for experiment, seed in runs:
        out = experiment.folder(folder, seed)
        if experiment.name in unstartable or state(experiment, out) == "finished":
            if seed != TUNING_SEED and (out / FAILURE).exists():
                failures.append(out)
            continue
        if clock() >= until:
            return False
        ending = _train(experiment, seed, folder, stop=lambda: clock() >= until)
        if ending is None:
            passed_over = True
        elif isinstance(ending, UserError):
            if str(ending) not in unstartable.values():
                log(str(ending))
            if not (out / model_folder.CONFIG).exists():
                unstartable[experiment.name] = str(ending)
            # A diverged run of a grid is no failure: other values of the grid are left.
            if seed != TUNING_SEED or not (out / FAILURE).exists():
                failures.append(out)
        elif ending == "interrupted":
            if clock() < until:
                raise KeyboardInterrupt
            return False
    if failures:
        raise RunsFailedError(
            f"Training failed in {', '.join(map(str, dict.fromkeys(failures)))}. The reasons are above."
        )
    return not passed_over


def _train(
    experiment: Experiment, seed: int, folder: Path, stop: Callable[[], bool]
) -> str | UserError | None:
    """Train one run; returns the reason for the end, or the error, which is also written to the folder.

    Returns None if another process trains the run, or the model that it continues.
    """
    out = experiment.folder(folder, seed)
    init = folder / experiment.init / out.name if experiment.init else None
    with ExitStack() as held:
        try:
            held.enter_context(file_lock(out / RUN_LOCK, f"Another process trains {out}."))
        except UserError as error:
            log(str(error))
            return None
        if state(experiment, out) == "finished":
            return "finished by another process"
        if init and not (init / MANIFEST).exists():
            return None
        options = _begin(experiment, seed, out)
        try:
            return train(options, out, init=init, stop=stop).reason
        except UserError as error:
            name = FAILURE if isinstance(error, DivergedError) else LAST_ERROR
            with suppress(UserError):  # the disk may be full
                write_text(out / name, f"{error}\n")
            return error


def _begin(experiment: Experiment, seed: int, out: Path) -> dict[str, Any]:
    """Write the record of a new run, and return its options. Raises UserError if other code made runs of the row."""
    record = _record(experiment, out)
    for each in sorted(out.parent.glob("seed-*")):
        sessions = _sessions(each) if (record and each == out) or (each / MANIFEST).exists() else []
        if sessions and sessions[-1].code != code_hash():
            raise UserError(
                f"{each} was made by {sessions[-1].revision}, code {sessions[-1].code}, and this is {revision()}, code "
                f"{code_hash()}. Continue with the code that made it, or delete the folder to begin again."
            )
    if not record:
        write_text(
            make_folder(out) / RECORD, to_json({"seed": seed, "options": _plain(experiment)})
        )
    (out / LAST_ERROR).unlink(missing_ok=True)
    log(f"{experiment.name}, seed {seed}: {out}")
    # A run that has begun holds a copy of its text: the original files may have moved.
    left_out = {*FILE_OPTIONS[:2]} if record and (out / model_folder.DATA).is_dir() else set()
    left_out |= set() if reads_test(experiment.options.get("data.rules", ())) else {"data.test"}
    return {name: value for name, value in experiment.options.items() if name not in left_out} | {
        "train.seed": seed
    }


def state(experiment: Experiment, out: Path) -> Literal["finished", "begun", "open"]:
    """Whether a run is finished or has diverged, has begun, or has not begun. Raises UserError as `_record` does."""
    record = _record(experiment, out)
    if (out / MANIFEST).exists() or (out / FAILURE).exists():
        return "finished"
    return "begun" if record else "open"


def count(runs: Sequence[Run], folder: Path) -> str:
    """A sentence that says how many runs are finished, and how many have begun.

    Raises UserError as `carry_out` does.
    """
    states = [state(each, each.folder(folder, seed)) for each, seed in runs]
    finished = states.count("finished")
    return f"{finished} of {len(runs)} runs are finished, {states.count('begun')} have begun."


def results(experiment: Experiment, folder: Path) -> list[Result]:
    """The finished runs of an experiment, sorted by seed.

    Raises UserError if a run had other options, or if the runs were made by different code.
    """
    finished = list[Result]()
    made_by = dict[str, Path]()
    for out in sorted((folder / experiment.name).glob("seed-*")):
        record = _record(experiment, out) if (out / MANIFEST).exists() else None
        if record is None or out.name != f"seed-{record['seed']}":
            continue  # an unfinished run, or a copy under another name
        for name in (model_folder.METRICS, model_folder.RUN):
            verify(out, hashes=True, only=name)
        metrics = model_folder.read_metrics(out)
        sessions = _sessions(out)
        training = metrics["training"]
        perplexity = metrics.get("validation", {}).get("perplexity", math.nan) or math.inf
        made_by |= {session.code: out for session in sessions}
        finished.append(
            Result(
                out,
                training.get("revision", "unknown code"),
                sessions[-1].code if sessions else "",
                record["seed"],
                perplexity,
                training["seconds"],
                training["target_tokens"],
                metrics["parameters"],
                f"{training.get('device', 'unknown device')}, torch {training.get('torch', 'unknown')}",
                has_diverged(perplexity, model_folder.read_config(out).model.vocab_size),
            )
        )
    if len(made_by) > 1:
        folders = " and ".join(map(str, dict.fromkeys(made_by.values())))
        raise UserError(
            f"Different versions of the code made {folders}.",
            "Move a folder away, and train it again.",
        )
    return sorted(finished, key=lambda result: result.seed)


def _sessions(out: Path) -> list[Session]:
    return card.sessions if (card := read_run_card(out)) else []


def _record(experiment: Experiment, out: Path) -> dict[str, Any] | None:
    """Read the record of a run; None if the run has not begun.

    Raises UserError if the run had other options, or if a model has no record.
    """
    if lacking := [name for name in (RECORD, model_folder.CONFIG) if not (out / name).exists()]:
        if (out / MANIFEST).exists():
            raise UserError(
                f"{out} holds a model without {lacking[0]}, so this command can't use it.",
                "Move it away.",
            )
        return None
    record = _read(out / RECORD)
    now = _plain(experiment)
    was = record.get("options")
    if not isinstance(was, dict) or not isinstance(record.get("seed"), int):
        raise UserError(f"{out / RECORD} is damaged.", f"Delete {out}, and train it again.")
    names = was.keys() | now.keys() if "data.corpora" in now else now.keys()
    # train.threads changes only the rounding of sums.
    for name in sorted(names - {"train.threads"}):
        if was.get(name) != now.get(name):
            what = (
                "other files"
                if name in FILE_OPTIONS
                else f"{name} = {was.get(name)}, not {now.get(name)}"
            )
            raise UserError(
                f"{out} was made with {what}.",
                "Use the same options and files, or another folder.",
            )
    if experiment.init:
        first = out.parents[len(Path(experiment.name).parts)] / experiment.init / out.name
        card = read_run_card(out)
        weights = (
            read_manifest(first).get(model_folder.WEIGHTS) if (first / MANIFEST).exists() else None
        )
        if card and (weights is None or weights.sha256 not in card.inputs.get("init", {}).values()):
            raise UserError(
                f"{out} continues the model {first}, which is gone or has changed.",
                f"Delete {out}, too.",
            )
    return record


def _plain(experiment: Experiment) -> dict[str, Any]:
    """The options of an experiment as JSON values for a record, with hashes in place of file names.

    The test files are left out unless a rule of data.rules reads them.
    """
    options = {**experiment.options, **({"init": experiment.init} if experiment.init else {})}
    needed = reads_test(options.get("data.rules", ()))
    hashed = {name: value for name, value in options.items() if needed or name != "data.test"}
    for name in hashed.keys() & set(FILE_OPTIONS[1:]):
        hashed[name] = [content(file) for file in without_labels(map(str, hashed[name]))]
    if corpora := hashed.get("data.corpora"):
        hashed["data.corpora"] = [
            {**each, "files": [content(file) for file in each["files"]]} for each in corpora
        ]
    plain: dict[str, Any] = json.loads(to_json(hashed))
    return plain


def content(file: str) -> str:
    """The hash of a file or a folder; raises UserError if it is unreadable."""
    try:
        found = fingerprint(file)
    except OSError as error:
        raise UserError(f"{file} can't be read: {error.strerror}.") from None
    if found is None:
        raise UserError(f"{file} can't be read: there is no such file.")
    return found


def cached(
    path: Path, files: Sequence[Path | str], compute: Callable[[], Mapping[str, Any]]
) -> dict[str, Any]:
    """Read values from the cache file `path`; computes them if the cache is missing or one of `files` has changed.

    NaN is written as null, and read as NaN.
    """
    made_of = [str(CACHE_VERSION), *(content(str(file)) for file in files)]
    known = _read(path) if path.exists() else {}
    seal = known.pop("seal", "")
    if known.pop("made_of", None) == made_of and seal == _seal(known):
        return {name: math.nan if value is None else value for name, value in known.items()}
    figures = dict(compute())
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, to_json({**figures, "made_of": made_of, "seal": _seal(figures)}))
    return figures


def _seal(figures: Mapping[str, Any]) -> str:
    return hashlib.sha256(to_json(figures).encode()).hexdigest()


def _read(path: Path) -> dict[str, Any]:
    """The values in a JSON file, or nothing if the file is damaged."""
    try:
        return {**json.loads(path.read_bytes())}
    except (ValueError, TypeError, RecursionError):
        return {}
