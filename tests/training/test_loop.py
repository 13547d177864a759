"""Tests of transduce/training/loop.py."""

import itertools
import json
import math
import signal
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from corpora import reverse_rows
from small_trainings import (
    MODEL,
    TRAIN,
    batch_of,
    perplexities,
    same,
    training,
    updated,
    weights,
)
from transduce.decoding.beam import beam_search
from transduce.decoding.stepper import ModelStepper
from transduce.evaluation.perplexity import Validation
from transduce.model.build import build
from transduce.model.seq2seq import source_tensor
from transduce.model_folder import JOURNAL, checkpoints_in, step_of
from transduce.system.errors import UserError
from transduce.system.files import verify
from transduce.system.journal import read_events
from transduce.tokens import mixture as tokens_mixture
from transduce.training import loop, schedule
from transduce.training.checkpoint import TrainState, save_checkpoint
from transduce.training.distributed import Ranks
from transduce.training.schedule import learning_rate
from transduce.training.update import AVERAGE, Figures, Outcome, make_optimizer, update


@pytest.mark.slow
def test_the_reverse_task_is_learnt(tmp_path):
    rows = reverse_rows(3000, seed=1)
    model = replace(MODEL, d_model=32, d_ff=64, num_heads=4, dropout=0.0)
    train = replace(TRAIN, steps=500, warmup=100, learning_rate=1.0, save_every=1000, cooldown=150)
    task = training(tmp_path, rows, model, train, perplexities())
    assert loop.train(task) == "steps"
    fresh = [row for row in reverse_rows(400, seed=2) if row not in rows]
    found = beam_search(
        ModelStepper([task.model], source_tensor([source for source, _ in fresh])),
        [9] * len(fresh),
        beam_size=1,
    )
    right = [best.tokens == target for (best, *_), (_, target) in zip(found, fresh, strict=True)]
    assert sum(right) / len(right) > 0.95
    assert len(fresh) > 200


def test_ten_updates_in_a_row_that_are_not_finite_end_the_training(tmp_path):
    rows = reverse_rows(60, seed=1)
    task = training(tmp_path, rows, MODEL, TRAIN, perplexities())
    task.model.encoder[0].feed_forward.out.weight.data[0, 0] = torch.nan
    before = weights(task.model)
    with pytest.raises(
        UserError, match=r"of 10 updates in a row was not finite \(the last at step 10\)"
    ):
        loop.train(task)
    assert same(weights(task.model), before)
    events = list(read_events(tmp_path / "journal.jsonl"))
    assert [(event["event"], event["step"]) for event in events] == [
        ("skipped", step) for step in range(1, 11)
    ]
    named = set("; ".join(event["places"] for event in events).split("; "))
    assert named == {f"toy.txt:{line}" for line in range(1, 61)}


def test_fewer_updates_that_are_not_finite_are_left_out(tmp_path):
    task = training(
        tmp_path, reverse_rows(60, seed=1), MODEL, replace(TRAIN, steps=12), perplexities()
    )
    bias = task.model.encoder[0].feed_forward.out.bias
    bias.data[0] = torch.nan
    plan = loop.planned_updates(task)
    for step in range(1, 13):
        if step == 9:
            bias.data[0] = 0.0
        started = loop.learn(task, next(plan))
        loop.log_update(task, started, started.figures.read())
    assert task.state.skipped == 0
    last = list(read_events(tmp_path / "journal.jsonl"))[-1]
    assert (last["event"], last["step"]) == ("update", 10)
    assert 2 < last["loss"] < 5  # a mean over the two updates that counted


@pytest.mark.parametrize("trouble", [0, 5])
def test_reading_outcomes_late_changes_nothing(trouble, tmp_path):
    """As on a GPU: a thread makes the batches, and an outcome is read after the next update has begun."""
    train = replace(TRAIN, steps=23, validate_every=7, save_every=10, ema=0.9, clip_norm=0.5)
    found = []
    for delay in (0, 1):
        folder = tmp_path / f"{delay}"
        task = training(folder, reverse_rows(60, seed=1), MODEL, train, perplexities(5, 4, 3))
        task.delay = delay
        task.model.register_forward_hook(
            lambda _, __, logits, state=task.state: (
                logits * math.nan if state.step == trouble else logits
            )
        )
        assert loop.train(task) == "steps"
        events = [
            [event["event"], event["step"], event.get("loss"), event.get("epoch")]
            for event in read_events(folder / JOURNAL)
        ]
        state = [task.state.epoch, task.state.position, task.state.nll, task.state.tokens_seen]
        found.append((weights(task.model), task.optimizer.state_dict()["state"], events, state))
    now, late = found
    assert same(now[0], late[0])
    for key, parts in now[1].items():
        for name, value in parts.items():
            # A skipped update moves the average towards the weights if the CPU does not wait.
            assert torch.equal(value, late[1][key][name]) or (trouble and name == AVERAGE)
    assert str(now[2:]) == str(late[2:])  # nan equals nothing
    assert [step for event, step, *_ in now[2] if event == "skipped"] == [trouble] * bool(trouble)


