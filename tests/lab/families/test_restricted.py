"""Tests of transduce_lab/families/restricted.py."""

import pytest
import torch

from small_models import close
from transduce.model.attention import (
    attend_with_scores,
    causal_mask,
    dot_products,
)
from transduce_lab.families.restricted import attend_nearby, window_mask


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("n", "window"), [(1, 1), (7, 1), (7, 3), (9, 3), (10, 4), (6, 9)])
def test_attention_by_blocks_equals_a_mask(causal, n, window):
    generator = torch.Generator().manual_seed(n)
    q, k, v = (torch.randn(2, 3, n, 4, generator=generator, requires_grad=True) for _ in range(3))
    valid = torch.ones(2, 1, 1, n, dtype=torch.bool)
    valid[1, ..., (n + 1) // 2 :] = False
    for mask in (None, valid):
        blocks = attend_nearby(q, k, v, window, mask, causal=causal)
        whole, _ = attend_with_scores(
            dot_products(q, k), v, window_mask(n, n, window, causal, valid=mask)
        )
        # What padding sees doesn't matter.
        rows = (torch.ones_like(valid) if mask is None else valid)[:, 0, 0]
        close(blocks.transpose(1, 2)[rows], whole.transpose(1, 2)[rows])
        upstream = torch.randn(blocks.shape, generator=generator) * rows[:, None, :, None]
        for one, other in zip(
            torch.autograd.grad(blocks, (q, k, v), upstream),
            torch.autograd.grad(whole, (q, k, v), upstream),
            strict=True,
        ):
            close(one, other)


def test_masks_by_hand():
    assert causal_mask(2, 4).int().tolist() == [[1, 1, 1, 0], [1, 1, 1, 1]]
    assert window_mask(3, 3, 2).int().tolist() == [[1, 0, 0], [1, 1, 0], [0, 1, 1]]
