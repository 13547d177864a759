"""Tests of transduce/text/hashes.py."""

from hashlib import blake2b
from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from transduce.text.hashes import SeenHashes, alike, hash_texts


@given(st.lists(st.lists(st.integers(0, 20) | st.just(2**64 - 1), max_size=9), max_size=20))
def test_each_hash_is_new_only_once(calls):
    hashes, known = SeenHashes(), set()
    for numbers in calls:
        expected = []
        for each in numbers:
            expected.append(each not in known)
            known.add(each)
        assert hashes.add(np.array(numbers, dtype="<u8")).tolist() == expected


def test_the_first_of_many_equal_hashes_is_new():
    random = np.random.default_rng(1)
    seen = SeenHashes()
    every: list[int] = []
    for size in (3000, 1, 500, 0, 40, 3000, 7):
        numbers = random.integers(2**63, size=20).repeat(150)
        numbers = random.permutation(np.concatenate((numbers, every[:500])))[:size].astype("<u8")
        new = seen.add(numbers)
        expected = {each: place for place, each in reversed([*enumerate(numbers.tolist())])}
        first = [place for each, place in expected.items() if each not in {*every}]
        assert np.flatnonzero(new).tolist() == sorted(first)
        every += numbers.tolist()
        lengths = [len(run) for run in seen._runs]  # each addition looks into all of them
        assert sum(lengths) == len({*every})
        assert all(one >= 2 * other for one, other in pairwise(lengths))


def test_hashes_of_texts_are_those_of_other_processes():
    """The first 64 bits of BLAKE2b, lowest byte first."""
    texts = ["", "ä"]
    digests = [blake2b(text.encode("utf-8"), digest_size=8).digest() for text in texts]
    assert hash_texts(texts).tolist() == [int.from_bytes(each, "little") for each in digests]
    assert hash_texts([]).tolist() == [] and hash_texts(iter(texts)).itemsize == 8


def test_equal_hashes_are_in_one_partition():
    random = np.random.default_rng(1)
    some = random.integers(2**63, size=50, dtype="<u8")
    blocks = [random.choice(some, (30, 2)), some[:0], random.choice(some, 41)]
    every = np.concatenate([block.reshape(-1) for block in blocks])
    found = list(alike(lambda: iter(blocks)))
    places = np.concatenate([places for places, _ in found])
    assert sorted(places.tolist()) == [*range(101)] and len(found) > 1
    assert all((every[places] == hashes).all() for places, hashes in found)
    groups = [set(hashes.tolist()) for _, hashes in found]
    assert sum(map(len, groups)) == len(set(every.tolist()))
    assert sum(map(bool, groups)) > len(groups) // 2
