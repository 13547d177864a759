"""The paper's tables and figures: its printed figures against what follows from the code."""

import contextlib
import itertools
import json
import math
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from command_line import run
from corpora import spelt, write_texts
from transduce.commands.recipes import read_text
from transduce.config.parse import configure, read_recipe
from transduce.config.schema import ModelConfig, with_options
from transduce.model.build import build, count_parameters, model_class
from transduce.model.seq2seq import make_batch
from transduce.system.errors import UserError
from transduce.training.objectives import sums_of
from transduce.wings.phrasebook.examples import examples
from transduce_lab.comparing import runs
from transduce_lab.comparing.command import train_rows
from transduce_lab.comparing.operations import SENTENCE_TOKENS
from transduce_lab.comparing.runs import FILE_OPTIONS
from transduce_lab.operations import per_target_token
from transduce_lab.paper import figures, layers, reproduce_command, table1, table2, table3, table4

pytest.importorskip("scipy", reason="pip install 'transduce[lab]'")

# -- table 1 ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", table1.CLAIMS)
def test_layers_keep_the_shape(name):
    x = torch.randn(1, 37, 16)
    assert layers.layer(name, 16)(x).shape == x.shape


def test_a_recurrent_layer_step_by_step_is_the_same():
    layer, x = layers.Recurrence(8), torch.randn(1, 9, 8)
    torch.testing.assert_close(layer.by_steps(x), layer(x))


@pytest.mark.parametrize("name", table1.CLAIMS)
def test_only_recurrence_is_sequential(name):
    operations = [table1.sequential_operations(name, n) for n in (96, 192, 384)]
    if name == "recurrent":
        assert operations[2] - operations[1] == 2 * (operations[1] - operations[0]) > 16
    else:
        assert operations[0] == operations[1] == operations[2]


@pytest.mark.parametrize(
    ("name", "lengths", "paths"),
    [
        ("self-attention", (10, 100, 1000), [1, 1, 1]),
        ("recurrent", (10, 100), [10, 100]),
        (
            "convolutional",
            (3, 9, 128),
            [1, 4, 64],
        ),  # a kernel of 3 reaches two positions further per layer
        ("separable convolutional", (3, 9, 128), [1, 4, 64]),
        (
            "convolutional, dilated",
            (2, 3, 4, 9, 10, 81, 128, 512),
            [1, 1, 2, 2, 3, 4, 5, 6],
        ),  # log_3 n, rounded up
        (
            "restricted self-attention",
            (32, 33, 63, 64, 95),
            [1, 2, 2, 3, 4],
        ),  # r = 64: 31 to each side
    ],
)
def test_path_lengths(name, lengths, paths):
    assert [table1.path_length(name, n) for n in lengths] == paths


def test_costs_of_a_layer_grow_with_the_length():
    short, long = table1.measure("self-attention", [64, 2048], 32)
    assert (
        (short.n, long.n) == (64, 2048)
        and 0 < short.seconds < long.seconds
        and long.megabytes > 0.2
    )


@pytest.mark.parametrize("moment", ["Nothing else", "1 of 11"])
def test_table_1_can_be_interrupted(tmp_path, moment):
    # A shell's background job ignores SIGINT, and so would the command of a test that runs in one.
    listen = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    program = f"{listen}; from transduce.cli import main; main()"
    command = [sys.executable, "-c", program, "reproduce", "table1", "--out", str(tmp_path)]
    with subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        assert process.stderr and any(line.startswith(moment) for line in process.stderr)
        while (
            moment == "1 of 11"
            and process.poll() is None
            and not any(map(_imports, _children(process.pid)))
        ):
            time.sleep(0.01)
        os.killpg(process.pid, signal.SIGINT)  # as Ctrl-C does
        said = process.stderr.read()
        assert said in (
            "",
            "1 of 11: time and memory of self-attention, for n = 64 to 8,192 positions\n",
        )
    assert process.returncode == 130 and not list(tmp_path.iterdir())


