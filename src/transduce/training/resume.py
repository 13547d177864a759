"""Resumes a training run from its newest intact checkpoint, and checks which options have changed."""

import dataclasses
import os
import platform
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import torch

from transduce import model_folder
from transduce.config.commands import option
from transduce.config.parse import configure
from transduce.config.schema import DataConfig, RunConfig, differences, flatten, value_of
from transduce.config.settings import Settings
from transduce.evaluation.evaluate import validations
from transduce.evaluation.perplexity import Validation, mean_validation
from transduce.model.build import build, count_parameters
from transduce.model.device import set_threads
from transduce.model.seq2seq import Seq2Seq
from transduce.preparation.passes import check_vocabulary
from transduce.preparation.prepared import Prepared, is_prepared, open_prepared, read_general
from transduce.system.console import count, log
from transduce.system.errors import DamagedError, Hint, UserError
from transduce.system.files import MANIFEST, digest
from transduce.system.journal import Journal
from transduce.text.pairs import spread
from transduce.tokens.tokenizer import Tokenizer
from transduce.training.announce import device_name
from transduce.training.checkpoint import TrainState, load_checkpoint
from transduce.training.distributed import ALONE, Ranks, scatter_weights, wrap
from transduce.training.loop import CHANGING, COOLDOWN, Training, is_tuning
from transduce.training.run_card import asked_vocabulary_size, fingerprint, read_run_card
from transduce.training.schedule import check_risk, limits
from transduce.training.update import forget_average, make_optimizer

PERPLEXITY_PAIRS = 200  # of data.remember, enough to compare the averages of a fine-tuning
TEXT = ("data.corpora", "data.valid", "data.source", "data.target", "data.directions")
# Folders in the model folder whose files are corpora.
OWN_CORPORA = (model_folder.BACK_TRANSLATION, model_folder.GIVEN_PAIRS)
VOCABULARY_SIZES = ("data.vocab_size", "model.vocab_size", "model.source_vocab_size")
# If these options are at their defaults, the values that the first start chose remain.
LEFT_OPEN = (
    "train.accumulate",
    "train.save_every",
    "train.validate_every",
    "train.threads",
    "train.precision",
    "data.placeholders",
)
# Options (or prefixes) that a training run can't change, exceptions, and options that don't affect what it learns.
FIXED = (
    "model.",
    "data.",
    "train.seed",
    "train.accumulate",
    "train.sample_",
    "train.select_by",
    "train.low_rank",
)
NOT_FIXED = ("model.dropout", "model.attention_dropout", "data.test")
HARMLESS = (
    "train.steps",
    "train.minutes",
    "train.patience",
    "train.keep_last",
    "train.shard",
    "data.test",
    "decode.",
)


class Continued(NamedTuple):
    """The configuration of a training run to resume, and its changed options."""

    config: RunConfig
    text: DataConfig  # the corpus and languages that the user named, if any
    changes: dict[str, tuple[Any, Any]]  # option -> (old value, new value)


def continued(settings: Settings, out: Path) -> Continued:
    """Apply the user's settings to the training in `out`. Raises UserError for options that can't change."""
    old = model_folder.read_config(out)
    model_folder.check_trainable(out)
    # Keep the choices of the first start, and the files of its prepared corpus.
    defaults = flatten(RunConfig())
    left_open = [name for name in LEFT_OPEN if settings.get(name, defaults[name]) == defaults[name]]
    text = named_text(settings)
    config = (
        Settings.of_config(old)
        .updated(settings.without(*TEXT, *VOCABULARY_SIZES, *left_open))
        .config()
    )
    if old.sources is None:  # unknown, since their file is damaged
        config = dataclasses.replace(config, sources=None)
    check_same_text(old.data, text, out)
    size = old.model.source_vocab_size or old.model.vocab_size
    check_vocabulary(settings, size, out, asked_vocabulary_size(out))
    changes = differences(old, config)
    for name, (was, now) in changes.items():
        if name.startswith(FIXED) and name not in NOT_FIXED:
            raise UserError(
                f"{out} was started with {name} = {was}, which can't change to {now}.",
                f"Leave {name} out, or train into a new folder.",
            )
    return Continued(config, text, changes)


def named_text(settings: Settings) -> DataConfig:
    """The corpus and the languages that the user named, if any."""
    return configure({name: settings[name] for name in TEXT if name in settings}).data


