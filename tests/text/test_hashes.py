"""Tests of transduce/text/hashes.py."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from transduce.text.hashes import SeenHashes, alike


@given(st.lists(st.lists(st.integers(0, 20) | st.just(2**64 - 1), max_size=9), max_size=20))
def test_each_hash_is_new_only_once(calls):
    hashes, known = SeenHashes(), set()
    for numbers in calls:
        expected = []
        for each in numbers:
            expected.append(each not in known)
            known.add(each)
        assert hashes.add(np.array(numbers, dtype="<u8")).tolist() == expected


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
