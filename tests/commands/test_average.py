"""Tests of transduce/commands/average.py."""

import re
import shutil

import torch
from safetensors.torch import load_file

import transduce
from command_line import run
from models import make_model
from small_corpus import output
from transduce.config.schema import PLACEHOLDER_TOKENS


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


def test_two_models_are_averaged_by_weight(tmp_path, capsys):
    one, two = (make_model(tmp_path / name, {}, updates=i) for i, name in enumerate(("one", "two")))
    weights = [load_file(folder / "model.safetensors") for folder in (one, two)]
    for share, said in ((0.25, "75% of one and 25% of two"), (0.5, "50% of one and 50% of two")):
        out = tmp_path / f"out-{share}"
        options = [] if share == 0.5 else ["--weight", str(share)]
        status, text, _ = run(capsys, "average", one, two, "--out", out, *options)
        assert (status, text) == (0, f"{out}: the average of {said}\n")
        found = load_file(out / "model.safetensors")
        for name, weight in found.items():
            expected = (1 - share) * weights[0][name] + share * weights[1][name]
            assert torch.allclose(weight, expected, atol=1e-6)
        assert transduce.load(out, engine="torch").translate(["ka lo"])[0].text
    other = make_model(tmp_path / "other", {"model.norm": "pre"}, updates=0)
    separate = make_model(
        tmp_path / "separate", {}, updates=0, placeholder_tokens=PLACEHOLDER_TOKENS
    )
    for second, options, why in (
        (other, [], "has model.norm = post, and .* has pre"),
        (separate, [], "different vocabularies|model.vocab_size"),
        (two, ["--weight", "1.5"], "weight must be from 0 to 1, not 1.5"),
    ):
        status, _, error = run(capsys, "average", one, second, "--out", tmp_path / "no", *options)
        assert status == 2 and re.search(why, error)
    assert not (tmp_path / "no").exists()
