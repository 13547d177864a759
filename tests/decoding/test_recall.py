"""Tests of transduce/decoding/recall.py, and of translations with a translation memory."""

import dataclasses
from collections.abc import Sequence

import pytest

from transduce.decoding.plan import Plan
from transduce.decoding.recall import recall
from transduce.decoding.types import PLAIN, MemoryMatch, Translation, TranslationOptions
from transduce.text.formats import MARKUP_TEXT, PLAIN_TEXT


class Known:
    """A memory of one unit, which is exact or similar."""

    def __init__(self, score: float = 1.0, target: str = "Hund") -> None:
        self.match = MemoryMatch("dog", target, score, "m.tsv:1")

    def matches(self, texts: Sequence[str], direction: str) -> list[tuple[MemoryMatch, ...]]:
        assert direction == "en-de"
        return [(self.match,) if text.strip() == "dog" else () for text in texts]


def made(text: str) -> Translation:
    return Translation(text, -1.0, ("t",), flags=("cut",))


def test_only_other_texts_are_translated() -> None:
    found = recall(Known(), ["cat", " dog\n", "cow"], "en-de")
    assert found.others == [0, 2]
    cat, dog, cow = found.with_translations([made("Katze"), made("Kuh")])
    assert (cat, cow) == (made("Katze"), made("Kuh"))
    assert (dog.text, dog.flags, dog.matches) == (" Hund\n", (), (Known().match,))


def test_a_similar_unit_is_named_beside_the_translation() -> None:
    found = recall(Known(0.9), ["dog"], "en-de")
    assert found.others == [0]
    assert found.with_translations([made("Hunde")]) == [
        dataclasses.replace(made("Hunde"), matches=(Known(0.9).match,))
    ]


@pytest.mark.parametrize(("target", "is_used"), [("Hund", True), ("a < b", False)])
def test_a_unit_is_no_markup(target: str, is_used: bool) -> None:
    memory = Known(target=target)
    assert recall(memory, ["dog"], "en-de", [PLAIN_TEXT]).others == []
    assert recall(memory, ["dog"], "en-de", [MARKUP_TEXT]).others == ([] if is_used else [0])


def test_no_number_of_translations_but_the_right_one_is_accepted() -> None:
    with pytest.raises(ValueError):
        recall(Known(), ["cat"], "en-de").with_translations([])


def test_a_request_without_a_memory_looks_nothing_up() -> None:
    assert PLAIN.translation_memory is None


def test_sentences_of_a_text_are_looked_up_too() -> None:
    options = TranslationOptions(sentences=True, translation_memory=Known(target="Hund."))
    plan = Plan(["A cat.\ndog\nA cow."], "en", options=options, direction="en-de")
    assert [group.places for group in plan.groups] == [[0, 2]]
    [group] = plan.groups
    assert group.options.translation_memory is None
    [found] = plan.assemble(plan.placed([[made("Katze."), made("Kuh.")]]))
    assert found.text == "Katze.\nHund.\nKuh."
    assert found.matches == (Known(target="Hund.").match,)
    assert found.score == -1