def test_a_micro_batch_has_its_share_of_the_budget(tmp_path):
    task = training(
        tmp_path, reverse_rows(100, seed=1), MODEL, replace(TRAIN, accumulate=3), perplexities()
    )
    plan = loop.planned_updates(task)
    first = next(plan).indices
    assert len(first) == 3
    # 512 / 3, rounded up.
    assert all((task.data.lengths(batch)[0].max() + 1) * len(batch) <= 171 for batch in first)


def test_resumed_training_continues_inside_a_block(tmp_path, monkeypatch):
    monkeypatch.setattr(tokens_mixture, "BLOCK_PAIRS", 40)
    monkeypatch.setattr(tokens_mixture, "RUN_PAIRS", 7)
    task = training(tmp_path, reverse_rows(100, seed=1), MODEL, TRAIN, perplexities())
    task.config = replace(task.config, data=replace(task.config.data, max_tokens=50))
    assert task.data.blocks == 3
    stream, states, seen = loop.planned_updates(task), [], []
    while not states or states[-1].epoch < 2:
        planned = next(stream)
        seen.append([batch.tolist() for batch in planned.indices])
        states.append(
            TrainState(epoch=planned.epoch, block=planned.block, position=planned.position - 1)
        )
    assert max(state.position for state in states) > 2, "a block of one update shows nothing"
    for place, state in enumerate(states):
        task.state = replace(state)  # which moves along
        again = itertools.islice(loop.planned_updates(task), 3)
        assert [[batch.tolist() for batch in planned.indices] for planned in again][
            : len(seen) - place
        ] == seen[place:][:3]
    first = [batches for batches, state in zip(seen, states, strict=True) if state.epoch == 0]
    assert sorted(pair for batches in first for batch in batches for pair in batch) == list(
        range(100)
    )


def test_patience_ends_a_training_and_the_best_is_kept(tmp_path):
    train = replace(TRAIN, steps=1000, validate_every=2, patience=3, keep_last=2)
    task = training(
        tmp_path, reverse_rows(60, seed=1), MODEL, train, perplexities(9, 8, 8.5, 8, 8.2, 1)
    )
    assert loop.train(task) == "patience"
    assert (task.state.step, task.state.best, task.state.best_step, task.state.stale) == (
        10,
        8,
        4,
        3,
    )
    assert [step_of(path) for path in checkpoints_in(task.folder)] == [4, 5, 10]
    for path in checkpoints_in(task.folder):
        verify(path, hashes=True)


@pytest.mark.parametrize("ema", [0.0, 0.9])
def test_a_validation_that_fails_costs_no_updates(ema, tmp_path):
    train = replace(TRAIN, steps=10, validate_every=4, save_every=4, ema=ema)
    # Has no value for step 4.
    task = training(tmp_path, reverse_rows(60, seed=1), MODEL, train, perplexities())
    with pytest.raises(StopIteration):
        loop.train(task)
    [saved] = checkpoints_in(task.folder)
    assert step_of(saved) == task.state.step == 4
    weights = load_file(saved / "model.safetensors")
    assert all(
        torch.equal(weight, weights[name]) for name, weight in task.model.state_dict().items()
    )


@pytest.mark.parametrize(("select_by", "best"), [("perplexity", 4), ("bleu", 6), ("chrf", 8)])
def test_the_best_step_is_that_of_the_chosen_score(select_by, best, tmp_path):
    train = replace(TRAIN, steps=10, validate_every=2, select_by=select_by)
    results = iter(
        [Validation(*each) for each in [(9, 1, 1), (5, 2, 2), (6, 4, 3), (7, 3, 4), (8, 3, 3)]]
    )
    task = training(tmp_path, reverse_rows(60, seed=1), MODEL, train, lambda _: next(results))
    loop.train(task)
    assert task.state.best_step == best
    assert Validation(3.0).cost(select_by) == 3.0  # without text, perplexity decides
    hopeless, useful = Validation(300.0, 0.9, 30.0), Validation(900.0, 1.0, 10.0)
    assert hopeless.cost(select_by) == 300.0
    assert select_by == "perplexity" or useful.cost(select_by) < hopeless.cost(select_by)


