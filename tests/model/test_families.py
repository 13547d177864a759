"""Every family of models learns, trains, goes on, translates and is evaluated through the same commands."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

import transduce
from command_line import run
from corpora import reverse_rows, reverse_texts, write_texts
from transduce.config.parse import configure, parse_assignments
from transduce.model.build import build
from transduce.model.recording import recording
from transduce.model.seq2seq import make_batch
from transduce.training.minimum_risk import expected_risk
from transduce.training.objectives import cross_entropy, sums_of
from transduce.training.update import make_optimizer, update
from transduce_lab.families.experts import Experts, balance_loss, noisy_balance_loss

FAMILIES = {
    "transformer": [],
    "dot products": ["model.attention=dot"],
    "additive attention": ["model.attention=additive", "train.learning_rate=0.5"],
    "window": ["model.window=4", "train.learning_rate=0.5"],
    "experts": ["model.experts=4", "model.experts_per_token=2", "model.expert_layers=2"],
    "blocks": ["model.block_size=3"],
    "recurrent": ["model.kind=recurrent", "model.attention=additive"],
    "recurrent, multiplicative": ["model.kind=recurrent", "model.attention=dot", "model.cell=gru"],
    "convolutional": [
        "model.kind=convolutional",
        "model.num_encoder_layers=3",
        "model.num_decoder_layers=3",
        "model.positions=learned",
        "train.learning_rate=0.5",
    ],
    "separable": [
        "model.kind=convolutional",
        "model.separable=true",
        "model.num_encoder_layers=3",
        "model.num_decoder_layers=3",
        "train.learning_rate=0.5",
    ],
    "recurrent, experts": [
        "model.kind=recurrent",
        "model.attention=additive",
        "model.experts=4",
        "model.experts_per_token=2",
        "model.gate_noise=true",
    ],
    "bytenet": ["model.kind=bytenet", "model.num_encoder_layers=5", "model.num_decoder_layers=5"],
    "deep_att": ["model.kind=deep_att"],
    "neural_gpu": [
        "model.kind=neural_gpu",
        "model.num_encoder_layers=1",
        "model.num_decoder_layers=1",
        "model.d_model=24",
        "data.max_tokens=512",
    ],
}
SHAPE = [
    "data.vocab_size=320",
    "data.max_tokens=1024",
    "model.num_encoder_layers=2",
    "model.num_decoder_layers=2",
    "model.d_model=64",
    "model.d_ff=128",
    "model.num_heads=4",
    "train.warmup=200",
    "train.threads=1",
    "train.learning_rate=1.0",
    "model.dropout=0",
    "decode.max_extra_tokens=2",
]
VARIANTS = (
    "dot products",
    "additive attention",
    "window",
    "experts",
    "recurrent, multiplicative",
    "separable",
)
VARIANTS += ("recurrent, experts", "bytenet", "blocks")
every_family = pytest.mark.parametrize("family", FAMILIES)


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    """A prepared corpus of reversed sentences, data, and the test texts."""
    folder = tmp_path_factory.mktemp("families")
    for seed, (name, count) in enumerate({"train": 20_000, "valid": 12, "test": 200}.items()):
        write_texts(folder, name, count, seed, longest=6)
    options = {
        "data.corpora": [{"files": [str(folder / "train.src"), str(folder / "train.tgt")]}],
        "data.valid": (str(folder / "valid.src"), str(folder / "valid.tgt")),
        "data.vocab_size": 320,  # every word is a piece
        "data.source": "ka",
        "data.target": "zu",
    }
    from transduce.preparation.prepare import prepare

    prepare(configure(options).data, folder / "data", vocab_size=lambda _: 320)
    return folder


def train(
    place: Path, out: Path, family: str, capsys: pytest.CaptureFixture[str], *more: str
) -> None:
    status, _, said = run(
        capsys, "train", "--train", place / "data", "--out", out, *SHAPE, *FAMILIES[family], *more
    )
    assert status == 0, said


@pytest.mark.parametrize("family", [name for name in FAMILIES if name != "blocks"])
def test_minimum_risk_training(family):
    options = parse_assignments([*SHAPE, *FAMILIES[family], "train.steps=1", "train.risk_steps=1"])
    config = configure(options, {"model.vocab_size": 16, "train.precision": "float32"})
    model, batch = (
        build(config.model, 1).train(),
        make_batch([[5, 6, 7], [8]], [[9, 10], [11, 12, 13]]),
    )
    before = [weight.detach().clone() for weight in model.parameters()]
    optimizer = make_optimizer(model.parameters(), config.train)
    assert update(model, optimizer, [batch], step=1, rate=1e-3, train=config.train).applied
    assert (
        sum(not weight.equal(old) for weight, old in zip(model.parameters(), before, strict=True))
        > len(before) / 2
    )


@pytest.mark.parametrize(
    "family",
    [pytest.param(name, marks=[pytest.mark.slow] * (name in VARIANTS)) for name in FAMILIES],
)
def test_every_family_trains_resumes_and_translates(family, place, tmp_path, capsys):
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    every = ["train.save_every=2", "train.validate_every=4", "train.average=2"]
    train(place, whole, family, capsys, *every, "train.steps=6")
    train(place, parts, family, capsys, *every, "train.steps=4")
    train(place, parts, family, capsys, *every, "train.steps=6")  # goes on
    one, other = (load_file(folder / "model.safetensors") for folder in (whole, parts))
    assert all(torch.equal(weight, other[name]) for name, weight in one.items()), "to the bit"
    sources = reverse_texts(3, seed=9)[0]
    translator = transduce.load(whole)
    alone = [translator.translate([source], beam_size=2)[0] for source in sources]
    for together, single in zip(
        translator.translate([*sources, ""], beam_size=2), alone, strict=False
    ):
        assert together.text == single.text and together.score == pytest.approx(
            single.score, abs=1e-4
        )
    files = place / "valid.src", place / "valid.tgt"
    status, printed, said = run(
        capsys, "evaluate", whole, *files, "--ensemble", parts, "--json", "decode.beam_size=2"
    )
    assert status == 0, said
    assert json.loads(printed)["sentences"] == 12


@pytest.mark.slow
@every_family
def test_every_family_learns_to_reverse(family, place, tmp_path, capsys):
    train(
        place,
        tmp_path / "model",
        family,
        capsys,
        "train.steps=1500",
        "train.cooldown=500",
        "train.average=1",
    )
    sources, targets = (
        (place / f"test.{side}").read_text().split("\n")[:-1] for side in ("src", "tgt")
    )
    found = [
        translation.text for translation in transduce.load(tmp_path / "model").translate(sources)
    ]
    assert sum(map(str.__eq__, found, targets)) >= 0.95 * len(targets)


@every_family
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_every_weight_of_every_family_has_a_gradient_in_either_precision(family, precision):
    config = configure(
        parse_assignments([*SHAPE, *FAMILIES[family]]), {"train.precision": precision}
    )
    rows = reverse_rows(24, seed=1)
    batch = make_batch(*zip(*rows, strict=True))
    model = build(replace(config.model, vocab_size=14))
    sums = sums_of(model, batch, config.train)
    sums.loss.backward()
    assert sums.loss.isfinite()
    assert all(
        weight.grad is not None and weight.grad.isfinite().all() for weight in model.parameters()
    )


NEW_FAMILY = """
from transduce.config.families import FAMILIES, Family

