"""Tests of transduce/tokens/packed.py."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from transduce.tokens import packed
from transduce.tokens.packed import PackedWriter, map_file


@pytest.mark.parametrize("numbers", [[], [1, 2]])
def test_a_file_keeps_its_type(numbers, tmp_path):
    (tmp_path / "numbers").write_bytes(np.array(numbers, dtype="<u2").tobytes())
    found = map_file(tmp_path / "numbers", "<u2")
    assert (found.dtype, found.tolist()) == (np.dtype("<u2"), numbers)


numbers = st.lists(st.integers(0, 300) | st.sampled_from([65_535, 65_536, 2**32 - 1]), max_size=6)


@given(st.lists(numbers, max_size=5), st.integers(1, 4))
def test_numbers_take_16_bits_each_until_one_needs_more(tmp_path, parts, together):
    with (
        pytest.MonkeyPatch.context() as patch,
        PackedWriter(tmp_path / "numbers.ids") as writer,
    ):
        patch.setattr(packed, "CONVERTED_NUMBERS", together)
        for part in parts:
            writer.append(np.array(part, dtype=np.int64))
    every = [number for part in parts for number in part]
    found = map_file(tmp_path / "numbers.ids", writer.type)
    assert found.tolist() == every
    assert found.itemsize == (4 if max(every, default=0) > 65_535 else 2)
    assert (tmp_path / "numbers.ids").stat().st_size == found.itemsize * len(every)
    assert [path.name for path in tmp_path.iterdir()] == ["numbers.ids"]


def test_a_mapped_file_can_not_be_changed(tmp_path):
    with PackedWriter(tmp_path / "numbers") as writer:
        writer.append(np.array([1, 2]))
    with pytest.raises(ValueError, match="read-only"):
        map_file(tmp_path / "numbers", writer.type)[0] = 3