def test_minutes_end_a_training_and_its_last_state_is_saved(tmp_path):
    train = replace(TRAIN, steps=10**6, minutes=0.1 / 60)
    task = training(tmp_path, reverse_rows(60, seed=1), MODEL, train, perplexities())
    assert loop.train(task) == "minutes"
    assert task.state.seconds >= 0.1
    assert step_of(checkpoints_in(task.folder)[-1]) == task.state.step > 0


def test_missing_validation_text_does_not_exhaust_patience(tmp_path):
    train = replace(TRAIN, steps=12, validate_every=2, patience=2)
    task = training(tmp_path, reverse_rows(60, seed=1), MODEL, train, lambda _: None)
    assert loop.train(task) == "steps"
    assert (task.state.best, task.state.best_step) == (None, 0)


def begun(folder: Path, **changes: object) -> loop.Training:
    """A training that has made no update, without a validation set."""
    train = replace(TRAIN, **changes)
    return training(folder, reverse_rows(60, seed=1), MODEL, train, lambda _: None)


def outcome_of(loss: float, tokens: int, *, applied: bool = True) -> Outcome:
    return Outcome(loss, loss / 2, tokens / 4, tokens, 3.5, applied)


def test_updates_validations_and_checkpoints_are_timed(tmp_path, monkeypatch):
    """By hand: the third update takes long, the first validation is the best, and its checkpoint is saved."""
    now, costs = [0.0], iter([1.0, 1.0, 10.0, 1.0])

    def wait(seconds: float) -> None:
        now[0] += seconds

    def validate(_: object) -> Validation:
        wait(5.0)
        return Validation(float(task.state.step))

    def save(*arguments: object) -> Path:
        wait(2.0)
        return save_checkpoint(*arguments)

    monkeypatch.setattr(loop, "save_checkpoint", save)
    task = begun(tmp_path, steps=4, validate_every=2, save_every=3)
    task.validate, task.clock = validate, lambda: now[0]
    task.optimizer.register_step_post_hook(lambda *_: wait(next(costs)))
    assert loop.train(task) == "steps"
    state = task.state
    assert (state.best, state.best_step, state.stale) == (2.0, 2, 1)
    # 3 times the usual second counts, and a twentieth of the difference.
    usual = 1 + (3 - 1) / 20
    assert state.update_seconds == pytest.approx(usual + (1 - usual) / 20)
    assert (state.validation_seconds, state.saving_seconds) == (5.0, 2.0)
    assert state.seconds == 1 + 1 + 5 + 2 + 10 + 2 + 1 + 5
    assert [step_of(path) for path in checkpoints_in(task.folder)] == [2, 3, 4]
    events = [(e["event"], e["step"], e["seconds"]) for e in read_events(tmp_path / JOURNAL)]
    assert events == [("validation", 2, 2.0), ("validation", 4, 22.0)]


def test_the_journal_has_the_means_of_ten_updates(tmp_path):
    """By hand: updates that are left out count for nothing, and each report begins anew."""
    task = begun(tmp_path, steps=100, warmup=40)
    state = task.state
    state.seconds = 9.5
    for step in range(1, 21):
        state.step = step
        applied = step not in (4, 15)
        outcome = outcome_of(step * 10.0, 10 + step, applied=applied)
        planned = loop.plan_update(task, 3, 0, step, [np.array([0, 2]), np.array([1])])
        loop.log_update(
            task, loop.Started(step, planned, Figures(torch.zeros(4), 0, None)), outcome
        )
    left_out, first, other, second = read_events(tmp_path / JOURNAL)
    for event, step in ((left_out, 4), (other, 15)):
        assert event.items() >= {"event": "skipped", "step": step, "loss": step * 10.0}.items()
        assert event["places"] == "toy.txt:1; toy.txt:3; toy.txt:2"
    for event, begin in ((first, 1), (second, 11)):
        steps = [step for step in range(begin, begin + 10) if step not in (4, 15)]
        loss, tokens = 10 * sum(steps), sum(10 + step for step in steps)
        known = {name: event[name] for name in ("step", "epoch", "accuracy", "gradient_norm")}
        known["seconds"] = event["seconds"]
        assert known == {
            "step": begin + 9,
            "epoch": 3,
            "accuracy": 0.25,
            "gradient_norm": 3.5,
            "seconds": 9.5,
        }
        assert event["loss"] == pytest.approx(loss / tokens) == 2 * event["nll"]
        assert event["rate"] == learning_rate(begin + 9, task.schedule, MODEL.d_model)
    assert second["tokens_seen"] == state.tokens_seen == sum(range(11, 31))
    assert (state.loss, state.nll, state.correct, state.num_tokens) == (0, 0, 0, 0)


