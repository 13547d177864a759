"""Repeats a training run and compares the two models, for `transduce reproduce --check`."""

import itertools
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from transduce import model_folder
from transduce.config.schema import Options, RunConfig, TrainConfig, flatten
from transduce.preparation.prepared import is_prepared
from transduce.system.console import count, log
from transduce.system.errors import UserError
from transduce.system.files import digest, make_folder, read_manifest, write_text
from transduce.system.journal import Event, read_events
from transduce.training.distributed import ALONE, check_single_process
from transduce.training.loop import COOLDOWN
from transduce.training.resume import VOCABULARY_SIZES, is_harmless
from transduce.training.run import Result, train
from transduce.training.run_card import (
    RunCard,
    Session,
    current_session,
    fingerprint,
    read_run_card,
)
from transduce.training.schedule import limits

MARKER = ".check"  # file in the folder of a check, with the hash of the checked training's options
AT_ONCE_MINUTES = 1e-9  # a time limit that ends a training run before its next update


def check(folder: Path, out: Path) -> bool:
    """Run the training of `folder` again in the folder `out`, and print whether the weights are the same.

    Returns False if an input is missing or has changed, or if the weights differ without a known reason. Raises
    UserError if `folder` is not a finished run with a run card, and KeyboardInterrupt if the user interrupts it.
    """
    check_single_process("transduce reproduce")
    description = model_folder.describe(folder)
    card = read_run_card(folder)
    config = description.config
    metrics = description.metrics
    if out.resolve() == folder.resolve():
        raise UserError(
            f"{folder} can't be trained again in itself.",
            "Choose another folder.",
            "out",
        )
    if not card or "training" not in metrics:
        reason = (
            f"it has no intact {model_folder.RUN}"
            if description.finished
            else "its training is not finished"
        )
        raise UserError(f"{folder} can't be checked: {reason}.")
    model_folder.check_trainable(folder)
    own = folder / model_folder.DATA
    has_copy = is_prepared([str(own)]) and not config.data.replay
    try:
        missing = compare_inputs(card, has_copy=has_copy)
    except UserError as error:
        log(str(error))
        return False
    options = {
        name: value for name, value in flatten(config).items() if name not in VOCABULARY_SIZES
    }
    options |= {"train.minutes": 0.0} | (
        {"data.vocab_size": card.vocab_size} if card.vocab_size else {}
    )
    if missing:
        log(
            f"{missing} is missing. The check uses the prepared corpus in {own}, and does not repeat the preparation."
        )
        options |= {"data.corpora": [{"files": [str(own)]}], "data.valid": ()}
    for reason in reasons([*card.sessions, current_session(config, ALONE.device())], config):
        log(f"The training may give other weights: {reason}.")
    mark(out, digest(folder / model_folder.CONFIG))
    begin = partial(
        train,
        out=out,
        init=next(iter(card.inputs.get("init", ())), None),
        keep_optimizer=card.keep_optimizer,
    )
    cooldowns = [
        event for event in read_events(folder / model_folder.JOURNAL) if event["event"] == COOLDOWN
    ]
    if cooldowns and not model_folder.checkpoints(out):
        begin(options, stop=lambda: True)
        _follow(cooldowns, out, replace(config.train, minutes=0.0))
    _repeat(begin, options, metrics["training"], out)
    return _compare(folder, out, config)


def mark(out: Path, options: str) -> None:
    """Mark `out` as the check of a run whose options have this hash. Raises UserError if `out` is something else."""
    marker = out / MARKER
    if (out / model_folder.CONFIG).exists() and not (
        marker.is_file() and marker.read_text("utf-8").strip() == options
    ):
        raise UserError(f"{out} holds another training run.", "Choose another folder.", "out")
    make_folder(out)
    write_text(marker, f"{options}\n")


