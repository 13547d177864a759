"""The table of sizes: one row for every corpus, bigger for bigger, and what the documentation says."""

import math
from dataclasses import asdict
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transduce.config.parse import configure
from transduce.config.schema import ModelConfig
from transduce.config.size_table import (
    FINE_TUNING_DIVISOR,
    ON_TEXTS,
    PLANNED_SHARE,
    SMALL,
    SMALL_CORPUS_PAIRS,
    TABLE,
    model_options,
    sizes_for,
    text_options,
    training_options,
    validation_interval,
)
from transduce.model.build import count_parameters

DOCS = Path(__file__).parents[2] / "docs" / "reference" / "recipes.md"


@given(st.integers(1, 10**9), st.integers(1, 10**9))
def test_a_larger_corpus_never_gets_a_smaller_model(one, other):
    small, large = sizes_for(min(one, other)), sizes_for(max(one, other))
    assert small.vocab_size <= large.vocab_size
    assert (small.num_layers, small.d_model, small.max_tokens) <= (
        large.num_layers,
        large.d_model,
        large.max_tokens,
    )


@given(st.integers(1, 10**9), st.integers(1, 100_000))
def test_chosen_sizes_are_a_valid_configuration(pairs, updates):
    config = configure(model_options(pairs), training_options(pairs, updates, 512))
    assert config.train.steps >= config.train.warmup >= 1


@given(st.integers(1, 10**9))
def test_a_gate_costs_no_parameters(pairs):
    shapes = (
        model_options(pairs, each) | {"model.activation": each} for each in ("relu", "swiglu")
    )
    plain, gated = (count_parameters(configure(shape).model) for shape in shapes)
    assert gated == pytest.approx(plain, rel=1e-3)


def test_the_last_row_is_the_base_model_of_the_paper():
    base = configure(model_options(10**9), training_options(10**9, 10_000, 512))
    assert asdict(base.model) == asdict(ModelConfig())
    assert (base.train.warmup, base.train.learning_rate) == (4000, pytest.approx(1.0, abs=0.01))


def test_a_fine_tuning_of_fewer_updates_takes_a_lower_rate():
    def peak(max_updates: float) -> tuple[int, float]:
        found = training_options(
            5000, 100, 256, warmup=50, rate_divisor=3, max_updates=max_updates, cooldown=True
        )
        return found["train.steps"], found["train.learning_rate"]

    steps, rate = peak(math.inf)
    for part in (0.5, 0.1):
        fewer, lower = peak(part * steps / PLANNED_SHARE)
        assert lower / rate == pytest.approx(math.sqrt(fewer / steps), rel=0.01)
        assert fewer == pytest.approx(part * steps, abs=1)


def test_fine_tuning_takes_a_third_of_the_rate():
    fresh, further = (
        training_options(5000, 50, 256, steps=2000, rate_divisor=each)
        for each in (1, FINE_TUNING_DIVISOR)
    )
    assert further["train.learning_rate"] == pytest.approx(
        fresh["train.learning_rate"] / 3, rel=0.01
    )
    assert {**further, "train.learning_rate": 0} == {**fresh, "train.learning_rate": 0}


@pytest.mark.parametrize(
    ("updates", "steps"), [(1, 30), (9, 270), (25, 750), (100, 1_500), (10_000, 15_000)]
)
def test_the_updates_of_a_fine_tuning_grow_with_the_square_root_of_an_epoch(updates, steps):
    found = training_options(5000, updates, 256, rate_divisor=FINE_TUNING_DIVISOR)
    assert found["train.steps"] == steps
    limited = training_options(
        5000, updates, 256, rate_divisor=FINE_TUNING_DIVISOR, max_updates=20, cooldown=True
    )
    assert limited["train.steps"] == 17, "85 % of the time"


def test_in_little_time_the_rate_rises_for_a_quarter_of_it_to_the_same_peak():
    row = sizes_for(30_000)
    for most, warmup in ((400, 100), (10**6, row.warmup), (0, 1)):
        chosen = training_options(30_000, 247, row.d_model, max_updates=most)
        assert (chosen["train.warmup"], chosen["train.steps"]) == (warmup, row.epochs * 247)
        peak = chosen["train.learning_rate"] / (row.d_model * warmup) ** 0.5
        assert peak == pytest.approx(row.peak, rel=0.01)


@given(st.integers(1, 10**7), st.integers(1, 1000), st.floats(1, 10**7))
def test_a_cool_down_ends_within_the_time(pairs, per_epoch, most):
    chosen = training_options(pairs, per_epoch, 256, max_updates=most, cooldown=True)
    planned, plain = chosen["train.steps"], training_options(pairs, per_epoch, 256)
    assert planned == plain["train.steps"] or planned == max(1, int(PLANNED_SHARE * most))
    assert (
        planned <= max(1, most)
        and chosen["train.cooldown"] == planned // 3
        and plain["train.cooldown"] == 0
    )


def test_the_number_of_updates_that_a_user_sets_stays():
    for most in (3000, 300):  # the cool-down follows the clock
        chosen = training_options(5000, 50, 256, steps=3000, max_updates=most, cooldown=True)
        assert (chosen["train.steps"], chosen["train.cooldown"]) == (3000, 1000)


def test_only_a_small_corpus_gets_more_regularization():
    assert text_options(SMALL_CORPUS_PAIRS) == {**ON_TEXTS, **SMALL}
    assert text_options(SMALL_CORPUS_PAIRS + 1) == ON_TEXTS
    assert configure(SMALL, ON_TEXTS).train.select_by == "chrf"


def test_validations_take_little_time_but_there_are_ten():
    for pairs, held_out, steps, interval in (
        (100_000, 1000, 20_000, 100),  # an epoch
        (5_000, 1000, 5000, 400),  # four epochs
        (5_000, 1000, 3000, 300),  # a tenth of the training
        (5_000, 1000, 300, 100),  # not less than an epoch
        (5_000, 0, 5000, 100),
    ):
        assert validation_interval(pairs, held_out, 100, steps) == interval


def test_the_documentation_shows_the_table():
    shown = [
        line.strip("| \n").split(" | ") for line in DOCS.read_text(encoding="utf-8").splitlines()
    ]
    for row in TABLE:
        cells = ["more" if row.up_to == float("inf") else f"{row.up_to:,}", f"{row.vocab_size:,}"]
        cells += [
            f"{row.num_layers}+{row.num_layers}",
            str(row.d_model) if row.d_model < 1000 else f"{row.d_model:,}",
        ]
        cells += [
            f"{row.d_ff:,}",
            str(row.num_heads),
            f"{row.dropout:g}",
            f"{row.max_tokens:,}",
            f"{row.warmup:,}",
        ]
        cells += [f"{row.peak:g}"]
        assert [*cells, str(row.epochs), str(row.patience)] in shown
