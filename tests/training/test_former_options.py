"""Options of earlier versions: folders of models may have them, recipes and the command line may not."""

import hashlib
import json
import shutil
from pathlib import Path

import pytest

import transduce
from command_line import run
from corpora import TINY, changed, spelt, write_texts
from transduce import model_folder
from transduce.config.parse import FORMER, TRAINED_WITH, configure, read_recipe
from transduce.system.errors import UserError
from transduce.system.files import MANIFEST, digest
from transduce.training.run import train

OPTIONS = changed(
    TINY, train__steps=4, train__warmup=4, train__save_every=2, train__validate_every=2
)
OLD = {  # lines of config.toml that earlier versions wrote
    "train": 'consistency = "none"\nconsistency_weight = 3.0\ncutoff = 0.05\noptimizer = "adam"\nbalance = 0.01\n',
    "decode": "shortlist = false\n",
}


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Path:
    """A finished training; not to be changed."""
    place = tmp_path_factory.mktemp("place")
    corpora = [{"files": write_texts(place, "train", 300, 1)}]
    train(changed(OPTIONS, data__corpora=corpora, data__holdout=20), place / "model")
    return place / "model"


def aged(model: Path, out: Path, *, finished: bool = True, **values: str) -> Path:
    """A copy of a model folder as an earlier version wrote it, with these values of former options."""
    shutil.copytree(model, out)
    text = (out / "config.toml").read_text(encoding="utf-8").rpartition(model_folder.SEAL)[0]
    for section, lines in OLD.items():
        text = text.replace(f"[{section}]\n", f"[{section}]\n{lines}")
    for name, value in values.items():
        before = next(line for line in text.splitlines() if line.startswith(f"{name} = "))
        text = text.replace(before, f"{name} = {value}")
    seal = hashlib.sha256(text.encode()).hexdigest()
    (out / "config.toml").write_text(f"{text}{model_folder.SEAL}{seal}\n", encoding="utf-8")
    sources = json.loads((out / "sources.json").read_text())
    (out / "sources.json").write_text(json.dumps(sources | dict.fromkeys(FORMER, "command line")))
    if not finished:
        (out / MANIFEST).unlink()
        return out
    manifest = json.loads((out / MANIFEST).read_text())
    for name in ("config.toml", "sources.json"):
        manifest["files"][name] = {
            "size": (out / name).stat().st_size,
            "sha256": digest(out / name),
        }
    (out / MANIFEST).write_text(json.dumps(manifest))
    return out


def test_an_old_folder_is_the_same_model(finished, tmp_path, capsys):
    values = {"consistency": '"simcut"', "optimizer": '"sgd"', "shortlist": "true"}
    old = aged(finished, tmp_path / "old", **values)
    texts = ["a b c", "d e"]
    found = [transduce.load(each, engine="torch").translate(texts) for each in (finished, old)]
    assert found[0] == found[1]
    assert model_folder.read_config(old) == model_folder.read_config(finished)
    for command in (
        ["info", old],
        ["info", old, "--json"],
        ["average", old, "--out", tmp_path / "mean", "--last", 2],
    ):
        status, _, said = run(capsys, *command)
        assert status == 0, said
    corpora = [{"files": write_texts(tmp_path, "other", 60, 2)}]
    train(changed(OPTIONS, data__corpora=corpora), tmp_path / "new", init=old)
    assert model_folder.read_config(tmp_path / "new").model == model_folder.read_config(old).model


def test_an_old_training_resumes_as_a_new_one(finished, tmp_path, capsys):
    weights = []
    new = Path(shutil.copytree(finished, tmp_path / "new"))
    old = aged(finished, tmp_path / "old", finished=False, shortlist="true")
    for out in (new, old):
        assert run(capsys, "train", "--out", out, "train.steps=8")[0] == 0
        weights.append(digest(out / "model.safetensors"))
        text = (out / "config.toml").read_text()
        assert not any(f"\n{name.partition('.')[2]} = " in text for name in FORMER)
    assert weights[0] == weights[1] != digest(finished / "model.safetensors")


@pytest.mark.parametrize("name", TRAINED_WITH)
def test_a_training_with_a_former_option_is_not_silently_another(name, finished, tmp_path, capsys):
    key = name.partition(".")[2]
    old = aged(finished, tmp_path / "old", **{key: '"other"'})
    before = digest(old / "config.toml")
    expected = f"{old} was trained with {name} = other, which this version can't do."
    for command in (["train", "--out", old, "train.steps=8"], ["reproduce", "--check", old]):
        status, _, said = run(capsys, *command)
        assert status == 2 and expected in said, said
    assert digest(old / "config.toml") == before
    corpora = [{"files": write_texts(tmp_path, "other", 60, 2)}]
    with pytest.raises(UserError, match=f"was trained with {name} = other"):
        train(
            changed(OPTIONS, data__corpora=corpora), tmp_path / "new", init=old, keep_optimizer=True
        )


@pytest.mark.parametrize("name", FORMER)
def test_a_former_option_is_refused_with_its_reason(name, tmp_path, capsys):
    section, key = name.split(".")
    expected = f"{name} was removed in this version: {FORMER[name]}."
    with pytest.raises(UserError) as caught:
        read_recipe(f'[{section}]\n{key} = "a"\n', "recipe.toml")
    assert str(caught.value) == f"{expected} Leave it out."
    with pytest.raises(UserError, match="was removed in this version"):
        configure({name: 1})
    status, _, said = run(
        capsys,
        "train",
        "--train",
        "a",
        "b",
        "--out",
        tmp_path / "out",
        *spelt(OPTIONS),
        f"{name}=1",
    )
    assert status == 2 and expected in said
