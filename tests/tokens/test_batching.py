"""Tests of transduce/tokens/batching.py."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from transduce.tokens.batching import micro_batches, padding_share

lengths = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), max_size=200).map(
    lambda rows: np.array(rows, dtype=np.int64).reshape(-1, 2).T
)


budgets = st.integers(41, 500)


seeds = st.integers(0, 2**40)


@given(lengths=lengths, budget=budgets, seed=seeds, epoch=st.integers(0, 1000))
def test_every_sentence_in_one_batch_within_the_budget(lengths, budget, seed, epoch):
    batches = micro_batches(*lengths, budget=budget, seed=seed, epoch=epoch)
    assert sorted(i for batch in batches for i in batch) == list(range(lengths.shape[1]))
    for batch in batches:
        assert len(batch) * (lengths[:, batch].max() + 1) <= budget
    again = micro_batches(*lengths.tolist(), budget=budget, seed=seed, epoch=epoch)
    assert [batch.tolist() for batch in again] == [batch.tolist() for batch in batches]


@given(lengths=lengths, budget=budgets, seed=seeds)
def test_no_two_batches_would_fit_into_one(lengths, budget, seed):
    batches = micro_batches(*lengths, budget=budget, seed=seed, epoch=0)
    for one, other in itertools.combinations(batches, 2):  # so at most one is less than half full
        both = np.concatenate((one, other))
        assert len(both) * (lengths[:, both].max() + 1) > budget


def test_epochs_and_seeds_differ():
    random = np.random.default_rng(0)
    source = random.integers(1, 30, 2000)
    target = np.maximum(1, source + random.integers(-3, 4, 2000))

    def plan(seed: int, epoch: int) -> list[frozenset[int]]:
        return [
            frozenset(b.tolist())
            for b in micro_batches(source, target, budget=600, seed=seed, epoch=epoch)
        ]

    for other in (plan(1, 1), plan(2, 0)):
        assert len(set(plan(1, 0)) & set(other)) < len(other) / 4  # others share a batch
        # And come in another order.
        assert [len(batch) for batch in plan(1, 0)] != [len(batch) for batch in other]


def test_padding_share_by_hand():
    # One batch of (2 + 1, 4 + 1) and (1 + 1, 4 + 1) source and target cells: 16 cells, one of them padding.
    assert padding_share([([2, 1], [4, 4])]) == pytest.approx(1 / 16)
    assert padding_share([([2], [4]), ([1], [4])]) == 0
    assert padding_share([]) == 0


def test_sentences_of_similar_length_share_a_batch():
    random = np.random.default_rng(0)
    source = np.clip(random.gamma(8, 2, 30_000), 1, 100).astype(int)
    target = np.clip(source * random.normal(1, 0.2, 30_000), 1, 100).astype(int)
    shuffled = np.array_split(random.permutation(30_000), 200)

    def share(batches):
        return padding_share((source[batch], target[batch]) for batch in batches)

    for budget, allowed in ((1024, 0.02), (4096, 0.05)):
        batches = micro_batches(source, target, budget=budget, seed=1, epoch=0)
        assert share(batches) < allowed < share(shuffled)


def test_a_sentence_above_the_budget_is_refused():
    assert len(micro_batches([9], [3], budget=10, seed=0, epoch=0)) == 1
    with pytest.raises(ValueError, match="11 tokens"):
        micro_batches([3, 10], [3, 3], budget=10, seed=0, epoch=0)
