"""Tests of transduce/text/holdout.py."""

import itertools
import tracemalloc
from typing import NamedTuple
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from text_files import number
from transduce.system.errors import UserError
from transduce.text.holdout import Part, _choose, hold_out, normalised
from transduce.text.holdout import sentences as hashes_of
from transduce.text.pairs import Pair


class Split(NamedTuple):
    train: list[Pair]
    held_out: list[Pair]
    dropped: list[Pair]


def split_off(pairs: list[Pair], count: int, seed: int) -> Split:
    parts = hold_out(lambda: [hashes_of(pairs)], count, seed).tolist()
    return Split(
        *(
            [pair for pair, its in zip(pairs, parts, strict=True) if its == part]
            for part in (Part.TRAIN, Part.HELD_OUT, Part.DROPPED)
        )
    )


def sentences(pairs: list[Pair]) -> set[str]:
    return {" ".join(text.casefold().split()) for pair in pairs for text in pair[:2]}


def related(pair: Pair, pairs: list[Pair]) -> list[Pair]:
    """All pairs that sentences link to this one, found by growing."""
    known = sentences([pair])
    while True:
        found = [other for other in pairs if sentences([other]) & known]
        if sentences(found) <= known:
            return found
        known |= sentences(found)


words = st.builds(
    lambda i, case, space: case(f"satz {i}").replace(" ", space),
    st.integers(0, 60),
    st.sampled_from([str.upper, str.lower, str.title]),
    st.sampled_from([" ", "  ", "\u00a0"]),
)


@given(
    st.lists(st.tuples(words, words), min_size=1, max_size=60),
    st.integers(1, 10),
    st.integers(0, 3),
)
def test_no_sentence_is_on_both_sides(texts, count, seed):
    pairs = number(texts)
    try:
        split = split_off(pairs, count, seed)
    except UserError:
        assert related(pairs[0], pairs) == pairs
        return
    if len(pairs) // 10 < count:
        assert split == Split(pairs, [], [])
        return
    assert not sentences(split.train) & sentences(split.held_out)
    assert sorted(itertools.chain(*split), key=lambda pair: pair.origin) == pairs
    assert all(list(part) == sorted(part, key=lambda pair: pair.origin) for part in split)
    assert 1 <= len(split.held_out) <= count
    assert len(split.held_out) == 1 or len(split.held_out) + len(split.dropped) <= len(pairs) // 10
    components = [related(pair, pairs) for pair in split.held_out]
    assert sum(map(len, components)) == len(split.held_out) + len(split.dropped)  # one pair of each
    assert split_off(pairs, count, seed) == split


def test_the_giant_component_stays_in_training():
    giant = [("hello", f"hallo {i}") for i in range(900)]
    twins = [(f"s{i // 2}", f"t{i}") for i in range(100)]
    split = split_off(number(giant + twins), 40, seed=1)
    assert (len(split.train), len(split.held_out), len(split.dropped)) == (920, 40, 40)
    assert split.train[:900] == number(giant)


@pytest.mark.parametrize(
    ("pairs", "count", "held_out"),
    [
        (157, 1000, 15),
        (100, 1000, 10),
        (99, 1000, 0),
        (99, 9, 9),
        (57, 6, 0),
        (57, 5, 5),
        (1, 1, 0),
        (157, 0, 0),
    ],
)
def test_a_small_corpus_gives_a_tenth_or_if_that_is_too_few_none(pairs, count, held_out):
    split = split_off(number([(f"s{i}", f"t{i}") for i in range(pairs)]), count, seed=1)
    assert [len(part) for part in split] == [pairs - held_out, held_out, 0]


def test_memory_for_a_pair_is_that_of_four_numbers_of_sentences_and_a_little():
    """Two of them say what a pair links, two where that leads, at 4 bytes each; its hashes are read when needed."""
    hashes = np.random.default_rng(1).integers(0, 2**63, (300_000, 2)).astype("<u8")
    with patch("transduce.text.holdout.SLICE_ITEMS", 2000):
        tracemalloc.start()
        try:
            hold_out(lambda: np.split(hashes, 100), 1000, seed=1)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert peak < 22 * len(hashes)


def test_corpus_that_can_not_be_split_is_refused():
    texts = [("a", "b"), ("A ", "c"), ("d", "c"), ("e", "D")] * 3
    with pytest.raises(
        UserError, match=r"shared sentences link all 12 pairs.*or give validation files"
    ):
        split_off(number(texts), 1, seed=1)


def test_long_chains_of_sentences_take_no_long_time():
    chain = number([(f"s{i}", f"s{i + 1}") for i in range(20_000)])
    split = split_off([*chain[::-1], *number([("alone", "allein")])], 10, seed=1)
    assert [len(part) for part in split] == [20_000, 1, 0]


@pytest.mark.parametrize(
    ("count", "budget", "sizes"),
    [
        (2, 9, [1, 1]),
        (10, 7, [1, 1, 1, 2, 2]),  # 3 pairs, and two components of 2
        (10, 9, [1, 1, 1, 2, 2, 2]),
        (10, 13, [1, 1, 1, 2, 2, 2, 4]),
        (10, 99, [1, 1, 1, 2, 2, 2, 4, 4]),
        (4, 99, [1, 1, 1, 2]),
        (10, 0, [1]),
    ],
)
def test_the_smallest_components_are_chosen_while_their_pairs_are_few(count, budget, sizes):
    every = np.array([2, 0, 1, 4, 1, 0, 2, 1, 4, 2], dtype=np.int32)
    with patch("transduce.text.holdout.SLICE_ITEMS", 3):
        chosen = _choose(every, count, budget, np.random.default_rng(1))
    assert every[chosen].tolist() == sizes and len({*chosen.tolist()}) == len(sizes)


