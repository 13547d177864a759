"""A GPU computes what a CPU computes: `TEST_GPU=1 pytest tests/test_gpu.py`.

Without TEST_GPU, no test sees a GPU (conftest.py), since many tests compare bits with those of a CPU.
"""

import os
from dataclasses import replace

import pytest
import torch

from corpora import reverse_rows
from transduce.config.schema import ModelConfig, TrainConfig, with_options
from transduce.decoding.beam import beam_search
from transduce.decoding.stepper import ModelStepper, forced_log_probs
from transduce.model.build import build
from transduce.model.device import choose_device
from transduce.model.seq2seq import Seq2Seq, make_batch, source_tensor
from transduce.training.checkpoint import (
    TrainState,
    load_checkpoint,
    moving_average,
    save_checkpoint,
)
from transduce.training.update import Outcome, make_optimizer, update

GPU = choose_device()
if "TEST_GPU" not in os.environ:
    pytest.skip("TEST_GPU is not set", allow_module_level=True)
assert GPU.type != "cpu", "TEST_GPU is set, but torch finds no GPU"
CPU = torch.device("cpu")
SMALL = ModelConfig(
    vocab_size=14, d_model=16, d_ff=32, num_heads=4, num_encoder_layers=2, num_decoder_layers=2
)
KINDS = {
    "post": SMALL,
    "window": with_options(SMALL, window=2),
    "additive": replace(SMALL, attention="additive", d_k=3),
    "experts": with_options(SMALL, experts=3, experts_per_token=2),
    "recurrent": replace(SMALL, kind="recurrent", attention="additive"),
    "convolutional": replace(SMALL, kind="convolutional"),
    "bytenet": replace(SMALL, kind="bytenet", num_encoder_layers=6, num_decoder_layers=6),
    "deep_att": replace(SMALL, kind="deep_att"),
    "neural_gpu": replace(SMALL, kind="neural_gpu"),
    "modern": replace(
        SMALL, norm="pre", rms_norm=True, activation="swiglu", positions="rotary", num_kv_heads=2
    ),
    "blocks": with_options(SMALL, block_size=3),
}
ROWS = reverse_rows(12, seed=3)
SOURCES, TARGETS = [source for source, _ in ROWS], [target for _, target in ROWS]
TRAIN = TrainConfig(precision="float32", ema=0.9, steps=9)


def updated(
    config: ModelConfig, train: TrainConfig, device: torch.device
) -> tuple[Seq2Seq, list[Outcome]]:
    """A model without dropout after three updates, and their outcomes."""
    model = build(replace(config, dropout=0.0)).to(device)
    optimizer = make_optimizer(model.parameters(), train)
    batch = make_batch(SOURCES, TARGETS).to(device)
    return model, [
        update(model, optimizer, [batch], step=step, rate=1e-3, train=train) for step in (1, 2, 3)
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_training_is_the_same_on_both_devices(kind):
    (_, on_cpu), (_, on_gpu) = updated(KINDS[kind], TRAIN, CPU), updated(KINDS[kind], TRAIN, GPU)
    for one, two in zip(on_cpu, on_gpu, strict=True):
        assert two == pytest.approx(one, rel=1e-3)


@pytest.mark.parametrize(
    "options",
    [
        {"precision": "bfloat16"},
        {"word_dropout": 0.2},
        {"risk_steps": 9},
        {"risk_steps": 9, "precision": "bfloat16"},
        {"clip_norm": 1.0},
    ],
    ids=str,
)
def test_every_objective_learns_on_a_gpu(options):
    _, outcomes = updated(SMALL, replace(TRAIN, **options), GPU)
    assert all(each.applied and each.gradient_norm > 0 for each in outcomes)


@pytest.mark.parametrize("options", [{}, {"beam_size": 1}, {"no_repeat_ngram": 2}], ids=str)
def test_search_and_scores_are_the_same_on_both_devices(options):
    model, _ = updated(SMALL, TRAIN, CPU)
    found = {}
    for device in (CPU, GPU):
        moved = model.to(device).eval()
        lists = beam_search(
            ModelStepper([moved], source_tensor(SOURCES).to(device)), [9] * len(SOURCES), **options
        )
        scores = forced_log_probs([moved], make_batch(SOURCES, TARGETS).to(device)).cpu()
        found[device] = [best.tokens for best, *_ in lists], scores
    assert found[CPU][0] == found[GPU][0]
    torch.testing.assert_close(found[GPU][1], found[CPU][1], atol=1e-4, rtol=1e-3)


def test_a_checkpoint_of_a_gpu_goes_on_anywhere(tmp_path):
    model = build(SMALL).to(GPU)
    optimizer, batch = make_optimizer(model.parameters(), TRAIN), make_batch(SOURCES, TARGETS)
    update(model, optimizer, [batch.to(GPU)], step=1, rate=1e-3, train=TRAIN)
    path = save_checkpoint(tmp_path, model, optimizer, TrainState(step=1))
    assert all(weight.device == CPU for weight in moving_average(path).values())
    for device in (GPU, CPU):
        other = build(SMALL).to(device)
        resumed = make_optimizer(other.parameters(), TRAIN)
        assert load_checkpoint(path, other, resumed) == TrainState(step=1)
        assert update(other, resumed, [batch.to(device)], step=2, rate=1e-3, train=TRAIN).applied
