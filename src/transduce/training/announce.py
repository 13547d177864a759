"""Describes a training run and its options in the lines that `train` prints before the first update."""

import math
from collections.abc import Iterator

import torch

from transduce.config import size_table
from transduce.config.schema import DataConfig, RunConfig
from transduce.config.settings import FROM_SIZES, Settings
from transduce.model.build import count_parameters
from transduce.preparation.prepared import Prepared
from transduce.system.console import count
from transduce.training.autobatch import Trial
from transduce.training.card import vocabulary
from transduce.training.distributed import ALONE, Ranks
from transduce.training.schedule import effort, risk_steps, stage_of

LONG_MINUTES = 120  # of a training run, above which a shorter one is offered


def announcement(
    prepared: Prepared,
    settings: Settings,
    config: RunConfig,
    trial: Trial,
    device: torch.device,
    ranks: Ranks,
    *,
    from_scratch: bool,
) -> list[str]:
    """Lines about the corpus, the vocabulary, the model, the batches and the training time, followed by warnings."""
    facts = prepared.facts
    data = config.data
    model = config.model
    train = config.train
    default = DataConfig()
    row = size_table.sizes_for(facts.pairs)
    size = f"up to {row.up_to:,.0f} pairs" if row.up_to < math.inf else "a large corpus"

    def why(*names: str) -> str:
        return (
            f" (chosen for {size})"
            if all(settings.source(name) == FROM_SIZES for name in names)
            else ""
        )

    left_out = [f"{count:,} {rule}" for rule, count in facts.left_out.items()]
    left_out += [f"{facts.dropped:,} overlapping with the validation set"] if facts.dropped else []
    named = (
        data.symbols
        or data.directions
        or (data.source, data.target) != (default.source, default.target)
    )
    languages = "unknown, and can't be named later: servers, documents and exports need data.source and data.target"
    names = ", ".join(data.directions) or f"{data.source}-{data.target}"
    cut = f"in {train.accumulate} micro-batches" if train.accumulate > 1 else "in one micro-batch"
    budget = f", at most {train.minutes:g} minutes" if train.minutes else ""
    ends = f"cool-down {train.cooldown:,}, " if train.cooldown else ""
    ends += f"the last {train.risk_steps:,} of minimum-risk training, " if risk_steps(train) else ""
    return [
        f"Corpus      {count(facts.pairs, 'pair')} {names}, {facts.target_tokens:,} target tokens; "
        f"{facts.held_out:,} more for validation"
        + (f"; left out: {', '.join(left_out)}" if left_out else ""),
        *([] if named else [f"Languages   {languages}"]),
        f"Vocabulary  {vocabulary(config)}" + why("data.vocab_size"),
        f"Model       {model.shape}, dropout {model.dropout:g}: {count_parameters(model):,} parameters"
        + why("model.d_model", "model.num_encoder_layers"),
        f"Batches     up to {data.max_tokens:,} tokens per update on each side, {cut}, "
        f"{trial.padding:.1%} padding; {count(trial.updates_per_epoch, 'update')} per epoch"
        + why("data.max_tokens"),
        f"Training    {train.steps:,} updates ({train.steps / trial.updates_per_epoch:.1f} epochs){budget}, warm-up "
        f"{train.warmup:,}, {ends}{train.precision} on {device_name(config, device, ranks)}"
        + ("" if train.minutes else why("train.steps")),
        *time_lines(config, trial),
        *(
            f"Warning     {text}"
            for text in _warnings(prepared, settings, config, trial, from_scratch)
        ),
    ]


def device_name(config: RunConfig, device: torch.device, ranks: Ranks = ALONE) -> str:
    """The device of the training as text, such as "2 × 4 CPU threads" for two processes."""
    times = f"{ranks.world} × " if ranks.world > 1 else ""
    if device.type == "cpu":
        threads = ranks.threads(config.train.threads) if ranks.world > 1 else config.train.threads
        return f"{times}{threads} CPU thread{'s' if threads > 1 else ''}"
    return times + torch.cuda.get_device_name(device)


