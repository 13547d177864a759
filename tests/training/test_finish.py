"""Tests of transduce/training/finish.py."""

import math
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from corpora import reverse_rows, reverse_texts
from small_trainings import MODEL, TRAIN, same, training, weights
from transduce import model_folder
from transduce.config.schema import DataConfig, DecodeConfig, RunConfig
from transduce.evaluation.evaluate import evaluate
from transduce.evaluation.perplexity import Validation
from transduce.model.build import build
from transduce.model.seq2seq import Seq2Seq
from transduce.system.files import publish, to_json
from transduce.text.pairs import Origin, Pair
from transduce.tokens.tokenizer import Tokenizer
from transduce.training import loop
from transduce.training.checkpoint import TrainState, save_checkpoint
from transduce.training.distributed import ALONE
from transduce.training.finish import (
    _compare,
    _course,
    _tests,
    _warn_of_high_perplexity,
    choose,
)
from transduce.training.run_card import RunCard, Session


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


BEFORE = (20.0, 60.0)  # chrF on the new and on other text


@pytest.mark.parametrize(
    ("measured", "share"),
    [
        # Shares 1, 0.9, 0.8, 0.7, 0.5, 0.3. The limit on other text is 54.
        ([(30, 58), (29, 58), (29, 58), (28, 58), (27, 58), (25, 58)], 1),
        ([(30, 53), (29, 54), (28, 54), (28, 55), (27, 56), (25, 57)], 0.9),
        ([(30, 53), (29, 53), (28, 54), (27, 55), (26, 56), (25, 57)], 0.8),
        ([(30, 53), (29, 53), (29, 53), (28, 53), (27, 53), (25, 54)], 0.3),
        ([(30, 40), (29, 41), (29, 41), (28, 42), (27, 43), (25, 44)], 0.3),  # none keeps enough
        # 95 % of the gain
        ([(30, 58), (29.7, 58), (29.6, 58), (29.5, 58), (28, 58), (25, 58)], 0.7),
        ([(28, 58), (29, 58), (29, 58), (30, 58), (30, 58), (26, 58)], 0.5),
        ([(18, 58), (18, 58), (19, 58), (19, 58), (19, 58), (19.5, 58)], 0.3),  # nothing is gained
        # no other text
        ([(30, None), (31, None), (29, None), (28, None), (28, None), (25, None)], 0.9),
    ],
)
def test_a_fine_tuned_model_is_averaged_with_the_model_before(tmp_path, measured, share):
    train = replace(TRAIN, steps=5, average=1, max_forgotten=0.1, select_by="chrf")
    before = BEFORE if measured[0][1] else (BEFORE[0], None)
    task = training(tmp_path, reverse_rows(50, seed=1), MODEL, train, lambda _: None)
    save_checkpoint(task.folder, task.model, task.optimizer, task.state)
    old = weights(task.model)
    loop.train(task)
    new = weights(task.model)
    of_tuned = iter(measured[:1])
    results = iter(measured[1:])

    def validate(model: Seq2Seq) -> Validation:
        now = weights(model)
        figures = before if same(now, old) else next(of_tuned if same(now, new) else results)
        return Validation(9.0, 5.0, *figures)

    task.validate = validate
    chosen = choose(task)
    assert chosen.share == share
    assert chosen.before == Validation(9.0, 5.0, *before)
    for name, weight in chosen.weights.items():
        assert torch.equal(weight, old[name].lerp(new[name], share) if share < 1 else new[name])
    assert str(chosen).startswith(f"{1 - share:.0%} of the model before" if share < 1 else "check")
    gone = task.folder / "step-00000000"
    gone.rename(gone.with_name("gone"))
    of_tuned = iter(measured[:1])
    assert choose(task).share == 1, "without the old weights"


