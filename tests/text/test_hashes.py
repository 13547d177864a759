"""Tests of transduce/text/hashes.py."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from transduce.text.hashes import SeenHashes


@given(st.lists(st.lists(st.integers(0, 20) | st.just(2**64 - 1), max_size=9), max_size=20))
def test_each_hash_is_new_only_once(calls):
    hashes, known = SeenHashes(), set()
    for numbers in calls:
        expected = []
        for each in numbers:
            expected.append(each not in known)
            known.add(each)
        assert hashes.add(np.array(numbers, dtype="<u8")).tolist() == expected
