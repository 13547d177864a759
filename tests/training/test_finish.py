"""Tests of transduce/training/finish.py."""

from dataclasses import replace

import pytest

from corpora import reverse_rows
from small_trainings import MODEL, TRAIN, same, training
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
