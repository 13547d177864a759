"""What a training says before its first update, by hand."""

import math
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

from transduce.config.schema import DataConfig, ModelConfig, RunConfig, TrainConfig
from transduce.config.settings import FROM_SIZES, Settings
from transduce.config.size_table import PLANNED_SHARE, USEFUL_PAIRS
from transduce.model.build import build
from transduce.preparation.prepared import Facts
from transduce.training import distributed
from transduce.training.announce import (
    _batches,
    _corpus,
    _has_languages,
    _risk_warnings,
    _schedule_warnings,
    _training,
    _warnings,
    announcement,
    device_name,
    time_lines,
    updates_in_budget,
)
from transduce.training.autobatch import Trial
from transduce.training.distributed import ALONE

TRIAL = Trial(2, 500, 0.0123, 0.5)
CONFIG = RunConfig(
    data=DataConfig(source="en", target="de", max_tokens=4096),
    train=TrainConfig(steps=1000, warmup=200, accumulate=2, threads=4, patience=0),
)
COUNTS = {"pairs": 300, "held_out": 20, "dropped": 0, "source_tokens": 9, "target_tokens": 4000}
FACTS = Facts(
    source="en",
    target="de",
    options={},
    corpora=[],
    files=[],
    weights=[],
    left_out={},
    seconds=1.0,
    **COUNTS,
)


def train(**changes: object) -> RunConfig:
    return replace(CONFIG, train=replace(CONFIG.train, **changes))


def test_the_corpus_and_what_was_left_out():
    text = "300 pairs en-de, 4,000 target tokens; 20 more for validation"
    assert _corpus(FACTS, CONFIG.data) == text
    fewer = replace(FACTS, left_out={"empty": 1500, "ratio": 2}, dropped=7, pairs=1)
    assert _corpus(fewer, replace(CONFIG.data, directions=("en-de", "de-en"))) == (
        "1 pair en-de, de-en, 4,000 target tokens; 20 more for validation; left out: 1,500 empty, 2 ratio, "
        "7 overlapping with the validation set"
    )


def test_languages_are_known_if_one_of_them_is_named():
    assert _has_languages(CONFIG.data) and _has_languages(DataConfig(target="de"))
    assert not _has_languages(DataConfig())
    assert _has_languages(DataConfig(symbols=True)) and _has_languages(
        DataConfig(directions=("a-b",))
    )


def test_updates_and_epochs():
    start = "up to 4,096 tokens per update on each side,"
    assert _batches(CONFIG, TRIAL) == (
        f"{start} in 2 micro-batches, 1.2% padding; 500 updates per epoch"
    )
    assert _batches(train(accumulate=1), TRIAL._replace(updates_per_epoch=1)) == (
        f"{start} in one micro-batch, 1.2% padding; 1 update per epoch"
    )
    assert _training(CONFIG.train, TRIAL, "cpu") == (
        "1,000 updates (2.0 epochs), warm-up 200, float32 on cpu".replace(
            "float32", CONFIG.train.precision
        )
    )
    more = train(minutes=2.5, cooldown=100, risk_steps=50).train
    assert _training(more, TRIAL, "x") == (
        "1,000 updates (2.0 epochs), at most 2.5 min, warm-up 200, cool-down 100, the last 50 of "
        f"minimum-risk training, {more.precision} on x"
    )


def test_the_device_of_one_or_several_processes(monkeypatch):
    monkeypatch.setattr(distributed, "cores", lambda: 6)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: f"GPU {device.index}")
    cpu, gpu = torch.device("cpu"), torch.device("cuda", 1)
    several = ALONE._replace(world=4, local_world=2)
    assert device_name(CONFIG, cpu) == "4 CPU threads"
    assert device_name(train(threads=1), cpu) == "1 CPU thread"
    assert device_name(CONFIG, cpu, several) == "4 × 3 CPU threads"
    assert device_name(CONFIG, gpu) == "GPU 1"
    assert device_name(CONFIG, gpu, several) == "4 × GPU 1"


@pytest.mark.parametrize(
    ("minutes", "seconds", "updates"),
    [(0, 0.5, math.inf), (10, math.inf, math.inf), (10, 0.5, 1200), (1, 0.7, 86)],
)
def test_updates_in_the_time(minutes, seconds, updates):
    assert (
        updates_in_budget(train(minutes=minutes), TRIAL._replace(seconds_per_update=seconds))
        == updates
    )


