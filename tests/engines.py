"""Models and searches for the tests of engines."""

from dataclasses import replace
from pathlib import Path

import torch

from transduce.config.schema import DecodeConfig, ModelConfig
from transduce.decoding.types import Engine, Request
from transduce.model.build import build
from transduce.model.seq2seq import Seq2Seq
from transduce.wings.ct2 import convert as conversion
from transduce.wings.ct2.engine import CTranslate2Engine

SMALL = ModelConfig(
    vocab_size=40,
    d_model=32,
    d_ff=64,
    num_heads=4,
    num_encoder_layers=2,
    num_decoder_layers=2,
    dropout=0.0,
)


GENERATOR = torch.Generator().manual_seed(1)


SOURCES = [
    torch.randint(4, 30, (length,), generator=GENERATOR).tolist()
    for length in (1, 1, 3, 7, 7, 12, 20)
]


def lively(config: ModelConfig) -> Seq2Seq:
    """A model whose weights, norms and biases too, are large enough that everything matters."""
    model, generator = build(config), torch.Generator().manual_seed(0)
    for weight in model.parameters():
        weight.data.mul_(1.6).add_(torch.randn(weight.shape, generator=generator), alpha=0.1)
    return model.eval()


def converted(
    model: Seq2Seq, config: ModelConfig, folder: Path, compute_type: str = "float32"
) -> CTranslate2Engine:
    conversion.convert(model, config, folder, compute_type)
    return CTranslate2Engine(folder, compute_type, config, threads=1)


def search(
    engine: Engine, sources: list[list[int]], limit: int, **options: float
) -> list[tuple[float, list[int]]]:
    """The best of each sentence."""
    config = replace(DecodeConfig(), **options)
    [found] = engine.search(
        [Request([""] * len(sources), sources, [limit] * len(sources))], config, 1
    )
    return [(best.score, best.tokens) for [best] in found]
