"""Tests of `transduce learn`: transduce/wings/learning/learning.py and command.py."""

import math
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from command_line import run
from corpora import texts_in_order

pytest.importorskip("rapidfuzz", reason="pip install 'transduce[serve]'")
from transduce.evaluation import calibration
from transduce.evaluation.scores import Comparison, Score
from transduce.model_folder import CONFIDENCE, DATA, load, read_config
from transduce.preparation.prepared import GENERAL_FILE, write_valid
from transduce.system.errors import UserError
from transduce.text.pairs import Origin, Pair
from transduce.wings.learning import learning
from transduce.wings.learning.learning import Verdict, compare_versions, learn
from transduce.wings.learning.versions import Versions
from transduce.wings.memories import judging
from transduce.wings.memories.database import Database, Unit
from transduce.wings.memories.judging import held_out_pairs
from transduce.wings.phrasebook import examples

DIRECTION = "src-tgt"
PLAIN = {"train.threads": 1, "train.precision": "float32", "train.label_smoothing": 0.1}
STEPS = {"train.steps": 120, "train.warmup": 20, "train.minutes": 0, **PLAIN}


@pytest.fixture
def model(word_by_word: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(word_by_word, tmp_path / "model"))


@pytest.fixture
def memory(tmp_path: Path) -> Database:
    return Database(tmp_path / "memory.sqlite")


def correct(memory: Database, ending: str, count: int = 300, owner: str = "anna") -> None:
    """Corrections of texts with "so" at the end, which want an ending behind each translation."""
    units = [
        Unit(f"{source} so so", f"{target} {ending}".strip(), "correction")
        for source, target in texts_in_order(count, 11)
    ]
    memory.add(units, DIRECTION, owner)


def test_a_version_that_translates_unseen_corrections_better_is_used(
    model: Path, memory: Database, capsys: pytest.CaptureFixture[str]
) -> None:
    before = (model / "model.safetensors").read_bytes()
    known = calibration.fit(np.arange(300.0).reshape(-1, 3), np.arange(100.0))
    assert known is not None
    confidence = known.to_json()
    (model / CONFIDENCE).write_text(confidence, encoding="utf-8")
    correct(memory, "zu fe")
    assert learn(model, memory.path, options=STEPS)
    versions = Versions(model)
    assert versions.current == 2 and model.is_symlink()
    assert (model / "model.safetensors").read_bytes() != before
    assert (versions.path(1) / "model.safetensors").read_bytes() == before
    [entry] = versions.trail()
    assert entry["version"] == 2 and len(entry["corrections"]) > 180
    assert entry["corrections scores"][1] > entry["corrections scores"][0]
    # A few corrections can't fit a confidence, and don't show whether an engine is right.
    assert (versions.path(2) / CONFIDENCE).read_text(encoding="utf-8") == confidence
    general, held_out = (
        {pair.source for pair in pairs}
        for pairs in (held_out_pairs(versions.path(1)), examples.held_out(load(model), 1000))
    )
    assert len(general & held_out) > 20
    # A later version is compared with the first one on general text.
    second = versions.path(2)
    pairs = [Pair(*text, ORIGIN) for text in texts_in_order(40, 11)]
    later = compare_versions(second, second, pairs, first=versions.path(1))
    assert later.figures()["general scores"][:2] == entry["general scores"][:2]
    assert later.corrections.first == later.corrections.second
    log = capsys.readouterr().err
    assert "chrF2 on general text" in log and "is version 2 now" in log
    with pytest.raises(UserError, match=r"0 corrections that .* has not learnt"):
        learn(model, memory.path, options=STEPS)
    _, out, _ = run(capsys, "versions", model)
    assert [line.split()[0] for line in out.splitlines()] == ["version", "1", "2"]
    assert "in use" in out.splitlines()[2]
    assert "is version 1 now" in run(capsys, "rollback", model)[2]
    assert (model / "model.safetensors").read_bytes() == before
    assert "first version" in run(capsys, "rollback", model)[2]
    memory.delete("anna")
    correct(memory, "zu fe", 310, "bert")
    assert "is version 2 now" in run(capsys, "rollback", model, 2)[2]
    with pytest.raises(UserError):
        learn(model, memory.path, owner="cleo")
    assert "that the memory lacks now" in capsys.readouterr().err
    _, out, _ = run(capsys, "versions", model, "--memory", memory.path)
    first, second = out.splitlines()[1:3]
    assert "deleted" not in first
    assert f"in use, has learnt {len(entry['corrections'])} deleted corrections" in second
    assert "deleted" not in run(capsys, "versions", model)[1]


