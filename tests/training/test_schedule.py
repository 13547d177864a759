"""Tests of transduce/training/schedule.py."""

from dataclasses import replace
from pathlib import Path

import pytest

from corpora import reverse_rows
from small_trainings import MODEL, TRAIN, perplexities, training
from transduce.config.schema import TrainConfig
from transduce.model.seq2seq import make_batch
from transduce.system.errors import UserError
from transduce.system.journal import read_events
from transduce.training import loop
from transduce.training.objectives import sums_of
from transduce.training.schedule import (
    Stage,
    begins_risk,
    check_risk,
    effort,
    in_time,
    learning_rate,
    limits,
    risk_steps,
    stage_of,
)


def test_the_papers_schedule_by_hand():
    train = TrainConfig(warmup=4000)
    rates = [learning_rate(step, train, 512) for step in (1, 4000, 16000)]
    assert rates == pytest.approx([1.746928e-7, 6.987712e-4, 3.493856e-4], rel=1e-6)
    assert learning_rate(4000, replace(train, learning_rate=2.0), 512) == pytest.approx(
        2 * 6.987712e-4, rel=1e-6
    )


def test_the_schedule_rises_falls_and_cools_down():
    train = TrainConfig(steps=100, warmup=20)
    rates = [learning_rate(step, train, 64) for step in range(1, 101)]
    assert rates[:20] == sorted(rates[:20])
    assert rates[19:] == sorted(rates[19:], reverse=True)
    cooled = [
        learning_rate(step, replace(train, cooldown=10), 64) / rates[step - 1]
        for step in range(1, 101)
    ]
    assert cooled[:91] == [1.0] * 91
    assert cooled[91:] == pytest.approx([0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1])


def test_minimum_risk_training_is_a_stage_of_its_own_by_hand():
    train = TrainConfig(steps=100, warmup=8, cooldown=20, risk_steps=12, samples=5)
    usual = [stage_of(step, train) for step in (1, 88)]
    assert usual == [Stage(False, number, 88, 8, 20, 1.0) for number in (1, 88)]
    factor = 0.5 / 15  # the peak of a warm-up of 2 updates instead of 8, divided by 15
    risk = [stage_of(step, train) for step in (89, 100)]
    assert risk == [Stage(True, number, 12, 2, 6, factor) for number in (1, 12)]
    assert [done for done in range(100) if begins_risk(done, train)] == [88]
    # The last update of the usual stage has a twentieth of the rate, the next one the first of two of a warm-up.
    rates = [learning_rate(step, train, 64) for step in (88, 89)]
    assert rates == pytest.approx([88**-0.5 / 8 / 20, 2**-1.5 / 8 * factor])
    # A sampled translation takes 0.8 of an update.
    assert [effort(done, train) for done in (0, 88, 98, 100, 101)] == [148, 60, 10, 0, 0]


def test_a_training_shorter_than_minimum_risk_training_has_one_stage():
    train = TrainConfig(steps=10, risk_steps=11)
    assert risk_steps(train) == 0 and not stage_of(10, train).is_risk
    only = replace(train, risk_steps=10)
    assert stage_of(1, only).is_risk and not any(begins_risk(done, only) for done in range(10))


def test_minimum_risk_training_needs_a_model_and_a_validation_set():
    train = TrainConfig(steps=10, risk_steps=4)
    model = Path("model")
    check_risk(train, None, has_valid=True)
    check_risk(replace(train, risk_steps=0), None, has_valid=False)
    check_risk(replace(train, steps=4), model, has_valid=True)
    check_risk(replace(train, steps=3), None, has_valid=False)  # there is none
    for other, init, has_valid, said, option in (
        (train, model, False, "needs a validation set", "data.valid"),
        (replace(train, steps=4), None, True, "needs a trained model", "init"),
    ):
        with pytest.raises(UserError, match=said) as refused:
            check_risk(other, init, has_valid)
        assert refused.value.hint and refused.value.hint.options == (option,)


