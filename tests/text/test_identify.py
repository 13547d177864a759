"""Language identification: labels of codes, and shares of texts in other languages."""

import numpy as np
import pytest

from transduce.text import identify
from transduce.text.identify import (
    IDENTIFIED_TEXTS,
    MIN_IDENTIFIED_TEXTS,
    SAMPLE_CHARACTERS,
    identifier,
    label_of,
    share_in_other_languages,
    share_of_wrong_texts,
)
from transduce.wings.phrasebook.examples import examples

pytest.importorskip("py3langid", reason="pip install 'transduce[doctor]'")
PAIRS = [(each.english, each.german) for each in examples("train", 80)]
ENGLISH, GERMAN = (
    [text for text in side if len(text) > 20][:60] for side in zip(*PAIRS, strict=True)
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
    text = " ".join(GERMAN)[:SAMPLE_CHARACTERS]
    long = text + " ".join(ENGLISH * 9)
    assert identifier().likeliest([text, long, ENGLISH[0]]) == ["de", "de", "en"]
    assert identifier().among([long, ENGLISH[0]], {"de", "en", "fr"}) == ["de", "en"]
    assert identifier().among([long], {"fr", "it"})[0] in ("fr", "it")
    gaps = [identifier().gaps([text, long], label).tolist() for label in ("de", "en")]
    assert gaps[0] == [0, 0] and gaps[1][0] == gaps[1][1] > 10
    own, other = (identifier().gaps([ENGLISH[0], GERMAN[0]], label) for label in ("en", "de"))
    assert own[0] == 0 < own[1] and other[1] == 0 < other[0]
    assert np.isinf(identifier().gaps([text], "no such label"))


def test_the_share_of_texts_in_other_languages_by_hand():
    texts = [*ENGLISH[:3], " ", *GERMAN[:1]]
    assert share_in_other_languages(texts, "en", {"en", "de"}) == 1 / 4
    assert share_in_other_languages(texts, "de", {"en", "de", "xx"}) == 3 / 4
    assert share_in_other_languages(texts, "de", {"de", "xx"}) is None
    assert share_in_other_languages(texts, "xx", {"de", "en", "xx"}) is None
    assert share_in_other_languages([" "], "de", {"de", "en"}) is None


def test_texts_are_wrong_if_more_than_nine_tenths_of_the_long_ones_are():
    short = ["Yes, I do. Of course"] * 99  # as long as the shortest that are not examined
    for wrong, right, share in ((28, 2, 28 / 30), (27, 3, 0), (20, 0, 1), (19, 0, 0)):
        texts = [*short, *ENGLISH[:wrong], *GERMAN[:right]]
        assert share_of_wrong_texts(texts, "de", {"de", "en"}) == pytest.approx(share)
        assert share_of_wrong_texts(texts, "en", {"de", "en"}) == 0
    assert (MIN_IDENTIFIED_TEXTS, IDENTIFIED_TEXTS) == (20, 500)
    assert share_of_wrong_texts(ENGLISH[:30], "xx", {"xx", "en"}) == 0


def test_only_the_first_long_texts_are_examined(monkeypatch):
    monkeypatch.setattr(identify, "IDENTIFIED_TEXTS", 30)
    read = []
    texts = (read.append(text) or text for text in [*ENGLISH[:30], *GERMAN * 9])
    assert share_of_wrong_texts(texts, "de", {"de", "en"}) == 1
    assert len(read) == 30


def test_an_unknown_language_is_infinitely_less_likely():
    known, unknown = (identifier().gaps([ENGLISH[0]], label)[0] for label in ("en", "xx"))
    assert (known, unknown) == (0, np.inf)
