"""Tests of transduce/training/finish.py."""

from dataclasses import replace

import pytest

from corpora import reverse_rows
from small_trainings import MODEL, TRAIN, same, training
from transduce import model_folder
from transduce.evaluation.perplexity import Validation
from transduce.model.seq2seq import Seq2Seq
from transduce.training import loop
from transduce.training.finish import choose


@pytest.mark.parametrize("ema", [0.0, 0.9])
def test_unchanged_weights_are_not_validated_again(tmp_path, ema):
    measured: list[float] = []

    def measure(model: Seq2Seq) -> Validation:
        measured.append(sum(weight.double().abs().sum().item() for weight in model.parameters()))
        return Validation(measured[-1], 0.0)

    train = replace(TRAIN, steps=12, validate_every=4, save_every=4, average=3, ema=ema, patience=0)
    task = training(tmp_path, reverse_rows(200, seed=1), MODEL, train, measure)
    loop.train(task)
    chosen = choose(task)
    assert len(set(measured)) == len(measured) == (6 if ema else 4), (
        "3 in the loop, an average, and with ema two more"
    )
    task.validations.clear()  # as after a resumption
    again = choose(task)
    assert (again.steps, again.validation, again.is_moving) == (
        chosen.steps,
        chosen.validation,
        chosen.is_moving,
    )
    assert same(again.weights, chosen.weights)


@pytest.mark.parametrize(("average", "steps"), [(1, [12]), (2, [12, 16]), (3, [8, 12, 16])])
def test_the_last_checkpoints_are_averaged(tmp_path, average, steps):
    """In the loop the validations get worse from 12 updates on; after it, what is new is the best."""
    costs = iter([9.0, 8.0, 5.0, 7.0, 1.0])
    train = replace(
        TRAIN, steps=16, validate_every=4, save_every=4, average=average, keep_last=9, patience=0
    )
    task = training(
        tmp_path, reverse_rows(200, seed=1), MODEL, train, lambda _: Validation(next(costs), 0.0)
    )
    loop.train(task)
    chosen = choose(task)
    assert (chosen.steps, chosen.is_moving) == (steps, False)
    files = [tmp_path / "checkpoints" / f"step-{step:08d}" for step in steps]
    assert same(chosen.weights, model_folder.average(files))
    name = (
        f"the average of {average} checkpoints, steps {steps[0]} to 16"
        if average > 1
        else "checkpoint 12"
    )
    assert str(chosen).startswith(
        f"{name}: validation perplexity {1 if average > 1 else 5}.00, BLEU"
    )


def test_a_damaged_checkpoint_is_left_out_of_the_average(tmp_path, capsys):
    train = replace(
        TRAIN, steps=16, validate_every=99, save_every=4, average=3, keep_last=9, patience=0
    )
    costs = iter([1.0, 2.0, 3.0])
    task = training(
        tmp_path, reverse_rows(200, seed=1), MODEL, train, lambda _: Validation(next(costs), 0.0)
    )
    loop.train(task)
    (tmp_path / "checkpoints" / "step-00000012" / "model.safetensors").write_bytes(b"x")
    assert choose(task).steps == [4, 8, 16]
    assert "The other checkpoints are used." in " ".join(capsys.readouterr().err.split())