def test_the_journal_holds_means_per_token(tmp_path):
    rows = reverse_rows(200, seed=1)
    train = replace(TRAIN, steps=10, learning_rate=1e-30)  # so that the weights stay as they are
    task = training(tmp_path, rows, replace(MODEL, dropout=0.0), train, perplexities())
    loop.train(task)
    (event,) = read_events(tmp_path / "journal.jsonl")
    plan = [
        batches
        for epoch in (0, 1, 2, 3)
        for batches in task.data.plan(epoch, 0, budget=512, accumulate=1, seed=1)
    ]
    batches = [
        make_batch(task.data.sources(batch), task.data.targets(batch)) for (batch,) in plan[:10]
    ]
    sums = [sums_of(task.model, batch, train) for batch in batches]
    tokens = sum(batch.num_tokens for batch in batches)
    assert event["tokens_seen"] == task.state.tokens_seen == tokens
    for name, values in zip(("loss", "nll", "accuracy"), zip(*sums, strict=True), strict=True):
        assert event[name] == pytest.approx(
            sum(value.item() for value in values) / tokens, rel=1e-5
        )
    assert event["rate"] == learning_rate(10, train, 16)


def schedule_of(steps: int, cooldown: int, risk: int = 0) -> TrainConfig:
    return TrainConfig(steps=steps, warmup=10, cooldown=cooldown, risk_steps=risk, samples=5)


@pytest.mark.parametrize(
    ("done", "steps", "cooldown", "most", "seconds", "expected"),
    [
        (50, 100, 30, 100, 50.0, None),
        (80, 100, 30, 100, 20.0, None),
        (50, 100, 30, 100, 30.0, None),  # too few, but the cool-down can begin later
        (50, 100, 30, 100, 20.0, (69, 20)),  # 19 of them: a twentieth is kept; falls from 1 to 1/20
        (50, 100, 0, 100, 20.0, None),  # no cool-down
        (80, 100, 30, 100, 10.0, (90, 16)),  # from 21/30: 11 * 30 / 21, rounded up
        (45, 100, 25, 100, 15.0, (60, 16)),  # 15 are a quarter of 60 as 25 of 100
        (45, 100, 25, 100, 16.0, None),
        (75, 100, 25, 100, 24.0, (98, 24)),  # the cool-down itself: 23 of 25
        (75, 100, 25, 100, 25.0, None),
        (80, 90, 16, 100, 13.0, (93, 21)),  # a fifth more than 10: 14 * 16 / 11, rounded up
        (80, 90, 16, 100, 12.0, None),
        (80, 90, 16, 90, 99.0, None),  # no more were planned
        (80, 90, 16, 100, 99.0, (99, 30)),
        (80, 100, 30, 100, 0.5, (80, 2)),  # no update is possible
        (10, 100, 99, 100, 39.9, (48, 43)),
    ],
)
def test_a_cool_down_ends_in_time_by_hand(done, steps, cooldown, most, seconds, expected):
    """With updates of a second each."""
    train = schedule_of(steps, cooldown)
    found = in_time(done, train, most, seconds, [(1, 1.0)])
    assert found == (replace(train, steps=expected[0], cooldown=expected[1]) if expected else train)


@pytest.mark.parametrize(("seconds", "steps"), [(7.9, 89), (8.0, 90), (12.9, 94), (0.0, 85)])
def test_validations_and_checkpoints_take_time(seconds, steps):
    """After 85 updates of a second: the next validation of 3 seconds is at 90, the next checkpoint at 92."""
    durations = [(1, 1.0), (10, 3.0), (23, 0.9)]
    assert in_time(85, schedule_of(100, 30), 100, seconds, durations).steps == steps


def test_the_time_of_minimum_risk_training_is_kept():
    """The last 4 updates take 5 usual ones each: 20 seconds of 30 are for them."""
    train = schedule_of(60, 20, risk=4)
    found = in_time(40, train, 60, 30.0, [(1, 1.0)])
    assert (found.steps, found.risk_steps, found.cooldown) == (54, 4, 13)
    assert stage_of(50, found).number == stage_of(50, found).steps == 50
    # In its own stage, which has a cool-down of 2 updates, usual updates are over.
    assert in_time(57, train, 60, 2.0, [(1, 1.0)]) == train
    late = in_time(57, train, 60, 1.0, [(1, 1.0)])
    assert (late.steps, late.risk_steps, late.cooldown) == (58, 2, 20)


def test_a_plan_depends_on_four_options():
    train = schedule_of(60, 20, risk=4)
    changes = {"steps": 61, "cooldown": 21, "risk_steps": 5, "minutes": 1.5}
    others = [replace(train, **{name: value}) for name, value in changes.items()]
    assert len({limits(each) for each in [train, *others]}) == 5
    assert limits(replace(train, patience=99, warmup=7)) == limits(train)
