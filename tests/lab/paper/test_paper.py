"""The paper's tables and figures: its printed figures against what follows from the code."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from command_line import run
from corpora import spelt, write_texts
from transduce.commands.recipes import read_text
from transduce.config.parse import configure, read_recipe
from transduce.config.schema import ModelConfig, with_options
from transduce.model.build import count_parameters, model_class
from transduce.wings.phrasebook.examples import examples
from transduce_lab.comparing import runs
from transduce_lab.comparing.runs import FILE_OPTIONS
from transduce_lab.operations import per_target_token
from transduce_lab.paper import reproduce_command, table3

pytest.importorskip("scipy", reason="pip install 'transduce[lab]'")
from tables import COUNTS, fails


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