def compare_inputs(card: RunCard, *, has_copy: bool) -> str:
    """The name of a missing file of which a copy is used, or "". Raises UserError for other missing or changed files.

    If `has_copy` is true, the training holds a copy of its corpus and its validation text.
    """
    missing = ""
    for option, files in card.inputs.items():
        for name, known in files.items():
            now = fingerprint(name)
            if now is None and has_copy and option in ("data.corpora", "data.valid"):
                missing = missing or name
            elif now is None:
                raise UserError(
                    f"{name} is missing.",
                    "Put it back, or run this command where the training was started.",
                )
            elif now != known:
                raise UserError(
                    f"{name} has changed since the training.",
                    "Put back the file that the model was trained on.",
                )
    return missing


def reasons(sessions: Sequence[Session], config: RunConfig) -> Iterator[str]:
    """Yield the reasons for which training runs with these sessions may give different weights."""
    revisions = {session.code: f"{session.revision}, code {session.code}" for session in sessions}
    facts: list[dict[str, Any]] = [
        {"code": each.code, **each.versions, **each.machine} for each in sessions
    ]
    for name in facts[-1]:
        values = list(dict.fromkeys(str(its.get(name)) for its in facts))
        if len(values) > 1:
            yield f"different {name} ({', '.join(revisions.get(value, value) for value in values)})"
    if any(its["device"] != "cpu" for its in facts):
        yield "a GPU adds numbers in no fixed order"
    for name in dict.fromkeys(name for session in sessions for name in session.changes):
        if not is_harmless(name, config):
            yield f"{name} was changed during the training"


def _follow(cooldowns: Sequence[Event], out: Path, config: TrainConfig) -> None:
    """Write recorded changes of the schedule to the journal in `out`, so that the training there follows them."""
    with (out / model_folder.JOURNAL).open("a", encoding="utf-8") as journal:
        for event in cooldowns:
            journal.write(f"{json.dumps({**event, 'limits': limits(config)})}\n")


def _repeat(
    begin: Callable[..., Result], options: Options, was: Mapping[str, Any], out: Path
) -> None:
    """Train in `out`. If the checked training ended by its time limit, end its repetition after as many updates."""
    steps = was["steps"]
    if was["reason"] != "minutes":
        result = begin(options)
    else:
        made = itertools.count(_updates(out))
        result = begin(options, stop=lambda: next(made) >= steps)
        if result.reason == "interrupted" and _updates(out) == steps:
            log(
                f"The training in the first folder ended here by its time limit, after {count(steps, 'update')}."
            )
            result = begin({**options, "train.minutes": AT_ONCE_MINUTES})
    if result.reason == "interrupted":
        raise KeyboardInterrupt


def _updates(out: Path) -> int:
    """The number of updates before the newest checkpoint."""
    return max(map(model_folder.step_of, model_folder.checkpoints(out)), default=0)


def _compare(folder: Path, out: Path, config: RunConfig) -> bool:
    """Print whether two models have the same weights, and otherwise their scores.

    Returns False if they differ without a known reason.
    """
    weights = [read_manifest(each)[model_folder.WEIGHTS].sha256 for each in (folder, out)]
    if weights[0] == weights[1]:
        print(f"{out} has the same weights as {folder}, bit by bit.")
        return True
    print("The weights differ.")
    was, now = (_scores(model_folder.read_metrics(each)) for each in (folder, out))
    for name in (name for name in was if name in now):
        print(f"{name}: {was[name]:.4f}, again {now[name]:.4f} ({now[name] - was[name]:+.4f})")
    cards = [card for each in (folder, out) if (card := read_run_card(each))]
    known = list(reasons([session for card in cards for session in card.sessions], config))
    for reason in known:
        print(f"A possible reason: {reason}.")
    if not known:
        print(
            "Code, versions, machine and threads were the same, so the weights should be the same, too."
        )
    return bool(known)


def _scores(metrics: Mapping[str, Any]) -> dict[str, float]:
    """The log perplexity on the validation set, and the scores on the test set."""
    perplexity = metrics.get("validation", {}).get("perplexity")
    scores = {"validation log perplexity": math.log(perplexity)} if perplexity else {}
    return scores | {
        f"test {score['name']}": score["value"]
        for score in metrics.get("test", {}).get("scores", [])
    }