def test_updates_of_minimum_risk_training_take_longer():
    """Ten samples of 0.8 updates each, for the last 50 of 1,000 updates: 400 usual updates more."""
    risk = train(minutes=10, risk_steps=50, samples=10)
    assert updates_in_budget(risk, TRIAL) == 1200 - 400
    short = train(minutes=3.5, risk_steps=50, samples=10)
    assert updates_in_budget(short, TRIAL) == 420, "too short for it"
    enough, too_few = (train(minutes=n / 120, risk_steps=50, samples=10) for n in (459, 458))
    assert updates_in_budget(enough, TRIAL) == 59, "of these, 85 % are planned"
    assert updates_in_budget(too_few, TRIAL) == 458
    only = train(minutes=10, risk_steps=1000, samples=10)
    assert updates_in_budget(only, TRIAL) == 1200, "the measured time is that of such an update"


@pytest.mark.parametrize(
    ("changes", "seconds", "line"),
    [
        ({}, 0.5, "8 min"),
        ({}, 0.01, "1 min"),
        ({}, 6.0, "1 h 40 min"),
        ({"minutes": 5.0}, 0.5, "5 min"),
        ({"minutes": 90.0}, 0.5, "8 min"),
        ({"minutes": 300.0}, 100.0, "5 h 0 min"),
        ({"risk_steps": 50, "samples": 10}, 0.5, "12 min"),  # 1,400 usual updates
        ({"risk_steps": 1000, "samples": 10}, 0.5, "8 min"),  # an update of this kind was measured
        ({"minutes": 5.0}, math.inf, "5 min"),
    ],
)
def test_the_estimated_time(changes, seconds, line):
    trial = TRIAL._replace(seconds_per_update=seconds)
    assert time_lines(train(**changes), trial) == [f"Estimated training time: {line}"]


def test_a_shorter_training_is_offered_for_a_long_one():
    assert time_lines(CONFIG, TRIAL._replace(seconds_per_update=math.inf)) == [
        "Time        unknown until the training has begun"
    ]
    assert len(time_lines(CONFIG, TRIAL._replace(seconds_per_update=7.2))) == 1, "two hours"
    first, second = time_lines(CONFIG, TRIAL._replace(seconds_per_update=14.4))
    assert first == "Estimated training time: 4 h 0 min"
    updates = int(PLANNED_SHARE * 500)
    assert (
        f"train.minutes=120 (or another limit), which is enough for about {updates} of the 1,000"
        in second
    )
    assert f"({updates / 1000:.0%}, {updates / 500:.1f} epochs)." in second


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, []),
        ({"risk_steps": 50, "samples": 10}, []),
        ({"risk_steps": 50, "patience": 3}, ["The training can end before"]),
        ({"risk_steps": 50, "samples": 10, "minutes": 11.6}, ["The training can end before"]),
        ({"risk_steps": 50, "samples": 10, "minutes": 11.7}, []),
        ({"risk_steps": 50, "samples": 11, "minutes": 12.0}, []),  # 1,440 usual updates
        ({"risk_steps": 50, "samples": 11, "minutes": 11.995}, ["The training can end before"]),
        ({"risk_steps": 1000, "patience": 3}, []),
        ({"risk_steps": 1001}, ["There is no minimum-risk training: train.risk_steps (1001)"]),
    ],
)
def test_minimum_risk_training_may_not_be_reached(changes, said):
    found = list(_risk_warnings(train(**changes).train, TRIAL))
    assert len(found) == len(said)
    assert all(text.startswith(start) for text, start in zip(found, said, strict=True))


def test_a_small_corpus_and_options_without_effect_are_named():
    chosen = Settings.of({"train.patience": 3, "train.select_by": "bleu"})
    small = replace(FACTS, held_out=0)
    found = list(_warnings(small, chosen, CONFIG, TRIAL, True))
    assert len(found) == 4 and found[0].startswith("A corpus of 300 pairs is too small to learn")
    assert found[2:] == [
        "There is no validation set, so train.patience (3) has no effect.",
        "There is no validation set, so train.select_by (bleu) has no effect.",
    ]
    assert len(list(_warnings(FACTS, chosen, CONFIG, TRIAL, False))) == 0
    none = Settings.of({"train.patience": 0})
    assert len(list(_warnings(small, none, CONFIG, TRIAL, False))) == 0
    large = replace(FACTS, pairs=USEFUL_PAIRS)
    assert len(list(_warnings(large, chosen, CONFIG, TRIAL, True))) == 0


