"""Whether a term replaces words or signs of the free translation, or was only added to it."""

import pytest

from transduce.decoding.types import (
    Link,
    Translation,
)
from transduce.wings.terms.glossary import (
    Match,
    segment,
)
from transduce.wings.terms.placement import _overlap, _rivals, forbidden, is_added


@pytest.mark.parametrize(
    ("text", "free", "target", "added"),
    [
        ("Hunde und Katzen", "Hunde & Katzen", "und", False),
        ("Hunde + Katzen", "Hunde & Katzen", "+", False),
        ("Hunde & Katzen", "Hunde und Katzen", "&", False),
        ("Fünf Prozent.", "Fünf %.", "Prozent", False),
        ("Hunde & Katzen und", "Hunde & Katzen", "und", True),
        ("Hunde & + Katzen", "Hunde & Katzen", "+", True),
        ("Hunde & Katzen! Pudel.", "Hunde & Katzen.", "Pudel", True),
        ("Hunde & T-Shirt Katzen", "Hunde & Katzen", "T-Shirt", True),
        ("Der Hund sieht. Hund erblickt.", "Der Hund sieht.", "Hund erblickt", True),
        ("Der Hund erblickt.", "Der Hund sieht.", "Hund erblickt", False),
        ("Plan B gilt.", "Plan A gilt.", "B", False),
        ("Plan A gilt. B.", "Plan A gilt.", "B", True),
    ],
)
def test_a_term_that_replaces_a_sign_is_not_added(text, free, target, added):
    assert is_added(text, free, target, None) == added


def link(text: str, source: str, target: str, weight: float, other: str) -> Link:
    """A link between words of a source and a translation."""
    begin, start = text.index(source), other.index(target)
    return Link((begin, begin + len(source)), (start, start + len(target)), weight)


@pytest.mark.parametrize(
    ("translation", "term", "rivals"),
    [
        ("Ein Hund läuft.", "Pudel", {"Pudel": "Hund"}),
        ("Ein Pudel läuft.", "Pudel", {}),
        ("Ein Hund läuft. Pudel.", "Pudel", {"Pudel": "Hund"}),
        ("Ein Hund läuft.", "kleiner Hund", {}),
        ("Hund Hund läuft.", "Pudel", {}),
    ],
)
def test_the_rival_of_a_term_is_the_word_that_is_linked_to_its_source(translation, term, rivals):
    source, main = "A dog runs.", "Pudel" if translation == "Ein Pudel läuft." else "Hund"
    links = [
        link(source, "A", translation.split()[0], 0.7, translation),
        link(source, "runs", "läuft", 0.9, translation),
    ]
    if translation.startswith("Hund Hund"):
        links.append(Link((2, 5), (5, 9), 0.8))
    else:
        links.append(link(source, "dog", main, 0.8, translation))
    if translation.endswith("Pudel."):
        links.append(link(source, "dog", "Pudel", 0.5, translation))
    assert (
        _rivals(Translation(translation, 0.0, (), links=tuple(links)), [Match((2, 5), term)])
        == rivals
    )


DOG, RUNS = (2, 5), (6, 10)  # in "A dog runs."


@pytest.mark.parametrize(
    ("translation", "links", "rivals"),
    [
        # The strongest link of a word counts, whatever its place.
        ("Hund", [("Hund", DOG, 0.3), ("Hund", RUNS, 0.6)], {}),
        ("Hund", [("Hund", RUNS, 0.6), ("Hund", DOG, 0.3)], {}),
        ("Hund", [("Hund", RUNS, 0.3), ("Hund", DOG, 0.6)], {"Pudel": "Hund"}),
        # Of several words, the one with the strongest link is the rival.
        ("Hund Köter", [("Hund", DOG, 0.4), ("Köter", DOG, 0.8)], {"Pudel": "Köter"}),
        ("Hund Köter", [("Hund", DOG, 0.8), ("Köter", DOG, 0.4)], {"Pudel": "Hund"}),
        # Signs are no rivals, and neither are words of the term, in any case.
        (", 犬", [(",", DOG, 0.9)], {}),
        (", 犬", [(",", DOG, 0.9), ("犬", DOG, 0.1)], {"Pudel": "犬"}),
        ("PUDEL", [("PUDEL", DOG, 0.9)], {}),
        ("Hund", [], {}),
    ],
)
def test_the_rival_is_the_word_with_the_strongest_link(translation, links, rivals):
    made = tuple(
        Link(source, (translation.index(word), translation.index(word) + len(word)), weight)
        for word, source, weight in links
    )
    found = _rivals(Translation(translation, 0.0, (), links=made), [Match(DOG, "Pudel")])
    assert found == rivals


def test_each_term_has_its_own_rival():
    text = "Ein Hund rennt."
    links = (
        link("A dog runs.", "dog", "Hund", 0.5, text),
        link("A dog runs.", "runs", "rennt", 0.5, text),
    )
    terms = [Match(DOG, "Pudel"), Match(RUNS, "läuft"), Match((0, 1), "Der")]
    found = _rivals(Translation(text, 0.0, (), links=links), terms)
    assert found == {"Pudel": "Hund", "läuft": "rennt"}


@pytest.mark.parametrize(
    ("text", "term", "rival", "added"),
    [
        ("Ein Pudel läuft.", "Pudel", "Hund", False),
        ("Ein Hund läuft. Pudel.", "Pudel", "Hund", True),
        ("Pudel Ein Hund läuft!", "Pudel", None, True),
        ("Ein Pudel läuft mit einem Hund.", "Pudel", "Hund", True),
        ("Ein kleiner Hund läuft.", "kleiner Hund", "Hund", False),
        ("Ein Tier läuft. Pudel.", "Pudel", "Hund", False),
    ],
)
def test_term_beside_its_rival_counts_as_added(text, term, rival, added):
    assert is_added(text, "Ein Hund läuft.", term, rival) == added


def test_the_spelling_of_a_rival_is_forbidden_unless_a_term_begins_with_it(tokenizer):
    spelt = forbidden(tokenizer, {"Pudel": "Hund"}, [segment(tokenizer, "Pudel")])
    assert spelt == [
        tuple(tokenizer.encode_target(["Hund"])[0]),
        tuple(tokenizer.target.encode_behind("Hund")),
    ]
    term = segment(tokenizer, "Hund und Herr")
    assert not any(
        tokens == term.segmentations[0][: len(tokens)]
        for tokens in forbidden(tokenizer, {"": "Hund"}, [term])
    )


def test_neighbours_do_not_overlap():
    pairs = ((0, 2), (2, 4)), ((0, 3), (2, 4)), ((1, 2), (0, 4)), ((0, 1), (3, 4))
    assert [_overlap(one, other) for one, other in pairs] == [False, True, True, False]
    assert [_overlap(other, one) for one, other in pairs] == [False, True, True, False]
