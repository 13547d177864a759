"""Describes a training run and its options in the lines that `train` prints before the first update."""

import math
from collections.abc import Iterator

import torch

from transduce.config import size_table
from transduce.config.schema import DataConfig, RunConfig, TrainConfig
from transduce.config.settings import FROM_SIZES, Settings
from transduce.model.build import count_parameters
from transduce.preparation.prepared import Facts, Prepared
from transduce.system.console import count
from transduce.text.languages import main_language
from transduce.training.autobatch import Trial
from transduce.training.distributed import ALONE, Ranks
from transduce.training.facts import Fact, vocabulary
from transduce.training.schedule import effort, risk_steps, stage_of

# Public models of several languages, by the names of their repositories, and one for most pairs of languages.
STRONG_MODELS = (
    "opus-mt-{source}-{target}, m2m100_418M, or nllb-200-distilled-600M (not for commercial use)"
)
LONG_MINUTES = 120  # longer training runs get a hint how to limit the time


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
    row = size_table.sizes_for(prepared.facts.pairs)
    size = f"up to {row.up_to:,.0f} pairs" if row.up_to < math.inf else "a large corpus"

    def why(*names: str) -> str:
        return (
            f" (chosen for {size})"
            if all(settings.source(name) == FROM_SIZES for name in names)
            else ""
        )

    model = config.model
    unknown = "unknown, and can't be named later: servers, documents and exports need data.source and data.target"
    training = _training(config.train, trial, device_name(config, device, ranks))
    facts = [
        Fact("Corpus", _corpus(prepared.facts, config.data)),
        Fact("Repeats", f"pairs of {config.data.remember}" if config.data.remember else ""),
        Fact("Languages", "" if _has_languages(config.data) else unknown),
        Fact("Vocabulary", vocabulary(config) + why("data.vocab_size")),
        Fact(
            "Model",
            f"{model.shape}, dropout {model.dropout:g}: {count_parameters(model):,} parameters"
            + why("model.d_model", "model.num_encoder_layers"),
        ),
        Fact("Batches", _batches(config, trial) + why("data.max_tokens")),
        Fact("Training", training if config.train.minutes else training + why("train.steps")),
    ]
    warnings = _warnings(prepared.facts, settings, config, trial, from_scratch)
    return [
        *(f"{name:<12}{text}" for name, text in facts if text),
        *time_lines(config, trial),
        *(f"Warning     {text}" for text in warnings),
    ]


def _has_languages(data: DataConfig) -> bool:
    default = DataConfig()
    is_named = (data.source, data.target) != (default.source, default.target)
    return bool(data.symbols or data.directions or is_named)


def _corpus(facts: Facts, data: DataConfig) -> str:
    """The size of the corpus, and the number of pairs that were left out for each cause."""
    names = ", ".join(data.directions) or f"{data.source}-{data.target}"
    text = (
        f"{count(facts.pairs, 'pair')} {names}, {facts.target_tokens:,} target tokens; "
        f"{facts.held_out:,} more for validation"
    )
    left_out = [f"{number:,} {rule}" for rule, number in facts.left_out.items()]
    if facts.dropped:
        left_out.append(f"{facts.dropped:,} overlapping with the validation set")
    return f"{text}; left out: {', '.join(left_out)}" if left_out else text


def _batches(config: RunConfig, trial: Trial) -> str:
    """The size of an update and of an epoch."""
    number = config.train.accumulate
    cut = f"in {number} micro-batches" if number > 1 else "in one micro-batch"
    return (
        f"up to {config.data.max_tokens:,} tokens per update on each side, {cut}, {trial.padding:.1%} padding; "
        f"{count(trial.updates_per_epoch, 'update')} per epoch"
    )


