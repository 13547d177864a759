"""Tests of transduce_lab/comparing/outcomes.py."""

import pytest

from transduce.evaluation.scores import score
from transduce.text.languages import Direction
from transduce.text.pairs import Origin, Pair
from transduce_lab.comparing.outcomes import EvaluationText, Judge, Outcome

pytest.importorskip("scipy", reason="pip install 'transduce[lab]'")


def test_scores_of_rows_are_those_of_sacrebleu_and_of_the_perplexity():
    references = ["a b c d e f", "g h i j k", "l m n o p q r"]
    outputs = ["a b c d e x", "g h i y k", "l m n o p q r"]
    text = EvaluationText(
        (),
        [Pair("s", reference, Origin("", 0)) for reference in references],
        Direction("xx", "yy"),
        "13a",
    )
    judge = Judge(text, per_word=False)
    row = judge.row([Outcome([-3.0, -2.0, -5.0], [4, 3, 3], outputs)])
    assert row.scores["perplexity"] == [pytest.approx(1.0)]
    assert Judge(text, per_word=True).row([Outcome([-3.0, -2.0, -5.0], [4, 3, 3], outputs)]).scores[
        "perplexity"
    ] == [pytest.approx(10 / (6 + 5 + 7 + 3))]
    by_name = {each.name: each.value for each in score(outputs, references)}
    assert row.scores["BLEU"] == [pytest.approx(by_name["BLEU"])]
    assert row.scores["chrF2"] == [pytest.approx(by_name["chrF2"])]
    assert row.length_ratio == pytest.approx(1.0)
    twice = judge.row([Outcome([-3.0, -2.0, -5.0], [4, 3, 3], outputs)] * 2)
    same = judge.difference("BLEU", twice, twice)
    assert same.value == same.error == 0.0


def test_sentences_are_left_out_together_for_all_rows():
    """Two rows that differ by the same amount in every sentence differ without uncertainty over the sentences."""
    hard = [1.0, 9.0, 2.0, 30.0, 4.0, 2.5]
    text = EvaluationText(
        (), [Pair("s", "a b", Origin("", 0))] * len(hard), Direction("xx", "yy"), "13a"
    )
    judge = Judge(text, per_word=False)
    base, better = (
        judge.row(
            [Outcome([-each + gain for each in hard], [1] * len(hard), ["a b"] * len(hard))] * 2
        )
        for gain in (0.0, 0.5)
    )
    found = judge.difference("perplexity", better, base)
    assert found.value == pytest.approx(-0.5) and found.error == pytest.approx(0, abs=1e-9)
    assert base.left_out["perplexity"].std() > 1
