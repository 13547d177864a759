"""Tests of transduce/training/checkpoint.py."""

import errno
import shutil
from dataclasses import asdict, replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file

from corpora import reverse_rows
from small_trainings import MODEL, RATE, TRAIN, batch_of, same, updated, weights, written
from transduce import model_folder
from transduce.model.build import build
from transduce.model_folder import checkpoints_in, step_of
from transduce.system.errors import DamagedError, UserError
from transduce.system.files import digest, write_folder
from transduce.training import checkpoint
from transduce.training.checkpoint import (
    TrainState,
    load_checkpoint,
    moving_average,
    regular,
    remove_old,
    save_checkpoint,
)
from transduce.training.distributed import ALONE, Ranks, scatter_weights
from transduce.training.update import (
    make_optimizer,
    update,
)


def test_training_after_a_checkpoint_is_bit_identical(tmp_path):
    model = build(MODEL)
    optimizer, batch = make_optimizer(model.parameters(), TRAIN), batch_of(reverse_rows(8, seed=1))
    for step in (1, 2, 3):
        update(model, optimizer, [batch], step=step, rate=RATE, train=TRAIN)
    state = TrainState(3, 1, 2, 345, 6.75, 1 / 3, 2, 1, 0, 789, 1.1, 2.2, 3.3, 4)
    path = save_checkpoint(tmp_path, model, optimizer, state)
    assert path.name == "step-00000003"
    other = build(MODEL, seed=9)
    other_optimizer = make_optimizer(other.parameters(), TRAIN)
    assert load_checkpoint(path, other, other_optimizer) == state
    assert same(weights(other), weights(model))
    for each in (4, 5):
        for who, its in ((model, optimizer), (other, other_optimizer)):
            update(who, its, [batch], step=each, rate=RATE, train=TRAIN)
    assert same(weights(other), weights(model))
    save_checkpoint(tmp_path / "a", model, optimizer, state)
    save_checkpoint(tmp_path / "b", other, other_optimizer, state)
    files = [load_file(tmp_path / side / path.name / "optimizer.safetensors") for side in "ab"]
    assert same(*files) and len(files[0]) > 0


def test_the_average_of_equal_checkpoints_is_the_same_to_the_bit(tmp_path):
    for count in (1, 3, 5, 7):
        assert same(
            model_folder.average(written(tmp_path / str(count), range(1, count + 1))),
            weights(build(MODEL)),
        )


def test_the_average_is_the_mean_in_double_precision(tmp_path):
    paths = written(tmp_path, range(1, 6), lambda step: 0.1 * step**2)
    files = [load_file(path / "model.safetensors") for path in paths]
    for name, weight in model_folder.average(paths).items():
        exact = torch.stack([file[name].double() for file in files]).mean(dim=0)
        assert torch.equal(weight, exact.float())
        assert weight.dtype == torch.float32


@settings(max_examples=40)
@given(
    steps=st.integers(1, 30),
    save_every=st.integers(1, 7),
    keep_last=st.integers(1, 3),
    bests=st.sets(st.integers(1, 30), max_size=5),
    interrupted=st.sets(st.integers(1, 30), max_size=5),
    killed=st.sets(st.integers(1, 30), max_size=5),
)
def test_interrupted_training_keeps_the_same_checkpoints(
    steps, save_every, keep_last, bests, interrupted, killed, tmp_path_factory
):
    """With empty folders as checkpoints; a training that is killed comes to save, but not to remove."""
    kept = []
    for stops, deaths in ((set(), set()), (interrupted, killed)):
        folder, best = tmp_path_factory.mktemp("run"), 0
        for step in range(steps + 1):
            best = step if step in bests else best
            if step % save_every == 0 or step in {best, steps, *stops}:
                (folder / f"step-{step:08d}").mkdir()
                if step == steps or step not in deaths:
                    remove_old(folder, save_every, keep_last, {best})
        kept.append([step_of(path) for path in checkpoints_in(folder)])
    wanted = [step for step in range(steps + 1) if step % save_every == 0 or step == steps][
        -keep_last:
    ]
    assert [step_of(path) for path in regular(folder, save_every)][-keep_last:] == wanted
    # Before the first validation, step 0 counts as the best.
    assert kept[0] == kept[1] == sorted({*wanted, best})