@pytest.mark.parametrize(("rises", "share"), [(0.0, 1.0), (0.09, 1.0), (0.12, 0.8), (0.4, 0.3)])
def test_averages_are_compared_by_perplexity_if_the_training_selects_by_it(tmp_path, rises, share):
    """The log-probability of other text, -1 before, falls in proportion to the share of the new weights."""
    train = replace(TRAIN, steps=5, average=1, max_forgotten=0.1)
    task = training(tmp_path, reverse_rows(50, seed=1), MODEL, train, lambda _: None)
    save_checkpoint(task.folder, task.model, task.optimizer, task.state)
    loop.train(task)
    shares = iter([1.0, 0.0, 0.9, 0.8, 0.7, 0.5, 0.3])

    def validate(_: Seq2Seq) -> Validation:
        now = next(shares)
        own, other = math.exp(2 - now), math.exp(1 + rises * now)
        return Validation(own, None, None, None, other)

    task.validate = validate
    chosen = choose(task)
    assert chosen.share == share
    assert f", other text {math.exp(1 + rises * share):.2f}" in str(chosen)


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


def course(**changes: object) -> SimpleNamespace:
    """A training of a model with 10 tokens, as far as messages and metrics need it."""
    train = replace(TRAIN, **changes)
    config = RunConfig(model=replace(MODEL, vocab_size=10), train=train)
    state = TrainState(step=1, epoch=2, tokens_seen=3, seconds=4.56)
    return SimpleNamespace(config=config, state=state, device=torch.device("cpu"), ranks=ALONE)


@pytest.mark.parametrize(
    ("minutes", "reason", "names"),
    [
        (0.0, "steps", "train.steps"),
        (1.0, "steps", "train.minutes and train.steps"),
        (1.0, "minutes", "train.minutes and train.steps"),
        (1.0, "patience", "train.patience"),
    ],
)
def test_a_high_perplexity_is_explained(minutes, reason, names, capsys):
    task = course(minutes=minutes)
    start = "After 1 update the model can hardly translate text like the validation set."
    remedy = f"Allow more ({names}), or train on much more text."
    diverged = "The training diverged: train again with a lower train.learning_rate."
    for perplexity, said in ((100.0, remedy), (100.1, diverged)):  # ten times 10 tokens
        _warn_of_high_perplexity(task, Validation(perplexity), reason)
        assert " ".join(capsys.readouterr().err.split()) == f"{start} {said}"


def test_the_course_of_a_training_is_described():
    session = Session("", "1.0 (a)", None, {}, {}, {}, 0, "")
    card = RunCard({}, False, None, [session, session._replace(revision="1.0 (b)"), session])
    plain = {
        "reason": "steps",
        "steps": 1,
        "epochs": 2,
        "target_tokens": 3,
        "seconds": 4.6,
        "device": "1 CPU thread",
        "torch": torch.__version__,
    }
    assert _course(course(), "steps", None) == plain
    assert _course(course(), "steps", card) == plain | {"revision": "1.0 (a) and 1.0 (b)"}


def old_model(folder: Path, metrics: dict[str, Any], **languages: object) -> Path:
    """The folder of a finished model, without weights."""
    with publish(folder) as aside:
        model_folder.write_config(aside, replace(RunConfig(), data=DataConfig(**languages)))
        (aside / "metrics.json").write_text(to_json(metrics))
    return folder


def test_scores_before_languages_were_added_are_compared(tmp_path, capsys):
    scores = {"perplexity": 8.126, "bleu": 20.04, "chrf": 40.0}
    several = old_model(
        tmp_path / "several",
        {"directions": {"en-de": {"validation": scores}, "fr-de": {"validation": scores}}},
        directions=("en-de", "fr-de"),
    )
    validation = {"perplexity": 8.126, "bleu_greedy": 20.04}
    one = old_model(tmp_path / "one", {"validation": validation}, source="en", target="de")
    new = {"perplexity": 7.0, "bleu": 21.36, "chrf": 41.0}
    for init, same_as_before in ((several, {"en-de", "fr-de"}), (one, {"en-de"})):
        found = {name: {"validation": dict(new)} for name in ("en-de", "fr-de", "it-de")}
        _compare(found, init)
        before = {"perplexity": 8.126, "bleu": 20.04}
        assert found == {
            name: {"validation": new} | ({"before": before} if name in same_as_before else {})
            for name in found
        }
        said = capsys.readouterr().err.splitlines()
        assert said == [
            f"{name}: BLEU 20.0 → 21.4 (greedy), perplexity 8.13 → 7.00"
            for name in sorted(same_as_before)
        ]


