"""Tests of transduce/evaluation/evaluate.py."""

from transduce.config.schema import DataConfig
from transduce.evaluation.evaluate import direction_of
from transduce.text.languages import Direction
from transduce.text.pairs import Origin, Pair


def test_pairs_have_their_own_direction_or_that_of_the_corpus():
    """It decides how sacreBLEU tokenises the translations."""
    corpus = DataConfig(source="en", target="de")
    assert direction_of([Pair("a", "b", Origin("", 1), "de-zh")], corpus) == Direction("de", "zh")
    assert (
        direction_of([Pair("a", "b", Origin("", 1))], corpus)
        == direction_of([], corpus)
        == Direction("en", "de")
    )
