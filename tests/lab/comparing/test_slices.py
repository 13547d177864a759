"""Slices of a test set: each kind holds every sentence once, and a fault in one slice is found in this slice."""

import math
import random
from itertools import groupby

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transduce.evaluation.scores import MIN_TESTED_SENTENCES, Comparison, Score, compare
from transduce_lab.comparing import slices
from transduce_lab.comparing.slices import compare_slices, rare_words, words
from transduce_lab.comparing.statistics import holm

WORDS = (
    "ein",
    "Hund",
    "läuft",
    "NATO",
    "3",
    "1.000",
    "12:30",
    "IBM-PC",
    "हिन्दी",
    "我们",
    "-",
    "A",
    "über",
)
KINDS = ("length", "rare words", "numbers", "casing")
texts = st.lists(st.sampled_from(WORDS), max_size=45).map(" ".join)


def make_references(count: int = 80, seed: int = 0) -> list[str]:
    """Sentences without numbers and sentences with numbers, as many of each."""
    choice = random.Random(seed)
    lines = [
        [choice.choice(("Der", "Ein", "Kein")), *choice.choices(WORDS[:3], k=8)]
        for _ in range(count)
    ]
    return [
        " ".join([*line, str(choice.randint(10, 999))] if i % 2 else line)
        for i, line in enumerate(lines)
    ]


def degraded(lines: list[str]) -> list[str]:
    """Every word but the last one in reverse."""
    return [
        " ".join([word[::-1] for word in line.split()[:-1]] + line.split()[-1:]) for line in lines
    ]


def by_name(first, second, references, rare=()):
    return {each.name: each for each in compare_slices(first, second, references, rare)}


# -- laws -------------------------------------------------------------------------------------------------


@given(st.lists(texts, min_size=1, max_size=12))
def test_the_slices_of_a_kind_hold_every_sentence_once(lines):
    seen: list[list[str]] = []

    def record(*lines, **_):
        seen.append(lines[-1])
        score = Score("", 0.0, 0.0, 0.0, "")
        return [Comparison(name, score, score, 1.0) for name in ("BLEU", "chrF2", "TER")]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(slices, "compare", record)
        found = compare_slices(lines, lines, lines, rare_words(lines))
    assert tuple(dict.fromkeys(each.kind for each in found)) == KINDS
    assert [each.sentences for each in found] == list(map(len, seen)) and all(seen)
    for _, group in groupby(zip(found, seen, strict=True), lambda pair: pair[0].kind):
        its = list(group)
        assert len({each.name for each, _ in its}) == len(its)
        assert sorted(line for _, part in its for line in part) == sorted(lines)
    for each in found:  # the reference itself has all words
        assert each.found == (each.num_words, each.num_words)
        assert not (
            each.num_words
            and each.name in ("without rare words", "without numbers", "no capital letters")
        )
        assert each.num_words or each.name not in (
            "with rare words",
            "with numbers",
            "some words in capitals",
        )


def test_equal_translations_do_not_differ_in_any_slice():
    references = make_references()
    for each in compare_slices(
        degraded(references), degraded(references), references, rare_words(references)
    ):
        assert (
            all(score.first == score.second for score in each.scores)
            and each.found[0] == each.found[1]
        )
        expected = [
            1 if each.sentences >= MIN_TESTED_SENTENCES else pytest.approx(math.nan, nan_ok=True)
        ] * 3
        assert [each.p_value, *(score.p_value for score in each.scores)] == expected


def test_the_order_of_the_sentences_does_not_matter():
    references = make_references()
    lines = list(zip(degraded(references), references, references, strict=True))
    random.Random(1).shuffle(lines)
    assert compare_slices(*zip(*lines, strict=True), rare_words(references)) == compare_slices(
        degraded(references), references, references, rare_words(references)
    )


def test_exchanged_translations_exchange_the_figures():
    references, worse = make_references(), degraded(make_references())
    one, two = by_name(worse, references, references), by_name(references, worse, references)
    for name in one:
        assert one[name].found == two[name].found[::-1]
        assert [(s.first, s.second) for s in one[name].scores] == [
            (s.second, s.first) for s in two[name].scores
        ]
        assert one[name].p_value == two[name].p_value


