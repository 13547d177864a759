"""Fixtures for the tests in this folder."""

import pytest
import torch

from terms import EXAMPLES
from transduce.config.schema import ModelConfig
from transduce.model.build import build
from transduce.model.seq2seq import Seq2Seq
from transduce.tokens.tokenizer import Tokenizer


@pytest.fixture(scope="session")
def tokenizer() -> Tokenizer:
    texts = [each.german for each in EXAMPLES] + [
        "漢字。かな「漢」" * 3,
        "„Der Hut“ (das Haus) 3,5 kg",
    ] * 5
    return Tokenizer.train([each.english for each in EXAMPLES], texts, vocab_size=480)


@pytest.fixture(scope="session")
def config(tokenizer) -> ModelConfig:
    return ModelConfig(
        vocab_size=tokenizer.target.size,
        d_model=32,
        d_ff=64,
        num_heads=4,
        num_encoder_layers=1,
        num_decoder_layers=1,
    )


@pytest.fixture(scope="session")
def model(config) -> Seq2Seq:
    model, generator = build(config), torch.Generator().manual_seed(0)
    for weight in model.parameters():
        weight.data.mul_(1.6).add_(torch.randn(weight.shape, generator=generator), alpha=0.1)
    return model.eval()
