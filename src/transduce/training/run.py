"""Runs the training, from its first start or its newest checkpoint, to a finished model folder."""

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import torch

from transduce import model_folder
from transduce.config.parse import configure, read_recipe, to_toml
from transduce.config.schema import DataConfig, RunConfig
from transduce.config.settings import Settings
from transduce.evaluation.scores import metrics as check_tokenisation
from transduce.preparation.aggregate import read_directed
from transduce.system.console import count, log
from transduce.system.errors import UserError
from transduce.system.file_lock import LOCK, file_lock
from transduce.system.files import ASIDE, MANIFEST, check_utf8, remove_leftovers
from transduce.system.journal import Journal
from transduce.system.machine import keep_few_kernels, keep_memory
from transduce.system.profiling import phase
from transduce.text.languages import Direction
from transduce.text.pairs import Pair, are_trees, single_lines
from transduce.training.distributed import Ranks, init_distributed
from transduce.training.finish import finish
from transduce.training.loop import Reason
from transduce.training.loop import train as run_loop
from transduce.training.resume import Continued, continued, named_text, resume
from transduce.training.run_card import (
    add_session,
    current_session,
    warn_of_changed_test,
    warn_of_changed_text,
)
from transduce.training.start import Fit, leftovers, start, with_known_languages

REASON_LINES: dict[Reason, str] = {
    "steps": "Training is finished: all updates are made (train.steps)",
    "minutes": "Training is finished: the time is used up (train.minutes)",
    "patience": "Training is finished: validation no longer improves (train.patience)",
    "interrupted": "Saved; run the same command to resume",
}


_training = threading.Lock()  # held during a training


class Result(NamedTuple):
    """The result of a training run."""

    folder: Path
    reason: Reason
    metrics: Mapping[str, Any]  # the content of metrics.json; empty if the training was interrupted


def train(
    options: Mapping[str, Any],
    out: Path | str,
    *,
    init: Path | str | None = None,
    keep_optimizer: bool = False,
    device: torch.device | None = None,
    tensorboard: bool = False,
    stop: Callable[[], bool] | None = None,
    fit: Fit | None = None,
) -> Result:
    """Train a model in the folder `out`, or resume the training in `out`.

    `options` maps dotted names to values, and some defaults depend on the corpus. `init` is the folder of a model to
    continue from. The new model keeps the tokenizer and shape of that model. If `keep_optimizer` is true, training
    starts from the newest checkpoint of `init`, with its optimizer state. `stop` is called before every update and
    returns True to save and end the training. For a new training, `fit` receives the measured seconds per update and
    returns values for options that the user did not set. Raises UserError for invalid options or paths.
    """
    keep_memory()
    keep_few_kernels()
    settings = Settings.of(options)
    out = Path(out)
    init = Path(init) if init else None
    check_utf8(out)
    with _alone(), init_distributed() as ranks:
        device = device or ranks.device()
        if not ranks.first:
            return follow(settings, out, device, ranks, stop)
        with file_lock(
            out / LOCK,
            f"Another process trains in {out}.",
            "Wait until it ends, or choose another folder.",
        ):
            return lead(settings, out, init, keep_optimizer, device, ranks, tensorboard, stop, fit)


@contextmanager
def _alone() -> Iterator[None]:
    """Restore torch's threads and random numbers after a training; raises UserError if another training runs."""
    if not _training.acquire(blocking=False):
        raise UserError(
            "This process trains another model already.",
            "Train in another process, or wait until it ends.",
        )
    threads = torch.get_num_threads()
    try:
        with torch.random.fork_rng(devices=()):
            yield
    finally:
        torch.set_num_threads(threads)
        _training.release()


def lead(
    settings: Settings,
    out: Path,
    init: Path | None,
    keep_optimizer: bool,
    device: torch.device,
    ranks: Ranks,
    tensorboard: bool,
    stop: Callable[[], bool] | None,
    fit: Fit | None,
) -> Result:
    """Run the training on rank 0, and write all files."""
    if init and out.exists() and init.resolve() == out.resolve():
        raise UserError(
            f"{out} can't be both the model to continue from and the output folder.",
            "Choose another output folder.",
            "out",
        )
    is_begun = (out / model_folder.CONFIG).is_file()
    if is_begun:
        going, metrics = reopen(settings, out, has_origin=bool(init) or keep_optimizer)
        result = finished_result(going, metrics, out) if metrics else None
        if result:
            ranks.agree("")
            return result
        config = going.config
    else:
        config = with_known_languages(settings, init).config()
    with phase("start", whole=True):
        check_processes(config, ranks)
        check_tokenisation(config.data.bleu_tokenize)
        routes = read_routes(config)
        if is_begun:
            test = read_test_again(going, settings, out)
        else:
            test = read_test(config)
            _check_start(config.data, out)
            start(settings, out, init, keep_optimizer, device, ranks, fit)
            going = continued(settings, out)
    ranks.agree(to_toml(going.config))
    with Journal(out / model_folder.JOURNAL, tensorboard=tensorboard) as journal:
        with phase("start", whole=True):
            training, prepared = resume(going, out, journal, device, ranks, hashes=is_begun)
            session = current_session(
                going.config, device, ranks, going.changes, training.state.step
            )
            add_session(out, session, going.config.data)
        reason = run_loop(training, stop)
        journal.write(
            "stop", step=training.state.step, reason=reason, seconds=training.state.seconds
        )
        log(f"{REASON_LINES[reason]} (step {training.state.step:,}).")
        if reason == "interrupted":
            return Result(out, reason, {})
        with phase("finish", whole=True):
            metrics = finish(training, prepared, test, routes, out, reason)
    ranks.agree(None)
    return Result(out, reason, metrics)


