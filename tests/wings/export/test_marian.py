"""Tests of transduce/wings/export/marian.py."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from transduce.model.embedding import sinusoids
from transduce.wings.export import marian


@given(st.integers(1, 20).map(lambda half: torch.randn(3, 2 * half)))
def test_the_order_of_channels_is_that_of_the_sinusoids_and_is_undone(weight):
    assert torch.equal(marian.to_ours(marian.to_theirs(weight, 1), 1), weight)
    table = marian.to_theirs(sinusoids(50, weight.size(1)), 1)
    half = weight.size(1) // 2
    # sin(0), then cos(0).
    assert torch.equal(table[0], torch.cat((torch.zeros(half), torch.ones(half))))
