"""Starts a training run by preparing the corpus, choosing options and saving the initial model."""

import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from transduce import model_folder
from transduce.config import size_table
from transduce.config.commands import option
from transduce.config.settings import CORPUS, FROM_SIZES, MACHINE, MODEL, TRIAL, Settings
from transduce.model.build import build
from transduce.model.device import set_threads
from transduce.preparation.prepared import Prepared, is_prepared, read_facts
from transduce.system.console import log
from transduce.system.errors import UserError
from transduce.system.files import remove_leftovers
from transduce.tokens.tokenizer import FILES
from transduce.training.announce import announcement, updates_in_budget
from transduce.training.autobatch import Trial, check_memory, has_fast_bfloat16, try_batches
from transduce.training.checkpoint import TrainState, load_checkpoint, save_checkpoint
from transduce.training.corpus import (
    check_positions,
    check_size,
    check_tags,
    prepare_corpus,
    with_corpus,
)
from transduce.training.distributed import ALONE, Ranks
from transduce.training.loop import is_tuning
from transduce.training.origin import extended, with_origin
from transduce.training.run_card import begin_run_card
from transduce.training.schedule import check_risk
from transduce.training.update import make_optimizer

# Folders with corpora that are made before the start.
MADE_BEFORE = (model_folder.BACK_TRANSLATION, model_folder.REMEMBERED, model_folder.GIVEN_PAIRS)

Fit = Callable[[float], Mapping[str, Any]]  # measured seconds per update -> options


def start(
    settings: Settings,
    out: Path,
    init: Path | None,
    keep_optimizer: bool,
    device: torch.device,
    ranks: Ranks = ALONE,
    fit: Fit | None = None,
) -> None:
    """Write the initial files of a training run to `out`, and print the chosen options. Only rank 0 may call this."""
    clear(out)
    inherited, origin = with_origin(settings, init, keep_optimizer)
    threads = ranks.threads(inherited.config().train.threads)
    set_threads(threads)
    prepared = prepare_corpus(inherited, out, origin.tokenizer if origin else None, threads)
    if not origin:
        check_size(inherited, prepared.facts.pairs)
    read = with_corpus(inherited, prepared, out, has_origin=origin is not None)
    sized = with_sizes(with_machine(read, threads, device, ranks), prepared)
    config = sized.config()
    check_tags(prepared, config)
    check_positions(prepared, config)
    is_sharded = config.train.shard and ranks.world > 1
    if not is_sharded:
        check_memory(config, device)
    model = build(config.model, config.train.seed)
    if not is_sharded:  # a sharded model may be too large for one device
        model.to(device)
    if origin:
        model.load_state_dict(extended(origin, prepared.tokenizer, model, config.data.like))
        del origin  # frees its memory
        if config.train.low_rank:
            option("train.low_rank")(model, config.train.low_rank, config.train.seed)
    log("Measuring memory and speed …")
    trial = try_batches(model, prepared.drawn(config), config, device, ranks)
    fitted = sized.under(TRIAL, fit(trial.seconds_per_update)) if fit else sized
    chosen = with_length(fitted, prepared, trial, fine_tuning=bool(init) and not config.data.replay)
    final = chosen.config()
    check_risk(final.train, init, bool(prepared.valid()))
    for line in announcement(prepared, chosen, final, trial, device, ranks, from_scratch=not init):
        log(line)
    optimizer = make_optimizer(model.parameters(), final.train)
    if init and keep_optimizer:
        load_checkpoint(model_folder.newest_intact(init), model, optimizer)
    save_checkpoint(out / model_folder.CHECKPOINTS, model, optimizer, TrainState())
    prepared.tokenizer.save(out)
    begin_run_card(out, settings, init, keep_optimizer)
    model_folder.write_config(out, final)


def leftovers(out: Path) -> set[str]:
    """The names of what an interrupted start left in `out`. Raises UserError for other files."""
    names = (
        {path.name for path in out.iterdir() if not path.name.startswith(".")}
        if out.is_dir()
        else set()
    )
    steps = {path.name for path in (out / model_folder.CHECKPOINTS).glob("[!.]*")}
    ours = {*MADE_BEFORE}
    ours |= {model_folder.DATA} if is_prepared([str(out / model_folder.DATA)]) else set()
    if model_folder.CHECKPOINTS in names and steps <= {"step-00000000"}:
        ours |= {
            model_folder.CHECKPOINTS,
            model_folder.SOURCES,
            model_folder.RUN,
            *FILES,
        }
    if names - ours or (out.exists() and not out.is_dir()):
        raise UserError(
            f"{out} exists and is not a training run of transduce.",
            "Choose another output folder.",
            "out",
        )
    return names


