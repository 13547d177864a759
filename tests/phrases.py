"""Phrases of a small language, and translators for them."""

import random
from collections.abc import Sequence

from transduce.config.schema import DecodeConfig, ModelConfig
from transduce.decoding.torch_engine import TorchEngine
from transduce.decoding.translator import Translator
from transduce.model.seq2seq import Seq2Seq
from transduce.tokens.tokenizer import Tokenizer

WORDS = {
    "dog": "Hund",
    "cat": "Katze",
    "house": "Haus",
    "red": "rot",
    "big": "groß",
    "sees": "sieht",
}


CONFIG = DecodeConfig(beam_size=4, max_extra_tokens=4, max_tokens=128)


def german(text: str) -> str:
    return " ".join(WORDS[word] for word in text.split())


def phrases(count: int, seed: int) -> list[str]:
    choice = random.Random(seed)
    return [" ".join(choice.choices(list(WORDS), k=choice.randint(1, 3))) for _ in range(count)]


SOURCES = phrases(300, seed=1)


TARGETS = [german(text) for text in SOURCES]


def model_config(tokenizer: Tokenizer) -> ModelConfig:
    return ModelConfig(
        vocab_size=tokenizer.target.size,
        d_model=32,
        d_ff=64,
        num_heads=4,
        num_encoder_layers=1,
        num_decoder_layers=1,
        dropout=0.0,
    )


def own(models: Sequence[Seq2Seq], tokenizer: Tokenizer, config: DecodeConfig) -> Translator:
    return Translator(TorchEngine(models), tokenizer, config)