def updates_in_budget(config: RunConfig, trial: Trial) -> float:
    """The estimated number of updates within train.minutes, or infinity without a time limit or a measured time."""
    if not config.train.minutes or not math.isfinite(trial.seconds_per_update):
        return math.inf
    updates = round(60 * config.train.minutes / trial.seconds_per_update)
    if stage_of(1, config.train).is_risk:  # the measured time is that of minimum-risk training
        return updates
    left = updates - effort(0, config.train) + config.train.steps
    is_enough = size_table.PLANNED_SHARE * left > risk_steps(config.train)
    return left if is_enough else updates  # too short for minimum-risk training


def time_lines(config: RunConfig, trial: Trial) -> list[str]:
    """The estimated training time and, if it is long and not limited, what a limit would leave of the training."""
    whole = effort(0, config.train)
    seconds = whole / (whole - effort(1, config.train)) * trial.seconds_per_update
    seconds = min(seconds, 60 * config.train.minutes or math.inf)
    if not math.isfinite(seconds):
        return ["Time        unknown until the training has begun"]
    hours, minutes = divmod(max(1, round(seconds / 60)), 60)
    line = "Estimated training time: " + (f"{hours} h {minutes} min" if hours else f"{minutes} min")
    if config.train.minutes or seconds <= 60 * LONG_MINUTES:
        return [line]
    updates = int(size_table.PLANNED_SHARE * 60 * LONG_MINUTES / trial.seconds_per_update)
    return [
        line,
        f"For less time, start in a new folder with train.minutes={LONG_MINUTES} (or another limit), which is "
        f"enough for about {updates:,} of the {config.train.steps:,} updates ({updates / config.train.steps:.0%}, "
        f"{updates / trial.updates_per_epoch:.1f} epochs).",
    ]


def _warnings(
    prepared: Prepared, settings: Settings, config: RunConfig, trial: Trial, from_scratch: bool
) -> Iterator[str]:
    """Yield a warning for a small corpus, a long warm-up or cool-down, and options without effect."""
    if from_scratch and prepared.facts.pairs < size_table.FEW_PAIRS:
        yield (
            f"A corpus of {count(prepared.facts.pairs, 'pair')} is too small to learn a language from: the model will "
            f"know little more than its sentences. Use about {size_table.USEFUL_PAIRS:,} pairs, or fine-tune a "
            "trained model."
        )
    train = config.train
    updates = updates_in_budget(config, trial)
    limit = (
        f"{train.minutes:g} minutes are enough for" if updates < train.steps else "There will be"
    )
    updates = min(updates, train.steps)
    if updates <= 2 * train.warmup:
        yield (
            f"{limit} about {updates:,.0f} updates, but the learning rate rises over the first {train.warmup:,}: "
            "allow more updates, or lower train.warmup and data.max_tokens."
        )
    if train.cooldown and (updates < train.steps or train.cooldown > train.steps):
        yield (
            f"{limit} about {updates:,.0f} updates, but the learning rate falls over the last {train.cooldown:,} of "
            f"{train.steps:,}: set train.steps to about {updates:.0f}, and train.cooldown to less."
        )
    seconds = effort(0, train) * trial.seconds_per_update
    is_short = math.isfinite(seconds) and 0 < 60 * train.minutes < seconds
    known = {"allow more minutes": is_short, "set train.patience=0": train.patience}
    remedies = [remedy for remedy, helps in known.items() if helps]
    if risk_steps(train) and not stage_of(1, train).is_risk and remedies:
        yield f"The training can end before minimum-risk training, or within it: {' and '.join(remedies)}."
    if train.risk_steps > train.steps:
        yield f"There is no minimum-risk training: train.risk_steps ({train.risk_steps}) exceeds train.steps."
    inert = (
        {}
        if prepared.facts.held_out
        else {"train.patience": "validation set", "train.select_by": "validation set"}
    )
    for name, missing in inert.items():
        if settings.is_chosen(name) and settings[name]:
            yield f"There is no {missing}, so {name} ({settings[name]}) has no effect."
