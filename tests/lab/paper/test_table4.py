"""Tests of transduce_lab/paper/table4.py."""

import json

import pytest

from command_line import run
from transduce.wings.phrasebook.examples import examples
from transduce_lab.comparing import runs
from transduce_lab.paper import table4

pytest.importorskip("scipy", reason="pip install 'transduce[lab]'")
from tables import fails


@pytest.mark.slow
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
