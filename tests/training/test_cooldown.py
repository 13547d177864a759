"""With train.minutes, the cool-down ends within the time, however the speed of the machine changes."""

import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from corpora import TINY, changed, write_texts
from transduce.config.schema import TrainConfig
from transduce.config.settings import Settings
from transduce.model_folder import checkpoints_in
from transduce.system.journal import Journal, read_events
from transduce.training import loop
from transduce.training.checkpoint import TrainState
from transduce.training.resume import continued, resume
from transduce.training.run import train
from transduce.training.schedule import in_time, learning_rate, stage_of

STEPS = 200
MINUTES = STEPS / 60 / 0.85  # if an update takes a second, as planned
HALF = 30 * MINUTES  # seconds
Cost = Callable[[float], float]  # seconds of training so far -> seconds of an update


def slower(times: float) -> Cost:
    """A machine whose updates take so many times as long from half of the time on."""
    return lambda seconds: times if seconds >= HALF else 1.0


@dataclass
class Machine:
    """A clock that moves with each update, and the rate of each update."""

    cost: Cost
    now: float
    rates: list[float] = field(default_factory=list)

    def __call__(self) -> float:
        return self.now

    def updated(self, optimizer: torch.optim.Optimizer, *_: object) -> None:
        self.now += self.cost(self.now)
        self.rates.append(optimizer.param_groups[0]["lr"])

    def wait(self, seconds: float) -> bool:
        self.now += seconds
        return True


@pytest.fixture(scope="module")
def options(tmp_path_factory) -> dict[str, object]:
    folder = tmp_path_factory.mktemp("corpus")
    train_files, valid = (
        write_texts(folder, name, count, seed)
        for seed, (name, count) in enumerate({"train": 100, "valid": 5}.items())
    )
    corpora = {"data.corpora": [{"files": list(train_files)}], "data.valid": valid}
    length = {"train.steps": STEPS, "train.cooldown": 60, "train.minutes": MINUTES}
    return {
        **TINY,
        **corpora,
        **length,
        "data.max_tokens": 64,
        "model.dropout": 0.1,
        "train.warmup": 20,
        "train.save_every": 25,
        "train.validate_every": 40,
    }


@pytest.fixture
def begun(untouched, tmp_path) -> Callable[[str], Path]:
    """Copies a training that stopped before its first update."""
    return lambda name: shutil.copytree(untouched, tmp_path / name)