def is_harmless(name: str, config: RunConfig) -> bool:
    """Whether an option can change without an effect on what the training learns."""
    has_end = config.train.cooldown or config.train.risk_steps
    return name.startswith(HARMLESS) and not (has_end and name in ("train.steps", "train.minutes"))


def resume(
    going: Continued,
    out: Path,
    journal: Journal,
    device: torch.device,
    ranks: Ranks = ALONE,
    *,
    hashes: bool = True,
) -> tuple[Training, Prepared]:
    """Restore the newest intact checkpoint, and mark the model as unfinished if options changed.

    If `hashes` is false, the prepared corpus was checked just now.
    """
    config = going.config
    _log_changes(going)
    set_threads(ranks.threads(config.train.threads))
    prepared = open_data(config.data, going.text, out, hashes=hashes)
    check_shared(prepared.folder, ranks)
    sharded = config.train.shard and ranks.world > 1
    model = build(config.model, config.train.seed).to("cpu" if sharded else device)
    if config.train.low_rank:
        option("train.low_rank")(model, config.train.low_rank, config.train.seed)
    sparse = any(getattr(module, "is_sparse", False) for module in model.modules())
    wrapped_model = wrap(model, ranks, shard=sharded, sparse=sparse, device=device)
    optimizer = make_optimizer(wrapped_model.parameters(), config.train)
    state = load_newest(out / model_folder.CHECKPOINTS, model, optimizer, ranks)
    if not config.train.ema:
        forget_average(optimizer)
    scatter_weights(model, wrapped_model, ranks)
    if state.step > config.train.steps:
        raise UserError(
            f"{out} has made {count(state.step, 'update')}, so train.steps can't be {config.train.steps:,}."
        )
    check_risk(config.train, out, bool(prepared.valid()))
    if going.changes and ranks.first:  # only here, since everything above may fail
        (out / MANIFEST).unlink(missing_ok=True)
        model_folder.write_config(out, config)
    if state.limits != limits(config.train):
        state.schedule = {}
        state.recorded = {}
    state.limits = limits(config.train)
    for event in journal.truncate(state.journal_size, keep=COOLDOWN):
        if event["limits"] == state.limits:
            state.recorded[str(event["step"])] = {name: event[name] for name in CHANGING}
    training = Training(
        config=config,
        model=model,
        wrapped_model=wrapped_model,
        optimizer=optimizer,
        data=prepared.drawn(config),
        origin=prepared.origin,
        state=state,
        journal=journal,
        folder=out / model_folder.CHECKPOINTS,
        validate=_validation(prepared, config),
        device=device,
        ranks=ranks,
        delay=1 if device.type == "cuda" and ranks.world == 1 else 0,
    )
    _log_start(training, prepared)
    return training, prepared


def _validation(prepared: Prepared, config: RunConfig) -> Callable[[Seq2Seq], Validation | None]:
    """Make the function that validates a model on the validation pairs, and on those of data.remember."""
    # The averages of a fine-tuning are compared by one score, and searches would take most of the time.
    searched = not is_tuning(config.train) or config.train.select_by != "perplexity"
    validate = validations(prepared.tokenizer, prepared.valid(), config, searched=searched)
    others = read_general(prepared.folder)
    some = others if searched else spread(others, PERPLEXITY_PAIRS)
    measure = validations(prepared.tokenizer, some, config, searched=searched)

    def validation(model: Seq2Seq) -> Validation | None:
        result = mean_validation(list(validate(model).values()))
        general = mean_validation(list(measure(model).values()))
        if not result or not general:
            return result
        return result._replace(general=general.chrf, general_perplexity=general.perplexity)

    return validation


def _log_start(training: Training, prepared: Prepared) -> None:
    """Print where the training goes on, and write it to the journal."""
    train = training.config.train
    state = training.state
    processes = training.ranks.world
    if train.accumulate < processes:
        log(
            f"Warning: an update has {train.accumulate} micro-batches (train.accumulate), so some of "
            f"{processes} processes have no work. Resume with fewer processes, or start a new training."
        )
    if state.step:
        log(f"Resuming at step {state.step:,} of {train.steps:,}, epoch {state.epoch + 1}.")
    training.journal.write(
        "start",
        step=state.step,
        steps=train.steps,
        pairs=prepared.facts.pairs,
        parameters=count_parameters(training.config.model),
        device=device_name(training.config, training.device, training.ranks),
        torch=torch.__version__,
        python=platform.python_version(),
    )


