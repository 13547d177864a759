"""The stages of a training run, and the learning rate of each update (section 5.3 of the paper).

Most training has one stage. With train.risk_steps, its last updates are a second stage: minimum-risk training.

With train.minutes, the cool-down of a stage follows the clock: `end_in_time` compares the updates that are left with
those that the time is enough for, and `rescheduled` moves the end of the training.
"""

from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from transduce.config.schema import TrainConfig
from transduce.system.errors import UserError

RISK_DIVISOR = 15  # of the peak rate, in minimum-risk training
SAMPLE_COST = 0.8  # time for a sample of a sentence, in usual passes over it
SPARE = 20  # a twentieth of the updates that the time is enough for is not planned
UNUSED_SHARE = 0.15  # of these updates; if more are not planned, the cool-down becomes longer


class Stage(NamedTuple):
    """The stage of an update, with its place in the stage's own schedule."""

    is_risk: bool  # whether this is minimum-risk training
    number: int  # of the update in this stage, counted from 1
    steps: int  # updates of this stage
    warmup: int  # of them, from the first
    cooldown: int  # of them, to the last
    factor: float  # on the learning rate


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
    """The number of updates of minimum-risk training; 0 if a recipe's training is cut to less than these."""
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


def limits(train: TrainConfig) -> str:
    """The options that determine when a cool-down begins and ends. If they change, it is planned anew."""
    return f"{train.minutes} {train.steps} {train.cooldown} {train.risk_steps}"


def left_in_stage(done: int, train: TrainConfig) -> int:
    """The updates of the current stage that are left after `done` updates."""
    stage = stage_of(done + 1, train)
    return stage.steps + 1 - stage.number


def end_in_time(done: int, train: TrainConfig, possible: int, most: int) -> int:
    """The number of updates of a training whose cool-down ends in time, or 0 if the schedule `train` can stay.

    After `done` updates, the time is enough for `possible` more updates of the current stage; `most` is the number
    that was planned at first. A cool-down begins when it would take the same share of the training as planned. From
    then on, the end moves with the speed of the machine, but not beyond `most`.
    """
    stage = stage_of(done + 1, train)
    left = left_in_stage(done, train)
    possible = min(possible, most)
    room = possible - possible // SPARE
    has_begun = left <= stage.cooldown
    is_due = has_begun or room * stage.steps <= stage.cooldown * (stage.number - 1 + room)
    is_too_long = possible < left and is_due
    is_too_short = left < most and left < (1 - UNUSED_SHARE) * possible
    return train.steps + room - left if is_too_long or is_too_short else 0


def rescheduled(done: int, train: TrainConfig, steps: int) -> TrainConfig:
    """The schedule that ends after `steps` updates. The rate falls to zero from its value after `done` updates."""
    change = steps - train.steps
    stage = stage_of(done + 1, train)
    if stage.is_risk:
        return replace(train, steps=steps, risk_steps=train.risk_steps + change)
    left = left_in_stage(done, train)
    # The rate has fallen to (left + 1) / stage.cooldown, and reaches 0 one update after the last.
    cooldown = -(-(left + change + 1) * max(stage.cooldown, left + 1) // (left + 1))
    return replace(train, steps=steps, cooldown=cooldown)


def effort(done: int, train: TrainConfig) -> float:
    """The time for all updates after `done`, in usual updates. An update of minimum-risk training takes longer."""
    left = max(0, train.steps - done)
    return left + SAMPLE_COST * train.samples * min(left, risk_steps(train))