def test_an_update_follows_the_schedule_and_counts_each_target_token_and_eos(tmp_path):
    task = begun(tmp_path, accumulate=3)
    task.model.eval()
    task.state.step, task.state.position = 6, 2
    task.schedule = replace(task.schedule, learning_rate=0.25)
    batches = [np.array(pairs) for pairs in ([0, 1], [2, 3, 4], [5])]
    outcome = loop.learn(task, loop.plan_update(task, 0, 0, 3, batches)).figures.read()
    assert (task.state.step, task.state.position, task.model.training) == (7, 3, True)
    assert outcome.num_tokens == sum(len(target) + 1 for _, target in reverse_rows(60, seed=1)[:6])
    (group,) = task.optimizer.param_groups
    assert group["lr"] == pytest.approx(0.25 * 16**-0.5 * 7 * 10**-1.5)
    expected = build(MODEL)
    optimizer = make_optimizer(expected.parameters(), TRAIN)
    parts = [batch_of([reverse_rows(60, seed=1)[pair] for pair in batch]) for batch in batches]
    update(expected, optimizer, parts, step=7, rate=group["lr"], train=TRAIN)
    assert same(weights(expected), weights(task.model))


@pytest.mark.usefixtures("shard")
def test_a_rank_learns_from_its_own_micro_batches_and_counts_the_tokens_of_all(tmp_path):
    """Rank 0 of 2 has the first and the third of three micro-batches; DDP would halve its gradient."""
    task = begun(tmp_path, accumulate=3)
    task.ranks = Ranks(0, 2)
    seen: list[list[int]] = []
    task.model.register_forward_pre_hook(lambda _, sides: seen.append([*sides[0].shape]))
    indices = [np.array(pairs) for pairs in ([0, 1], [2, 3, 4], [5])]
    outcome = loop.learn(task, loop.plan_update(task, 0, 0, 1, indices)).figures.read()
    assert [rows for rows, _ in seen] == [2, 1]
    assert outcome.num_tokens == sum(len(target) + 1 for _, target in reverse_rows(60, seed=1)[:6])
    seen.clear()
    task.schedule = replace(task.schedule, steps=2)
    task.config = replace(task.config, train=replace(task.config.train, steps=2))
    loop.train(task)
    assert seen[0] == [1, 2], "before the first update, a pass for DDP"


def test_minimum_risk_training_begins_with_a_new_optimizer_state(tmp_path, capsys):
    task = begun(tmp_path, steps=12, risk_steps=2, samples=5, save_every=99)
    sizes = []
    task.optimizer.register_step_pre_hook(lambda *_: sizes.append(len(task.optimizer.state)))
    now = [0.0]

    def wait(*_: object) -> None:
        now[0] += 5.0 if task.state.step > 10 else 1.0

    task.clock = lambda: now[0]
    task.optimizer.register_step_post_hook(wait)
    assert loop.train(task) == "steps"
    full = len([*task.model.parameters()])
    assert sizes == [0] + [full] * 9 + [0, full]
    assert "Minimum-risk training begins." in capsys.readouterr().err
    # An update with 5 samples counts as 1 + 5 * 0.8 usual ones, as it takes.
    assert task.state.update_seconds == pytest.approx(5.0)


