"""`transduce.train` and `transduce.evaluate` learn from Python objects what they learn from files."""

import json
import shutil
from pathlib import Path

import pandas
import pytest
from safetensors.torch import load_file

import transduce
from corpora import TINY, reverse_texts
from transduce import model_folder

OPTIONS = TINY | {
    "data.holdout": 10,
    "train.steps": 6,
    "train.warmup": 2,
    "train.save_every": 3,
    "train.validate_every": 6,
}
COLUMNS = dict(zip(("ka", "zu"), reverse_texts(200, seed=0), strict=True))
VALID = dict(zip(("ka", "zu"), reverse_texts(20, seed=1), strict=True))


def write_files(folder: Path, name: str, columns: dict[str, list[str]]) -> list[str]:
    files = []
    for code, texts in columns.items():
        files.append(str(folder / f"{name}.{code}"))
        Path(files[-1]).write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    return files


@pytest.fixture(scope="module")
def of_files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model trained on files; the test set is beside it."""
    folder = tmp_path_factory.mktemp("files")
    transduce.train(
        folder / "model",
        train=write_files(folder, "train", COLUMNS),
        valid=write_files(folder, "valid", VALID),
        source="ka",
        target="zu",
        options=OPTIONS,
    )
    return folder / "model"


@pytest.fixture(scope="module")
def of_tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model trained on tables with the same pairs, whose columns name the languages; interrupted once."""
    folder = tmp_path_factory.mktemp("tables") / "model"
    calls = iter([False] * 4)
    corpora = {"train": pandas.DataFrame(COLUMNS), "valid": pandas.DataFrame(VALID)}
    first = transduce.train(folder, **corpora, options=OPTIONS, stop=lambda: next(calls, True))
    assert first.reason == "interrupted"
    assert transduce.train(folder, **corpora, options=OPTIONS).reason == "steps"
    return folder


def test_pairs_train_the_model_that_their_files_train(of_files, of_tables):
    weights, others = (load_file(folder / model_folder.WEIGHTS) for folder in (of_files, of_tables))
    assert weights.keys() == others.keys()
    assert all(weights[name].equal(others[name]) for name in weights)
    data = model_folder.read_config(of_tables).data
    assert (data.source, data.target) == ("ka", "zu")
    assert [Path(file) for file in data.corpora[0].files] == [of_tables / "pairs" / "train.jsonl"]
    card = json.loads((of_tables / model_folder.RUN).read_text(encoding="utf-8"))
    assert set(card["inputs"]) == {"data.corpora", "data.valid"}


def test_the_training_goes_on_with_the_same_pairs_in_a_moved_folder(of_tables, tmp_path):
    moved = shutil.copytree(of_tables, tmp_path / "moved")
    pairs = zip(*COLUMNS.values(), strict=True)
    longer = transduce.train(
        moved, train=pairs, source="ka", target="zu", options={"train.steps": 7}
    )
    assert longer.metrics["training"]["steps"] == 7


def test_a_training_does_not_go_on_with_other_pairs(of_files, of_tables):
    pairs = list(zip(*COLUMNS.values(), strict=True))
    before = (of_tables / "pairs" / "train.jsonl").read_bytes()
    for folder, other in ((of_tables, pairs[1:]), (of_files, pairs)):
        with pytest.raises(transduce.UserError, match="was started with other pairs"):
            transduce.train(folder, train=other, source="ka", target="zu")
    assert (of_tables / "pairs" / "train.jsonl").read_bytes() == before
    assert not (of_files / "pairs").exists()


def test_a_foreign_folder_is_left_alone(tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(transduce.UserError, match="is not a training run"):
        transduce.train(tmp_path, train=[("ka", "zu")])
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"train": [("ka", "zu")], "source": "ka,lo"}, "The language of .*train.jsonl is unknown"),
        ({"train": pandas.DataFrame({"a": ["x"], "b": ["y"]})}, "train:1: expected strings"),
        ({"train": [("ka \ud800", "zu")] * 99}, r"train.jsonl:1: \\ud800 is only half of a"),
        ({"monolingual": [("ka", "zu")]}, "does not exist|nothing to train on"),
    ],
)
def test_mistakes_are_user_errors(tmp_path, arguments, said):
    with pytest.raises(transduce.UserError, match=said):
        transduce.train(tmp_path / "out", **arguments)


def test_pairs_are_evaluated_as_their_files_are(of_files):
    files = [str(of_files.parent / f"valid.{code}") for code in ("ka", "zu")]
    expected = transduce.evaluate(of_files, files)
    assert isinstance(expected, transduce.Evaluation) and len(expected.translations) == 20
    for test in (pandas.DataFrame(VALID), list(zip(*VALID.values(), strict=True))):
        found = transduce.evaluate(of_files, test)
        assert found._replace(seconds=0) == expected._replace(seconds=0)
    assert expected.scores[0].name == "BLEU"
    with pytest.raises(transduce.UserError, match="does not translate from zu"):
        transduce.evaluate(of_files, files, source="zu")
    with pytest.raises(transduce.UserError, match='found "a"'):
        transduce.evaluate(of_files, pandas.DataFrame({"a": ["x"], "b": ["y"]}))
