"""Whether a term replaces words or signs of the free translation, or was only added to it."""

from types import SimpleNamespace

import pytest

from transduce.decoding.types import (
    Link,
    Translation,
)
from transduce.system.errors import UserError
from transduce.wings.terms import enforce
from transduce.wings.terms.glossary import (
    Constraint,
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


def test_only_sentences_whose_term_was_added_are_searched_again(monkeypatch):
    """The term of the first sentence stands beside its rival; that of the second replaced it."""
    texts = {(1,): "Ein Hund Köter läuft.", (2,): "Ein Hund läuft.", (3,): "Ein Köter läuft."}
    decode = SimpleNamespace(decode=lambda rows: [texts[row] for row in rows])
    rivals = {0: {"Köter": "Hund"}, 1: {"Köter": "Hund"}}
    monkeypatch.setattr(enforce, "find_rivals", lambda *_: rivals)
    translator = SimpleNamespace(tokenizer=decode)
    matches = {i: [SimpleNamespace(target="Köter")] for i in (0, 1)}
    free = {i: SimpleNamespace(tokens=(2,)) for i in (0, 1)}
    found = {i: [SimpleNamespace(tokens=(at,))] for i, at in ((0, 1), (1, 3))}
    assert enforce._added(translator, None, None, matches, free, found) == {0: rivals[0]}


def test_terms_are_no_longer_than_a_translation():
    """Two terms have three tokens behind a space; their other spellings do not count."""
    terms = [
        Constraint(text, spelt, "letter", "letter")
        for text, spelt in (("ab", ((1, 2), (3,))), ("c", ((4,), (5, 6, 7))))
    ]
    sentences = SimpleNamespace(sources=[[1]], numbers=[5])
    for limit, most, said in (
        (3, None, ""),
        (2, None, "or raise decode"),
        (2, 2, "Shorten the terms"),
    ):
        translator = SimpleNamespace(limit=lambda _, limit=limit: limit, max_tokens=most)
        if said:
            with pytest.raises(UserError, match=r"Text 5: the terms .* \(ab, c\)") as error:
                enforce._check_limits(translator, sentences, {0: terms})
            assert said in str(error.value) and (most is None) == ("raise" in str(error.value))
        else:
            enforce._check_limits(translator, sentences, {0: terms})
