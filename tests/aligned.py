"""Sentences, vocabularies and a lively model for the tests of word alignment."""

from dataclasses import replace

import torch
from hypothesis import strategies as st

from transduce.config.schema import DecodeConfig, ModelConfig
from transduce.model.build import build
from transduce.model.seq2seq import Seq2Seq
from transduce.tokens.tokenizer import Tokenizer
from transduce.wings.phrasebook.examples import examples

EXAMPLES = list(examples("train", 400))


CONFIG = DecodeConfig(beam_size=3, max_extra_tokens=4, max_tokens=256)


def model_config(aligning_tokenizer: Tokenizer, **options: object) -> ModelConfig:
    small = ModelConfig(
        vocab_size=aligning_tokenizer.target.size,
        d_model=32,
        d_ff=64,
        num_heads=4,
        num_encoder_layers=2,
        num_decoder_layers=3,
        dropout=0.0,
    )
    return replace(small, **options)  # type: ignore[arg-type]


def lively(config: ModelConfig, seed: int = 0) -> Seq2Seq:
    """A model whose attention is anything but even."""
    model, generator = build(config, seed=seed), torch.Generator().manual_seed(seed)
    for weight in model.parameters():
        weight.data.mul_(1.6).add_(torch.randn(weight.shape, generator=generator), alpha=0.1)
    return model.eval()


odd = st.text(
    st.sampled_from(
        " a\u2581\u0301\u00e9漢字か😀\u200d\ufe0f\u00a0\u2028\r\t.'-ßKatze\ud800\U0001f468"
    ),
    max_size=20,
)


texts = st.one_of(odd, st.text(st.characters(exclude_characters="\n"), max_size=20))


def without_links(translation):
    return replace(
        translation, links=(), alternatives=tuple(map(without_links, translation.alternatives))
    )
