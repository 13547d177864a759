"""The choice of a direction, and of a pivot among several: laws, and values by hand."""

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transduce.config.schema import DataConfig
from transduce.decoding.directions import (
    DIRECT,
    choose_direction,
    choose_pivot,
    directions_of,
    encode_sources,
    find_pivot,
    matching,
    pivots_of,
    with_known_codes,
)
from transduce.system.errors import UserError
from transduce.text.languages import Direction
from transduce.text.pairs import Origin, Pair
from transduce.tokens.tokenizer import Tokenizer

LANGUAGES = "en", "de", "fr", "it", "es"
DIRECTIONS = [f"{a}-{b}" for a, b in permutations(LANGUAGES, 2)]


def parsed(*names: str) -> list[Direction]:
    return [Direction.parse(name) for name in names]


@given(
    st.dictionaries(st.sampled_from(DIRECTIONS), st.floats(0, 100)),
    st.sets(st.sampled_from(DIRECTIONS), min_size=10),
)
def test_the_pivot_with_the_better_worse_half_is_chosen(scores, known):
    directions = parsed(*sorted(known))
    for wanted in map(Direction.parse, DIRECTIONS):
        quality = {
            code: min(
                scores.get(f"{wanted.source}-{code}", 0), scores.get(f"{code}-{wanted.target}", 0)
            )
            for code in LANGUAGES
            if {f"{wanted.source}-{code}", f"{code}-{wanted.target}"} <= known
        }
        assert {*pivots_of(directions, wanted)} == {*quality}
        found = find_pivot(directions, wanted, scores)
        assert quality[found] == max(quality.values()) if quality else found is None


def test_of_two_pivots_the_better_one_is_chosen():
    directions = parsed("de-en", "en-fr", "de-it", "it-fr", "de-es", "es-fr")
    wanted = Direction("de", "fr")
    scores = {"de-en": 60, "en-fr": 20, "de-it": 40, "it-fr": 45, "de-es": 90, "es-fr": 10}
    assert pivots_of(directions, wanted) == ["en", "it", "es"]
    assert find_pivot(directions, wanted, scores) == "it"
    assert find_pivot(directions, wanted, {"de-es": 1, "es-fr": 1}) == "es"
    assert find_pivot(directions, wanted, {}) == "en"
    assert find_pivot(directions, Direction("en", "de"), scores) is None
    assert find_pivot([*directions, *parsed("en-de")], Direction("de", "de"), scores) is None


def test_a_measured_route_needs_a_margin_over_the_direct_one():
    directions = parsed("de-en", "en-fr", "de-it", "it-fr", "de-fr")
    wanted = Direction("de", "fr")

    def choose(routes, wanted=wanted):
        return choose_pivot(directions, wanted, {"de-it": 9, "it-fr": 9}, {"de-fr": routes})

    assert choose({DIRECT: 40.0, "en": 41.0, "it": 40.5}) is None
    assert choose({DIRECT: 40.0, "en": 41.01, "it": 40.5}) == "en"
    assert choose({"en": 41.5, DIRECT: 40.0, "it": 42.0}) == "it"
    assert choose({}) is None  # not measured, and the model has the direction
    assert choose_pivot(directions[:-1], wanted, {"de-it": 9, "it-fr": 9}, {}) == "it"


def test_codes_that_are_alike_name_the_same_direction():
    directions = parsed("en-pt_BR", "en-pt", "en-de", "fr-de", "pt-en")
    assert with_known_codes(directions, "EN", "pt-BR") == ("en", "pt_BR")
    assert with_known_codes(directions, "en-GB", "deu") == ("en", "de")
    assert with_known_codes(directions, "en", "ja") == ("en", "ja")
    assert with_known_codes(directions, "de", "fr") == ("de", "fr")
    assert with_known_codes(directions, "ja", "pt-PT") == ("ja", "pt_BR")  # the first of equals
    both = parsed("zh-en", "zh_Hant-de")  # the code that is translated into the target is preferred
    assert with_known_codes(both, "zh_TW", "de") == ("zh_Hant", "de")
    assert with_known_codes(both, "zh", "en") == ("zh", "en")
    # A source that only other directions have, a target that the source does not have.
    assert with_known_codes(parsed("en-de", "fr-it"), "en-GB", "it-IT") == ("en", "it")


def test_directions_are_matched_by_one_or_both_languages():
    directions = parsed("en-de", "en-fr", "fr-de")
    assert matching(directions, "", "de") == parsed("en-de", "fr-de")
    assert matching(directions, "en", "") == parsed("en-de", "en-fr")
    assert matching(directions, "", "") == directions
    assert choose_direction(directions, "", "de-AT") == Direction("en", "de")
    assert choose_direction(directions, "fr", "") == Direction("fr", "de")
    with pytest.raises(UserError, match=r"several directions from en: en-de, en-fr\."):
        choose_direction(directions, "en", "")
    with pytest.raises(UserError, match=r"several directions: en-de, en-fr, fr-de\."):
        choose_direction(directions, "", "")
    with pytest.raises(UserError, match=r"does not translate from de to en.*one of .*: en-de, en-"):
        matching(directions, "de", "en")
    with pytest.raises(UserError, match=r"does not translate to ja\."):
        matching(directions, "", "ja")


def test_a_model_of_one_direction_has_it_as_codes():
    assert directions_of(DataConfig(source="pt-BR", target="en")) == [Direction("pt_BR", "en")]
    several = DataConfig(directions=("en-de", "de-en"), source="x", target="y")
    assert directions_of(several) == parsed("en-de", "de-en")


def test_each_source_is_encoded_with_the_tag_of_its_own_target():
    tokenizer = Tokenizer.train(["ka lo mi"] * 9, [], vocab_size=280, languages=["de", "fr"])
    pairs = [
        Pair("ka lo", "", Origin("", line), direction)
        for line, direction in enumerate(("en-fr", "en-de", "en-fr"))
    ]
    expected = [tokenizer.into(code).encode_source(["ka lo"])[0] for code in ("fr", "de", "fr")]
    assert encode_sources(tokenizer, pairs) == expected
    assert expected[0] != expected[1] and expected[0][1:] == expected[1][1:]
