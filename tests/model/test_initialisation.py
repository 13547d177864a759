"""Initial weights by name (model.init): the default's bits, the spread of the others, and what they are refused for."""

import math
from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

from transduce.config.parse import configure
from transduce.config.schema import PAD, ModelConfig, with_options
from transduce.model.attention import MultiHeadAttention
from transduce.model.build import build, model_class
from transduce.model.embedding import Embedding, LearnedPositions
from transduce.model.transformer import FeedForward, Residual
from transduce.system.errors import UserError

WIDE = ModelConfig(
    vocab_size=300, d_model=64, d_ff=256, num_heads=4, num_encoder_layers=2, num_decoder_layers=1
)
KINDS = {
    "post": WIDE,
    "uneven": replace(
        WIDE,
        d_k=24,
        d_v=8,
        norm="pre",
        positions="learned",
        max_positions=100,
        source_vocab_size=200,
    ),
    "additive experts": with_options(
        WIDE, attention="additive", experts=3, window=2, output_bias=True
    ),
    "recurrent": replace(WIDE, kind="recurrent"),
    "convolutional": replace(WIDE, kind="convolutional"),
    "separable": with_options(WIDE, kind="convolutional", separable=True),
    "bytenet": replace(WIDE, kind="bytenet"),
    "deep_att": replace(WIDE, kind="deep_att"),
    "neural_gpu": replace(WIDE, kind="neural_gpu"),
}
METHODS = ("xavier", "t2t", "fairseq")


@torch.no_grad()
def first_initialisation(model: nn.Module, seed: int) -> None:
    """The function of the first version, when there was no choice."""
    generator = torch.Generator().manual_seed(seed)
    for module in model.modules():
        if isinstance(module, nn.Linear):
            nn.init.xavier_uniform_(module.weight, generator=generator)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
        elif isinstance(module, (Embedding, LearnedPositions)):
            deviation = 1 / math.sqrt(module.weight.size(1))
            nn.init.normal_(module.weight, std=deviation, generator=generator)
        elif callable(draw_weights := getattr(module, "draw_weights", None)):
            draw_weights(generator)
    for stack in model.children():
        branches = sum(isinstance(module, Residual) for module in stack.modules())
        for module in stack.modules():
            if isinstance(module, MultiHeadAttention):
                for projection in (module.query, module.key, module.value):
                    projection.weight.mul_(math.sqrt(0.5))
            if isinstance(module, (MultiHeadAttention, FeedForward)):
                module.out.weight.mul_(1 / math.sqrt(branches))


@pytest.mark.parametrize("kind", KINDS)
def test_default_initialisation_is_unchanged_since_the_first_version(kind):
    model = model_class(KINDS[kind].kind)(KINDS[kind])
    first_initialisation(model, 7)
    now = build(KINDS[kind], 7).state_dict()
    assert all(torch.equal(weight, now[name]) for name, weight in model.state_dict().items())


def is_uniform(weight: Tensor, bound: float) -> bool:
    spread = weight.std().item() == pytest.approx(bound / math.sqrt(3), rel=0.1)
    return spread and 0.9 * bound < weight.abs().max().item() <= bound * 1.0001


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", ["post", "uneven"])
def test_matrices_have_the_bounds_of_the_toolkit(kind, method):
    config = replace(KINDS[kind], init=method)
    model = build(config)
    for name, module in model.named_modules():
        if isinstance(module, MultiHeadAttention):
            keys, values = module.key.out_features, module.value.out_features
            joint = {"query": keys, "key": keys + values, "value": keys + values}
            joint = (
                joint
                if name.endswith("source_attention")
                else dict.fromkeys(joint, 2 * keys + values)
            )
            for part, width in joint.items():
                layer = getattr(module, part)
                xavier = math.sqrt(6 / (64 + layer.out_features))
                bound = {
                    "xavier": xavier,
                    "t2t": math.sqrt(6 / (64 + width)),
                    "fairseq": xavier / math.sqrt(2),
                }
                assert is_uniform(layer.weight, bound[method]), (name, part)
                assert layer.bias.any() == (method == "fairseq")
            assert is_uniform(module.out.weight, math.sqrt(6 / sum(module.out.weight.shape)))
            assert not module.out.bias.any()
        elif isinstance(module, FeedForward):
            for layer in (module.inner, module.out):
                torch_bound, xavier = layer.in_features**-0.5, math.sqrt(6 / (64 + 256))
                assert is_uniform(layer.weight, torch_bound if method == "fairseq" else xavier)
                assert layer.bias.any() == (method == "fairseq")
        elif isinstance(module, Embedding):
            real = module.weight[PAD + 1 :]
            if method == "xavier":
                assert is_uniform(real, math.sqrt(6 / sum(module.weight.shape)))
            else:
                assert real.std().item() == pytest.approx(1 / 8, rel=0.05)
            assert module.weight[PAD].any() == (method != "fairseq")


@pytest.mark.parametrize("method", METHODS)
def test_every_transformer_can_begin_with_every_method(method):
    model = build(replace(KINDS["additive experts"], init=method))
    tokens = torch.tensor([[4, 5, 6]])
    assert model(tokens, tokens).isfinite().all()


@pytest.mark.parametrize(
    "kind", ["recurrent", "convolutional", "bytenet", "deep_att", "neural_gpu"]
)
def test_other_families_refuse_the_initialisations_of_transformers(kind):
    with pytest.raises(
        UserError, match=rf"model\.init is for models of the kind transformer, not {kind}"
    ):
        configure({"model.kind": kind, "model.init": "t2t"})
    with pytest.raises(
        UserError, match=r"model\.init must be one of transduce, xavier, t2t, fairseq, not 'glorot'"
    ):
        configure({"model.init": "glorot"})
