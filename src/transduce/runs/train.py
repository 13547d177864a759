"""A training from its first start, or from where it stands, to the model folder at its end."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import torch

from transduce import bundle
from transduce.config import RunConfig, configure, read_recipe, to_toml
from transduce.corpus.pairs import TREES, Pair, read_pairs
from transduce.corpus.plain import suffixes
from transduce.errors import UserError
from transduce.files import MANIFEST
from transduce.journal import Journal, NoJournal, say
from transduce.lifeline import Knock, Listener
from transduce.lock import LOCK, alone
from transduce.machine import keep_few_kernels, keep_memory
from transduce.profiling import phase
from transduce.ranks import Ranks, joined
from transduce.runs.finish import finish
from transduce.runs.resume import TEXT, Continued, continued, resume
from transduce.runs.start import start
from transduce.training.loop import Reason
from transduce.training.loop import train as run_loop

REASONS: dict[Reason, str] = {
    "steps": "Training is finished: all updates are made",
    "minutes": "Training is finished: the minutes are used up (train.minutes)",
    "patience": "Training is finished: validation no longer improves (train.patience)",
    "interrupted": "Saved; the same command goes on from here",
}


class Result(NamedTuple):
    """What a training left behind."""

    folder: Path
    reason: Reason
    metrics: Mapping[str, Any]  # as in metrics.json; empty if the training was interrupted


def train(
    given: Mapping[str, Any],
    out: Path | str,
    *,
    init: Path | str | None = None,
    keep_optimizer: bool = False,
    device: torch.device | None = None,
    tensorboard: bool = False,
    stop: Callable[[], bool] = lambda: False,
    arrival: Listener | Knock | None = None,
) -> Result:
    """Train a model into `out`, or go on with the training that is there.

    given: options by dotted name; the others are chosen from the size of the corpus. init: a model folder to go on
    from with its tokenizer and shape; keep_optimizer: with weights and optimiser's state of its newest checkpoint.
    stop: asked before every update whether to save and stop, to go on another time. arrival: from `lifeline.arrive`.
    Raises UserError for what can't be trained.
    """
    keep_memory()
    keep_few_kernels()
    out, init = Path(out), Path(init) if init else None
    with joined(arrival) as ranks:
        task = Task(given, out, device or ranks.device(), ranks, stop)
        if not ranks.first:
            return follow(task)
        with alone(out / LOCK, f"Another transduce trains in {out}; wait for it, or give another --out."):
            return lead(task, init, keep_optimizer, tensorboard)


class Task(NamedTuple):
    """What is to be trained, where and by whom."""

    given: Mapping[str, Any]
    out: Path
    device: torch.device
    ranks: Ranks
    stop: Callable[[], bool]


def lead(task: Task, init: Path | None, keep_optimizer: bool, tensorboard: bool) -> Result:
    """The training as rank 0 does it, and a process alone: what is written is written here."""
    given, out, device, ranks, stop = task
    if init and out.exists() and init.resolve() == out.resolve():
        raise UserError(f"--init and --out are both {out}; a model is not trained over itself, give another --out.")
    begun = (out / bundle.CONFIG).is_file()
    known = bundle.describe(out).metrics if begun and (out / MANIFEST).exists() else {}
    if known and "training" not in known:
        raise UserError(f"{out} is a model, not its training; to go on from it: --init {out} --out ANOTHER.")
    going = continued(given, out) if begun else None
    if going and known and (result := ended(going, known, out)):
        ranks.agree("")
        return result
    if going and init:
        say(f"The training in {out} goes on from its own checkpoints; --init is for its start.")
    with phase("start", whole=True):
        test = test_pairs(going.config if going else configure(given))
        if not begun:
            start(given, out, init, keep_optimizer, device, ranks)
            going = continued(given, out)
    assert going
    ranks.agree(to_toml(going.config))
    with Journal(out / bundle.JOURNAL, tensorboard=tensorboard) as journal:
        with phase("start", whole=True):
            training, prepared = resume(going, out, journal, device, ranks)
        reason = run_loop(training, stop)
        journal.write("stop", step=training.state.step, reason=reason, seconds=training.state.seconds)
        say(f"{REASONS[reason]} (step {training.state.step:,}).")
        if reason == "interrupted":
            return Result(out, reason, {})
        with phase("finish", whole=True):
            metrics = finish(training, prepared, test, out, reason)
    ranks.agree(None)
    return Result(out, reason, metrics)


def follow(task: Task) -> Result:
    """The training as the other ranks do it: with rank 0's configuration, for as long as it lasts."""
    text = task.ranks.agree("")
    if text:
        if not (task.out / bundle.CONFIG).is_file():
            raise UserError(f"{task.out} is not the folder that rank 0 writes; give one that all machines share.")
        config = configure(read_recipe(text, "rank 0"))
        asked = configure({name: task.given[name] for name in TEXT if name in task.given}).data
        training, _ = resume(Continued(config, asked, {}), task.out, NoJournal(), task.device, task.ranks)
        if run_loop(training, task.stop) == "interrupted":
            return Result(task.out, "interrupted", {})
        task.ranks.agree(None)
    metrics = json.loads((task.out / bundle.METRICS).read_text(encoding="utf-8"))
    return Result(task.out, metrics["training"]["reason"], metrics)


def ended(going: Continued, metrics: Mapping[str, Any], out: Path) -> Result | None:
    """The result of a training that is finished and does not go on; None if it is asked to do more.

    Raises UserError if other options are asked for without more to do.
    """
    done = metrics["training"]
    ended_by = f"train.{done['reason']}"
    was, now = going.changes.get(ended_by, (0, 0))
    if now > was or (was and not now):  # no limit
        return None
    finished = f"{out} is finished at {done['steps']:,} updates; to go on, raise what ended it: {ended_by}."
    if going.changes:
        raise UserError(f"{finished} `transduce evaluate` measures it on other text, or with other options of search.")
    say(finished)
    return Result(out, done["reason"], metrics)


def test_pairs(config: RunConfig) -> list[Pair]:
    """What the finished model will be tested on; read first, so that a mistake is found before the training, not after.

    Raises UserError for files that can't be read.
    """
    if not config.data.test:
        return []
    if suffixes(config.data.test[0])[0] == TREES:
        raise UserError(
            "Parsers are scored by brackets: leave out --test, and `transduce evaluate` the model in the end."
        )
    pairs = list(read_pairs(config.data.test, (config.data.source, config.data.target)))
    if not pairs:
        raise UserError(f"There is nothing to test on: {' and '.join(config.data.test)} hold no lines.")
    return pairs
