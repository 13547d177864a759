"""Tests of transduce/commands/train.py."""

import torch
from safetensors.torch import load_file

from command_line import run
from small_corpus import SHORT


def test_files_a_table_and_a_recipe_train_the_same_model(place, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(place)
    (tmp_path / "recipe.toml").write_text(
        '[data]\nvalid = ["valid.src", "valid.tgt"]\n[[data.corpora]]\nfiles = ["train.src", "train.tgt"]\n'
        "[train]\nsteps = 99\nsave_every = 2\n[model]\nd_model = 64\n"
    )
    valid = ["--valid", "valid.src", "valid.tgt"]
    commands = {
        "files": [SHORT[0], "--train", "train.src", "train.tgt", *SHORT[1:3], *valid, *SHORT[3:]],
        "table": ["--train", "train.tsv", *SHORT, *valid],
        "recipe": [*SHORT[:5], tmp_path / "recipe.toml", *SHORT[5:]],
    }
    for name, command in commands.items():
        status, result, said = run(capsys, "train", *command, "--out", tmp_path / name)
        assert status == 0
        assert (
            result
            == f"{tmp_path / name} is ready: transduce translate {tmp_path / name} --input FILE\n"
        )
        assert (
            "\nCorpus      300 pairs src-tgt, " in said
            and "\nLanguages   unknown, and can't be named later: " in said
        )
    first, *others = (load_file(tmp_path / name / "model.safetensors") for name in commands)
    for other in others:
        assert first.keys() == other.keys()
        assert all(torch.equal(weight, other[name]) for name, weight in first.items())
