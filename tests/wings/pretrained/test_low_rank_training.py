"""Fine-tuning with low-rank updates: resumption, memory, and what it excludes."""

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

import transduce
from corpora import TINY, write_texts
from models import make_model
from transduce import model_folder
from transduce.system.errors import UserError
from variants import slow

OPTIONS = {name: value for name, value in TINY.items() if name.startswith("train.")}
OPTIONS |= {"train.low_rank": 2, "train.steps": 8, "train.save_every": 2, "data.holdout": 20}
OPTIONS |= {"data.max_tokens": 256, "train.validate_every": 4, "train.keep_last": 1}
OPTIONS |= {"train.average": 1}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("low-rank")
    make_model(folder / "model", {})
    write_texts(folder, "new", 200, seed=8, longest=3)
    return folder


def tune(place: Path, out: Path, stop_at: int = 0, **changes: object) -> transduce.Result:
    calls = iter(range(1, 100))
    options = OPTIONS | {name.replace("__", "."): value for name, value in changes.items()}
    return transduce.train(
        out,
        train=[str(place / "new.src"), str(place / "new.tgt")],
        init=place / "model",
        options=options,
        stop=lambda: next(calls) == stop_at + 1 and stop_at > 0,
    )


@pytest.mark.parametrize("kept", [slow({}), {"train__max_forgotten": 1.0}])
def test_a_resumed_training_learns_the_same(place, tmp_path, kept):
    """Its frozen weights are those of the first checkpoint, which stays."""
    tune(place, tmp_path / "whole", **kept)
    assert tune(place, tmp_path / "parts", stop_at=5, **kept).reason == "interrupted"
    assert tune(place, tmp_path / "parts", **kept).reason == "steps"
    files = [tmp_path / name / "model.safetensors" for name in ("whole", "parts")]
    assert files[0].read_bytes() == files[1].read_bytes()
    new = load_file(files[0])
    old = load_file(place / "model/model.safetensors")
    assert new.keys() == old.keys()
    changed = {name for name in new if not torch.equal(new[name], old[name])}
    assert changed == {name for name in new if name.endswith("weight") and "norm" not in name} - {
        name for name in new if "embedding" in name
    }
    folder = tmp_path / "whole" / model_folder.CHECKPOINTS
    steps = [*map(model_folder.step_of, model_folder.checkpoints_in(folder))]
    assert steps[0] == 0 and steps[-1] == 8


def test_what_low_rank_updates_exclude(place, tmp_path):
    for name, value in (("train__ema", 0.9), ("train__shard", True)):
        with pytest.raises(UserError, match="Low-rank updates fine-tune a model"):
            tune(place, tmp_path / "out", **{name: value})
    with pytest.raises(UserError, match="Low-rank updates fine-tune a model"):
        transduce.train(
            tmp_path / "out",
            train=[str(place / "new.src"), str(place / "new.tgt")],
            options={**TINY, "train.low_rank": 2},
        )
    tune(place, tmp_path / "begun", stop_at=2)
    with pytest.raises(UserError, match=r"train\.low_rank = 2, which can't change"):
        tune(place, tmp_path / "begun", train__low_rank=4)
