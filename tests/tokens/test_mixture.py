"""Several corpora as one: every pair is seen as often per epoch as its corpus weighs."""

import itertools
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpora import blocks, reverse_rows
from transduce.tokens import mixture as tokens_mixture
from transduce.tokens.batching import micro_batches
from transduce.tokens.mixture import Mixture, SampledMixture, choose
from transduce.tokens.store import StoreView, TokenStore, write_store
from transduce.tokens.vocabulary import Rows, pack

CORPORA = [
    reverse_rows(7, seed=1),
    reverse_rows(0, seed=2),
    reverse_rows(20, seed=3),
    reverse_rows(5, seed=4),
]
weights = st.lists(st.floats(0, 3) | st.sampled_from([0.0, 0.5, 1.0, 2.0]), min_size=4, max_size=4)


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    folder = tmp_path_factory.mktemp("stores")
    for number, rows in enumerate(CORPORA):
        write_store(
            folder / str(number),
            blocks((*row, number, line) for line, row in enumerate(rows, start=1)),
        )
    return [TokenStore(folder / str(number)) for number in range(len(CORPORA))]


def chosen(mixture: Mixture, epoch: int, seed: int = 1) -> list[int]:
    """All pairs of an epoch, in order."""
    plan = mixture.plan(epoch, 0, budget=40, accumulate=2, seed=seed)
    return np.concatenate([batch for batches in plan for batch in batches] or [[]]).tolist()


def test_pairs_are_numbered_through(stores):
    mixture = Mixture(stores, [1.0] * 4)
    rows = [
        (store, row) for store, corpus in enumerate(CORPORA) for row in enumerate(corpus, start=1)
    ]
    assert len(mixture) == len(rows) == 32
    for index, (store, (line, (source, target))) in enumerate(rows):
        pair = np.array([index])
        assert [ids.tolist() for ids in (*mixture.sources(pair), *mixture.targets(pair))] == [
            source,
            target,
        ]
        lengths = np.array(mixture.lengths(pair))
        assert lengths.tolist() == [[len(source)], [len(target)]] and lengths.dtype == np.int64
        assert mixture.origin(index) == (store, store, line)


def test_a_tag_may_be_larger_than_all_tokens_of_a_corpus(stores):
    mixture = Mixture([StoreView(store, tags=(70_000,)) for store in stores], [1.0] * 4)
    assert mixture.sources(np.array([0]))[0].tolist() == [70_000, *CORPORA[0][0][0]]


@given(pairs=st.lists(st.integers(0, 31)))
def test_many_pairs_are_looked_up_like_single_ones(stores, pairs):
    mixture, chosen = Mixture(stores, [1.0] * 4), np.array(pairs, dtype=np.int64)
    rows = list(itertools.chain.from_iterable(CORPORA))
    assert [ids.tolist() for ids in mixture.sources(chosen)] == [rows[pair][0] for pair in pairs]
    assert [ids.tolist() for ids in mixture.targets(chosen)] == [rows[pair][1] for pair in pairs]


@given(weights=weights, epoch=st.integers(0, 5), seed=st.integers(0, 5))
def test_every_pair_is_seen_as_often_as_its_corpus_weighs(stores, weights, epoch, seed):
    mixture = Mixture(stores, weights)
    counts = Counter(chosen(mixture, epoch, seed))
    for store, weight in enumerate(weights):
        each = [counts[index] for index in range(mixture.starts[store], mixture.starts[store + 1])]
        assert all(int(weight) <= count <= int(weight) + 1 for count in each)
        assert abs(sum(each) - weight * len(each)) <= 0.5


@given(
    weights=weights,
    epoch=st.integers(0, 5),
    accumulate=st.integers(1, 4),
    budget=st.integers(8, 60),
)
def test_the_plan_is_a_pure_function_and_keeps_the_budget(
    stores, weights, epoch, accumulate, budget
):
    plan = Mixture(stores, weights).plan(epoch, 0, budget=budget, accumulate=accumulate, seed=3)
    again = Mixture(stores, weights).plan(epoch, 0, budget=budget, accumulate=accumulate, seed=3)
    assert [[batch.tolist() for batch in batches] for batches in plan] == [
        [batch.tolist() for batch in batches] for batches in again
    ]
    assert all(len(batches) == accumulate for batches in plan[:-1])
    assert all(1 <= len(batches) <= accumulate for batches in plan[-1:])
    mixture = Mixture(stores, weights)
    for batch in itertools.chain.from_iterable(plan):
        assert len(batch) * (np.max(mixture.lengths(batch)) + 1) <= budget


def test_the_same_micro_batches_whatever_is_accumulated(stores):
    mixture = Mixture(stores, [1.0, 1.0, 0.5, 2.0])
    plans = [mixture.plan(1, 0, budget=30, accumulate=number, seed=1) for number in (1, 3)]
    one, three = ([batch.tolist() for batches in plan for batch in batches] for plan in plans)
    assert one == three


