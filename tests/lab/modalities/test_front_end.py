"""Models whose sources are vectors: padding, batches and steps change nothing, and they learn."""

import pytest
import torch

from transduce.config.schema import BOS, EOS, PAD, ModelConfig, TrainConfig, with_options
from transduce.model.build import build
from transduce.model.seq2seq import make_batch
from transduce.model.transformer import Transformer
from transduce.tokens.spelling import FIRST_VALUE
from transduce.training.update import rehearse

VECTOR = 3
PLAIN = ModelConfig(
    vocab_size=14,
    source_vocab_size=FIRST_VALUE + 257,
    d_model=16,
    d_ff=32,
    num_heads=2,
    num_encoder_layers=2,
    num_decoder_layers=2,
    dropout=0,
)
SHAPES = {
    "patches": with_options(PLAIN, vector=VECTOR),
    "joined": with_options(PLAIN, vector=VECTOR, halvings=2),
    "window": with_options(PLAIN, vector=VECTOR, halvings=1, window=3),
    "rotary": with_options(PLAIN, vector=VECTOR, positions="rotary", norm="pre"),
}


def made(name: str) -> Transformer:
    torch.manual_seed(1)
    model = build(SHAPES[name])
    assert isinstance(model, Transformer) and model.source_embedding is None
    return model.eval()


def source(positions: int, seed: int) -> list[int]:
    draw = torch.Generator().manual_seed(seed)
    values = torch.randint(256, (positions * VECTOR,), generator=draw) + FIRST_VALUE
    return [int(value) for value in values]


@pytest.mark.parametrize("name", SHAPES)
def test_padding_and_neighbours_change_nothing(name: str) -> None:
    model = made(name)
    sources = [source(positions, positions) for positions in (1, 2, 5, 8, 13)]
    targets = [[4, 5, 6], [7], [8, 9], [10, 11, 12, 13], [4]]
    batch = make_batch(sources, targets)
    together = model(batch.src, batch.tgt_in)
    for row, pair in enumerate(zip(sources, targets, strict=True)):
        alone = make_batch(*([side] for side in pair))
        logits = model(alone.src, alone.tgt_in)[0]
        assert torch.allclose(logits, together[row, : len(logits)], atol=1e-5)


@pytest.mark.parametrize("name", SHAPES)
def test_steps_and_the_whole_target_have_the_same_logits(name: str) -> None:
    model = made(name)
    src = make_batch([source(6, 1), source(3, 2)], [[4], [5]]).src
    tgt = torch.tensor([[BOS, 4, 5, 6], [BOS, 7, 8, 9]])
    memory = model.encode(src)
    whole, _ = model.decode(tgt, memory)
    state = None
    for place in range(tgt.size(1)):
        logits, state = model.decode(tgt[:, place : place + 1], memory, state)
        assert torch.allclose(logits[:, 0], whole[:, place], atol=1e-5)


@pytest.mark.parametrize(("name", "positions"), [("patches", 8), ("joined", 2), ("window", 4)])
def test_convolutions_join_positions(name: str, positions: int) -> None:
    memory = made(name).encode(make_batch([source(8, 1)], [[4]]).src)
    assert memory.mask.shape[-1] == positions and bool(memory.mask.all())


def test_every_value_counts() -> None:
    model = made("joined")
    values = source(8, 1)
    logits = []
    for place in (None, 0, len(values) - 1):
        changed = [*values]
        if place is not None:
            changed[place] = FIRST_VALUE + (values[place] - FIRST_VALUE + 128) % 256
        batch = make_batch([changed], [[4, 5]])
        logits.append(model(batch.src, batch.tgt_in))
    assert not torch.allclose(logits[0], logits[1]) and not torch.allclose(logits[0], logits[2])


@pytest.mark.parametrize("name", SHAPES)
def test_the_first_pass_of_a_distributed_training_has_no_vector(name: str) -> None:
    model = made(name)
    rehearse(model, TrainConfig(), torch.device("cpu"), 1)
    assert all(weight.grad is None for weight in model.parameters())


def test_padding_is_no_value() -> None:
    assert max(PAD, BOS, EOS) < FIRST_VALUE
