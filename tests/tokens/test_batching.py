"""Tests of transduce/tokens/batching.py."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from transduce.model.packing import places
from transduce.tokens.batching import (
    _by_length,
    batches,
    micro_batches,
    packed_batches,
    padding_share,
)

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


def test_blocks_of_an_epoch_are_shuffled_anew():
    lengths = np.random.default_rng(0).integers(1, 30, 300)
    first, second, again = (
        [
            batch.tolist()
            for batch in micro_batches(lengths, lengths, budget=90, seed=1, epoch=2, **options)
        ]
        for options in ({}, {"block": 1}, {"block": 0})
    )
    assert first == again != second


def test_both_sides_have_as_many_sentences():
    with pytest.raises(ValueError, match="there are 2 source lengths and 1 target lengths"):
        micro_batches([1, 2], [1], budget=9, seed=0, epoch=0)


def test_pairs_are_sorted_by_their_greater_length_and_then_by_the_difference_in_a_zigzag():
    random = np.random.default_rng(0)
    source, target = random.integers(1, 7, (2, 200))
    longer = np.maximum(source, target)
    seen = set()
    for _ in range(20):
        order = _by_length(source, target, random)
        assert sorted(order.tolist()) == [*range(200)]
        is_rising = longer[order[0]] < longer[order[-1]]
        steps = np.diff(longer[order])
        assert (steps >= 0).all() if is_rising else (steps <= 0).all()
        zigzag = set()
        for length in range(2, 7):
            difference = np.diff((source - target)[order][longer[order] == length])
            ascends, descends = bool((difference >= 0).all()), bool((difference <= 0).all())
            assert ascends != descends
            zigzag.add(ascends == (length % 2 == 0))
        assert len(zigzag) == 1
        seen.add((is_rising, *zigzag))
    assert len(seen) == 4


@given(st.lists(st.integers(0, 30), max_size=40), st.integers(1, 90))
def test_texts_are_batched_from_the_longest_on(lengths, budget):
    found = [*batches(lengths, budget)]
    order = [i for batch in found for i in batch]
    assert order == sorted(range(len(lengths)), key=lambda i: -lengths[i])
    for batch, following in itertools.pairwise([*found, []]):
        longest = lengths[batch[0]]
        assert len(batch) == 1 or len(batch) * longest <= budget
        assert not following or (len(batch) + 1) * longest > budget, "one more would fit"


def test_batches_of_texts_by_hand():
    assert [*batches([2, 5, 9, 3, 5], 10)] == [[2], [1, 4], [3, 0]]
    assert [*batches([], 10)] == [] and [*batches([11, 12], 10)] == [[1], [0]]


@given(
    lengths=lengths,
    width=st.integers(41, 90),
    rows=st.integers(1, 5),
    seed=seeds,
    rest=st.integers(0, 40),
)
def test_every_sentence_in_one_packed_row(lengths, width, rows, seed, rest):
    plan = {"budget": rows * width + rest, "width": width, "seed": seed, "epoch": 3}
    batches = packed_batches(*lengths, **plan)
    assert sorted(i for batch in batches for i in batch) == list(range(lengths.shape[1]))
    needed = [places(lengths[:, batch] + 1, width)[0][-1] + 1 for batch in batches]
    assert all(needed[place] == rows for place in range(len(needed) - 1)), "as planned"
    assert not needed or needed[-1] <= rows
    again = packed_batches(*lengths.tolist(), **plan)
    assert [batch.tolist() for batch in again] == [batch.tolist() for batch in batches]


def test_rows_are_nearly_full():
    """Of text as in newspapers, 27 subwords a sentence, both sides take at least 95 % of rows of 512 tokens."""
    random = np.random.default_rng(1)
    source = random.lognormal(np.log(27) - 0.15, 0.55, 20_000).astype(int).clip(1, 100)
    target = (source * random.normal(1, 0.1, len(source))).astype(int).clip(1, 100)
    batches = packed_batches(source, target, budget=25_600, width=512, seed=1, epoch=0)
    used = sum(int((side[batch] + 1).sum()) for batch in batches[:-1] for side in (source, target))
    assert used / (2 * 25_600 * (len(batches) - 1)) > 0.95
    other = packed_batches(source, target, budget=25_600, width=512, seed=1, epoch=1)
    assert other[0].tolist() != batches[0].tolist()


def test_a_sentence_longer_than_a_row_is_refused():
    with pytest.raises(ValueError, match="a sentence of 31 tokens"):
        packed_batches([30], [2], budget=100, width=30, seed=1, epoch=0)
