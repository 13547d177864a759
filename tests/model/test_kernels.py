"""The faster ways to compute attention and dropout compute the same as the plain ones."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from transduce.config.schema import ModelConfig
from transduce.model.attention import MultiHeadAttention
from transduce.model.build import initialise
from transduce.model.embedding import Dropout
from transduce.model.kernels import SLOW_KEYS, prefers_fused_attention
from transduce.model.recording import recording

CONFIG = ModelConfig(d_model=16, num_heads=4)
MASK = torch.tensor([[True] * 14, [True] * 9 + [False] * 5])[:, None, None]  # (b, 1, 1, s)


def random(*shape: int, seed: int = 1) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def attention(config: ModelConfig) -> MultiHeadAttention:
    module = MultiHeadAttention(config)
    initialise(module, seed=1)
    return module.eval()


@pytest.mark.parametrize(
    "config", [CONFIG, replace(CONFIG, num_kv_heads=2, attention="dot", d_v=3)]
)
@pytest.mark.parametrize("queries", [1, 5, 14])
@pytest.mark.parametrize("masked", ["not", "padding", "future"])
def test_attention_is_the_same_with_and_without_the_fused_kernel(config, queries, masked):
    """While weights are recorded, attention is computed by plain products."""
    module, x = attention(config), random(2, 14, 16)
    mask = MASK if masked == "padding" else None
    fused = module(x[:, -queries:], module.project(x), mask, causal=masked == "future")
    with recording() as record:
        plain = module(x[:, -queries:], module.project(x), mask, causal=masked == "future")
    assert len(record.attention) == 1
    torch.testing.assert_close(fused, plain)


def test_rows_attend_to_the_keys_of_their_sentence():
    module, x, source = attention(CONFIG), random(6, 3, 16), random(2, 14, 16, seed=2)
    joined = module(x, module.project(source), MASK)
    for row in range(6):
        sentence = slice(row // 3, row // 3 + 1)
        alone = module(x[row : row + 1], module.project(source[sentence]), MASK[sentence])
        torch.testing.assert_close(joined[row : row + 1], alone)


@pytest.mark.parametrize(
    ("queries", "keys", "dtype", "learns", "dropout", "fused"),
    [
        (2, 30, torch.float32, False, 0.0, True),
        (2, 30, torch.float32, True, 0.0, True),
        (2, 30, torch.bfloat16, False, 0.0, True),
        (2, 30, torch.bfloat16, True, 0.0, False),
        (2, 30, torch.bfloat16, True, 0.1, True),
        (1, SLOW_KEYS - 1, torch.float32, False, 0.0, True),
        (1, SLOW_KEYS, torch.float32, False, 0.0, False),
        (1, SLOW_KEYS, torch.float32, False, 0.1, True),
    ],
)
def test_the_fused_kernel_is_used_where_it_is_faster(queries, keys, dtype, learns, dropout, fused):
    q = torch.zeros(1, 1, queries, 4, dtype=dtype, requires_grad=learns)
    k = torch.zeros(1, 1, keys, 4, dtype=dtype)
    assert prefers_fused_attention(q, k, dropout) == fused
    assert prefers_fused_attention(q.to("meta"), k.to("meta"), dropout), (
        "on other devices than a CPU"
    )
    with recording():
        assert not prefers_fused_attention(q, k, dropout)


@pytest.mark.parametrize("p", [0.1, 0.5, 0.99, 0.999999])
def test_dropout_drops_its_share_and_makes_up_for_it(p):
    torch.manual_seed(1)
    found = Dropout(p)(torch.ones(100_001))
    kept = found[found != 0]
    assert len(kept) / 100_001 == pytest.approx(1 - p, abs=0.01)
    assert kept.tolist() == pytest.approx([1 / (1 - p)] * len(kept))