def test_fractions_of_a_corpus_are_redrawn_every_epoch(stores):
    mixture = Mixture(stores, [1.0, 1.0, 0.5, 0.0])
    epochs = [chosen(mixture, epoch) for epoch in range(12)]
    assert len({tuple(epoch) for epoch in epochs}) == 12
    assert chosen(mixture, 0, seed=2) != epochs[0]
    halves = [frozenset(index for index in epoch if 7 <= index < 27) for epoch in epochs]
    assert all(len(half) == 10 for half in halves)
    assert len(set(halves)) > 6
    assert frozenset.union(*halves) == set(range(7, 27))


# -- more pairs than are planned together -----------------------------------------------------------------


@pytest.fixture
def _small_blocks(monkeypatch):
    monkeypatch.setattr(tokens_mixture, "BLOCK_PAIRS", 10)
    monkeypatch.setattr(tokens_mixture, "RUN_PAIRS", 3)


def blocks_of(mixture: Mixture, epoch: int, seed: int = 1) -> list[list[int]]:
    """The pairs of every block of an epoch."""
    plans = [
        mixture.plan(epoch, block, budget=40, accumulate=2, seed=seed)
        for block in range(mixture.blocks)
    ]
    return [
        np.concatenate([batch for batches in plan for batch in batches]).tolist() for plan in plans
    ]


@pytest.mark.usefixtures("_small_blocks")
@given(weights=weights, epoch=st.integers(0, 5), seed=st.integers(0, 5))
def test_blocks_together_show_every_pair_as_often_as_its_corpus_weighs(
    stores, weights, epoch, seed
):
    mixture = Mixture(stores, weights)
    drawn = [] if mixture.pairs_per_epoch == 0 else blocks_of(mixture, epoch, seed)
    counts = Counter(itertools.chain.from_iterable(drawn))
    for store, weight in enumerate(weights):
        each = [counts[index] for index in range(mixture.starts[store], mixture.starts[store + 1])]
        assert all(int(weight) <= count <= int(weight) + 1 for count in each)
        assert sum(each) - int(weight) * len(each) == round(weight % 1 * len(each))
    assert sum(counts.values()) == mixture.pairs_per_epoch
    assert all(len(block) <= 10 + 2 * 3 for block in drawn)


def test_a_corpus_that_fits_into_a_block_is_planned_as_a_whole(stores):
    mixture = Mixture(stores, [1.0] * 4)
    whole = micro_batches(*mixture.lengths(np.arange(32)), budget=30, seed=4, epoch=2)
    plan = mixture.plan(2, 0, budget=30, accumulate=1, seed=4)
    assert (mixture.blocks, [batch.tolist() for (batch,) in plan]) == (
        1,
        [batch.tolist() for batch in whole],
    )


@pytest.mark.usefixtures("_small_blocks")
def test_blocks_are_redrawn_every_epoch(stores):
    mixture = Mixture(stores, [1.0] * 4)
    epochs = [[frozenset(block) for block in blocks_of(mixture, epoch)] for epoch in range(20)]
    assert mixture.blocks == 4 and len({block for blocks in epochs for block in blocks}) > 60
    assert epochs[3] == [frozenset(block) for block in blocks_of(mixture, 3)]
    last = [max(number for number, block in enumerate(blocks) if 31 in block) for blocks in epochs]
    assert set(last) == {0, 1, 2, 3}  # the end of the corpus may come in any of them


@pytest.mark.parametrize("size", [1, 5, 99])
def test_the_longest_pair_is_found_in_any_slice(stores, monkeypatch, size):
    monkeypatch.setattr(tokens_mixture, "SLICE_PAIRS", size)
    mixture = Mixture(stores, [1.0] * 4)
    longer = np.maximum(*mixture.lengths(np.arange(32)))
    assert mixture.longest() == (longer.argmax(), longer.max())
    assert mixture.longest()[0] not in mixture.starts
    assert Mixture(stores[1:2], [1.0]).longest() == (0, -1)


# -- pairs that change


def doubled(pairs: list[Rows], random: np.random.Generator) -> list[Rows]:
    """Each source twice, each target with a random number before it."""
    source, target = (side.lists() for side in pairs)
    numbers = random.integers(4, 14, len(target)).tolist()
    return [
        pack([row + row for row in source]),
        pack([[number, *row] for number, row in zip(numbers, target, strict=True)]),
    ]