def _children(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


def _imports(pid: str) -> bool:
    """Whether a process has imported numpy, which it does before torch."""
    with contextlib.suppress(OSError):  # it has ended
        return "_multiarray_umath" in Path(f"/proc/{pid}/maps").read_text()
    return False


@pytest.mark.slow
def test_table_1_is_computed(tmp_path, capsys, monkeypatch):
    for name, value in {
        "LENGTHS": (16, 32, 64, 128),
        "CROSSING_WIDTHS": (8, 16),
        "COUNTED_LENGTHS": (16, 32),
        "TIMED_WIDTH": 16,
    }.items():
        monkeypatch.setattr(table1, name, value)
    status, printed, said = run(capsys, "reproduce", "table1", "--out", tmp_path)
    assert status == 0 and "separable convolutional" in printed, said
    assert (tmp_path / "table1.png").stat().st_size > 1000
    layers = json.loads((tmp_path / "table1.json").read_text())["layers"]
    assert [len(layer["measured"]) for layer in layers] == [4] * 6


def test_exponents_of_power_laws():
    sizes = [64, 128, 256, 512]
    assert table1.exponent(sizes, [3 * n**1.7 for n in sizes]) == pytest.approx(1.7)
    assert math.isnan(table1.exponent([64], [1.0]))


def test_where_two_power_laws_cross():
    lengths = [100, 200, 400, 800]
    assert table1.where_one(lengths, [n / 300 for n in lengths]) == pytest.approx(300)
    assert table1.where_one(lengths, [0.5] * 4) == math.inf
    assert table1.where_one(lengths, [2.0] * 4) == 100


# -- table 2 ----------------------------------------------------------------------------------------------


def test_the_papers_training_flops():
    printed = {row["name"]: row.get("flops_de") for row in table2.TABLE2["printed"]}
    for name, training in table2.TRAININGS.items():
        assert table2.as_printed(training) == pytest.approx(printed[name], rel=0.01)


@pytest.mark.parametrize("d", [64, 128])
def test_the_models_own_arithmetic_is_that_of_its_matrices(d):
    n, v = 7, 50
    config = ModelConfig(
        vocab_size=v, d_model=d, d_ff=4 * d, num_heads=4, num_encoder_layers=5, num_decoder_layers=4
    )
    encoder_layer, decoder_layer = 4 * d * d + 8 * d * d, 8 * d * d + 8 * d * d
    products = n * (5 * encoder_layer + 4 * decoder_layer + v * d)
    attention = (5 + 4 * 2) * 2 * n * n * d  # q k and weights v, for each use of attention
    assert per_target_token(config, n, n) == pytest.approx(3 * 2 * (products + attention) / n)


def test_the_arithmetic_needs_no_memory():
    assert per_target_token(ModelConfig(vocab_size=10**12), 7, 7) > 3 * 2 * 512 * 10**12


def test_the_arithmetic_of_the_families_is_that_of_their_matrices():
    n, v, d, k, layers = 10, 50, 64, 3, 2
    shape = {
        "vocab_size": v,
        "d_model": d,
        "d_ff": 4 * d,
        "num_encoder_layers": layers,
        "num_decoder_layers": layers,
    }
    gates, attention, logits = 4 * d * n, 2 * n * n * d, n * v * d
    # both ways, the second layer over both; two decoder layers over token or layer below, and context; query and key
    lstm = gates * (2 * 2 * d + 3 * d + 2 * 3 * d) + 2 * n * d * d
    convolutions = n * d * d * (4 + 2 * layers * 2 * k + 2 * layers)
    inner = layers * (2 * d * d // 2 + k * (d // 2) ** 2)
    sparse = 8 * d + 2 * 8 * d * d  # gates of eight, two used
    wanted = {
        "recurrent": lstm + attention + logits,
        "convolutional": convolutions + layers * attention + logits,
        "bytenet": (12 + n) * inner + n * d * d + logits,
        "transformer": layers * (n * (4 + 8) * d * d + 2 * n * sparse + 3 * attention) + logits,
    }
    for kind, products in wanted.items():
        own = {"attention": "additive"} if kind == "recurrent" else {}
        own |= {"experts": 8, "num_heads": 4} if kind == "transformer" else {}
        found = per_target_token(with_options(ModelConfig(**shape, kind=kind), **own), n, n)
        assert found == pytest.approx(3 * 2 * products / n), kind


# -- table 3 ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("row", table3.VARIATIONS, ids=lambda row: row.name)
def test_the_parameters_of_table_3(row):
    """With 41,000 pieces all rows whose parameters are printed are the paper's, rounded; the big model's are near."""
    if row.name == "big":
        assert table3.parameters(row) == pytest.approx(row.printed.parameters, rel=0.01)
    elif row.printed.parameters:
        assert round(table3.parameters(row, 41_000)) == row.printed.parameters
        assert table3.parameters(row) == pytest.approx(row.printed.parameters, rel=0.07)


def test_every_row_changes_its_named_options():
    assert len({row.name for row in table3.VARIATIONS}) == len(table3.VARIATIONS)
    for row in table3.VARIATIONS[1:-1]:
        assert (row.model != table3.BASE) != bool(row.train), row.name


def test_scaling_keeps_heads_and_layers():
    small = table3.scaled(replace(table3.BASE, num_heads=4, d_k=128, d_v=128), 4)
    assert (small.d_model, small.d_ff, small.d_k, small.d_v, small.num_heads) == (
        128,
        512,
        32,
        32,
        4,
    )


# -- published configurations of the systems that the paper compares with ----------------------------------


def test_the_shape_of_gnmt():
    """8 + 8 layers of 1,024 LSTM units and 32,000 pieces: 278 million parameters (Shazeer et al., 2017, table 8)."""
    gnmt = ModelConfig(
        kind="recurrent",
        attention="additive",
        vocab_size=32_000,
        source_vocab_size=32_000,
        d_model=1024,
        num_encoder_layers=8,
        num_decoder_layers=8,
    )
    separate_output = 32_000 * 1024  # ours is tied to the target's embeddings
    assert (count_parameters(gnmt) + separate_output) / 1e6 == pytest.approx(278, rel=0.02)


def test_the_shape_of_convs2s():
    """15 + 15 layers for WMT'14: 9 of 512 channels, 4 of 1,024, 2 of 2,048 with kernels of 1 (section 4.2)."""
    shape = ModelConfig(kind="convolutional", d_model=768)
    config = with_options(shape, convolutions=("9x512x3", "4x1024x3", "2x2048x1"))
    with torch.device("meta"):
        model = model_class("convolutional")(config)
    kernels = [(layer.conv.out_channels // 2, layer.kernel) for layer in model.encoder]
    assert kernels == [(512, 3)] * 9 + [(1024, 3)] * 4 + [(2048, 1)] * 2
    assert [
        (layer.convolution.conv.out_channels // 2, layer.convolution.kernel)
        for layer in model.decoder
    ] == kernels


def test_the_shape_of_bytenet():
    """30 + 30 blocks of 800 units, in sets with dilations of 1, 2, 4, 8 and 16 (section 5)."""
    config = ModelConfig(
        kind="bytenet", vocab_size=300, d_model=1600, num_encoder_layers=30, num_decoder_layers=30
    )
    with torch.device("meta"):
        model = model_class("bytenet")(config)
    for stack in (model.encoder, model.decoder):
        assert [block.conv.dilation[0] for block in stack] == [1, 2, 4, 8, 16] * 6
        assert {(block.conv.in_channels, block.conv.kernel_size[0]) for block in stack} == {
            (800, 3)
        }


# -- parsing -----------------------------------------------------------------------------------------------


def fails(name: str, real=runs.train):
    """A training that fails for the row with this name."""

    def train(options, out, **more):
        if out.parent.name == name:
            raise UserError("The disk is full.")
        return real(options, out, **more)

    return train


def test_parsers_are_trained_and_scored_on_trees(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(table4, "TRAIN_TREES", 40)
    trees = "".join(f"{example.tree}\n" for example in examples("train", 40))
    (tmp_path / "some.mrg").write_text(trees)
    (tmp_path / "few.mrg").write_text("".join(trees.splitlines(keepends=True)[:8]))
    tiny = [
        "train.steps=2",
        "train.threads=1",
        "model.num_encoder_layers=1",
        "model.num_decoder_layers=1",
    ]
    tiny += [
        "model.d_model=16",
        "model.d_ff=16",
        "model.num_heads=2",
        "data.max_length=90",
        "train.precision=float32",
    ]
    tiny += ["decode.beam_size=1", "data.vocab_size=330", "decode.max_extra_tokens=20"]
    files = ["--train", tmp_path / "some.mrg", "--valid", tmp_path / "few.mrg"]
    command = ["reproduce", "parsing", "--out", tmp_path / "out", *files, "--seeds", "1", *tiny]
    with monkeypatch.context() as patch:
        patch.setattr(runs, "train", fails("some-10"))
        status, printed, said = run(capsys, *command, "--budget", "5")
    assert status == 2 and said.splitlines()[-1].endswith(
        "parsing/some-10/seed-1. The reasons are above."
    ), said
    page = (tmp_path / "out/parsing.md").read_text()
    assert (
        "some-10/seed-1 failed. The disk is full." in page
        and page.count("out/parsing/some-40/seed-1, by") == 1
    )
    status, printed, said = run(capsys, *command, "--budget", "5")
    assert status == 0, said
    assert "some-40" in printed and "some-5" in printed and "phrasebook" in printed
    rows = json.loads((tmp_path / "out/parsing.json").read_text())["rows"]
    assert len(rows) == 5 and all(len(row["runs"]) == 1 and row["scores"]["F1"] for row in rows)
    assert ["F1" in row["differences"] for row in rows] == [False, False, True, True, True]
    page = (tmp_path / "out/parsing.md").read_text()
    assert "perplexity (word)" in page and "from the parser of all trees of the corpus" in page
    assert "perplexity (token)" not in page and "from the row" not in page
    assert len(list((tmp_path / "out").glob("parsing-*.png"))) >= 1
    assert run(capsys, *command)[1] == printed, "from the runs that are there"


# -- figures ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("offset", [0, 1, 7, 60])
def test_shifting_positions_is_linear(offset):
    assert figures.shift_error(offset, 64, 200) < 1e-4


def test_wavelengths_span_from_two_pi_to_ten_thousand_times_that():
    found = figures.wavelengths(512)
    assert found[0] == pytest.approx(2 * math.pi)
    assert found[-1] == pytest.approx(10000 * 2 * math.pi, rel=0.04)
    assert all(b / a == pytest.approx(found[1] / found[0]) for a, b in itertools.pairwise(found))


def test_without_the_scale_softmax_loses_its_gradient():
    small, large = figures.scale_of_dot_products([4, 2048])
    assert small.variance == pytest.approx(4, rel=0.1) and large.variance == pytest.approx(
        2048, rel=0.1
    )
    assert large.gradient < 0.5 * large.gradient_scaled
    assert large.gradient_scaled == pytest.approx(small.gradient_scaled, rel=0.2)


def test_figures_are_drawn(tmp_path):
    figures.draw_positions(tmp_path / "positions.png")
    figures.draw_schedules(tmp_path / "schedules.svg", steps=100)
    figures.draw_scale(tmp_path / "scale.png", figures.scale_of_dot_products([2, 8]))
    assert all(path.stat().st_size > 1000 for path in tmp_path.iterdir())
    (tmp_path / "folder.png").mkdir()
    with pytest.raises(UserError, match=r"folder\.png can't be written"):
        figures.draw_positions(tmp_path / "folder.png")


# -- runs that add up --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def given(tmp_path_factory) -> dict[str, Any]:
    """Options that name a small corpus and make every run a matter of seconds."""
    folder = tmp_path_factory.mktemp("paper")
    files = {
        name: write_texts(folder, name, count, seed)
        for seed, (name, count) in enumerate(COUNTS.items())
    }
    return {
        "data.corpora": [{"files": list(files["train"])}],
        "data.valid": files["valid"],
        "data.test": files["test"],
        "data.vocab_size": 300,
        "data.max_tokens": 256,
        "train.steps": 2,
        "train.threads": 1,
        "train.precision": "float32",
        "decode.beam_size": 1,
        "decode.max_extra_tokens": 2,
    }


COUNTS = {"train": 60, "valid": 10, "test": 10}


def test_table_3_shows_our_runs_beside_the_papers(given, tmp_path, monkeypatch):
    monkeypatch.setattr(table3, "VARIATIONS", [table3.VARIATIONS[0], table3.VARIATIONS[6]])
    # Two updates at a low rate look like a divergence.
    quick = {
        "train.learning_rate": 0.05,
        "train.warmup": 2,
    }
    compared = replace(table3.comparison({**given, **quick}), seeds=1)
    assert compared.options["train.average"] == 1, "section 6.2 does not average"
    table = table3.table(train_rows(compared, tmp_path, math.inf), tmp_path)
    paths = table.write(tmp_path)
    page = paths[0].read_text()
    assert (
        "| B | d_k=32 | 60 | 58.4 | 5.01 | 25.4 | 1 |" in page
        and "`transduce reproduce table3`" in page
    )
    assert len(paths) == 3 and all(path.stat().st_size > 1000 for path in paths[2:])
    rows = json.loads(paths[1].read_text())
    assert [len(row["runs"]) for row in rows] == [1, 1] and rows[1]["printed"]["bleu"] == 25.4
    empty = table3.table(train_rows(table3.comparison({}), tmp_path, 0), tmp_path)
    assert "–" in empty.parts[0].rows[0], "without a test text"


def test_table_3_is_written_despite_a_failed_run(given, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(runs, "train", fails("C-N2"))
    files = ["--train", *given["data.corpora"][0]["files"]]
    files += [
        argument for name in ("valid", "test") for argument in (f"--{name}", *given[f"data.{name}"])
    ]
    options = spelt({name: value for name, value in given.items() if name not in FILE_OPTIONS})
    asked = [
        "reproduce",
        "table3",
        "--out",
        tmp_path,
        "--rows",
        "C-N2",
        "--seeds",
        1,
        "--budget",
        9,
        *files,
        *options,
    ]
    status, printed, said = run(capsys, *asked)
    assert status == 2 and said.splitlines()[-1].endswith(
        "table3/C-N2/seed-1. The reasons are above."
    ), said
    base, other = json.loads((tmp_path / "table3.json").read_text())
    assert len(base["runs"]) == 1 and other["verdict"] == "failed"
    assert (
        "C-N2/seed-1 failed. The disk is full." in (tmp_path / "table3.md").read_text()
        and "failed" in printed
    )


def test_rows_of_table_3_can_be_chosen(tmp_path, capsys):
    compared = table3.comparison({}, ["C-N2", "base"])
    assert [row.name for row in compared.rows] == ["base", "C-N2"] and compared.rows[1].options[
        "model.d_model"
    ] == 128
    status, printed, _ = run(
        capsys, "reproduce", "table3", "--out", tmp_path, "--rows", "C-N4", "D-P_drop0.0"
    )
    assert status == 0 and "P_drop=0.0" in printed and "N=2" not in printed
    assert [
        row["printed"]["bleu"] for row in json.loads((tmp_path / "table3.json").read_text())
    ] == [25.8, 25.3, 24.6]
    status, _, said = run(capsys, "reproduce", "table3", "--out", tmp_path, "--rows", "N=2")
    assert status == 2 and "Table 3 has no row N=2. Its rows are: base, A-h1-d_k512-d_v512," in said
    status, _, said = run(capsys, "reproduce", "table2", "--out", tmp_path, "--rows", "C-N2")
    assert status == 2 and "--rows is only for" in said


@pytest.mark.slow
def test_table_2_tunes_each_family_and_has_ensembles(given, tmp_path, monkeypatch):
    small = {"model.num_encoder_layers": 1, "model.num_decoder_layers": 1, "model.d_ff": 32}
    families = {
        name: table2.COMPARED_FAMILIES[name] | small for name in ("Transformer", "recurrent (GNMT)")
    }
    monkeypatch.setattr(table2, "COMPARED_FAMILIES", families)
    stage = {"train": {**table2.TABLE2["reinforcement"]["train"], "steps": 4, "risk_steps": 4}}
    parts = {
        "grid": {"train.warmup": [1, 9]},
        "ensembles": {"both": list(families)},
        "reinforced": ["Transformer"],
    }
    parts["reinforcement"] = stage
    monkeypatch.setattr(table2, "TABLE2", {**table2.TABLE2, **parts, "training_flops": 2e8})
    own = {name: value for name, value in given.items() if name != "train.steps"}
    compared = replace(table2.comparison({**own, "model.d_model": 16}), seeds=2)
    table = table2.table(train_rows(compared, tmp_path, math.inf), tmp_path)
    printed, rows = (
        {row[0]: dict(zip(part.headings, row, strict=True)) for row in part.rows}
        for part in table.parts[:2]
    )
    assert printed["Transformer (big)"]["FLOPs en-de"] == "2.3e+19"
    assert rows["both"]["runs"] == "4 models" and "±" in rows["both"]["BLEU"]
    costs = {row[0]: row for row in table.parts[2].rows}
    assert float(costs["both"][-3]) == pytest.approx(
        sum(float(costs[name][-3]) for name in families), abs=0.1
    )
    assert {costs[name][1] for name in families} <= {"1", "9"} and len(
        list(tmp_path.glob("table2/*/tuning/*"))
    ) == 4


def test_a_family_that_costs_more_a_token_has_fewer_updates(tmp_path):
    compared = table2.comparison({})
    assert {"train.learning_rate", "model.dropout"} == compared.grid.keys()
    steps = {
        row.name: experiment.options["train.steps"]
        for row in compared.trained
        for experiment in compared.tunings(row)
    }
    assert 900 < steps["Transformer with experts"] < steps["Transformer"] < 1200
    table = table2.table(train_rows(compared, tmp_path, 0), tmp_path)
    assert any(row[:3] == ["recurrent (GNMT)", "0", "–"] for row in table.parts[1].rows)


@pytest.mark.parametrize(
    ("own", "message"),
    [({"train.risk_steps": 9}, "minimum-risk"), ({"data.max_tokens": 10**7}, "One update has")],
)
def test_uncountable_trainings_of_table_2_are_refused(own, message):
    with pytest.raises(UserError, match=message):
        table2.comparison(own)


@pytest.mark.parametrize("family", table2.COMPARED_FAMILIES)
def test_families_begin_near_the_even_distribution_with_small_gradients(family):
    own = {"model.vocab_size": 1000, "train.precision": "float32"}
    config = configure({**table2.SHARED_OPTIONS, **table2.COMPARED_FAMILIES[family], **own})
    draw = torch.Generator().manual_seed(1)
    rows = torch.randint(4, 1000, (8, SENTENCE_TOKENS), generator=draw).tolist()
    model = build(config.model)
    batch = make_batch(rows, rows)
    sums = sums_of(model, batch, config.train)
    sums.loss.backward()
    gradients = [
        weight.grad / batch.num_tokens for weight in model.parameters() if weight.grad is not None
    ]
    assert sums.loss.item() / batch.num_tokens < 2 * math.log(1000)
    assert torch.nn.utils.get_total_norm(gradients) < 50


def test_options_that_rows_vary_can_not_be_set():
    for table, name, value in (
        (table2, "model.kind", "recurrent"),
        (table3, "model.d_model", 64),
        (table3, "train.label_smoothing", 0.15),
    ):
        with pytest.raises(UserError, match=f"The rows of the table differ in {name}"):
            table.comparison({name: value})


def test_a_prepared_corpus_has_languages(given, tmp_path, capsys, monkeypatch):
    texts = (
        "--from",
        "en",
        "--to",
        "zh",
        "--train",
        *given["data.corpora"][0]["files"],
        "--valid",
        *given["data.valid"],
    )
    assert (
        run(capsys, "prepare", *texts, "--out", tmp_path / "prepared", "data.vocab_size=300")[0]
        == 0
    )
    tables, trained = [], reproduce_command.train_rows
    monkeypatch.setattr(
        reproduce_command, "train_rows", lambda *given: tables.append(given[0]) or trained(*given)
    )
    asked = (
        "--out",
        tmp_path / "out",
        "--train",
        tmp_path / "prepared",
        "--test",
        *given["data.test"],
    )
    assert run(capsys, "reproduce", "table3", *asked)[0] == 0
    assert tables[0].options["data.target"] == "zh"


def test_the_command_prints_and_writes_tables(tmp_path, capsys):
    status, printed, said = run(capsys, "reproduce", "table3", "--out", tmp_path)
    assert status == 0 and "d_model=1024" in printed.replace("\n", ""), said
    assert (tmp_path / "table3.md").exists() and (tmp_path / "table3.json").exists()
    status, _, said = run(capsys, "reproduce", "table2", "--out", tmp_path, "--budget", "1")
    assert status == 2 and "With --budget, give --train and --test" in said
    for wrong in (
        ["table1", "--seeds", "0"],
        ["table1", "--budget", "3"],
        ["figures", "--seeds", "9"],
    ):
        assert run(capsys, "reproduce", *wrong, "--out", tmp_path)[0] == 2
    (tmp_path / "file").write_text("")
    assert (
        "can't be written: File exists"
        in run(capsys, "reproduce", "table3", "--out", tmp_path / "file")[2]
    )
    status, printed, said = run(capsys, "reproduce", "figures", "--out", tmp_path)
    assert status == 0 and "PE(pos + 1) = PE(pos) M" in printed


# -- recipes -----------------------------------------------------------------------------------------------

WMT = ["wmt14-en-de-base", "wmt14-en-de-big", "wmt14-en-fr-base", "wmt14-en-fr-big"]


@pytest.mark.parametrize("name", [*WMT, "wsj-parsing-only", "wsj-parsing-semi"])
def test_the_papers_settings(name):
    config = configure(read_recipe(*read_text(name)))
    assert config.data.max_tokens == 25000 and config.model.init == "t2t"
    assert config.train.warmup == (16_000 if name == "wsj-parsing-only" else 4000)
    assert (
        config.train.learning_rate == (1.0 if name in WMT else 0.5) and not config.data.deduplicate
    )
    if name.startswith("wmt"):
        big = name.endswith("big")
        assert (
            replace(config.model, dropout=BIG_OR_BASE[big].dropout, init="transduce")
            == BIG_OR_BASE[big]
        )
        assert not config.decode.capitals and not config.decode.retry_loops
        assert (config.train.steps, config.train.average) == (
            (300_000, 20) if big else (100_000, 5)
        )
        assert config.model.dropout == (0.3 if name == "wmt14-en-de-big" else 0.1)
        assert (
            config.decode.beam_size,
            config.decode.length_penalty,
            config.decode.max_extra_tokens,
        ) == (4, 0.6, 50)
    else:
        assert (config.model.num_encoder_layers, config.model.d_model) == (4, 1024)
        assert (
            config.decode.beam_size,
            config.decode.length_penalty,
            config.decode.max_extra_tokens,
        ) == (21, 0.3, 300)


BIG_OR_BASE = {False: table3.BASE, True: table3.BIG}


@pytest.mark.slow
@pytest.mark.parametrize("name", [*WMT, "wsj-parsing-only", "wsj-parsing-semi"])
def test_the_papers_recipes_take_their_first_steps(name, tmp_path, capsys):
    if name in WMT:
        pairs = {split: write_texts(tmp_path, split, count, 1) for split, count in COUNTS.items()}
        files = [argument for split, paths in pairs.items() for argument in (f"--{split}", *paths)]
    else:
        (tmp_path / "trees.mrg").write_text(
            "".join(f"{example.tree}\n" for example in examples("train", 40))
        )
        files = [
            "--train",
            tmp_path / "trees.mrg",
            "--valid",
            tmp_path / "trees.mrg",
            "decode.beam_size=1",
        ]
    more = ["train.steps=2", "train.precision=float32", "data.vocab_size=400", "train.save_every=1"]
    status, _, said = run(capsys, "train", name, "--out", tmp_path / "model", *files, *more)
    assert status == 0, said
