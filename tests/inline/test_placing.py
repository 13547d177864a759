"""Tests of transduce/inline/placing.py."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marked_texts import PLAIN, WORDS, links
from transduce.inline.markup import speller
from transduce.inline.placeholder_removal import without_words
from transduce.inline.placeholders import (
    Mark,
    Patch,
    mask,
)
from transduce.inline.placing import Link, _around_words, _merged, _Placing, copied, restore
from transduce.text.formats import MARKUP_TEXT

HARMLESS = st.lists(st.sampled_from([*WORDS, "das", "ist"]), max_size=8).map(" ".join)


@given(st.data(), PLAIN)
def test_placeholders_come_back_exactly_once(data: st.DataObject, text: str) -> None:
    masked = without_words(mask(text))
    assert not any(mark.kind == "word" for mark in masked.marks)
    translation = data.draw(HARMLESS)
    restored = restore(masked, translation, data.draw(links(masked.text, translation)))
    raws = [mark.opening for mark in masked.marks] + [mark.closing for mark in masked.marks]
    assert len(restored.text) >= len(translation) + sum(map(len, raws))
    assert all(restored.text.count(raw) >= raws.count(raw) for raw in raws if raw)


@given(st.data(), PLAIN)
def test_spans_move_with_their_words(data: st.DataObject, text: str) -> None:
    masked = without_words(mask(text))
    translation = data.draw(HARMLESS)
    restored = restore(masked, translation, ())
    for word in re.finditer(r"\w+", translation):
        begin, end = restored.moved(word.span())
        assert (
            restored.text[begin] == word.group()[0] and restored.text[end - 1] == word.group()[-1]
        )


ENGLISH = "Click the big button to see all files."


GERMAN = "Klicken Sie auf den großen Knopf, um alle Dateien zu sehen."


WORDS_OF_BOTH = [
    "Click Klicken",
    "the den",
    "big großen",
    "button Knopf",
    "see sehen.",
    "all alle",
    "files. Dateien",
]


LINKED = [
    (
        (ENGLISH.index(one), ENGLISH.index(one) + len(one)),
        (GERMAN.index(other), GERMAN.index(other) + len(other)),
        1.0,
    )
    for one, other in map(str.split, WORDS_OF_BOTH)
]


@pytest.mark.parametrize(
    ("source", "translation"),
    [
        (
            "Click <b>the big button</b> to see <i>all files</i>.",
            "Klicken Sie auf <b>den großen Knopf</b>, um <i>alle Dateien</i> zu sehen.",
        ),
        (
            "Click the <a><b>big</b> button</a> to <i>see</i> all files.",
            "Klicken Sie auf den <a><b>großen</b> Knopf</a>, um alle Dateien zu <i>sehen</i>.",
        ),
        (
            "<b>Click the big button to see all files.</b>",
            "<b>Klicken Sie auf den großen Knopf, um alle Dateien zu sehen.</b>",
        ),
        (
            "Click the big button{0} to see all {1} files.",
            "Klicken Sie auf den großen Knopf{0}, um alle {1} Dateien zu sehen.",
        ),
        (
            "Click the big button to see all files {0}.",
            "Klicken Sie auf den großen Knopf, um alle Dateien {0} zu sehen.",
        ),
    ],
)
def test_marks_follow_their_words(source: str, translation: str) -> None:
    masked = without_words(mask(source))
    assert masked.text == ENGLISH
    restored = restore(masked, GERMAN, LINKED)
    assert (restored.text, restored.guessed) == (translation, False)


@pytest.mark.parametrize(
    ("source", "translation"),
    [
        ("Click the big {0} button to see all files.", "{0} großen Knopf, um alle Dateien"),
        ("Click the big <b>button</b> to see all files.", "<b>großen Knopf</b>, um alle Dateien"),
        (
            "Click the <b>big</b> button to see all <i>files</i>.",
            "<b>großen Knopf</b>, um alle <i>Dateien</i>",
        ),
        (
            "Click the <b>big</b> <i>button</i> to see all files.",
            "<b>großen</b> <i>Knopf</i>, um alle Dateien",
        ),
        (
            "Click the <b>big <i>button</i></b> to see all files.",
            "<b><i>großen Knopf</i></b>, um alle Dateien",
        ),
        ("Click the big<x/> button to see all files.", "großen Knopf<x/>, um alle Dateien"),
        ("Click the big <x/>button to see all files.", "<x/>großen Knopf, um alle Dateien"),
        (
            "Click the big <x/>button to see <i>all</i> files.",
            "<x/>großen Knopf, um <i>alle</i> Dateien",
        ),
    ],
)
def test_marks_never_divide_a_term(source: str, translation: str) -> None:
    restored = restore(
        without_words(mask(source, MARKUP_TEXT)),
        GERMAN,
        LINKED,
        whole=["großen Knopf", "roß", "fehlt"],
    )
    assert restored.text == f"Klicken Sie auf den {translation} zu sehen."


@pytest.mark.parametrize(
    "text", ["H<sub>2</sub>O is", "10<sup>6</sup>x y", "Open <b>trans</b>duce", "a<b>b c</b>d e"]
)
def test_a_tag_stays_inside_a_copied_word(text: str) -> None:
    masked = mask(text, MARKUP_TEXT)
    words = [word.span() for word in re.finditer(r"\w+", masked.text)]
    assert restore(masked, masked.text, [(word, word, 1.0) for word in words]).text == text


def test_tags_around_a_placeholder_ignore_links_inside_it() -> None:
    text = "Press <x/> {0}<y/> now"
    masked = mask(text, MARKUP_TEXT)
    brace = masked.text.index("{"), masked.text.index("{") + 1
    other = masked.text.index("}"), masked.text.index("}") + 1
    assert restore(masked, masked.text, [(brace, other, 1.0)]).text == text


def test_words_may_begin_and_end_with_underscores() -> None:
    link = [((9, 16), (9, 16), 1.0)]
    assert (
        restore(mask("Function *_params* runs."), "Fonction _params court.", link).text
        == "Fonction *_params* court."
    )


def linked(source: str, target: str, words: str) -> list[Link]:
    """The links of words such as "one=eins two=zwei=0.5", with their weights."""
    links = []
    for pair in words.split():
        one, other, *weight = pair.split("=")
        begin, place = source.index(one), target.index(other)
        spans = (begin, begin + len(one)), (place, place + len(other))
        links.append((*spans, float(*weight or [1.0])))
    return links


@pytest.mark.parametrize(
    ("source", "words", "restored"),
    [
        # A pair is around the translations of its words.
        (
            "one <b>two</b> <i>six</i>",
            "one=eins two=zwei six=sechs",
            "<i>sechs</i> <b>zwei</b> eins",
        ),
        (
            "<b>one <i>six</i></b> two",
            "one=eins two=zwei six=sechs",
            "<b><i>sechs</i> eins</b> zwei",
        ),
        (
            "<i>one <b>two</b></i> six",
            "one=eins two=zwei six=sechs",
            "sechs <i><b>zwei</b> eins</i>",
        ),
        # Its punctuation belongs to it, if the translation has some.
        ("<b>One.</b> Two", "One.=Eins Two=Zwei", "<b>Eins.</b> Zwei"),
        ("<b>One</b>. Two", "One=Eins Two=Zwei", "<b>Eins</b>. Zwei"),
        ("<b>One.</b> Two", "One.=Eins Two=Zwei", "<b>Eins</b> Zwei"),
        ("a <b>b.</b>", "a=A b.=B", "A <b>B</b>"),
        # A pair without words takes no word of another.
        ("one<b>, </b><i>two</i>", "one=eins two=zwei", "eins<b>,</b> <i>zwei</i>"),
        ("one<b>, </b><i>two</i>", "one=eins two=zwei", "<i>zwei</i> eins<b></b>"),
        ("one <b>☺</b> <i>two</i>, six", "one=eins two=zwei six=6", "6, <i>zwei</i> <b>☺</b> eins"),
        # The best link of a word counts, and the copy of a placeholder is better than any.
        ("<b>one</b> two", "one=eins=0.6 two=eins=0.5 two=zwei", "<b>eins</b> zwei"),
        ("<b>one</b> two", "two=eins=0.5 one=eins=0.6 two=zwei", "<b>eins</b> zwei"),
        ("<b>red {0}</b> dog", "red=rote dog={0}", "Hund <b>rote {0}</b>"),
        ("{0} <b>red</b> {1}", "red=rote", "{0} <b>rote</b> {1}"),
        # A point is behind the word before it, or before the word behind it if a blank is before it.
        ("one<x/> two<y/> six", "one=eins two=zwei six=sechs", "sechs zwei<y/> eins<x/>"),
        ("one <x/>two <y/>six", "one=eins two=zwei six=sechs", "<y/>sechs <x/>zwei eins"),
        ("a <x/>(b)", "a=A b=B", "A <x/>»B«"),
        ("a<x/> (b)", "a=A b=B", "A<x/> »B«"),
        # A point inside the words of a pair moves to their nearer edge.
        ("<b>one two</b> <x/>six", "one=eins two=zwei six=da=0.3", "<x/><b>eins da zwei</b>"),
        ("<b>one two</b> <x/>six", "one=eins two=zu six=da=0.3", "<b>eins da zu</b> <x/>"),
        ("<b>one two</b> <x/>six", "one=einmal two=zu six=da=0.3", "<b>einmal da zu</b> <x/>"),
        # Unpaired tags keep their order: one may close what another opens.
        ("one</b> two<i> six", "one=eins two=zwei six=sechs", "sechs zwei eins</b><i>"),
        ("</b>one two<i>", "one=eins two=zwei", "</b>zwei eins<i>"),
        ("six <b>one</i> two</b>", "one=eins two=zwei six=sechs", "sechs <b>eins</i> zwei</b>"),
        # In one place, tags keep their order, and those between pairs stay there.
        ("one <x/><y/>two", "one=eins two=zwei", "eins <x/><y/>zwei"),
        ("one <x/></b>two", "one=eins two=zwei", "eins <x/></b>zwei"),
        ("one </b><x/>two", "one=eins two=zwei", "eins </b><x/>zwei"),
        ("<x/><b>one</b><y/> <i>two</i>", "one=eins two=zwei", "<x/><b>eins</b><y/> <i>zwei</i>"),
        ("<b>one</b> <x/><i>two</i>", "one=eins two=zwei", "<b>eins</b> <x/><i>zwei</i>"),
        ("</b><u>one two</u><i> six", "one=eins six=da=0.3 two=zwei", "</b><u>eins da zwei</u><i>"),
    ],
)
def test_tags_by_hand(source: str, words: str, restored: str) -> None:
    masked = mask(source, MARKUP_TEXT)
    translation = mask(restored, MARKUP_TEXT).text.strip()
    found = restore(masked, translation, linked(masked.text, translation, words))
    assert (found.text, found.guessed) == (restored, not words)


def test_what_a_model_invented_is_left_out() -> None:
    masked = mask("a <b>b</b> {0}", MARKUP_TEXT)
    links = linked(masked.text, "x y {0} z", "a=x b=z")
    found = restore(masked, "x y {0} z", links, without=[Patch(2, 4, "")])
    assert found.text == "x {0} <b>z</b>"
    assert found.moved((8, 9)) == (9, 10)


def test_two_pairs_never_share_a_word() -> None:
    restored = restore(mask("*a* *b* and many more words."), "Eins und zwei.", ())
    assert (restored.text, restored.guessed) == ("*Eins* *und* zwei.", True)


def test_positions_without_links_are_guessed_and_flagged() -> None:
    restored = restore(mask("One <b>two</b> three four."), "Eins zwei drei vier.", ())
    assert (restored.text, restored.guessed) == ("Eins <b>zwei</b> drei vier.", True)
    assert not restore(mask("One two."), "Eins zwei.", ()).guessed


def test_a_word_must_be_copied_as_often_as_it_stands() -> None:
    masked = mask("{0} and {0} or {1}")
    assert copied(masked, "{0} oder {1}, {0}")
    assert not copied(masked, "{0} oder {1}")
    assert not copied(mask("run <code>ls</code>", MARKUP_TEXT), "also führe aus")
    assert not copied(mask("run <code>ls</code>", MARKUP_TEXT), "also Hals")


@pytest.mark.parametrize(
    ("text", "is_copied"),
    [
        # A part of a word is no copy, but the signs that a placeholder has at its ends end a word.
        ("x<code>ls</code>", False),
        ("x<code>_a</code>", False),
        ("x<code>-ls</code>", True),
        ("x<code>.ls</code>", True),
        ("<code>ls</code>x", False),
        ("<code>a_</code>x", False),
        ("<code>ls.</code>x", True),
        ("<code>-l</code>x", False),
        ("<code>l-</code>x", True),
        ("x<code>l-</code>", False),
        ("<code>a</code> <code>a</code>", True),
    ],
)
def test_a_part_of_a_word_is_no_copy(text: str, is_copied: bool) -> None:
    masked = mask(text, MARKUP_TEXT)
    assert copied(masked, masked.text) is is_copied


#          0123456789012
TARGET = "ein Hund, da."


def placing(source: str, target: str, links=(), whole=()) -> _Placing:
    return _Placing(source, target, links, whole)


@pytest.mark.parametrize(
    ("wanted", "within", "found"),
    [
        ((1, 2), (0, 13), (1, 2)),
        ((2, 2), (0, 3), (0, 3)),
        ((3, 3), (3, 8), (4, 8)),
        ((3, 3), (3, 7), (7, 7)),  # the word ends behind it
        ((5, 5), (5, 8), (8, 8)),
        ((5, 4), (4, 13), (4, 8)),
    ],
)
def test_an_empty_pair_is_around_the_next_word(wanted, within, found) -> None:
    made = placing("a dog, there.", TARGET)
    assert made._free(wanted, within) == found
    assert made.guessed is (wanted[0] >= wanted[1])


def test_without_links_a_pair_is_as_far_into_the_translation() -> None:
    made = placing("abcd efgh", "ein Hund da")

    def of(begin: int, end: int, made: _Placing = made):
        return made._in_proportion(Mark("pair", begin, end, ""))

    assert [of(0, 4), of(8, 9), of(4, 5), of(0, 7)] == [(0, 3), (9, 11), (4, 8), (0, 8)]
    # The nearest begin is that of the second word, the nearest end that of the first.
    assert of(4, 5, placing("x" * 10, "a lange")) == (2, 7)
    assert placing("xx", "a b c")._at_same_share(1, [0, 2, 4]) == 2
    assert placing("", "a b c")._at_same_share(0, [0, 2, 4]) == 0
    # A translation without words.
    assert of(0, 4, placing("abcd", "?!")) == (0, 2)


def test_a_pair_is_around_the_heaviest_of_its_words() -> None:
    links = [((0, 3), (0, 3), 0.9), ((4, 7), (4, 7), 0.8), ((8, 11), (8, 11), 0.7)]
    made = placing("one two six", "abc def ghi", [(b, a, w) for a, b, w in links])
    spans = [made._span(Mark("pair", begin, end, "")) for begin, end in ((0, 3), (3, 7), (4, 11))]
    assert spans == [(0, 3), (4, 7), (4, 11)]
    assert not made.guessed
    assert made._span(Mark("pair", 3, 4, "")) == (3, 3), "the words beside a blank are not in it"


def test_spans_that_overlap_are_merged() -> None:
    assert _merged([(8, 10), (0, 5), (9, 12), (3, 6), (12, 13)]) == [(0, 6), (8, 12), (12, 13)]
    assert _merged([]) == []


def test_tags_inside_a_word_move_to_its_nearer_edge() -> None:
    words = [Patch(2, 6, "{0}"), Patch(8, 12, "{1}")]

    def around(*places: int) -> list[tuple[int, int, str]]:
        tags = [Patch(place, place, f"<{place}>") for place in places]
        return [tuple(patch[:3]) for patch in _around_words(tags, words)]

    first, second = (2, 6, "{0}"), (8, 12, "{1}")
    assert around(2, 6) == [(2, 2, "<2>"), first, (6, 6, "<6>"), second]
    assert around(3) == [(2, 2, "<3>"), first, second]
    assert around(4) == [first, (6, 6, "<4>"), second]
    assert around(1, 9) == [(1, 1, "<1>"), first, (8, 8, "<9>"), second]
    assert around(11, 12, 14) == [
        first,
        second,
        (12, 12, "<11>"),
        (12, 12, "<12>"),
        (14, 14, "<14>"),
    ]
    assert around() == [first, second]


def test_a_point_is_beside_the_translation_of_its_neighbour() -> None:
    links = [((0, 2), (4, 6), 0.9), ((3, 5), (0, 2), 0.9)]
    made = placing("ab cd", "CD (AB)", links)
    places = [
        made._point(Mark("point", place, place, "", before=before))
        for place in (0, 5, 2, 3)
        for before in (False, True)
    ]
    # Behind "ab", or before "cd" if a blank comes before it.
    assert places == [0, 0, 7, 7, 6, 0, 6, 0]
    assert not made.guessed


def test_a_point_without_links_is_as_far_into_the_translation() -> None:
    for place, before, expected in ((3, True, 3), (3, False, 2), (4, True, 3), (4, False, 5)):
        made = placing("ab cd", "AB CD")
        assert made._point(Mark("point", place, place, "", before=before)) == expected
        assert made.guessed
    assert placing("ab cd", "AB (CD")._point(Mark("point", 3, 3, "", before=True)) == 3


def test_a_word_has_its_best_translation() -> None:
    word, first, second = (0, 2), (0, 2), (3, 5)

    def chosen(*weights: float) -> tuple[int, int]:
        links = [
            (word, each, weight) for each, weight in zip((first, second), weights, strict=True)
        ]
        return placing("ab", "xx yy", links).words[word]

    assert chosen(0.9, 0.3) == chosen(0.5, 0.5) == first
    assert chosen(0.3, 0.9) == second


@pytest.mark.parametrize(
    ("weights", "span"),
    [
        ([0.9, -0.5, 0.9, 0.9], (4, 7)),  # what is worth nothing is left out
        ([0.9, -0.4, 0.9, 0.9], (0, 7)),
        ([0.9, -1.0, 0.9], (0, 1)),
        ([0.3, -1.0, 0.4], (4, 5)),  # the strongest, if none is strong
        ([-1.0, 0.5, -1.0], (2, 3)),
    ],
)
def test_links_of_other_words_weaken_a_span(weights: list[float], span: tuple[int, int]) -> None:
    """Negative weights are those of words outside the pair."""
    spans = [(place, place + 1) for place in range(0, 2 * len(weights), 2)]
    links = [(each, each, abs(weight)) for each, weight in zip(spans, weights, strict=True)]
    made = placing("a " * len(weights), "b " * len(weights), links)
    inside = {i: made.links[i] for i, weight in enumerate(weights) if weight > 0}
    assert made._heaviest(inside) == span


def test_spans_of_a_translation_move_behind_what_is_escaped() -> None:
    text = "<b>x</b> &amp; y"
    restored = restore(mask(text, MARKUP_TEXT), "x & y", [((0, 1), (0, 1), 1.0)], speller(text))
    assert restored.text == text and restored.moved((4, 5)) == (15, 16)