FAMILIES["bag"] = Family("bag_of_words:BagOfWords")  # the line that CONTRIBUTING.md adds to the registry
from transduce.cli import main

main()
"""


@pytest.mark.slow
def test_a_new_family_is_a_module_and_a_line(place, tmp_path):
    def transduce_with_bags(*arguments: object, text: str = "") -> str:
        command = [sys.executable, "-c", NEW_FAMILY, *map(str, arguments)]
        path = os.pathsep.join([str(Path(__file__).parent), *sys.path])
        environment = {**os.environ, "PYTHONPATH": path}
        done = subprocess.run(
            command, input=text, capture_output=True, text=True, env=environment, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    training = "train", "--train", place / "data", "--out", tmp_path / "model"
    transduce_with_bags(*training, *SHAPE, "model.kind=bag", "train.steps=2", "train.save_every=1")
    assert (
        transduce_with_bags("translate", tmp_path / "model", text="one two\nthree\n").count("\n")
        == 2
    )
    assert "bag, " in transduce_with_bags("info", tmp_path / "model")


def test_expert_output_is_the_weighted_sum_of_the_best_experts():
    torch.manual_seed(1)
    layer = Experts(
        configure(
            {"model.d_model": 8, "model.d_ff": 16, "model.num_heads": 2, "model.experts": 5}
        ).model
    )
    x = torch.randn(3, 4, 8)
    with recording(attention=False) as record:
        found = layer(x)
    (routing,) = record.routing
    for row, token in enumerate(x.flatten(0, 1)):
        gates = layer.gate(token)
        best = gates.topk(2).indices
        assert set(best.tolist()) == set(routing.chosen[row].tolist())
        shares = gates[best].softmax(-1)
        expected = sum(
            share * layer.experts[i](token) for share, i in zip(shares, best.tolist(), strict=True)
        )
        torch.testing.assert_close(found.flatten(0, 1)[row], expected)


def test_the_balance_loss_is_one_when_even_and_the_experts_when_not():
    assert balance_loss(torch.zeros(8, 4), torch.arange(8)[:, None] % 4).item() == pytest.approx(1)
    uneven = torch.tensor([[100.0, 0, 0, 0]] * 8)
    assert balance_loss(uneven, torch.zeros(8, 1, dtype=torch.long)).item() == pytest.approx(4)


def test_the_load_counts_how_often_other_noise_would_choose_an_expert():
    """Against a simulation: one expert's noise is drawn again, the others' stays (appendix A of Shazeer et al.)."""
    torch.manual_seed(1)
    clean, deviation = torch.randn(3, 5), torch.rand(3, 5) + 0.1
    gates = clean + torch.randn(3, 5) * deviation
    chosen = gates.topk(2).indices
    load = torch.zeros(5)
    for token in range(3):
        for expert in range(5):
            again = gates[token].repeat(40_000, 1)
            again[:, expert] = clean[token, expert] + torch.randn(40_000) * deviation[token, expert]
            load[expert] += (again.topk(2).indices == expert).any(dim=1).float().mean()
    importance = torch.zeros(3, 5).scatter(1, chosen, gates.gather(1, chosen).softmax(1)).sum(0)
    expected = sum((each.std(correction=0) / each.mean()) ** 2 for each in (importance, load))
    assert noisy_balance_loss(clean, gates, deviation, chosen).item() == pytest.approx(
        expected.item(), rel=0.05
    )
    everyone = torch.zeros(2, 5).topk(5).indices
    assert noisy_balance_loss(
        clean[:2], torch.zeros(2, 5), deviation[:2], everyone
    ).item() == pytest.approx(0)


def test_only_training_adds_noise():
    options = {"model.d_model": 8, "model.d_ff": 16, "model.num_heads": 2, "model.experts": 5}
    layer, x = (
        Experts(configure({**options, "model.gate_noise": True}).model),
        torch.randn(1, 50, 8),
    )
    assert not torch.equal(layer(x), layer(x))
    layer.eval()
    assert torch.equal(layer(x), layer(x))


def test_training_loss_includes_the_balance_loss():
    config = configure(parse_assignments([*SHAPE, *FAMILIES["experts"]]))
    batch, model = (
        make_batch(*zip(*reverse_rows(24, seed=1), strict=True)),
        build(replace(config.model, vocab_size=14)),
    )
    whole = sums_of(model, batch, config.train).loss.item()
    with recording(attention=False) as record:
        without = cross_entropy(model, batch, config.train).loss.item()
    assert len(record.routing) == 2
    balance = sum(each.balance_loss.item() for each in record.routing) / 2
    assert whole - without == pytest.approx(0.01 * batch.num_tokens * balance, rel=1e-3)


def test_minimum_risk_samples_do_not_count_for_the_balance_loss():
    config = configure(parse_assignments([*SHAPE, *FAMILIES["experts"]])).model
    with recording(attention=False) as record:
        expected_risk(
            build(replace(config, vocab_size=14)),
            make_batch([[5, 6]], [[7]]),
            samples=3,
            sharpness=0.01,
        )
    # An encoder layer, and a decoder layer for the samples and for the target.
    assert len(record.routing) == 3


@pytest.mark.parametrize(("noise", "even"), [(False, 1), (True, 0)])
def test_balance_loss_spreads_tokens_over_experts(noise, even):
    """With a large weight, the gradient of the balance loss alone evens the experts out."""
    options = {
        "model.d_model": 16,
        "model.d_ff": 16,
        "model.num_heads": 2,
        "model.experts": 4,
        "model.vocab_size": 40,
    }
    shape = {
        "model.num_encoder_layers": 1,
        "model.num_decoder_layers": 1,
        "model.gate_noise": noise,
    }
    model = build(configure(options, shape).model)
    torch.manual_seed(1)
    src, tgt = torch.randint(4, 40, (8, 12)), torch.randint(4, 40, (8, 12))
    optimizer, losses = torch.optim.Adam(model.parameters(), lr=0.01), []
    for _ in range(60):
        with recording(attention=False) as record:
            model(src, tgt)
        loss = torch.stack([each.balance_loss for each in record.routing]).mean()
        losses.append(loss.item())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    assert losses[-1] < even + 0.5 * (losses[0] - even)
