"""The laws of every model, the paper's formulas by hand, and PyTorch's own Transformer as a second opinion."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import save_file
from torch import Tensor, nn

from transduce.config.parse import configure
from transduce.config.schema import BOS, EOS, PAD, ModelConfig, with_options
from transduce.model.attention import (
    MultiHeadAttention,
    attend_with_scores,
    causal_mask,
    dot_products,
)
from transduce.model.build import build, count_parameters, load_weights
from transduce.model.embedding import (
    Embedding,
    LearnedPositions,
    RotaryPositions,
    SinusoidalPositions,
    sinusoids,
)
from transduce.model.recording import attention_record, recording, routing_record
from transduce.model.restricted import attend_nearby, window_mask
from transduce.model.seq2seq import Seq2Seq, make_batch, pad, select
from transduce.model.transformer import FeedForward, make_norm
from transduce.system.errors import UserError

SMALL = ModelConfig(
    vocab_size=9,
    d_model=16,
    d_ff=32,
    num_heads=4,
    num_encoder_layers=2,
    num_decoder_layers=2,
    dropout=0.0,
)
KINDS = {
    "post": SMALL,
    "pre": replace(SMALL, norm="pre"),
    "window": replace(SMALL, window=2),
    "dot": replace(SMALL, attention="dot"),
    "additive": replace(SMALL, attention="additive", d_k=3),
    "experts": with_options(SMALL, experts=3, experts_per_token=2, expert_layers=(2,)),
    "blocks": with_options(SMALL, block_size=2, norm="pre"),
    "recurrent": replace(SMALL, kind="recurrent", attention="additive"),
    "recurrent, shallow": replace(
        SMALL, kind="recurrent", attention="dot", num_encoder_layers=1, num_decoder_layers=1
    ),
    "recurrent, deep": with_options(
        SMALL, kind="recurrent", cell="gru", num_encoder_layers=4, num_decoder_layers=4
    ),
    "convolutional": replace(SMALL, kind="convolutional"),
    "convolutional, uneven": with_options(
        SMALL, kind="convolutional", convolutions=("2x8x3", "1x12x4", "1x20x1")
    ),
    "separable": with_options(
        SMALL, kind="convolutional", separable=True, convolutions=("1x8x3", "1x12x4")
    ),
    "recurrent, experts": with_options(
        SMALL, kind="recurrent", num_encoder_layers=3, experts=3, experts_per_token=2
    ),
    "bytenet": replace(
        SMALL, kind="bytenet", num_encoder_layers=6, num_decoder_layers=7, source_vocab_size=10
    ),
    "learned": replace(SMALL, positions="learned", max_positions=8),
    "heads": replace(SMALL, d_k=3, d_v=5),
    "separate": replace(SMALL, source_vocab_size=11, num_encoder_layers=1),
    "gelu": replace(SMALL, activation="gelu"),
    "silu": replace(SMALL, activation="silu", norm="pre", num_heads=2),
    "swiglu": replace(SMALL, activation="swiglu"),
    "rms": replace(SMALL, rms_norm=True, bias=False),
    "rotary": replace(SMALL, positions="rotary", d_k=6),
    "rotary, window": replace(SMALL, positions="rotary", window=2),
    "multi-query": replace(SMALL, num_kv_heads=1, d_v=3),
    "grouped": replace(SMALL, num_kv_heads=2, window=3, bias=False, output_bias=True),
    "modern": replace(
        SMALL,
        norm="pre",
        rms_norm=True,
        bias=False,
        activation="swiglu",
        positions="rotary",
        num_kv_heads=2,
    ),
}
every_kind = pytest.mark.parametrize("kind", KINDS)

SRC = torch.tensor([[4, 5, 6, 7, EOS], [5, 4, EOS, PAD, PAD]])
TGT = torch.tensor([[BOS, 4, 5, 6, 8, 8], [BOS, 6, 6, 5, PAD, PAD]])


def tiny(kind: str) -> Seq2Seq:
    """A small model whose weights, norms and biases too, are large enough that everything matters."""
    model, generator = build(KINDS[kind]), torch.Generator().manual_seed(0)
    for weight in model.parameters():
        weight.data.mul_(2.0).add_(torch.randn(weight.shape, generator=generator), alpha=0.1)
    return model.eval()


def close(actual: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(actual, expected, atol=1e-4, rtol=1e-3)


@given(
    rows=st.lists(st.lists(st.integers(4, 99), max_size=5), min_size=1, max_size=6),
    ends=st.tuples(
        st.lists(st.integers(1, 3), max_size=2), st.lists(st.integers(1, 3), max_size=2)
    ),
)
def test_rows_are_padded_to_the_longest(rows, ends):
    before, after = ends
    whole = [[*before, *row, *after] for row in rows]
    longest = max(map(len, whole))
    expected = [row + [PAD] * (longest - len(row)) for row in whole]
    assert pad(rows, before=before, after=after).tolist() == expected
    assert (
        pad([np.array(row, dtype=np.uint16) for row in rows], before=before, after=after).tolist()
        == expected
    )


@every_kind
@torch.no_grad()
def test_stepwise_equals_whole(kind):
    model = tiny(kind)
    memory, state, steps = model.encode(SRC), None, []
    for t in range(TGT.size(1)):
        logits, state = model.decode(TGT[:, t : t + 1], memory, state)
        steps.append(logits)
    close(torch.cat(steps, dim=1), model(SRC, TGT))


@pytest.mark.parametrize(
    "kind",
    [
        k
        for k, each in KINDS.items()
        if each.kind == "transformer" and "experts" not in dict(each.more)
    ],
)
@torch.no_grad()
def test_all_tensors_are_on_the_device_of_the_model(kind):
    """The device "meta", which computes shapes only, refuses tensors of other devices, as a GPU does."""
    model, src, tgt = tiny(kind).to("meta"), SRC.to("meta"), TGT.to("meta")
    memory, state = model.encode(src), None
    for token in tgt.split(1, dim=1):
        logits, state = model.decode(token, memory, state)
    assert logits.shape == (2, 1, SMALL.vocab_size) and model(src, tgt).device.type == "meta"


@every_kind
@pytest.mark.parametrize("cuts", [[2, 4], [1, 5], [3, 1, 2]])
@torch.no_grad()
def test_chunks_equal_whole(kind, cuts):
    model = tiny(kind)
    memory, state, chunks = model.encode(SRC), None, []
    for chunk in TGT.split(cuts, dim=1):
        logits, state = model.decode(chunk, memory, state)
        chunks.append(logits)
    close(torch.cat(chunks, dim=1), model(SRC, TGT))


@every_kind
@torch.no_grad()
def test_padding_changes_nothing(kind):
    model = tiny(kind)
    close(model(SRC, TGT)[1:], model(SRC[1:, :3], TGT[1:]))
    close(model(SRC, TGT)[1:, :4], model(SRC[1:], TGT[1:, :4]))


@torch.no_grad()
def test_a_long_neighbour_changes_nothing_for_bytenet():
    """Which has more positions than the source: how many may not depend on the batch."""
    model = tiny("bytenet")
    source = torch.randint(4, 9, (1, 25), generator=torch.Generator().manual_seed(1))
    longer = torch.cat(
        (torch.nn.functional.pad(source, (0, 15), value=PAD), torch.full((1, 40), 5))
    )
    close(model(longer, TGT)[:1], model(source, TGT[:1]))


@every_kind
@torch.no_grad()
def test_decoder_sees_earlier_tokens_only(kind):
    model, other = tiny(kind), TGT.clone()
    other[:, 3] = 4
    before, after = model(SRC, TGT), model(SRC, other)
    close(before[:, :3], after[:, :3])
    assert (before[:, 3:] - after[:, 3:]).abs().amax(dim=-1).min() > 1e-3


@every_kind
@torch.no_grad()
def test_order_and_source_matter(kind):
    model = tiny(kind)
    for changed in (SRC[:1, [1, 0, 2, 3, 4]], SRC[:1, [0, 0, 2, 3, 4]]):
        assert (model(SRC[:1], TGT[:1]) - model(changed, TGT[:1])).abs().max() > 1e-3


@every_kind
@torch.no_grad()
def test_hypotheses_of_a_sentence_share_its_memory(kind):
    model = tiny(kind)
    rows = torch.tensor([[BOS, 4, 8], [BOS, 6, 5], [BOS, 7, 7], [BOS, 5, 6]])
    memory, copies = model.encode(SRC), model.encode(SRC.repeat_interleave(2, dim=0))
    close(model.decode(rows, memory)[0], model.decode(rows, copies)[0])
    _, state = model.decode(rows[:, :2], memory)
    close(model.decode(rows[:, 2:], memory, state)[0], model.decode(rows, copies)[0][:, 2:])


@every_kind
@torch.no_grad()
def test_rows_and_sentences_can_be_chosen_between_steps(kind):
    model, sentences = tiny(kind), torch.tensor([1, 1, 0])
    memory = model.encode(SRC)
    _, state = model.decode(TGT[:, :3], memory)
    chosen, _ = model.decode(
        TGT[sentences, 3:], select(memory, sentences), select(state, sentences)
    )
    close(chosen, model(SRC, TGT)[sentences, 3:])


@every_kind
def test_every_weight_learns(kind):
    model = build(KINDS[kind])
    model(
        SRC.repeat(20, 1), TGT.repeat(20, 1)
    ).square().sum().backward()  # each head of a block needs a row
    silent = [
        name
        for name, weight in model.named_parameters()
        if weight.grad is None or not weight.grad.any()
    ]
    assert silent == []


@every_kind
def test_parameters_are_counted_without_building(kind):
    assert count_parameters(KINDS[kind]) == sum(
        weight.numel() for weight in build(KINDS[kind]).parameters()
    )


def attention(d: int) -> int:
    return 4 * (d * d + d)  # query, key, value and output, with biases


def feed_forward(d: int, d_ff: int) -> int:
    return 2 * d * d_ff + d_ff + d


@pytest.mark.parametrize(
    ("d", "d_ff", "heads", "millions"), [(512, 2048, 8, 63.1), (1024, 4096, 16, 214.2)]
)
def test_the_papers_models_have_the_parameters_of_the_formula(d, d_ff, heads, millions):
    config = ModelConfig(d_model=d, d_ff=d_ff, num_heads=heads)
    encoder = attention(d) + feed_forward(d, d_ff) + 2 * 2 * d
    decoder = 2 * attention(d) + feed_forward(d, d_ff) + 3 * 2 * d
    assert count_parameters(config) == 37000 * d + 6 * (encoder + decoder)
    assert count_parameters(config) == pytest.approx(millions * 1e6, abs=5e4)


# -- the formulas ---------------------------------------------------------------------------------------


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


def test_attention_by_hand():
    q = torch.tensor([[[[2.0, 0.0, 0.0, 0.0]]]])
    k = torch.tensor([[[[math.log(3), 1.0, 0.0, 0.0], [0.0, 0.0, 5.0, 0.0], [9.0, 0.0, 0.0, 0.0]]]])
    v = torch.tensor([[[[4.0], [8.0], [100.0]]]])
    mask = torch.tensor([[[[True, True, False]]]])
    # q k^T / sqrt(4) = ln 3, 0 and what is masked: the weights are 3/4 and 1/4.
    output, weights = attend_with_scores(dot_products(q, k), v, mask)
    assert weights.flatten().tolist() == pytest.approx([0.75, 0.25, 0])
    assert output.item() == pytest.approx(0.75 * 4 + 0.25 * 8)


def test_masks_by_hand():
    assert causal_mask(2, 4).int().tolist() == [[1, 1, 1, 0], [1, 1, 1, 1]]
    assert window_mask(3, 3, 2).int().tolist() == [[1, 0, 0], [1, 1, 0], [0, 1, 1]]


def test_a_window_sees_its_neighbours_only():
    model = tiny("window")
    with recording() as record:
        model(SRC[:1], TGT[:1])
    near = (torch.arange(5)[:, None] - torch.arange(5)).abs() < 2
    assert ((record.attention[0].weights[0] > 0) == near).all()


@torch.no_grad()
def test_a_window_of_the_decoder_sees_the_last_tokens_only():
    """In each of two layers, a window of 2 sees the last token and the one before it."""
    model, other = tiny("window"), TGT.clone()
    other[:, 1] = 7
    changed = (model(SRC, TGT) - model(SRC, other)).abs().amax(-1) > 1e-4
    assert changed[0].tolist() == [False, True, True, True, False, False]


@pytest.mark.parametrize(("positions", "sees_order"), [("rotary", True), ("none", False)])
@torch.no_grad()
def test_rotary_positions_tell_decoder_and_encoder_the_order(positions, sees_order):
    """With one layer and without positions, the last output depends on the set of tokens before it only."""
    config = replace(KINDS["rotary"], num_encoder_layers=1, num_decoder_layers=1)
    model = build(config).eval()
    if positions == "none":
        for module in model.modules():
            if isinstance(module, MultiHeadAttention):
                module.positions = None
    outputs = [
        model(torch.tensor([src]), torch.tensor([tgt]))[0, -1]
        for src, tgt in (
            ([4, 5, 6, EOS], [BOS, 4, 5, 6]),
            ([5, 4, 6, EOS], [BOS, 4, 5, 6]),
            ([4, 5, 6, EOS], [BOS, 5, 4, 6]),
        )
    ]
    for output in outputs[1:]:
        assert ((output - outputs[0]).abs().max() > 1e-4) == sees_order


def test_sinusoids_by_hand():
    table = sinusoids(50, 512)
    assert table[0, :4].tolist() == [0.0, 1.0, 0.0, 1.0]
    for position, pair in itertools.product((1, 7, 49), (0, 10, 255)):
        angle = position / 10000 ** (2 * pair / 512)
        assert table[position, 2 * pair].item() == pytest.approx(math.sin(angle), abs=1e-5)
        assert table[position, 2 * pair + 1].item() == pytest.approx(math.cos(angle), abs=1e-5)


def test_the_table_of_positions_grows():
    positions = SinusoidalPositions(16)
    with torch.inference_mode():
        grown = positions(2, 7)
    assert torch.equal(grown, sinusoids(9, 16)[2:])
    assert positions.table.size(0) >= 9
    assert not positions.table.is_inference()  # or training could not use it afterwards
    assert not positions.state_dict()


def test_threads_may_grow_the_table_of_positions_at_once():
    class Contended(SinusoidalPositions):
        def __setattr__(self, name: str, value: object) -> None:
            super().__setattr__(name, value)
            if name == "table":  # the moment after, another thread has a smaller one
                super().__setattr__(name, sinusoids(4, 16))

    positions = Contended(16)
    assert torch.equal(positions(2, 7), sinusoids(9, 16)[2:])


def test_a_model_that_translated_a_long_text_can_go_on_training():
    model = tiny("post")
    src, tgt = torch.full((1, 700), 5), torch.cat((TGT[:1], torch.full((1, 694), 7)), dim=1)
    with torch.inference_mode():
        whole = model(src, tgt)
        _, state = model.decode(tgt[:, :690], memory := model.encode(src))
        close(model.decode(tgt[:, 690:], memory, state)[0], whole[:, 690:])
    model(src, tgt).sum().backward()


def test_a_batch_by_hand():
    batch = make_batch([[5, 6], [7]], [[8], []])
    assert batch.src.tolist() == [[5, 6, EOS], [7, EOS, PAD]]
    assert batch.tgt_in.tolist() == [[BOS, 8], [BOS, PAD]]
    assert batch.tgt_out.tolist() == [[8, EOS], [EOS, PAD]]
    assert batch.num_tokens == 3


# -- PyTorch's Transformer with the same weights ----------------------------------------------------------


def copy_attention(ours: MultiHeadAttention, theirs: nn.MultiheadAttention) -> None:
    three = ours.query, ours.key, ours.value
    theirs.in_proj_weight.data = torch.cat([linear.weight for linear in three]).detach()
    theirs.in_proj_bias.data = torch.cat([linear.bias for linear in three]).detach()
    theirs.out_proj.load_state_dict(ours.out.state_dict())


def torch_transformer(model: Seq2Seq, config: ModelConfig) -> nn.Transformer:
    """The library's Transformer with the model's weights; only pre-norm gets the final norms, as in ours."""
    theirs = nn.Transformer(
        config.d_model,
        config.num_heads,
        config.num_encoder_layers,
        config.num_decoder_layers,
        config.d_ff,
        dropout=0.0,
        activation="gelu" if config.activation == "gelu" else "relu",
        norm_first=config.norm == "pre",
        batch_first=True,
    )
    layers = [*theirs.encoder.layers, *theirs.decoder.layers]
    for ours, layer in zip([*model.encoder, *model.decoder], layers, strict=True):
        copy_attention(ours.attention, layer.self_attn)
        if hasattr(ours, "source_attention"):
            copy_attention(ours.source_attention, layer.multihead_attn)
        layer.linear1.load_state_dict(ours.feed_forward.inner.state_dict())
        layer.linear2.load_state_dict(ours.feed_forward.out.state_dict())
        for number, residual in enumerate(ours.residual, start=1):
            getattr(layer, f"norm{number}").load_state_dict(residual.norm.state_dict())
    for stack, norm in (theirs.encoder, model.encoder_norm), (theirs.decoder, model.decoder_norm):
        stack.norm = norm
    return theirs


@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
@pytest.mark.parametrize("kind", ["post", "pre", "gelu"])
def test_equal_to_the_transformer_of_pytorch(kind):
    config, model = KINDS[kind], tiny(kind)
    theirs, table = torch_transformer(model, config), sinusoids(6, config.d_model)
    hidden = SRC == PAD
    x = theirs(
        model.embedding(SRC) + table[:5],
        model.embedding(TGT) + table,
        tgt_mask=~causal_mask(6, 6),
        src_key_padding_mask=hidden,
        memory_key_padding_mask=hidden,
    )
    close(model(SRC, TGT), x @ model.embedding.weight.T)


# -- after the paper --------------------------------------------------------------------------------------


@torch.no_grad()
def test_rotated_products_depend_on_the_distance_and_on_nothing_else():
    positions, draw = RotaryPositions(6), torch.Generator().manual_seed(1)
    q, k = torch.randn(2, 1, 1, 1, 6, generator=draw)

    def product(of_query: int, of_key: int) -> float:
        return (positions.rotate(q, of_query) * positions.rotate(k, of_key)).sum().item()

    assert product(0, 0) == pytest.approx((q * k).sum().item(), abs=1e-5)
    assert product(9, 4) == pytest.approx(product(5, 0), abs=1e-4) == product(105, 100)
    assert abs(product(9, 4) - product(4, 9)) > 1e-3
    together = positions.rotate(torch.cat((q, k), 2), 7)
    close(together, torch.cat((positions.rotate(q, 7), positions.rotate(k, 8)), 2))


@torch.no_grad()
def test_rotary_models_have_no_absolute_positions():
    model = build(KINDS["rotary"])
    assert not any(type(module) is SinusoidalPositions for module in model.modules())
    assert all(layer.source_attention.positions is None for layer in model.decoder)


@torch.no_grad()
def test_shared_keys_are_those_of_heads_with_equal_matrices():
    shared, full = MultiHeadAttention(replace(SMALL, num_kv_heads=2)), MultiHeadAttention(SMALL)
    weights = shared.state_dict()
    for name in ("key", "value"):
        for kind in ("weight", "bias"):
            heads = weights[f"{name}.{kind}"].unflatten(0, (2, 4))
            weights[f"{name}.{kind}"] = heads.repeat_interleave(2, dim=0).flatten(0, 1)
    full.load_state_dict(weights)
    x = torch.randn(2, 5, 16, generator=torch.Generator().manual_seed(1))
    close(shared(x, shared.project(x), causal=True), full(x, full.project(x), causal=True))
    assert shared.project(x)[0].shape == (2, 2, 5, 4), "the cache is smaller"


@torch.no_grad()
def test_swiglu_and_rms_norm_by_hand():
    config = replace(SMALL, activation="swiglu", rms_norm=True, bias=False)
    x = torch.randn(3, 16, generator=torch.Generator().manual_seed(1))
    layer = FeedForward(config)
    inner = x @ layer.inner.weight.T
    close(layer(x), (inner / (1 + (-inner).exp()) * (x @ layer.gate.weight.T)) @ layer.out.weight.T)
    norm = make_norm(config)
    norm.weight.copy_(torch.arange(16.0))
    close(norm(x), x / x.square().mean(-1, keepdim=True).sqrt() * torch.arange(16.0))
    assert not [
        name
        for name, _ in build(replace(config, norm="pre")).named_parameters()
        if name.endswith("bias")
    ]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"model.positions": "rotary", "model.attention": "additive"},
            "needs a Transformer with dot products",
        ),
        (
            {"model.positions": "rotary", "model.kind": "convolutional"},
            "needs a Transformer with dot products",
        ),
        ({"model.positions": "rotary", "model.d_k": 5}, "an even width"),
        (
            {"model.num_kv_heads": 3},
            r"model\.num_heads \(8\) must be a multiple of model\.num_kv_heads \(3\)",
        ),
        (
            {"model.rms_norm": True, "model.kind": "recurrent"},
            "model.rms_norm is for models of the kind transformer",
        ),
    ],
)
def test_options_that_do_not_fit_are_refused(options, message):
    with pytest.raises(UserError, match=message):
        configure(options)


# -- initialisation, recording, files ---------------------------------------------------------------------

WIDE = ModelConfig(
    vocab_size=300,
    d_model=64,
    d_ff=256,
    num_heads=4,
    d_v=24,
    num_encoder_layers=1,
    num_decoder_layers=1,
)


@pytest.mark.parametrize(
    "config", [WIDE, replace(WIDE, positions="learned", source_vocab_size=200)]
)
def test_initial_weights_have_the_right_spread(config):
    model = build(config)
    gains = {}
    for module in model.modules():
        if isinstance(module, MultiHeadAttention):
            gains |= dict.fromkeys((module.query, module.key, module.value), math.sqrt(0.5))
    for stack, branches in ((model.encoder, 2), (model.decoder, 3)):  # of one layer each
        for module in stack.modules():
            if isinstance(module, (MultiHeadAttention, FeedForward)):
                gains[module.out] = 1 / math.sqrt(branches)
    seen = set()
    for module in model.modules():
        if isinstance(module, nn.Linear):
            bound = gains.get(module, 1.0) * math.sqrt(6 / sum(module.weight.shape))
            assert 0.98 * bound < module.weight.abs().max() <= bound * 1.0001
            # As of a uniform one.
            assert module.weight.std().item() == pytest.approx(bound / math.sqrt(3), rel=0.07)
            assert not module.bias.any()
        elif isinstance(module, (Embedding, LearnedPositions)):
            assert module.weight.std().item() == pytest.approx(64**-0.5, rel=0.05)
            assert module.weight.abs().max() > 3 * 64**-0.5  # a normal distribution has tails
        elif isinstance(module, nn.LayerNorm):
            assert (module.weight == 1).all() and not module.bias.any()
        seen.add(type(module))
    assert {nn.Linear, Embedding, nn.LayerNorm} <= seen


def test_the_seed_alone_decides_the_weights():
    torch.manual_seed(1)
    first, other = build(WIDE, seed=5), build(WIDE, seed=6)
    torch.manual_seed(2)
    again = build(WIDE, seed=5)
    for name, weight in first.state_dict().items():
        assert torch.equal(weight, again.state_dict()[name])
        assert weight.dim() < 2 or not torch.equal(weight, other.state_dict()[name])


@every_kind
@torch.no_grad()
def test_recording_attention_changes_no_output(kind):
    model, expected = tiny(kind), tiny(kind)(SRC, TGT)
    with recording() as record:
        close(model(SRC, TGT), expected)
    assert attention_record.get() is routing_record.get() is None
    uses = {
        "transformer": len(model.encoder) + 2 * len(model.decoder),
        "recurrent": TGT.size(1),
        "bytenet": 0,
    }
    assert len(record.attention) == uses.get(KINDS[kind].kind, len(model.decoder))
    for kept in record.attention:
        close(kept.weights.sum(dim=-1), torch.ones(kept.weights.shape[:-1]))
    for name, module in model.named_modules():
        if name.endswith("source_attention"):
            to_source = torch.cat(record.of(module), dim=2)
            assert to_source.shape == (
                2,
                KINDS[kind].num_heads if KINDS[kind].kind == "transformer" else 1,
                6,
                5,
            )
            assert not to_source[1, :, :, 3:].any()  # padding
    if KINDS[kind].kind == "transformer":
        (to_self,) = record.of(model.decoder[0].attention)
        assert not to_self.triu(1).any()  # the future


def test_dropout_is_for_training_only():
    model = build(replace(SMALL, dropout=0.3, attention_dropout=0.3))
    model.train()
    assert not torch.equal(model(SRC, TGT), model(SRC, TGT))
    model.eval()
    assert torch.equal(model(SRC, TGT), model(SRC, TGT))


@every_kind
def test_weights_survive_saving_and_loading(kind, tmp_path):
    model, other = tiny(kind), build(KINDS[kind], seed=2)
    save_file(model.state_dict(), tmp_path / "model.safetensors")
    load_weights(other, tmp_path / "model.safetensors")
    assert all(
        torch.equal(weight, other.state_dict()[name]) for name, weight in model.state_dict().items()
    )


def test_weights_that_do_not_fit_or_are_damaged_are_refused(tmp_path):
    file, model = tmp_path / "model.safetensors", build(SMALL)
    before = {name: weight.clone() for name, weight in model.state_dict().items()}
    save_file(before, file)
    for config in (
        KINDS["pre"],
        KINDS["separate"],
        replace(SMALL, vocab_size=10),
        replace(SMALL, d_ff=33),
    ):
        with pytest.raises(
            UserError,
            match=r"model\.safetensors does not fit the model's configuration: '.+' differs",
        ):
            load_weights(build(config), file)
    whole = file.read_bytes()
    for damaged in (whole[:-1], whole[:100], b"", b"\xff" * 100):
        file.write_bytes(damaged)
        with pytest.raises(UserError, match=r"model\.safetensors can't be read.* Use another copy"):
            load_weights(model, file)
    with pytest.raises(UserError, match=r"absent\.safetensors can't be read.* Check its name"):
        load_weights(model, tmp_path / "absent.safetensors")
    assert all(torch.equal(weight, before[name]) for name, weight in model.state_dict().items())


@pytest.mark.parametrize(
    ("kind", "shape"),
    [
        (
            "convolutional, uneven",
            "convolutional, 2+2 layers, d_model 16, layers 2x8x3 1x12x4 1x20x1",
        ),
        ("recurrent, experts", "recurrent, 3+2 layers, d_model 16, 2 of 3 experts"),
        (
            "experts",
            "transformer, 2+2 layers, d_model 16, d_ff 32, 4 heads, post-norm, 2 of 3 experts",
        ),
    ],
)
def test_a_model_is_described_as_it_is_built(kind, shape):
    assert KINDS[kind].shape == shape