def figures(before: float, after: float, p_value: float) -> Comparison:
    first, second = (Score("chrF2", value, value, value, "") for value in (before, after))
    return Comparison("chrF2", first, second, p_value)


ORIGIN = Origin("corrections", 1)


def texts(pairs: Sequence[Pair]) -> list[tuple[str, ...]]:
    return [pair[:2] for pair in pairs]


BETTER = figures(30, 31, 0.5)


@pytest.mark.parametrize(
    ("verdict", "refusal"),
    [
        (Verdict(BETTER, 0.04, None), ""),
        (Verdict(BETTER, 0.05, None), "not significantly more probable"),
        (Verdict(figures(30, 30, 0.0), 0.0, None), "does not translate corrections"),
        (Verdict(BETTER, 0.0, figures(50, 49, 0.06)), ""),
        (Verdict(BETTER, 0.0, figures(50, 49, 0.04)), "general text significantly worse"),
        (Verdict(BETTER, 0.0, figures(50, 49, math.nan)), "general text significantly worse"),
        (Verdict(BETTER, 0.0, figures(50, 51, 0.01)), ""),
    ],
)
def test_verdicts(verdict: Verdict, refusal: str) -> None:
    assert refusal in verdict.refusal and bool(refusal) == bool(verdict.refusal)
    assert verdict.figures()["p-value"] == verdict.p_value


def test_the_same_version_is_not_more_probable(model: Path) -> None:
    pairs = [Pair(*text, ORIGIN) for text in texts_in_order(40, 11)]
    long = Pair("ka " * 2000, "ka " * 2000, ORIGIN)  # too long for forced decoding
    verdict = compare_versions(model, model, [*pairs, long], first=model)
    assert verdict.p_value == 1 and verdict.corrections.p_value == 1
    assert verdict.general and verdict.general.first == verdict.general.second


def test_general_text_is_found_where_a_model_and_its_first_version_were_trained(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = held_out_pairs(model)
    assert len(own) == 40
    config = read_config(model)
    data = tmp_path / "data"
    (model / DATA).rename(data)
    assert held_out_pairs(model) == []
    corpora = (replace(config.data.corpora[0], files=(str(data),)),)
    elsewhere = replace(config, data=replace(config.data, corpora=corpora))
    monkeypatch.setattr(judging, "read_config", lambda _: elsewhere)
    assert texts(held_out_pairs(model)) == texts(own)
    write_valid(data, own[:2], GENERAL_FILE)
    assert texts(held_out_pairs(model)) == [*texts(own), *texts(own[:2])]


def test_a_version_that_is_no_better_is_not_used(
    model: Path,
    memory: Database,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(learning, "MAX_TESTED", 31)
    correct(memory, "zu fe")
    assert not learn(
        model, memory.path, options=STEPS | {"train.steps": 1, "train.learning_rate": 1e-6}
    )
    versions = Versions(model)
    assert versions.current == 1 and not model.is_symlink() and versions.numbers == [1]
    log = capsys.readouterr().err
    assert "on 31 corrections kept for the test" in log
    assert "is not used: it does not translate corrections" in log
    assert "refused" in versions.trail()[0]
    assert not [path for path in versions.folder.iterdir() if path.is_dir()]


@pytest.mark.slow
def test_a_model_that_forgets_is_not_used(
    model: Path, memory: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    correct(memory, "zu fe")
    train = learning.train

    def forgetful(*arguments: object, **named: object) -> object:
        return train(*arguments, **named, forget=True)  # type: ignore[arg-type]

    monkeypatch.setattr(learning, "train", forgetful)
    assert not learn(model, memory.path, options=STEPS)
    assert "general text" in Versions(model).trail()[0]["refused"]


@pytest.mark.parametrize(("count", "error"), [(0, "0 corrections"), (120, "at least 100 and 30")])
def test_too_few_corrections(model: Path, memory: Database, count: int, error: str) -> None:
    memory.read_file("a.tmx", "1", [Unit(f"ka {i}", "x") for i in range(300)], DIRECTION)
    if count:
        correct(memory, "", count)
    with pytest.raises(UserError, match=error):
        learn(model, memory.path)


def test_a_missing_memory(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, _, log = run(capsys, "learn", model, "--memory", "none.sqlite")
    assert status == 2 and "none.sqlite is missing" in log