@pytest.mark.parametrize("missing", ["new", "bleu_greedy", "perplexity"])
def test_scores_that_are_missing_are_not_compared(missing, tmp_path, capsys):
    old = {"perplexity": 8.126, "bleu_greedy": 20.04} | {missing: None}
    init = old_model(tmp_path / "one", {"validation": old}, source="en", target="de")
    found = {
        "en-de": {"validation": {"perplexity": 7.0, "bleu": None if missing == "new" else 1.0}}
    }
    _compare(found, init)
    _compare(found, old_model(tmp_path / "unvalidated", {}, source="en", target="de"))
    assert capsys.readouterr().err == "" and "before" not in found["en-de"]
    _compare(found, tmp_path / "gone")
    assert "The scores before languages were added are unknown." in capsys.readouterr().err


@pytest.fixture
def multilingual() -> model_folder.Bundle:
    """A model that has learnt nothing, with tags for two target languages."""
    texts = reverse_texts(50, 0)
    tokenizer = Tokenizer.train(*texts, vocab_size=290, languages=["de", "en"])
    shape = replace(MODEL, vocab_size=tokenizer.target.size)
    data = DataConfig(source="en", target="de", test=("a.src", "a.tgt"))
    config = RunConfig(model=shape, data=data, decode=DecodeConfig(max_extra_tokens=2))
    return model_folder.Bundle(Path("model"), config, tokenizer, build(shape).eval())


def test_a_test_set_is_scored_in_each_direction(multilingual, capsys):
    texts = enumerate(zip(*reverse_texts(10, 3), strict=True), 1)
    pairs = [Pair(*both, Origin("a", n), "en-de" if n > 1 else "de-en") for n, both in texts]
    directions: dict[str, Any] = {"en-de": {"validation": 1}}
    assert _tests(multilingual, pairs, directions) == {}
    lines = []
    for name, its in (("de-en", pairs[:1]), ("en-de", pairs[1:])):
        found = directions[name]["test"]
        expected = evaluate([multilingual], its, multilingual.config.decode)
        scores = [score._asdict() for score in expected.scores]
        assert found["scores"] == scores and found["sentences"] == len(its)
        assert found["files"] == ["a.src", "a.tgt"]
        assert found["examples"] == [
            {"source": pair.source, "translation": translation.text, "reference": pair.target}
            for pair, translation in [*zip(its, expected.translations, strict=True)][:8]
        ]
        lines.append(f"{name}:")
        lines += [
            f"{each['name']:<6} {each['value']:5.1f}  [{each['low']:.1f}, {each['high']:.1f}]  "
            f"{each['signature']}"
            for each in scores
        ]
    assert capsys.readouterr().err.splitlines() == lines
    assert directions["en-de"]["validation"] == 1
    data = replace(multilingual.config.data, bleu_tokenize="char")
    other = multilingual._replace(config=replace(multilingual.config, data=data))
    [pair] = [pairs[1]._replace(direction="")]
    # The tokenizer of a model with one direction has no tags.
    found = _tests(other._replace(tokenizer=multilingual.tokenizer.into("de")), [pair], {})
    assert "tok:char" in found["test"]["scores"][0]["signature"]
    assert ":\n" not in capsys.readouterr().err


def test_a_test_set_that_can_not_be_read_costs_no_training(multilingual, capsys):
    data = replace(multilingual.config.data, bleu_tokenize="nothing")
    config = replace(multilingual.config, data=data)
    pair = Pair("ka", "zu", Origin("a", 1), "en-de")
    assert _tests(multilingual._replace(config=config), [pair], {}) == {}
    assert "The test set is not scored. There is no tokenisation" in capsys.readouterr().err
