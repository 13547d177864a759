"""A training from its first start, or from where it stands, to the model folder at its end."""

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import torch

from transduce import bundle
from transduce.config import RunConfig, configure
from transduce.corpus.pairs import TREES, Pair, read_pairs
from transduce.corpus.plain import suffixes
from transduce.errors import UserError
from transduce.files import MANIFEST
from transduce.journal import Journal, say
from transduce.machine import keep_memory
from transduce.profiling import phase
from transduce.runs.finish import finish
from transduce.runs.resume import Continued, continued, resume
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
    until: float = math.inf,
) -> Result:
    """Train a model into `out`, or go on with the training that is there.

    given: options by dotted name; the others are chosen from the size of the corpus. init: a model folder to go on
    from with its tokenizer and shape; keep_optimizer: with the optimiser's state of its newest checkpoint, too.
    until: on the monotonic clock, when to save and stop, to go on another time.
    Raises UserError for what can't be trained.
    """
    keep_memory()
    out, init = Path(out), Path(init) if init else None
    if init and out.exists() and init.resolve() == out.resolve():
        raise UserError(f"--init and --out are both {out}; a model is not trained over itself, give another --out.")
    device = device or torch.device("cuda" if torch.cuda.is_available() else "cpu")
    begun = (out / bundle.CONFIG).is_file()
    known = json.loads((out / bundle.METRICS).read_text(encoding="utf-8")) if (out / MANIFEST).exists() else None
    if known and "training" not in known:
        raise UserError(f"{out} is an average of checkpoints; to go on from it: --init {out} --out ANOTHER.")
    going = continued(given, out) if begun else None
    if going and known and (result := ended(going, known, out)):
        return result
    with phase("start", whole=True):
        test = test_pairs(going.config if going else configure(given))
        if not begun:
            start(given, out, init, keep_optimizer, device)
    with Journal(out / bundle.JOURNAL, tensorboard=tensorboard) as journal:
        with phase("start", whole=True):
            training, prepared = resume(going or continued(given, out), out, journal, device)
        reason = run_loop(training, until)
        journal.write("stop", step=training.state.step, reason=reason, seconds=training.state.seconds)
        say(f"{REASONS[reason]} (step {training.state.step:,}).")
        if reason == "interrupted":
            return Result(out, reason, {})
        with phase("finish", whole=True):
            return Result(out, reason, finish(training, prepared, test, out, reason))


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