@pytest.mark.parametrize("together", [4, 100])
@pytest.mark.parametrize("tags", [(), (99,), (98, 99)])
def test_changed_pairs_are_read_as_they_were_planned(stores, monkeypatch, together, tags):
    monkeypatch.setattr(tokens_mixture, "SAMPLED_PAIRS", together)
    plain = Mixture([StoreView(store, tags=tags) for store in stores], [1.0, 1.0, 0.5, 2.0])
    sampled = SampledMixture(plain, doubled)
    longest = plain.longest()[1]
    epochs = []
    for epoch in (0, 1, 0):
        plan = sampled.plan(epoch, 0, budget=40, accumulate=2, seed=3)
        planned = np.concatenate([batch for batches in plan for batch in batches])
        unchanged = plain.plan(epoch, 0, budget=40, accumulate=2, seed=3)
        assert sorted(planned) == sorted(itertools.chain(*itertools.chain(*unchanged)))
        chosen = np.unique(planned)
        drawn = (
            [row.tolist() for row in sampled.sources(chosen)],
            [row.tolist() for row in sampled.targets(chosen)],
        )
        before = (
            [row.tolist() for row in plain.sources(chosen)],
            [row.tolist() for row in plain.targets(chosen)],
        )
        its = [*tags]
        changed = 0
        for old, new in zip(zip(*before, strict=True), zip(*drawn, strict=True), strict=True):
            words = old[0][len(its) :]
            fits = 2 * len(words) + len(its) <= longest and len(old[1]) + 1 + len(its) <= longest
            expected = [*its, *words, *words] if fits else old[0]
            assert new[0] == expected and new[1][-len(old[1]) :] == old[1]
            assert len(new[1]) == len(old[1]) + fits
            changed += fits
        assert 0 < changed < len(chosen)
        lengths = np.array(sampled.lengths(chosen)).tolist()
        assert lengths == [list(map(len, drawn[0])), list(map(len, drawn[1]))]
        for batch in itertools.chain.from_iterable(plan):
            assert len(batch) * (np.max(sampled.lengths(batch)) + 1) <= 40
        epochs.append(drawn)
    assert epochs[0] == epochs[2] != epochs[1]


def test_rows_are_chosen_from_two():
    one, other = pack([[1], [2, 3], []]), pack([[4, 5], [], [6]])
    chosen = choose(np.array([True, False, False]), one, other)
    assert chosen.lists() == [[1], [], [6]]
    assert choose(np.array([False, True, True]), one, other).lists() == [[4, 5], [2, 3], []]


def test_weights_by_hand(stores):
    mixture = Mixture(stores, [1.0, 3.0, 0.25, 1.5])
    counts = Counter(chosen(mixture, 0))
    sizes = [sum(counts[i] for i in range(*mixture.starts[s : s + 2])) for s in range(4)]
    assert sizes == [7, 0, 5, 7]
    assert mixture.pairs_per_epoch == sum(sizes)
    assert mixture.blocks == Mixture(stores, [0.0] * 4).blocks == 1
    assert Mixture(stores, [0.0] * 4).plan(0, 0, budget=40, accumulate=1, seed=1) == []


def test_each_store_has_its_own_tag(stores):
    mixture = Mixture(
        [StoreView(store, tags=(90 + at,)) for at, store in enumerate(stores)], [1.0] * 4
    )
    rows = [(90 + at, row) for at, corpus in enumerate(CORPORA) for row in corpus]
    every = np.arange(32)
    assert [row.tolist() for row in mixture.sources(every)] == [
        [tag, *source] for tag, (source, _) in rows
    ]
    assert [row.tolist() for row in mixture.targets(every)] == [target for _, (_, target) in rows]
    lengths = [
        [1 + len(source) for _, (source, _) in rows],
        [len(target) for _, (_, target) in rows],
    ]
    assert np.array(mixture.lengths(every)).tolist() == lengths
    longest = max(map(max, zip(*lengths, strict=True)))
    assert mixture.longest() == (lengths[0].index(longest), longest)
    backwards = Mixture([StoreView(stores[0], swapped=True), stores[2]], [1.0, 1.0])
    pair = np.array([3, 8])
    assert [row.tolist() for row in backwards.sources(pair)] == [CORPORA[0][3][1], CORPORA[2][1][0]]
    assert [row.tolist() for row in backwards.targets(pair)] == [CORPORA[0][3][0], CORPORA[2][1][1]]


@pytest.mark.usefixtures("_small_blocks")
def test_changes_are_drawn_anew_for_each_block_epoch_and_seed(stores):
    sampled = SampledMixture(Mixture(stores, [2.0] * 4), doubled)
    drawn = set()
    for seed, epoch, block in itertools.product((3, 4), (0, 1), range(2)):
        sampled.plan(epoch, block, budget=40, accumulate=2, seed=seed)
        targets = sampled.targets(sampled._pairs[:8])
        drawn.add(tuple(row[0] for row in targets))
    assert len(drawn) == 8
