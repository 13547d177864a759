"""Tests of transduce/text/identify.py."""

import numpy as np
import pytest

from transduce.text import identify
from transduce.text.identify import (
    IDENTIFIED_TEXTS,
    MIN_IDENTIFIED_TEXTS,
    SAMPLE_CHARACTERS,
    foreign_share,
    identifier,
    label_of,
    share_in_other_languages,
    share_of_wrong_texts,
    warn_of_language,
)
from transduce.wings.phrasebook.examples import examples

pytest.importorskip("py3langid")
GERMAN = [example.german for example in examples("train", 200)]
ENGLISH = [example.english for example in examples("train", 200)]


def test_the_share_of_a_third_language_is_found():
    share, label = foreign_share([*GERMAN[:100], *ENGLISH[:100]], "de")
    assert label == "en" and share == pytest.approx(0.5, abs=0.1)
    assert foreign_share(GERMAN, "fr") == (pytest.approx(1, abs=0.05), "de")


@pytest.mark.parametrize(
    ("texts", "code"),
    [
        (GERMAN, "de"),
        (GERMAN, "lb"),  # hard to tell from German
        (GERMAN[:15], "fr"),  # too few
        ([text[:20] for text in GERMAN], "fr"),  # too short
        (GERMAN, "qqq"),  # unknown
        (GERMAN, "de_Cyrl"),
        ([*GERMAN[:160], *ENGLISH[:40]], "de"),  # names and quotations are usual
        ([f"https://example.com/about/this/company/{number}" for number in range(90)], "de"),
    ],
)
def test_weak_evidence_is_none(texts, code):
    assert foreign_share(texts, code) == (0.0, "")


def test_a_warning_names_both_languages(capsys):
    warn_of_language("a.txt", GERMAN, "en", ["de"])
    warn_of_language("b.txt", GERMAN, "fr", ["en"])
    warn_of_language("c.txt", GERMAN, "de", ["en"])
    said = capsys.readouterr().err
    assert said.count("Warning") == 2
    assert "% of a.txt look like de, not en." in said and "% of b.txt look like de, not fr." in said


LONG_ENGLISH, LONG_GERMAN = (
    [text for text in side if len(text) > 20][:60] for side in (ENGLISH, GERMAN)
)


@pytest.mark.parametrize(
    ("code", "label"),
    [
        ("de", "de"),
        ("deu", "de"),
        ("pt-BR", "pt"),
        ("nb", "nb"),
        ("no", "no"),
        ("fil", "tl"),
        ("xx", ""),
        ("sr", "sr"),
        ("sr_Latn", ""),  # py3langid knows Serbian in Cyrillic letters
        ("sr_Cyrl", "sr"),
        ("de_Latn", "de"),
        ("de_Cyrl", ""),
        ("zh_Hant", "zh"),
    ],
)
def test_the_label_of_a_code_is_that_of_its_language_in_its_usual_script(code, label):
    found = identifier().label(code)
    assert found == label or (code == "nb" and found == "no")


def test_a_label_has_the_usual_name_of_a_language_or_another_one():
    assert label_of("nb-NO", {"no", "de"}) == "no" and label_of("nb", {"nb", "no"}) == "nb"
    assert (
        label_of("tl", {"tl"}) == label_of("fil", {"tl"}) == "tl" and label_of("nb", {"de"}) == ""
    )


def test_only_the_beginning_of_a_text_is_classified():
    text = " ".join(LONG_GERMAN)[:SAMPLE_CHARACTERS]
    long = text + " ".join(LONG_ENGLISH * 9)
    assert identifier().likeliest([text, long, LONG_ENGLISH[0]]) == ["de", "de", "en"]
    assert identifier().among([long, LONG_ENGLISH[0]], {"de", "en", "fr"}) == ["de", "en"]
    assert identifier().among([long], {"fr", "it"})[0] in ("fr", "it")
    gaps = [identifier().gaps([text, long], label).tolist() for label in ("de", "en")]
    assert gaps[0] == [0, 0] and gaps[1][0] == gaps[1][1] > 10
    own, other = (
        identifier().gaps([LONG_ENGLISH[0], LONG_GERMAN[0]], label) for label in ("en", "de")
    )
    assert own[0] == 0 < own[1] and other[1] == 0 < other[0]
    assert np.isinf(identifier().gaps([text], "no such label"))


def test_the_share_of_texts_in_other_languages_by_hand():
    texts = [*LONG_ENGLISH[:3], " ", *LONG_GERMAN[:1]]
    assert share_in_other_languages(texts, "en", {"en", "de"}) == 1 / 4
    assert share_in_other_languages(texts, "de", {"en", "de", "xx"}) == 3 / 4
    assert share_in_other_languages(texts, "de", {"de", "xx"}) is None
    assert share_in_other_languages(texts, "xx", {"de", "en", "xx"}) is None
    assert share_in_other_languages([" "], "de", {"de", "en"}) is None


def test_texts_are_wrong_if_more_than_nine_tenths_of_the_long_ones_are():
    short = ["Yes, I do. Of course"] * 99  # as long as the shortest that are not examined
    for wrong, right, share in ((28, 2, 28 / 30), (27, 3, 0), (20, 0, 1), (19, 0, 0)):
        texts = [*short, *LONG_ENGLISH[:wrong], *LONG_GERMAN[:right]]
        assert share_of_wrong_texts(texts, "de", {"de", "en"}) == pytest.approx(share)
        assert share_of_wrong_texts(texts, "en", {"de", "en"}) == 0
    assert (MIN_IDENTIFIED_TEXTS, IDENTIFIED_TEXTS) == (20, 500)
    assert share_of_wrong_texts(LONG_ENGLISH[:30], "xx", {"xx", "en"}) == 0


def test_only_the_first_long_texts_are_examined(monkeypatch):
    monkeypatch.setattr(identify, "IDENTIFIED_TEXTS", 30)
    read = []
    texts = (read.append(text) or text for text in [*LONG_ENGLISH[:30], *LONG_GERMAN * 9])
    assert share_of_wrong_texts(texts, "de", {"de", "en"}) == 1
    assert len(read) == 30


def test_an_unknown_language_is_infinitely_less_likely():
    known, unknown = (identifier().gaps([LONG_ENGLISH[0]], label)[0] for label in ("en", "xx"))
    assert (known, unknown) == (0, np.inf)
