"""Tests of transduce/model/build.py."""

from dataclasses import replace

import pytest
import torch
from safetensors.torch import save_file

from small_models import KINDS, SMALL, SRC, TGT, WIDE, close, every_kind, tiny
from transduce.config.parse import configure
from transduce.config.schema import BOS, PAD, ModelConfig
from transduce.model.build import build, count_parameters, load_weights
from transduce.system.errors import UserError


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


@torch.no_grad()
def test_a_window_of_the_decoder_sees_the_last_tokens_only():
    """In each of two layers, a window of 2 sees the last token and the one before it."""
    model, other = tiny("window"), TGT.clone()
    other[:, 1] = 7
    changed = (model(SRC, TGT) - model(SRC, other)).abs().amax(-1) > 1e-4
    assert changed[0].tolist() == [False, True, True, True, False, False]


def test_a_model_that_translated_a_long_text_can_go_on_training():
    model = tiny("post")
    src, tgt = torch.full((1, 700), 5), torch.cat((TGT[:1], torch.full((1, 694), 7)), dim=1)
    with torch.inference_mode():
        whole = model(src, tgt)
        _, state = model.decode(tgt[:, :690], memory := model.encode(src))
        close(model.decode(tgt[:, 690:], memory, state)[0], whole[:, 690:])
    model(src, tgt).sum().backward()


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


def test_the_seed_alone_decides_the_weights():
    torch.manual_seed(1)
    first, other = build(WIDE, seed=5), build(WIDE, seed=6)
    torch.manual_seed(2)
    again = build(WIDE, seed=5)
    for name, weight in first.state_dict().items():
        assert torch.equal(weight, again.state_dict()[name])
        assert weight.dim() < 2 or not torch.equal(weight, other.state_dict()[name])


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
