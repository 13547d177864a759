"""Tests of transduce/commands/average.py."""

import shutil

import torch
from safetensors.torch import load_file

from command_line import run
from small_corpus import output


def test_average_takes_the_last_regular_checkpoints(place, tmp_path, capsys):
    run_folder = tmp_path / "run"
    shutil.copytree(place / "one", run_folder)
    steps = run_folder / "checkpoints"
    # As an interruption leaves one.
    shutil.copytree(steps / "step-00000100", steps / "step-00000230")
    shutil.copytree(steps / "step-00000100", steps / "step-00000310.mine")  # which is none of ours
    printed = output(capsys, "average", run_folder, "--last", 2, "--out", tmp_path / "two")
    assert printed == f"{tmp_path / 'two'}: the average of the checkpoints at steps 200, 300\n"
    first, last = (load_file(steps / f"step-{step:08d}/model.safetensors") for step in (200, 300))
    for name, weight in load_file(tmp_path / "two/model.safetensors").items():
        assert torch.equal(weight, ((first[name].double() + last[name].double()) / 2).float())
    assert "checkpoint  average of steps 200, 300\n" in output(capsys, "info", tmp_path / "two")
    output(capsys, "average", run_folder, "--last", 1, "--out", tmp_path / "one")
    status, _, said = run(capsys, "train", "--out", tmp_path / "one", "train.steps=900")
    assert (
        status == 2
        and f"{tmp_path / 'one'} is a model without checkpoints. To continue from it" in said
    )
    command = [
        "train",
        "--init",
        tmp_path / "one",
        "--keep-optimizer",
        "--train",
        place / "train.tsv",
    ]
    status, _, said = run(capsys, *command, "--out", tmp_path / "out")
    assert status == 2 and "one has no checkpoints, so its optimizer state is gone" in said
    assert all(
        torch.equal(weight, last[name])
        for name, weight in load_file(tmp_path / "one/model.safetensors").items()
    )
    (tmp_path / "in.txt").write_text("ka lo\n")
    assert (
        output(capsys, "translate", tmp_path / "two", "--input", tmp_path / "in.txt").count("\n")
        == 1
    )
