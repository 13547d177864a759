"""Tests of transduce/evaluation/perplexity.py."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transduce.evaluation.perplexity import Validation, mean_validation, perplexity, shown


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


def test_a_perplexity_that_is_too_large_for_a_float_is_infinite():
    assert perplexity([-690.0], [1], ["a"]).per_token == pytest.approx(math.exp(690.0))
    found = perplexity([-800.0, 0.0], [1, 0], ["a b c", ""])
    assert (found.per_token, found.per_word) == (math.inf, pytest.approx(math.exp(200.0)))


def test_perplexities_are_shown_with_two_decimals_or_in_scientific_notation():
    numbers = [2.345, 999_999.99, 1e6, 12_345_678, math.inf]
    assert list(map(shown, numbers)) == ["2.35", "999999.99", "1.00e+06", "1.23e+07", "inf"]
    assert str(Validation(2.5)) == "validation perplexity 2.50"
    assert str(Validation(2.5, 12.34)) == "validation perplexity 2.50, BLEU 12.3 (greedy)"
    assert str(Validation(2.5, 0.0)) == "validation perplexity 2.50, BLEU 0.0 (greedy)"


def test_other_text_counts_as_much_as_new_text():
    searched = Validation(8.0, 20.0, 40.0, 55.0, 2.0)
    assert str(searched).endswith("BLEU 20.0 (greedy), chrF 40.0, other text 55.0")
    assert searched.qualities("chrf") == searched.qualities("bleu") == (40.0, 55.0)
    assert searched.cost("chrf") == -95.0
    forced = Validation(8.0, general_perplexity=2.0)
    assert str(forced) == "validation perplexity 8.00, other text 2.00"
    for by in ("perplexity", "chrf"):
        assert forced.qualities(by) == (-math.log(8), -math.log(2)), "no chrF"
        assert forced.cost(by) == pytest.approx(math.log(16))
    assert searched.qualities("perplexity") == forced.qualities("perplexity")
    diverged = Validation(math.inf, general_perplexity=math.inf)
    assert math.inf > diverged.cost("chrf") > forced.cost("chrf")


def test_validations_of_several_directions_are_averaged():
    results = [Validation(2.0, 10.0, 30.0, 50.0, 1.0), Validation(8.0, 20.0, 50.0, 60.0, 3.0)]
    mean = mean_validation(results)
    assert mean == pytest.approx((4.0, 15.0, 40.0, 55.0, 2.0)), "perplexity: the geometric mean"
    assert mean_validation(results[:1]) == results[0] and mean_validation([]) is None
    diverged = [*results, Validation(math.inf)]
    assert mean_validation(diverged) == Validation(math.inf, None, None)
    assert mean_validation([Validation(2.0, 10.0), results[1]]) == Validation(
        pytest.approx(4.0), 15.0, None
    )


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
