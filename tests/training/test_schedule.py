"""Tests of transduce/training/schedule.py."""

from dataclasses import replace

import pytest

from corpora import reverse_rows
from small_trainings import MODEL, TRAIN, perplexities, training
from transduce.config.schema import TrainConfig
from transduce.model.seq2seq import make_batch
from transduce.system.journal import read_events
from transduce.training import loop
from transduce.training.objectives import sums_of
from transduce.training.schedule import learning_rate


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