@settings(max_examples=12)
@given(
    st.lists(st.tuples(words, words), min_size=12, max_size=60),
    st.integers(1, 10),
    st.lists(st.integers(0, 60), max_size=3),
)
def test_slices_of_any_length_and_blocks_of_any_size_give_the_same_parts(texts, count, cuts):
    hashes = hashes_of(number(texts))
    ends = [*sorted({min(cut, len(texts)) for cut in cuts}), len(texts)] if cuts else []
    try:
        whole = hold_out(lambda: [hashes], count, 1, ends).tolist()
    except UserError:
        return
    with patch("transduce.text.holdout.SLICE_ITEMS", 3):
        parts = hold_out(lambda: np.array_split(hashes, 5), count, 1, ends)
    assert parts.tolist() == whole


@settings(max_examples=12)
@given(
    st.lists(st.tuples(words, words), min_size=12, max_size=60),
    st.integers(1, 10),
    st.lists(st.integers(0, 60), min_size=1, max_size=3),
)
def test_each_corpus_has_held_out_pairs_and_no_sentence_is_on_both_sides(texts, count, cuts):
    pairs = number(texts)
    ends = [*sorted({min(cut, len(pairs)) for cut in cuts}), len(pairs)]
    try:
        parts = hold_out(lambda: [hashes_of(pairs)], count, 1, ends).tolist()
    except UserError:
        assert related(pairs[0], pairs) == pairs
        return
    train = [pair for pair, part in zip(pairs, parts, strict=True) if part == Part.TRAIN]
    others = [pair for pair, part in zip(pairs, parts, strict=True) if part != Part.TRAIN]
    held_out = [pair for pair, part in zip(pairs, parts, strict=True) if part == Part.HELD_OUT]
    assert not sentences(train) & sentences(others)
    components = [related(pair, pairs) for pair in held_out]
    assert sum(map(len, components)) == len(others)  # one pair of each
    sizes = [end - begin for begin, end in itertools.pairwise([0, *ends]) if begin < end]
    begin = 0
    for size in sizes:
        own = [pair for pair in held_out if begin < pair.origin.line <= begin + size]
        assert len(own) <= -(-count // len(sizes))
        size_of_own = sum(len(related(pair, pairs)) for pair in own)
        assert len(own) <= 1 or size_of_own <= min(len(pairs) // len(sizes), size) // 10
        begin += size


@pytest.mark.parametrize(
    ("sizes", "count", "held_out"),
    [
        ((200, 200), 20, [10, 10]),
        ((200, 200), 19, [10, 10]),
        ((200, 40), 40, [12, 4]),  # a tenth of each corpus, and an equal share of a tenth of all
        ((200, 0, 200), 20, [10, 0, 10]),
        ((200, 15), 40, [10, 1]),
        ((200, 5), 40, [10, 1]),
        ((200, 1), 40, [10, 0]),  # its only pair is trained on
        ((30, 30), 40, [3, 3]),
    ],
)
def test_corpora_get_equal_shares_of_the_held_out_pairs(sizes, count, held_out):
    pairs = number([(f"s{i}", f"t{i}") for i in range(sum(sizes))])
    ends = np.cumsum(sizes).tolist()
    parts = hold_out(lambda: [hashes_of(pairs)], count, 1, ends)
    corpora = np.split(parts, ends[:-1])
    assert [np.count_nonzero(corpus == Part.HELD_OUT) for corpus in corpora] == held_out


@pytest.mark.parametrize("seed", range(5))
def test_pairs_of_another_corpus_that_share_a_held_out_sentence_are_dropped(seed):
    """The first corpus has two of the four pairs with a, b or c; of what is left, the second has only one component."""
    first = [("a", "b"), ("b", "c"), *((f"s{i}", "t") for i in range(18))]
    second = [("A", "x"), ("C ", "y"), ("u", "v"), ("w", "v")]
    hashes = hashes_of(number([*first, *second]))
    parts = hold_out(lambda: [hashes], 2, seed, [20, 24]).tolist()
    assert sorted(parts[:2]) == [Part.HELD_OUT, Part.DROPPED]
    assert parts[2:] == [Part.TRAIN] * 18 + [Part.DROPPED] * 2 + [Part.TRAIN] * 2


def test_any_pair_of_a_component_may_be_held_out():
    twins = number([(f"s{i // 3}", f"t{i}") for i in range(300)])
    chosen = np.concatenate(
        [np.flatnonzero(hold_out(lambda: [hashes_of(twins)], 10, seed) == 1) for seed in (1, 2, 3)]
    )
    assert len({*chosen}) > 20 and {*chosen % 3} == {0, 1, 2}
    assert all(len({*some // 3}) == len(some) == 10 for some in np.split(chosen, 3))
    both = hold_out(lambda: [hashes_of(twins)], 20, 1, [150, 300])
    assert {*np.flatnonzero(both == Part.HELD_OUT) % 3} == {0, 1, 2}


def test_pairs_that_count_as_kept_come_before_those_that_cleaning_leaves_out():
    kept = [part for part in Part if part <= Part.DROPPED]
    assert kept == [Part.TRAIN, Part.HELD_OUT, Part.DROPPED] and len(Part) == 5


def test_case_and_white_space_do_not_make_another_sentence():
    assert normalised(" Die\u00a0STRASSE\t ist\u3000lang ") == normalised("die straße ist lang")
    assert normalised("die straßeist") != normalised("die straße ist")
    [one, other] = hashes_of(number([("a B", "c"), ("C", " A  b")])).tolist()
    assert one == other[::-1] and one[0] != one[1]