def test_a_validation_is_logged_and_the_best_one_is_kept(tmp_path, capsys):
    found = [
        (9.0, 5.0, 30.5, None, None),
        (8.0, None, None, None, None),
        (math.inf, None, None, None, None),
        (8.0, 6.0, 31.0, None, None),
    ]
    results = iter(found)
    task = begun(tmp_path)
    task.validate = lambda model: model.training or Validation(*next(results))
    said = []
    for step in range(1, 5):
        task.state.step, task.state.epoch, task.state.seconds = 1000 * step, step, step / 2
        loop.validate(task)
        said.append(" ".join(capsys.readouterr().err.split()))
        assert task.validations[1000 * step] == found[step - 1]
    assert said == [
        "step 1,000 epoch 2 validation perplexity 9.00, BLEU 5.0 (greedy) – the best so far",
        "step 2,000 epoch 3 validation perplexity 8.00 – the best so far",
        "step 3,000 epoch 4 validation perplexity inf",
        "step 4,000 epoch 5 validation perplexity 8.00, BLEU 6.0 (greedy)",
    ]
    assert (task.state.best, task.state.best_step, task.state.stale) == (8.0, 2000, 2)
    events = [{**event, "time": 0} for event in read_events(tmp_path / JOURNAL)]
    common = {"event": "validation", "time": 0}
    assert events == [
        common
        | {"step": 1000 * n, "epoch": n, "perplexity": perplexity}
        | ({} if bleu is None else {"bleu": bleu, "chrf": chrf})
        | {"seconds": n / 2}
        for n, (perplexity, bleu, chrf, *_) in enumerate([*found[:2], (None,) * 5, found[3]], 1)
    ]
    first = begun(tmp_path / "diverged")
    first.validate = lambda _: Validation(math.inf)
    loop.validate(first)
    assert "best" not in capsys.readouterr().err


def test_what_other_text_loses_counts_as_much_as_what_the_new_text_gains(tmp_path, capsys):
    results = iter(
        [(9.0, 5.0, 20.0, 60.0, 4.0), (8.0, 6.0, 25.0, 56.0, 4.0), (7.0, 9.0, 30.0, 49.0, 4.0)]
    )
    task = begun(tmp_path)
    task.config = replace(task.config, train=replace(task.config.train, select_by="chrf"))
    task.validate = lambda _: Validation(*next(results))
    for step in range(1, 4):
        task.state.step = step
        loop.validate(task)
    assert (task.state.best_step, task.state.stale, task.state.best) == (2, 1, -81.0)
    assert "BLEU 9.0 (greedy), chrF 30.0, other text 49.0\n" in capsys.readouterr().err
    events = [event["general"] for event in read_events(tmp_path / JOURNAL)]
    assert events == [60.0, 56.0, 49.0]


def test_a_fine_tuning_first_validates_the_model_before_it_and_keeps_it(tmp_path):
    train = replace(TRAIN, steps=6, save_every=1, keep_last=1, max_forgotten=0.5)
    task = training(tmp_path, reverse_rows(50, seed=1), MODEL, train, lambda _: Validation(2.0))
    save_checkpoint(task.folder, task.model, task.optimizer, task.state)
    loop.train(task)
    assert [*task.validations] == [0]
    steps = [*map(step_of, checkpoints_in(task.folder))]
    assert steps == [0, 6]


def test_a_validation_measures_the_moving_average(tmp_path):
    _, optimizer, model = updated(replace(TRAIN, ema=0.5), 3)
    task = begun(tmp_path)
    task.model, task.optimizer = model, optimizer
    task.wrapped_model = model
    before, measured = weights(model), []
    task.validate = lambda model: measured.append(weights(model))
    loop.validate(task)
    averages = [state[AVERAGE] for state in optimizer.state.values()]
    assert all(map(torch.equal, measured[0].values(), averages))
    assert same(weights(model), before) and not same(measured[0], before)


def test_a_checkpoint_knows_the_size_of_the_journal(tmp_path):
    task = begun(tmp_path, keep_last=1, average=2, save_every=2)
    for step in range(1, 8):
        task.state.step = step
        task.journal.write("update", step=step)
        loop.save(task)
        (newest,) = checkpoints_in(task.folder)[-1:]
        size = (tmp_path / JOURNAL).stat().st_size
        assert json.loads((newest / "state.json").read_text())["journal_size"] == size
    assert [step_of(path) for path in checkpoints_in(task.folder)] == [6, 7], "two are averaged"


@pytest.mark.parametrize(
    ("state", "changes", "stopped", "reason"),
    [
        ({"step": 19, "seconds": 59.9, "stale": 2}, {"minutes": 1, "patience": 3}, False, None),
        ({"step": 19, "seconds": 1e9, "stale": 99}, {}, False, None),
        ({"step": 20}, {}, False, "steps"),
        ({"step": 3}, {}, True, "interrupted"),
        ({"step": 3, "seconds": 60.0}, {"minutes": 1}, False, "minutes"),
        ({"step": 3, "stale": 3}, {"patience": 3}, False, "patience"),
        ({"step": 3, "stale": 3, "seconds": 60}, {"patience": 3, "minutes": 1}, False, "minutes"),
        ({"step": 20, "seconds": 60.0}, {"minutes": 1}, False, "steps"),
        ({"step": 20}, {}, True, "interrupted"),
        ({"step": 15, "schedule": {"steps": 15}}, {}, False, "minutes"),
        ({"step": 14, "schedule": {"steps": 15}}, {}, False, None),
    ],
)
def test_a_training_ends_for_one_reason(state, changes, stopped, reason, tmp_path):
    task = begun(tmp_path, **{"patience": 0} | changes)
    task.state = TrainState(**state)
    task.__post_init__()
    assert loop.finished(task, stopped) == reason


