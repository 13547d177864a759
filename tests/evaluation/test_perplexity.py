"""Tests of transduce/evaluation/perplexity.py."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transduce.evaluation.perplexity import Validation, mean_validation, perplexity


def test_perplexity_by_hand():
    # Two words in three pieces and an end, each one in eight; one word in one piece and an end, each one in two.
    found = perplexity([4 * math.log(1 / 8), 2 * math.log(1 / 2)], [4, 2], ["zwei Wörter", "eins"])
    assert found.per_token == pytest.approx(2 ** (14 / 6))
    assert found.per_word == pytest.approx(2 ** (14 / 5))
    assert (found.num_tokens, found.num_words) == (6, 5)


def test_blank_lines_change_no_perplexity():
    assert perplexity([-3.0, 0.0], [3, 0], ["a b", "  "]) == perplexity([-3.0], [3], ["a b"])
    assert math.isnan(perplexity([], [], []).per_token)
    assert perplexity([-1e6], [2], ["a"]).per_token == math.inf


@given(
    st.lists(st.tuples(st.floats(-50, 0), st.integers(1, 20)), min_size=1, max_size=10),
    st.randoms(),
)
def test_perplexity_averages_over_tokens_not_sentences(sentences, random):
    log_probs, counts = zip(*sentences, strict=True)
    whole = perplexity(log_probs, counts, ["w"] * len(counts))
    assert whole.per_token == pytest.approx(math.exp(-sum(log_probs) / sum(counts)))
    random.shuffle(sentences)
    log_probs, counts = zip(*sentences, strict=True)
    assert perplexity(log_probs, counts, ["w"] * len(counts)) == whole


def test_validations_of_several_directions_are_averaged():
    results = [Validation(2.0, 10.0, 30.0), Validation(8.0, 20.0, 50.0)]
    mean = mean_validation(results)
    assert mean == pytest.approx((4.0, 15.0, 40.0)), "perplexity: the geometric mean"
    assert mean_validation(results[:1]) == results[0] and mean_validation([]) is None


def test_better_validation_has_lower_cost():
    better, worse, begun = (
        Validation(2.0, 20.0, 40.0),
        Validation(3.0, 10.0, 30.0),
        Validation(9.0, 0.5, 10.0),
    )
    for by in ("perplexity", "bleu", "chrf"):
        assert better.cost(by) < worse.cost(by)
        assert begun.cost(by) == Validation(9.0).cost(by) == 9.0, (
            "by perplexity while BLEU says little"
        )


def test_bleu_below_1_tells_nothing():
    costs = [Validation(7.0, bleu, 30.0).cost("bleu") for bleu in (0.99, 1.0, 1.5, 2.0)]
    assert costs == [7.0, -1.0, -1.5, -2.0]
    assert Validation(7.0, 1.0, 30.0).cost("chrf") == -30.0
    assert Validation(7.0, 0.99, 30.0).cost("chrf") == 7.0 == Validation(7.0).cost("bleu")
