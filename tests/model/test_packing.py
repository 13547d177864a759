"""Packed rows give the loss and the gradient of padded batches: transduce/model/packing.py."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from transduce.config.schema import BOS, EOS, PAD, ModelConfig, TrainConfig
from transduce.model.build import build
from transduce.model.packing import pack, places
from transduce.model.seq2seq import Batch, make_batch
from transduce.training.objectives import cross_entropy, packed_cross_entropy, sums_of
from transduce.training.update import rehearse

CONFIG = ModelConfig(
    vocab_size=50,
    num_encoder_layers=2,
    num_decoder_layers=2,
    d_model=32,
    d_ff=64,
    num_heads=4,
    dropout=0.0,
)
TRAIN = TrainConfig(precision="float32")
Pair = tuple[list[int], list[int]]
ids = st.lists(st.integers(4, 49), max_size=15)
pairs_of_ids = st.lists(st.tuples(ids, ids), min_size=1, max_size=20)


def both(pairs: Sequence[Pair], width: int = 32) -> tuple[Batch, Batch]:
    sources, targets = zip(*pairs, strict=True)
    return make_batch(sources, targets), pack(sources, targets, width, len(pairs) + 1)


def sums_and_gradients(model: nn.Module, batch: Batch) -> list[Tensor]:
    model.zero_grad()
    sums = sums_of(model.train(), batch, TRAIN)
    sums.loss.backward()
    return [*sums, *(weight.grad for weight in model.parameters() if weight.grad is not None)]


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"norm": "pre"},
        {"positions": "learned"},
        {"positions": "t2t"},
        {"zero_start": True},
        {"num_kv_heads": 2},
        {"embedding_norm": True, "output_bias": True},
        {"source_vocab_size": 60, "activation": "swiglu", "rms_norm": True},
        {"attention": "dot"},
    ],
)
@given(pairs=pairs_of_ids)
def test_the_loss_and_every_gradient_are_those_of_a_padded_batch(
    changes: dict[str, Any], pairs: list[Pair]
) -> None:
    model = build(replace(CONFIG, **changes)).double()
    plain, packed = both(pairs)
    assert plain.num_tokens == packed.num_tokens and packed.num_pairs == len(pairs)
    found = sums_and_gradients(model, packed)
    for one, other in zip(sums_and_gradients(model, plain), found, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-6, atol=1e-9)


@given(pairs=pairs_of_ids, width=st.integers(16, 40))
def test_each_row_holds_whole_sentences_one_after_the_other(pairs: list[Pair], width: int) -> None:
    _, packed = both(pairs, width)
    assert packed.packing
    assert packed.src.shape == packed.tgt_in.shape == (len(pairs) + 1, width)
    for tokens, numbers, positions, begin, end in (
        (packed.src, packed.packing.source, packed.packing.source_positions, [], [EOS]),
        (packed.tgt_in, packed.packing.target, packed.packing.target_positions, [BOS], []),
        (packed.tgt_out, packed.packing.target, packed.packing.target_positions, [], [EOS]),
    ):
        side = 0 if tokens is packed.src else 1
        for number, pair in enumerate(pairs, 1):
            its = numbers == number
            assert tokens[its].tolist() == [*begin, *pair[side], *end]
            assert positions[its].tolist() == list(range(len(pair[side]) + 1))
            assert its.any(dim=1).sum() == 1, "a sentence is in one row"
        assert (tokens[numbers == 0] == PAD).all()


def test_a_batch_that_needs_more_rows_is_refused() -> None:
    with pytest.raises(ValueError, match="need 3 rows, but the batch has 2"):
        pack([[5] * 9] * 3, [[6] * 3] * 3, 16, 2)
    assert places(np.array([[3, 3, 9], [1, 1, 7]]), 8)[0].tolist()[:2] == [0, 0]


def test_padding_and_empty_rows_change_nothing() -> None:
    model = build(CONFIG).double()
    sources, targets = [[5, 6]], [[7]]
    few, many = (pack(sources, targets, width, rows) for width, rows in ((4, 1), (16, 5)))
    for one, other in zip(
        sums_and_gradients(model, few), sums_and_gradients(model, many), strict=True
    ):
        torch.testing.assert_close(one, other)


def test_the_compiler_sees_one_graph_and_one_shape() -> None:
    """Of the model and its loss: batches of other sentences compile nothing anew."""
    torch._dynamo.reset()
    train = TrainConfig(precision="float32", word_dropout=0.1)
    model = build(replace(CONFIG, norm="pre"))
    rehearse(model, train, torch.device("cpu"), 32)
    graphs = 0

    def backend(graph: Any, _: Any) -> Any:
        nonlocal graphs
        graphs += 1
        return graph

    compiled = torch.compile(cross_entropy, backend=backend, fullgraph=True, dynamic=False)
    random = np.random.default_rng(1)
    for _ in range(3):
        rows = [random.integers(4, 50, length).tolist() for length in random.integers(1, 9, 12)]
        batch = pack(rows, rows[::-1], 32, 6)
        found = []
        for loss in (cross_entropy, compiled):
            torch.manual_seed(1)
            sums = loss(model, batch, train)
            sums.loss.backward()
            found.append((sums, [weight.grad for weight in model.parameters()]))
            model.zero_grad(set_to_none=True)
        torch.testing.assert_close(found[1], found[0])
    assert graphs == 1


def test_a_machine_without_a_compiler_trains_without_it(capsys: pytest.CaptureFixture[str]) -> None:
    """This test's machine has no GPU, so torch can't compile for one."""
    assert packed_cross_entropy(torch.device("cuda")) is cross_entropy
    assert packed_cross_entropy(torch.device("cuda")) is cross_entropy
    [message] = capsys.readouterr().err.splitlines()
    assert message.startswith("torch.compile does not work here, so training is slower: ")