def test_the_progress_line_by_hand(tmp_path):
    """60 updates of 2 seconds each; the loss and the speed are those of the last 50."""
    now = [7.0]
    task = begun(tmp_path, steps=1_000, warmup=100)
    task.state = state = TrainState(step=100, seconds=30.0, epoch=1)
    pace = loop.Pace(state, lambda: now[0])
    assert pace.seconds() == 30.0
    for number in range(60):
        now[0] += 2.0
        state.step, state.seconds = 101 + number, pace.seconds()
        line = pace.line(task, outcome_of(1e9 if number < 10 else 40.0, 20))
    assert state.seconds == 150.0
    # 840 updates are left; 50 updates had 20 tokens each, in 100 seconds; the rate is 1 / sqrt(16 * 160).
    assert line == (
        "160/1,000 updates  0:28:00 left  loss 2.000  ppl 2.718  10 tok/s  epoch 2  lr 1.98e-02"
    )
    assert "ppl 1.014e+304" in pace.line(task, outcome_of(1e9, 1))
    for minutes, left in ((10.0, "0:07:30"), (100.0, "0:28:00")):
        task.schedule = replace(task.schedule, minutes=minutes)
        assert f" updates  {left} left" in pace.line(task, outcome_of(1e9, 1))


@pytest.mark.parametrize("insist", [False, True])
def test_a_signal_stops_a_training_and_a_second_one_ends_the_process(insist, capsys):
    handlers = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    with loop.stop_signals(insist=insist) as stopped:
        assert not stopped()
        signal.raise_signal(signal.SIGTERM)
        assert stopped() and "Stopping after this update." in capsys.readouterr().err
        now = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
        if insist:
            signal.raise_signal(signal.SIGINT)
            assert capsys.readouterr().err == ""
        else:
            assert now == [signal.SIG_DFL] * 2
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == handlers


def test_only_the_main_thread_hears_signals():
    found = []

    def hear() -> None:
        with loop.stop_signals() as stopped:
            found.append(stopped())

    thread = threading.Thread(target=hear)
    thread.start()
    thread.join()
    assert found == [False]


def test_the_schedule_follows_the_clock_of_the_first_rank(tmp_path, capsys):
    """20 updates of a second are planned, but after 10 of them 5 seconds are left."""
    task = begun(tmp_path, steps=20, cooldown=10, minutes=0.25, validate_every=99, save_every=99)
    task.state.step, task.state.seconds, task.state.update_seconds = 10, 10.0, 1.0
    task.state.limits = limits = schedule.limits(task.config.train)
    expected = schedule.in_time(10, task.schedule, 20, 5.0, [(1, 1.0), (99, 0.0), (99, 0.0)])
    changed = {name: getattr(expected, name) for name in loop.CHANGING}
    assert expected.steps == 15
    loop.follow_clock(task)
    assert task.schedule == expected and task.state.schedule == changed
    assert "falls now, to zero after about 15 updates." in capsys.readouterr().err
    (event,) = read_events(tmp_path / JOURNAL)
    event.pop("time")
    assert event == {"event": "cooldown", "step": 10, "limits": limits, **changed}
    loop.follow_clock(task)
    assert len([*read_events(tmp_path / JOURNAL)]) == 1, "nothing changes again"
    task.state.seconds = 12.0
    loop.follow_clock(task)
    assert "falls now" not in capsys.readouterr().err and task.schedule.steps == 13
    again = begun(tmp_path / "again", steps=20, cooldown=10, minutes=0.25)
    again.state.recorded = {"10": changed, "12": {**changed, "steps": 14}}
    again.state.seconds, again.state.update_seconds = 14.9, 1.0
    for step, steps in ((9, 20), (10, 15), (11, 15), (12, 14)):
        again.state.step = step
        loop.follow_clock(again)
        assert again.schedule.steps == steps, "the earlier changes, and no other"
    assert not again.state.recorded and not [*read_events(tmp_path / "again" / JOURNAL)]