def reopen(
    settings: Settings, out: Path, *, has_origin: bool
) -> tuple[Continued, Mapping[str, Any]]:
    """The training to resume in `out`, and the metrics of its model if it is finished.

    `has_origin` says that the user named a model to continue from.
    """
    metrics = model_folder.describe(out).metrics if (out / MANIFEST).exists() else {}
    if metrics and "training" not in metrics:
        raise UserError(
            f"{out} is a model without checkpoints.",
            f"To continue from it, choose another output folder and give {out} as the model to start from.",
            "init",
        )
    for folder in (out, out / model_folder.CHECKPOINTS):
        remove_leftovers(folder, sole_writer=True)
    warn_of_changed_text(out)
    going = continued(settings, out)
    was, now = going.changes.get("train.minutes", (0, 0))
    if now > was > 0:
        log(
            f"The training still ends at {count(going.config.train.steps, 'update')}. For more, raise train.steps, too."
        )
    if has_origin:
        log(f"{out} has its own checkpoints, so the model to continue from is ignored.")
    return going, metrics


def read_test_again(going: Continued, settings: Settings, out: Path) -> list[Pair]:
    """Read the test set of a training that resumes. Warns if its files are missing or changed."""
    try:
        test = read_test(going.config)
    except UserError as error:
        if "data.test" in settings:
            raise
        log(f"Warning: the model will not be tested. {error}")
        return []
    if "data.test" not in going.changes:
        warn_of_changed_test(out)
    return test


def check_processes(config: RunConfig, ranks: Ranks) -> None:
    """Raise UserError if the training can't be split among processes."""
    if config.train.risk_steps and ranks.world > 1:
        cause = "Minimum-risk training can't be split among processes."
        raise UserError(cause, "Start it without torchrun, or set train.risk_steps=0.")


def _check_start(data: DataConfig, out: Path) -> None:
    """Raise UserError if the corpora of an interrupted start of this training are not named again."""
    translated = out / model_folder.BACK_TRANSLATION
    if not data.corpora and (leftovers(out) or any(out.glob(f".*{ASIDE}*"))):
        raise UserError(
            f"{out} has no checkpoint yet.",
            "Repeat the whole command that started this training.",
        )
    if translated.exists() and not any(
        Path(file).parent == translated for each in data.corpora for file in each.files
    ):
        cause = f"{translated} was made for this training, which needs the same monolingual text."
        raise UserError(
            cause,
            "Name this text again, or choose another output folder.",
            "monolingual",
        )


def follow(
    settings: Settings,
    out: Path,
    device: torch.device,
    ranks: Ranks,
    stop: Callable[[], bool] | None,
) -> Result:
    """Run the training on a rank other than 0, with the configuration of rank 0."""
    if toml := ranks.agree(""):
        if not (out / model_folder.CONFIG).is_file():
            raise UserError(
                f"{out} is not the folder that rank 0 writes to.",
                "Choose a folder that all machines share.",
            )
        config = configure(read_recipe(toml, "rank 0"))
        going = Continued(config, named_text(settings), {})
        training, _ = resume(going, out, Journal(None), device, ranks, hashes=False)
        if run_loop(training, stop) == "interrupted":
            return Result(out, "interrupted", {})
        ranks.agree(None)
    metrics = model_folder.read_metrics(out)
    return Result(out, metrics["training"]["reason"], metrics)


def finished_result(going: Continued, metrics: Mapping[str, Any], out: Path) -> Result | None:
    """The result of a finished run, or None if the user raised its limit. Raises UserError for other changes."""
    done = metrics["training"]
    limit = f"train.{done['reason']}"
    was, now = going.changes.get(limit, (0, 0))
    if now > was or (was and not now):  # 0: no limit
        return None
    message = f"{out} is finished at {done['steps']:,} updates. To train it further, raise {limit}."
    if going.changes:
        raise UserError(
            message,
            "To test it on other text or with other [decode] options, use `transduce evaluate`.",
        )
    log(message)
    return Result(out, done["reason"], metrics)


def read_routes(config: RunConfig) -> list[Pair]:
    """Read the validation pairs of directions that a multilingual model lacks, or nothing if files are missing."""
    if not config.data.directions:
        return []
    try:
        pairs = list(read_directed(config.data.valid, config.data, untrained=True))
    except UserError as error:  # a resumed training does not need the files
        codes = {code for name in config.data.directions for code in Direction.parse(name)}
        if len(config.data.directions) < len(codes) * (len(codes) - 1):
            log(f"Warning: routes through a third language will not be measured. {error}")
        return []
    return [pair for pair in pairs if pair.direction not in config.data.directions]


def read_test(config: RunConfig) -> list[Pair]:
    """Read the test set. Raises UserError for unusable files."""
    if not config.data.test:
        return []
    if are_trees(config.data.test):
        raise UserError(
            "A parser can't be scored while it trains.",
            "Use `transduce evaluate` later; train without the test files.",
            "data.test",
        )
    pairs = list(single_lines(read_directed(config.data.test, config.data)))
    if not pairs:
        raise UserError(
            f"The test files {' and '.join(config.data.test)} contain no lines.",
            "Name other files.",
            "data.test",
        )
    return pairs
