"""Tests of transduce/tokens/packed.py."""

import numpy as np
import pytest

from transduce.tokens.packed import map_file


@pytest.mark.parametrize("numbers", [[], [1, 2]])
def test_a_file_keeps_its_type(numbers, tmp_path):
    (tmp_path / "numbers").write_bytes(np.array(numbers, dtype="<u2").tobytes())
    found = map_file(tmp_path / "numbers", "<u2")
    assert (found.dtype, found.tolist()) == (np.dtype("<u2"), numbers)
