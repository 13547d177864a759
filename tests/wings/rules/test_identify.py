"""Tests of transduce/wings/rules/identify.py."""

import pytest

from transduce.wings.phrasebook.examples import examples
from transduce.wings.rules.identify import foreign_share, warn_of_language

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