def clear(out: Path) -> None:
    """Delete what an interrupted start left in `out`, except corpora. Raises UserError for other files."""
    names = leftovers(out)
    remove_leftovers(out, sole_writer=True)
    for name in names - {model_folder.DATA, *MADE_BEFORE}:
        shutil.rmtree(out / name) if name == model_folder.CHECKPOINTS else (out / name).unlink()


def with_known_languages(settings: Settings, init: Path | None) -> Settings:
    """Add the languages of a prepared corpus, and those of the model `init`, by which a test set is read."""
    for corpus in settings.config().data.corpora:
        if is_prepared(corpus.files):
            facts = read_facts(Path(corpus.files[0]))
            directions = facts.options["data.directions"]
            languages = _languages(facts.source, facts.target, directions)
            settings = settings.under(CORPUS, languages)
    if init and (init / model_folder.CONFIG).is_file():
        data = model_folder.read_config(init).data
        languages = _languages(data.source, data.target, data.directions)
        settings = settings.under(MODEL, languages)
    return settings


def _languages(source: str, target: str, directions: Sequence[str]) -> dict[str, Any]:
    return {"data.source": source, "data.target": target, "data.directions": directions}


def with_machine(settings: Settings, threads: int, device: torch.device, ranks: Ranks) -> Settings:
    """Add the number of threads and the precision to the settings. `threads` are those of this process."""
    train = settings.config().train
    # The threads of all processes.
    values: dict[str, Any] = {"train.threads": train.threads or threads * ranks.local_world}
    if train.precision == "auto":
        values["train.precision"] = "bfloat16" if has_fast_bfloat16(device) else "float32"
    return settings.over(MACHINE, values)


def with_sizes(settings: Settings, prepared: Prepared) -> Settings:
    """Add the shape of the model and the size of an update to the settings."""
    activation = settings.config().model.activation
    return settings.under(FROM_SIZES, size_table.model_options(prepared.facts.pairs, activation))


def with_length(
    settings: Settings, prepared: Prepared, trial: Trial, *, fine_tuning: bool
) -> Settings:
    """Add all options that depend on the number of updates per epoch to the settings.

    Training on texts is planned as a whole, with a cool-down and validations that take little time. Three kinds of
    training are not: minimum-risk training of a finished model, whose "epochs" are thirds of it; parsers; and training
    with a learning rate that the user or a recipe chose, since such a rate belongs to a schedule of their own.
    """
    config = settings.config()
    facts = prepared.facts
    risk = config.train.risk_steps
    is_only_risk = fine_tuning and 0 < settings.get("train.steps", 0) == risk
    is_planned = not (is_only_risk or config.data.symbols or "train.learning_rate" in settings)
    per_epoch = -(-risk // size_table.RISK_VALIDATIONS) if is_only_risk else trial.updates_per_epoch
    divisor = size_table.FINE_TUNING_DIVISOR if fine_tuning and not is_only_risk else 1
    automatic = _schedule(settings, facts.pairs, per_epoch, trial, divisor, cooldown=is_planned)
    steps = settings.get("train.steps", automatic["train.steps"])
    interval = per_epoch
    if 0 < risk < steps:
        # Otherwise, training could end before minimum-risk training.
        automatic |= {"train.patience": 0}
    if is_planned:
        automatic |= size_table.text_options(facts.pairs, from_scratch=not fine_tuning)
        interval = size_table.validation_interval(
            prepared.mixture.pairs_per_epoch, facts.held_out, per_epoch, steps
        )
        if is_tuning(config.train):  # the new text often gains only after the warm-up
            automatic |= {"train.patience": steps // (2 * interval)}
    longest = max(size_table.MIN_INTERVAL, steps // 5)
    measured = {
        "train.accumulate": trial.accumulate,
        "train.save_every": config.train.save_every or min(per_epoch, longest),
        "train.validate_every": config.train.validate_every or min(interval, longest),
    }
    return settings.over(TRIAL, measured).under(FROM_SIZES, automatic)


def _schedule(
    settings: Settings,
    pairs: int,
    per_epoch: int,
    trial: Trial,
    rate_divisor: int,
    *,
    cooldown: bool,
) -> dict[str, Any]:
    """The number of updates, the learning rate and the patience, as far as the user leaves them open."""
    config = settings.config()
    d_model = config.model.d_model
    warmup = settings.get("train.warmup", 0)
    if "train.learning_rate" in settings:
        return size_table.training_options(pairs, per_epoch, d_model, warmup=warmup)
    steps = settings.get("train.steps", 0)
    risk = config.train.risk_steps
    return size_table.training_options(
        pairs,
        per_epoch,
        d_model,
        steps=steps - risk
        if risk < steps
        else steps,  # minimum-risk training has a schedule of its own
        warmup=warmup,
        rate_divisor=rate_divisor,
        max_updates=updates_in_budget(config, trial),
        cooldown=cooldown,
    )