def _log_changes(going: Continued) -> None:
    for name, (was, now) in going.changes.items():
        effect = (
            "." if is_harmless(name, going.config) else "; this affects what the training learns."
        )
        log(f"Changed: {name} is {now}, was {was}{effect}")


def check_same_text(was: DataConfig, text: DataConfig, out: Path) -> None:
    """Raise UserError if `text` names other files or languages than the earlier configuration `was`."""
    moved = not (out / model_folder.DATA).is_dir() and any(
        is_prepared(corpus.files) for corpus in text.corpora
    )
    other = [
        name
        for name in TEXT
        if _text(text, name) not in (_text(DataConfig(), name), _text(was, name))
        and not (moved and name == "data.corpora")
    ]
    if other:
        raise UserError(
            f"{out} is a training run that was started with other text ({' and '.join(other)}).",
            "To resume it, leave these options out. To learn from other "
            "text, continue from the model in a new folder.",
            "init",
        )


def _text(data: DataConfig, name: str) -> Any:
    """The value of the option `name`, with absolute paths for comparison."""
    value = value_of(RunConfig(data=data), name)
    if name == "data.corpora":
        return [
            (*map(_place, map(os.path.abspath, each.files)), *dataclasses.astuple(each)[1:])
            for each in value
        ]
    return [*map(_place, map(os.path.abspath, value))] if name == "data.valid" else value


def _place(file: str) -> Path:
    """The path of a corpus, but only its end for a file that moves with the model folder."""
    path = Path(file)
    return Path(*path.parts[-2:]) if path.parent.name in OWN_CORPORA else path


def open_data(was: DataConfig, text: DataConfig, out: Path, *, hashes: bool) -> Prepared:
    """Open the prepared corpus of `out`. Raises UserError if it is missing or damaged or has the wrong vocabulary.

    If `hashes` is false, only the sizes of the files are checked.
    """
    own = out / model_folder.DATA
    if own.is_dir():
        return open_prepared(own, hashes=hashes)
    files = next(
        (corpus.files for corpus in text.corpora if is_prepared(corpus.files)), was.corpora[0].files
    )
    if not is_prepared(files):
        raise UserError(
            f"The prepared corpus of {out} is neither in {own} nor in {files[0]}.",
            _alternative(out, "If you have moved it, name its new folder as the corpus. If not: "),
        )
    prepared = open_prepared(Path(files[0]), hashes=hashes)
    if not prepared.tokenizer.same_pieces(Tokenizer.load(out)):
        raise UserError(
            f"The vocabulary of {prepared.folder} differs from that of {out}.",
            f"Name the corpus of {out}.",
        )
    if (card := read_run_card(out)) and fingerprint(files[0]) not in card.inputs.get(
        "data.corpora", {}
    ).values():
        raise UserError(
            f"{files[0]} is not the corpus with which the training of {out} began.",
            _alternative(out),
        )
    return prepared


def load_newest(
    folder: Path, model: Seq2Seq, optimizer: torch.optim.Optimizer, ranks: Ranks = ALONE
) -> TrainState:
    """Load the newest intact checkpoint on all ranks, and rename damaged checkpoints."""
    if not ranks.first:
        path = folder / ranks.agree("")
        check_shared(path, ranks)
        return load_checkpoint(path, model, optimizer)
    for path in reversed(model_folder.checkpoints_in(folder)):
        try:
            state = load_checkpoint(path, model, optimizer)
        except DamagedError as error:
            log(f"{error} The previous checkpoint is used.")
            damaged = path.with_name(f"damaged-{path.name}")
            # Left by an earlier start that reached the same step.
            shutil.rmtree(damaged, ignore_errors=True)
            path.rename(damaged)
        else:
            ranks.agree(path.name)
            check_shared(path, ranks)
            return state
    raise UserError(f"{folder} holds no intact checkpoint.", _alternative(folder.parent))


def check_shared(folder: Path, ranks: Ranks) -> None:
    """Wait for rank 0. Raises UserError if it has another version of the folder."""
    own = digest(folder / MANIFEST) if (folder / MANIFEST).exists() else ""
    if ranks.agree(own) != own:
        raise UserError(
            f"{folder} is not the folder that rank 0 uses.",
            "Choose a folder that all machines share.",
        )


def _alternative(out: Path, first: str = "") -> Hint:
    """The advice for a training run that can't be resumed, behind `first`."""
    if (out / MANIFEST).exists():
        return Hint.about(f"{first}Train a new model that continues from this one.", "init")
    return Hint(f"{first}Train into a new folder.")
