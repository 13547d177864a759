"""Tests of transduce/training/loop.py."""

import itertools
from dataclasses import replace

import pytest
import torch
from safetensors.torch import load_file

from corpora import reverse_rows
from small_trainings import MODEL, TRAIN, perplexities, same, training, weights
from transduce.decoding.beam import beam_search
from transduce.decoding.stepper import ModelStepper
from transduce.evaluation.perplexity import Validation
from transduce.model.seq2seq import source_tensor
from transduce.model_folder import checkpoints_in, step_of
from transduce.system.errors import UserError
from transduce.system.files import verify
from transduce.system.journal import read_events
from transduce.tokens import mixture as tokens_mixture
from transduce.training import loop


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
    plan = loop.updates(task)
    for step in range(1, 13):
        if step == 9:
            bias.data[0] = 0.0
        batches = next(plan)
        loop.log_update(task, loop.learn(task, batches), batches)
    assert task.state.skipped == 0
    last = list(read_events(tmp_path / "journal.jsonl"))[-1]
    assert (last["event"], last["step"]) == ("update", 10)
    assert 2 < last["loss"] < 5  # a mean over the two updates that counted


def test_a_micro_batch_has_its_share_of_the_budget(tmp_path):
    task = training(
        tmp_path, reverse_rows(100, seed=1), MODEL, replace(TRAIN, accumulate=3), perplexities()
    )
    plan = loop.updates(task)
    first = next(plan)
    assert len(first) == 3
    # 512 / 3, rounded up.
    assert all((task.data.lengths(batch)[0].max() + 1) * len(batch) <= 171 for batch in first)


def test_resumed_training_continues_inside_a_block(tmp_path, monkeypatch):
    monkeypatch.setattr(tokens_mixture, "BLOCK_PAIRS", 40)
    monkeypatch.setattr(tokens_mixture, "RUN_PAIRS", 7)
    task = training(tmp_path, reverse_rows(100, seed=1), MODEL, TRAIN, perplexities())
    task.config = replace(task.config, data=replace(task.config.data, max_tokens=50))
    assert task.data.blocks == 3
    stream, states, seen = loop.updates(task), [], []
    while task.state.epoch < 2:
        seen.append([batch.tolist() for batch in next(stream)])
        states.append(replace(task.state))
        task.state.position += 1  # as `learn` does
    assert max(state.position for state in states) > 2, "a block of one update shows nothing"
    for place, state in enumerate(states):
        task.state = replace(state)  # which moves along
        again = itertools.islice(loop.updates(task), 3)
        assert [[batch.tolist() for batch in batches] for batches in again][
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