def test_a_slice_has_the_scores_of_its_sentences_with_corrected_p_values():
    references = make_references()
    slightly = [
        line.replace("Hund", "Hunde", 1) if i % 8 == 3 else line
        for i, line in enumerate(references)
    ]
    found = compare_slices(degraded(references), degraded(slightly), references, ())
    [numbers] = [each for each in found if each.name == "with numbers"]
    some = [i for i, line in enumerate(references) if line[-1].isdigit()]
    texts = (
        [lines[i] for i in some] for lines in (degraded(references), degraded(slightly), references)
    )
    for score, expected in zip(numbers.scores, compare(*texts)[:2], strict=True):
        assert score.first.value == pytest.approx(expected.first.value)
        assert score.second.value == pytest.approx(expected.second.value)
    tested = [each for each in found if each.sentences >= MIN_TESTED_SENTENCES]
    assert [each.p_value for each in tested] == holm([each.scores[1].p_value for each in tested])
    assert numbers.scores[0].p_value != numbers.scores[1].p_value < numbers.p_value


def test_a_fault_in_sentences_with_numbers_is_found_there():
    references = make_references()
    wrong = [
        line[:-1] + str(9 - int(line[-1])) if line[-1].isdigit() else line for line in references
    ]
    found = by_name(references, wrong, references)
    assert found["with numbers"].p_value < 0.05 and found["without numbers"].p_value == 1
    assert found["with numbers"].found == (found["with numbers"].num_words, 0)
    assert found["with numbers"].num_words == found["with numbers"].sentences == 40


def test_a_fault_in_long_sentences_is_found_there():
    references = [
        line if i % 2 else f"{line} und {line}" for i, line in enumerate(make_references())
    ]
    wrong = [line if i % 2 else degraded([line])[0] for i, line in enumerate(references)]
    found = by_name(references, wrong, references)
    assert found["11 to 20 words"].p_value < 0.05 and found["6 to 10 words"].p_value == 1


def test_a_slice_of_few_sentences_is_not_tested():
    references = [*make_references()[:31], "JA"]
    found = by_name(degraded(references), references, references)
    assert found["only capital letters"].sentences == 1 and math.isnan(
        found["only capital letters"].p_value
    )
    assert found["ordinary capital letters"].p_value < 0.05


# -- examples ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Ein Hund, der läuft.", ["Ein", "Hund", "der", "läuft"]),
        ("don't – E-Mail!", ["don't", "E-Mail"]),
        ("हिन्दी में", ["हिन्दी", "में"]),
        ("我们去OK。", ["我", "们", "去", "OK"]),
        (" … ", []),
    ],
)
def test_word_slices_by_hand(text, expected):
    assert words(text) == expected


@pytest.mark.parametrize(
    ("text", "length", "number", "casing"),
    [
        ("", "up to 5 words", "without numbers", "no capital letters"),
        ("a b c d e", "up to 5 words", "without numbers", "no capital letters"),
        ("A b c d e f", "6 to 10 words", "without numbers", "ordinary capital letters"),
        ("I saw NATO in 1999", "up to 5 words", "with numbers", "some words in capitals"),
        ("NATO 1999", "up to 5 words", "with numbers", "only capital letters"),
        ("我们明天去北京看朋友", "6 to 10 words", "without numbers", "no capital letters"),
        ("x " * 40, "21 to 40 words", "without numbers", "no capital letters"),
        ("x " * 41, "over 40 words", "without numbers", "no capital letters"),
    ],
)
def test_bins_by_hand(text, length, number, casing):
    assert set(by_name([text], [text], [text])) == {length, "without rare words", number, casing}


def test_rare_words_are_those_of_the_training_text_or_occur_once():
    references = ["Der Hund läuft", "der Kater schläft"]
    assert rare_words(references) == {"hund", "läuft", "kater", "schläft"}
    training = ["der Hund Hund läuft"] * 3 + ["läuft läuft", "schläft"]
    assert rare_words(references, training) == {"läuft", "kater", "schläft", "der"}
    assert rare_words(references, [*training, "Der der der"]) == {"läuft", "kater", "schläft"}


def test_words_are_found_as_often_as_they_are_there():
    references = ["im Jahr 12 von 12 bis 1,500,000"]
    [one] = [
        each
        for each in compare_slices(["12 1,500,000"], ["12 12 12 1,500 1500000"], references, ())
        if each.num_words
    ]
    assert (one.name, one.num_words, one.found) == ("with numbers", 3, (2, 2))


def test_the_case_of_rare_words_is_ignored_but_not_of_words_in_capitals():
    found = by_name(["nato x"], ["NATO"], ["NATO Y"], {"nato"})
    assert found["with rare words"].found == (1, 1)
    assert found["only capital letters"].found == (0, 1)