def test_the_moving_average_by_hand(tmp_path):
    train = replace(TRAIN, ema=0.5)
    history, optimizer, model = updated(train, 12)
    plain, *_ = updated(TRAIN, 12)
    assert all(same(*pair) for pair in zip(history, plain, strict=True)), (
        "it does not change what is learnt"
    )
    expected = {name: weight.double() for name, weight in history[0].items()}
    for step, after in enumerate(history, start=1):
        decay = min(0.5, (1 + step) / (10 + step))
        expected = {
            name: decay * weight + (1 - decay) * after[name] for name, weight in expected.items()
        }
    save_checkpoint(tmp_path, model, optimizer, TrainState(step=12))
    found = moving_average(tmp_path / "step-00000012")
    assert found.keys() == history[0].keys()
    assert all(
        torch.allclose(weight.double(), expected[name], atol=1e-6) for name, weight in found.items()
    )
    for key in ("exp_avg", "exp_avg_sq", "step"):  # Adam's own state is as before
        assert all(key in state for state in optimizer.state.values())


def test_a_training_that_begins_has_made_nothing():
    assert not any(asdict(TrainState()).values())


def test_a_checkpoint_that_exists_stays_as_it_is(tmp_path):
    (path,) = written(tmp_path, range(3, 4))
    before = digest(path / "model.safetensors")
    assert written(tmp_path, range(3, 4), float) == [path]
    assert digest(path / "model.safetensors") == before


def test_an_incomplete_or_damaged_checkpoint_is_refused(tmp_path):
    model = build(MODEL)
    optimizer = make_optimizer(model.parameters(), TRAIN)
    (path,) = written(tmp_path, range(1, 2))
    names = ["model.safetensors", "optimizer.safetensors", "state.json"]
    for number, gone in enumerate(names):
        other = tmp_path / f"without-{number}"
        with write_folder(other) as aside:
            for name in names:
                if name != gone:
                    shutil.copy(path / name, aside)
        with pytest.raises(DamagedError, match=f"{other} is no checkpoint: it has no {gone}"):
            load_checkpoint(other, model, optimizer)
    damaged = bytearray((path / "optimizer.safetensors").read_bytes())
    damaged[-1] ^= 1
    (path / "optimizer.safetensors").write_bytes(damaged)
    for read in (moving_average, lambda path: load_checkpoint(path, model, optimizer)):
        with pytest.raises(DamagedError, match="SHA-256 differs"):
            read(path)


def test_without_a_moving_average_there_are_the_weights(tmp_path):
    _, optimizer, model = updated(TRAIN, 1)
    save_checkpoint(tmp_path, model, optimizer, TrainState(step=1))
    assert same(moving_average(tmp_path / "step-00000001"), weights(model))


def test_a_full_disk_is_reported_with_the_size_of_weights_and_optimizer(tmp_path, monkeypatch):
    _, optimizer, model = updated(TRAIN, 1)
    moments = [value for state in optimizer.state.values() for value in state.values()]
    size = sum(tensor.nbytes for tensor in [*weights(model).values(), *moments])

    def fails(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(checkpoint, "save_file", fails)
    with pytest.raises(UserError, match=f"it needs at least {size:,} bytes"):
        save_checkpoint(tmp_path, model, optimizer, TrainState(step=1))


def test_a_sharded_model_is_saved_and_restored_as_a_whole_one(tmp_path, shard):
    """A checkpoint does not depend on how the model was trained, nor what is learnt after it."""
    files = []
    for name, is_sharded in (("whole", False), ("sharded", True), ("resumed", True)):
        model = build(MODEL, seed=3)
        wrapped = shard(model) if is_sharded else model
        optimizer = make_optimizer(wrapped.parameters(), TRAIN)
        begin = 1
        if name == "resumed":
            last = tmp_path / "whole" / "step-00000002"
            assert load_checkpoint(last, model, optimizer) == TrainState(step=2)
            scatter_weights(model, wrapped, ALONE)
            begin = 3
        for step in range(begin, 4):
            batch = batch_of(reverse_rows(8, seed=step))
            update(wrapped, optimizer, [batch], step=step, rate=RATE, train=TRAIN)
            if step >= 2:
                path = save_checkpoint(tmp_path / name, wrapped, optimizer, TrainState(step=step))
        files.append([load_file(path / f"{file}.safetensors") for file in ("model", "optimizer")])
    for found in files[1:]:
        assert all(map(same, found, files[0])), "to the bit"


def test_only_the_first_rank_writes_a_checkpoint(tmp_path, rank_0_says):
    rank_0_says += [False, None]  # there is no such checkpoint; it has been written
    _, optimizer, model = updated(TRAIN, 1)
    path = save_checkpoint(tmp_path, model, optimizer, TrainState(step=1), Ranks(1, 2))
    assert path == tmp_path / "step-00000001" and not path.exists() and not rank_0_says