def test_small_corpora_are_told_what_to_begin_with():
    few = replace(FACTS, pairs=USEFUL_PAIRS - 1)
    [said] = _warnings(few, Settings.of({}), CONFIG, TRIAL, True)
    assert "opus-mt-en-de, m2m100_418M, or nllb-200-distilled-600M (not for commercial use)" in said
    assert "`transduce import FOLDER --from en --to de --out BASE`" in said
    regional = replace(CONFIG, data=replace(CONFIG.data, source="en_US", target="deu"))
    assert "opus-mt-en-de" in next(_warnings(few, Settings.of({}), regional, TRIAL, True))
    unnamed = replace(CONFIG, data=replace(CONFIG.data, source="src", target="tgt"))
    trees = replace(CONFIG, data=replace(CONFIG.data, symbols=True))
    for config in (unnamed, trees):
        assert list(_warnings(few, Settings.of({}), config, TRIAL, True)) == []


def test_the_announcement_says_what_follows_from_the_size_of_the_corpus():
    names = ("data.vocab_size", "model.d_model", "model.num_encoder_layers", "data.max_tokens")
    names = (*names, "train.steps")
    shape = ModelConfig(vocab_size=1300, d_model=8, d_ff=16, num_heads=2, dropout=0.25)
    config = replace(CONFIG, model=shape, train=replace(CONFIG.train, precision="float32"))
    parameters = sum(weight.numel() for weight in build(shape).parameters())
    lines = [
        "Corpus      10,000 pairs en-de, 4,000 target tokens; 20 more for validation",
        "Vocabulary  1,300 joint bpe tokens",
        f"Model       {shape.shape}, dropout 0.25: {parameters:,} parameters",
        f"Batches     {_batches(config, TRIAL)}",
        "Training    1,000 updates (2.0 epochs), warm-up 200, float32 on 4 CPU threads",
    ]

    def said(chosen: tuple[str, ...], config: RunConfig = config, pairs: int = 10_000) -> list[str]:
        settings = Settings.of({"train.patience": 3}).under(FROM_SIZES, dict.fromkeys(chosen))
        prepared = SimpleNamespace(facts=replace(FACTS, pairs=pairs))
        cpu = torch.device("cpu")
        return announcement(prepared, settings, config, TRIAL, cpu, ALONE, from_scratch=True)

    time, small = "Estimated training time: 8 min", " (chosen for up to 10,000 pairs)"
    assert said(()) == [*lines, time]
    assert said(names) == [lines[0], *(line + small for line in lines[1:]), time]
    for name, place in zip(names, (1, 2, 2, 3, 4), strict=True):
        found = said(tuple(other for other in names if other != name))
        assert [n for n, line in enumerate(found) if line in lines] == [0, place]
    assert said(names, pairs=10**9)[1].endswith(" tokens (chosen for a large corpus)")
    limited = replace(config, train=replace(config.train, minutes=9.0))
    assert said(names, limited)[4].endswith("at most 9 min, warm-up 200, float32 on 4 CPU threads")
    unnamed = replace(config, data=replace(config.data, source="src", target="tgt"))
    assert said((), unnamed)[1].startswith("Languages   unknown, and can't be named later")
    *_, warning, hint = said((), pairs=999)
    assert warning.startswith("Warning     A corpus of 999 pairs is too small")
    assert hint.startswith("Warning     With so few pairs, a strong model of others")


@pytest.mark.parametrize(
    ("changes", "updates", "said"),
    [
        ({}, 401.0, ""),
        ({"minutes": 0.5}, 399.6, "0.5 min are enough for about 400 updates"),
        ({"steps": 400}, math.inf, "There will be about 400 updates"),
        ({"steps": 400}, 400.0, "There will be about 400 updates"),
        ({"steps": 401}, math.inf, ""),
    ],
)
def test_a_warm_up_of_half_the_training_is_too_long(changes, updates, said):
    found = list(_schedule_warnings(train(**changes).train, updates))
    end = (
        ", but the learning rate rises over the first 200: allow more updates, or lower "
        "train.warmup and data.max_tokens."
    )
    assert found == ([said + end] if said else [])


def test_a_cool_down_longer_than_the_training_is_too_long():
    long = train(cooldown=1001)
    text = (
        "There will be 1,000 updates, but the learning rate falls over the last 1,001: lower "
        "train.cooldown."
    )
    assert list(_schedule_warnings(train(cooldown=1000).train, math.inf)) == []
    assert list(_schedule_warnings(long.train, math.inf)) == [text]
    large = replace(FACTS, pairs=USEFUL_PAIRS)
    both = replace(long, train=replace(long.train, minutes=1.0, risk_steps=1001))
    found = list(_warnings(large, Settings.of({}), both, TRIAL, True))
    assert [each[:24] for each in found] == [
        "1 min are enough for abo",
        text[:24],
        "There is no minimum-risk",
    ]