@pytest.fixture(scope="module")
def untouched(options, tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("begun") / "out"
    train(options, out, stop=lambda: True)
    return out


class KilledError(Exception):
    """The process ended without a save."""


def go_on(
    options: dict[str, object],
    out: Path,
    cost: Cost,
    *,
    stop_at: int = 0,
    kill_at: int = 0,
    validation_seconds: float = 0.0,
) -> tuple[str, TrainState, list[float]]:
    """Resume a training on a machine, and return why it ended, its state and the rates of its updates."""
    with Journal(out / "journal.jsonl") as journal:
        going = continued(Settings.of(options), out)
        task, _ = resume(going, out, journal, torch.device("cpu"), hashes=False)
        machine = Machine(cost, task.state.seconds)
        validate = task.validate
        task.clock = machine
        task.validate = lambda model: machine.wait(validation_seconds) and validate(model)
        task.optimizer.register_step_post_hook(machine.updated)

        def stop() -> bool:
            if kill_at and task.state.step >= kill_at:
                raise KilledError
            return 0 < stop_at <= task.state.step

        try:
            reason = loop.train(task, stop)
        except KilledError:
            reason = "killed"
        return reason, task.state, machine.rates


def weights(out: Path) -> dict[str, bytes]:
    newest = checkpoints_in(out / "checkpoints")[-1]
    return {file.name: file.read_bytes() for file in newest.glob("*.safetensors")}


def changes(out: Path) -> list[tuple[int, int]]:
    """The changes of the schedule in the journal: the step and the new end."""
    events = read_events(out / "journal.jsonl")
    return [(event["step"], event["steps"]) for event in events if event["event"] == "cooldown"]


@pytest.fixture(scope="module")
def straight(options, untouched, tmp_path_factory) -> tuple[Path, str, TrainState, list[float]]:
    """A whole training on a machine that becomes slower."""
    out = shutil.copytree(untouched, tmp_path_factory.mktemp("straight") / "out")
    return out, *go_on(options, out, slower(2))


def test_on_a_machine_that_becomes_slower_the_rate_falls_to_its_floor_in_time(straight):
    out, reason, state, rates = straight
    assert reason == "minutes" and 0.95 < state.seconds / (60 * MINUTES) <= 1
    assert len(rates) == state.step == changes(out)[-1][1]
    uncooled = [learning_rate(step, TrainConfig(warmup=20), 16) for step in range(1, STEPS)]
    shares = [
        rate / whole * uncooled[0] / rates[0] for rate, whole in zip(rates, uncooled, strict=False)
    ]
    begin = changes(out)[0][0]
    assert shares[:begin] == pytest.approx([1.0] * begin) and HALF < begin < 1.2 * HALF
    falls = [share - later for share, later in pairwise(shares[begin - 1 :])]
    assert min(falls) > 0.01 and shares[-1] < 0.04


@pytest.mark.parametrize("way", ["stop_at", "kill_at"])
def test_resumed_at_any_point_it_ends_with_the_same_bits(way, options, begun, straight):
    out = begun("out")
    for point in (3, 50, 133, 134, 135, 150):
        go_on(options, out, slower(2), **{way: point})
    assert go_on(options, out, slower(2))[0] == "minutes"
    assert weights(out) == weights(straight[0])
    assert changes(out) == changes(straight[0])


def test_after_a_kill_the_changes_in_the_journal_are_repeated_also_at_another_speed(options, begun):
    out = begun("out")
    go_on(options, out, slower(2), kill_at=138)
    [first, *more] = changes(out)
    assert first[0] > 125 and more, "the changes stand between the last checkpoint and the kill"
    for point in (125, 126):  # the second time, the changes stand before the end of a checkpoint
        go_on(options, out, slower(1), stop_at=point)
        assert changes(out) == [first, *more]
    _, _, rates = go_on(options, out, slower(1))
    assert changes(out)[: 1 + len(more)] == [first, *more]
    falls = [later < 0.99 * rate for rate, later in pairwise(rates)]
    assert 126 + falls.index(True) + 1 == first[0]


@pytest.mark.slow
def test_a_machine_that_becomes_faster_again_uses_the_time(options, begun):
    out = begun("out")
    _, state, _ = go_on(options, out, lambda now: 3.0 if HALF <= now < 1.2 * HALF else 1.0)
    ends = [end for _, end in changes(out)]
    assert min(ends) < ends[-1] <= STEPS and state.seconds > 0.9 * 60 * MINUTES


def test_another_limit_plans_the_cool_down_anew(options, begun):
    out = begun("out")
    go_on(options, out, slower(2), stop_at=150)
    assert changes(out)
    longer = changed(options, **{"train.minutes": 3 * MINUTES})
    again = len(changes(out))
    assert go_on(longer, out, slower(2))[0] == "steps" and len(changes(out)) == again


def test_validations_count_as_time(options, begun):
    """Each of the five takes 12 seconds, so that the time is not enough for all updates."""
    out = begun("out")
    reason, state, _ = go_on(options, out, slower(1), validation_seconds=12.0)
    assert reason == "minutes" and 0.95 < state.seconds / (60 * MINUTES) <= 1
    assert state.step == changes(out)[-1][1]


@given(
    st.integers(2, 400),
    st.floats(0.05, 1),
    st.lists(st.floats(0.2, 5), min_size=1, max_size=6),
)
def test_whatever_the_speeds_the_rate_falls_to_its_floor(steps, share, speeds):
    """Each part of the time has its own speed, which is known at once."""
    first = schedule = TrainConfig(steps=steps, warmup=1, cooldown=max(1, int(share * steps)))
    time, done = 0.0, 0
    while done < schedule.steps and time < steps:
        cost = speeds[int(time / steps * len(speeds))]
        time += cost
        done += 1
        if done < schedule.steps:
            before = schedule
            schedule = in_time(done, before, steps, steps - time, [(1, cost)])
            assert done <= schedule.steps <= first.steps
            if done < schedule.steps and schedule != before:
                assert learning_rate(done + 1, schedule, 16) < learning_rate(done, before, 16)
    # The time is used up within an update of its end, or all updates were made.
    assert done == schedule.steps


def test_each_stage_of_a_training_with_minimum_risk_training_ends_in_time():
    train = TrainConfig(steps=120, warmup=1, cooldown=30, risk_steps=20)
    risk = 20 * (1 + 0.8 * 16)  # updates that take the same time
    shorter = in_time(50, train, 120, 20 + risk, [(1, 1.0)])
    assert [stage_of(step, shorter)[:3] for step in (69, 70, 89)] == [
        (False, 69, 69),
        (True, 1, 20),
        (True, 20, 20),
    ]
    assert learning_rate(69, shorter, 16) == pytest.approx(learning_rate(69, train, 16) / 20)
    last = in_time(79, shorter, 120, 5, [(1, 1.0)])
    assert stage_of(84, last)[:3] == (True, 15, 15) and stage_of(69, last) == stage_of(69, shorter)