def _training(train: TrainConfig, trial: Trial, device: str) -> str:
    """The length, the schedule and the precision of the training."""
    parts = [
        f"{count(train.steps, 'update')} ({train.steps / trial.updates_per_epoch:.1f} epochs)",
        f"at most {train.minutes:g} min" if train.minutes else "",
        f"warm-up {train.warmup:,}",
        f"cool-down {train.cooldown:,}" if train.cooldown else "",
        f"the last {train.risk_steps:,} of minimum-risk training" if risk_steps(train) else "",
        f"{train.precision} on {device}",
    ]
    return ", ".join(filter(None, parts))


def device_name(config: RunConfig, device: torch.device, ranks: Ranks = ALONE) -> str:
    """The device of the training as text, such as "2 × 4 CPU threads" for two processes."""
    times = f"{ranks.world} × " if ranks.world > 1 else ""
    if device.type == "cpu":
        threads = ranks.threads(config.train.threads) if ranks.world > 1 else config.train.threads
        return times + count(threads, "CPU thread")
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
    """The estimated training time; for a long run without a limit, also how much a limit would allow."""
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
    facts: Facts, settings: Settings, config: RunConfig, trial: Trial, from_scratch: bool
) -> Iterator[str]:
    """Yield a warning for a small corpus, a long warm-up or cool-down, and options without effect."""
    if from_scratch and facts.pairs < size_table.FEW_PAIRS:
        yield (
            f"A corpus of {count(facts.pairs, 'pair')} is too small to learn a language from: the model will "
            f"know little more than its sentences. Use about {size_table.USEFUL_PAIRS:,} pairs, or fine-tune a "
            "trained model."
        )
    if from_scratch and facts.pairs < size_table.USEFUL_PAIRS and _has_languages(config.data):
        yield from _beginnings(config.data)
    yield from _schedule_warnings(config.train, updates_in_budget(config, trial))
    yield from _risk_warnings(config.train, trial)
    for name in () if facts.held_out else ("train.patience", "train.select_by"):
        if settings.is_chosen(name) and settings[name]:
            yield f"There is no validation set, so {name} ({settings[name]}) has no effect."


def _beginnings(data: DataConfig) -> Iterator[str]:
    """Yield what to begin with instead, if the corpus is small and holds texts."""
    source, target = (main_language(code) for code in (data.source, data.target))
    names = STRONG_MODELS.format(source=source, target=target)
    if not data.symbols:
        yield (
            f"With so few pairs, a strong model of others that you fine-tune translates much better: {names}. "
            f"`transduce import FOLDER --from {source} --to {target} --out BASE`, then `transduce train --init BASE …`."
        )


def _schedule_warnings(train: TrainConfig, updates: float) -> Iterator[str]:
    """Yield a warning if the warm-up or the cool-down does not fit into the updates that the time is enough for."""
    limit = f"{train.minutes:g} min are enough for" if updates < train.steps else "There will be"
    updates = min(updates, train.steps)
    if updates <= 2 * train.warmup:
        yield (
            f"{limit} about {count(round(updates), 'update')}, but the learning rate rises over the first "
            f"{train.warmup:,}: "
            "allow more updates, or lower train.warmup and data.max_tokens."
        )
    if train.cooldown > train.steps:
        yield (
            f"There will be {count(train.steps, 'update')}, but the learning rate falls over the last "
            f"{train.cooldown:,}: "
            "lower train.cooldown."
        )


def _risk_warnings(train: TrainConfig, trial: Trial) -> Iterator[str]:
    """Yield a warning if the training can end before its stage of minimum-risk training, or has no such stage."""
    seconds = effort(0, train) * trial.seconds_per_update
    is_short = math.isfinite(seconds) and 0 < 60 * train.minutes < seconds
    can_end = is_short or train.patience
    if risk_steps(train) and not stage_of(1, train).is_risk and can_end:
        yield (
            "The training can end before minimum-risk training, or within it: allow enough minutes, and set "
            "train.patience=0."
        )
    if train.risk_steps > train.steps:
        yield f"There is no minimum-risk training: train.risk_steps ({train.risk_steps}) exceeds train.steps."
