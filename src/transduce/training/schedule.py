"""The stages of a training run, and the learning rate of each update (section 5.3 of the paper).

Most training has one stage. With train.risk_steps, its last updates are a second stage: minimum-risk training.
With train.minutes, the cool-down of a stage follows the clock.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from transduce.config.schema import TrainConfig
from transduce.system.errors import UserError

RISK_DIVISOR = 15  # minimum-risk training divides the peak rate by this number
SAMPLE_COST = 0.8  # time to sample one translation, as a multiple of a usual pass over the sentence
SPARE = 20  # 1/20 of the updates that the time allows is kept as a reserve
# A cool-down is lengthened again if the time allows this many times the planned updates.
LENGTHENED = 1.2


class Stage(NamedTuple):
    """The stage of an update, with its place in the stage's own schedule."""

    is_risk: bool  # whether this is minimum-risk training
    number: int  # place of the update in this stage, counted from 1
    steps: int  # updates of this stage
    warmup: int  # number of the first updates, in which the rate rises
    cooldown: int  # number of the last updates, in which the rate falls to zero
    factor: float  # factor on the learning rate


def learning_rate(step: int, train: TrainConfig, d_model: int) -> float:
    """The learning rate of update `step` (counted from 1), by equation 3 of the paper times train.learning_rate.

    Over the last train.cooldown updates, the rate also falls linearly towards zero. Minimum-risk training then begins
    such a schedule anew, with a lower peak, a sixth of its updates as warm-up and half of them as cool-down.
    """
    stage = stage_of(step, train)
    factor = train.learning_rate * d_model**-0.5 * stage.factor
    rate = factor * min(stage.number**-0.5, stage.number * stage.warmup**-1.5)
    if stage.cooldown:
        rate *= min(1.0, (stage.steps + 1 - stage.number) / stage.cooldown)
    return rate


def stage_of(step: int, train: TrainConfig) -> Stage:
    """The stage of update `step`, counted from 1."""
    steps = risk_steps(train)
    before = train.steps - steps
    if not steps or step <= before:
        return Stage(False, step, before, train.warmup, train.cooldown, 1.0)
    warmup = max(1, steps // 6)
    factor = (warmup / train.warmup) ** 0.5 / RISK_DIVISOR
    return Stage(True, step - before, steps, warmup, steps // 2, factor)


def risk_steps(train: TrainConfig) -> int:
    """The number of updates of minimum-risk training; 0 if the whole training is shorter than these."""
    return train.risk_steps if train.risk_steps <= train.steps else 0


def begins_risk(done: int, train: TrainConfig) -> bool:
    """Whether minimum-risk training begins after `done` updates of usual training."""
    next_stage = stage_of(done + 1, train)
    return done > 0 and next_stage.is_risk and next_stage.number == 1


def check_risk(train: TrainConfig, init: Path | None, has_valid: bool) -> None:
    """Raise UserError if minimum-risk training has no model to start from, or no validation set."""
    if not init and train.risk_steps == train.steps:
        cause = "Minimum-risk training needs a trained model to start from."
        raise UserError(cause, "Raise train.steps, or name this model.", "init")
    if risk_steps(train) and not has_valid:
        cause = "Minimum-risk training needs a validation set, to choose the best weights."
        raise UserError(
            cause,
            "Name one, or set data.holdout to at most a tenth of the pairs.",
            "data.valid",
        )


def in_time(
    done: int, train: TrainConfig, most: int, seconds: float, durations: Sequence[tuple[int, float]]
) -> TrainConfig:
    """The schedule `train`, changed so that the cool-down of the current stage ends in time.

    `done` updates are made, `most` were planned at the start, and `seconds` are left. `durations` holds pairs of an
    interval in updates and the seconds that an event at this interval takes. The first event is the update itself;
    others are validations and checkpoints. A cool-down begins when it takes the planned share of the training. Then the
    rate falls from its current value to zero, and the end follows the speed of the machine.
    """

    def needed(end: int) -> float:
        return sum((end // every - done // every) * time for every, time in durations)

    stage = stage_of(done + 1, train)
    left = stage.steps + 1 - stage.number
    rest = effort(done + left, train) * durations[0][1]
    ends = range(done + 1, done + 1 + left + most - train.steps)
    possible = bisect_right(ends, seconds - rest, key=needed)
    room = possible - possible // SPARE
    begins = room * stage.steps <= stage.cooldown * (stage.number - 1 + room)
    is_long = stage.cooldown > 0 and possible < left and (begins or left <= stage.cooldown)
    is_short = left < len(ends) and LENGTHENED * left < possible
    if not is_long and not is_short:
        return train
    steps = train.steps + room - left
    if stage.is_risk:
        return replace(train, steps=steps, risk_steps=train.risk_steps + room - left)
    # The rate has fallen to (left + 1) / stage.cooldown, and would be 0 after room + 1 updates.
    cooldown = -(-(room + 1) * max(stage.cooldown, left + 1) // (left + 1))
    return replace(train, steps=steps, cooldown=cooldown)


def limits(train: TrainConfig) -> str:
    """The options that the plan of a cool-down depends on."""
    return f"{train.minutes} {train.steps} {train.cooldown} {train.risk_steps}"


def effort(done: int, train: TrainConfig) -> float:
    """The time for all updates after `done`, as a number of usual updates.

    An update of minimum-risk training takes longer.
    """
    left = max(0, train.steps - done)
    return left + SAMPLE_COST * train.samples * min(left, risk_steps(train))
