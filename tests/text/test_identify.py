"""Tests of transduce/text/identify.py."""

import sys

import numpy as np
import pytest

from transduce.system.errors import UserError
from transduce.text import identify
from transduce.text.identify import (
    CODES,
    IDENTIFIED_TEXTS,
    MIN_IDENTIFIED_TEXTS,
    NO_LANGUAGE,
    SAMPLE_CHARACTERS,
    Identifier,
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


def test_not_a_character_more_is_classified(monkeypatch):
    monkeypatch.setattr(identify, "SAMPLE_CHARACTERS", 1)
    for text in ("a漢字", "漢 and so on"):
        assert identifier().likeliest([text]) == identifier().likeliest([text[0]])
        labels = {"zh", "en", "de"}
        assert identifier().among([text], labels) == identifier().among([text[0]], labels)
        for label in labels:
            assert identifier().gaps([text], label) == identifier().gaps([text[0]], label)


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


def test_three_tenths_of_the_texts_in_another_language_are_many(monkeypatch):
    assert foreign_share([*LONG_GERMAN[:42], *LONG_ENGLISH[:18]], "de") == (0.3, "en")
    assert foreign_share([*LONG_GERMAN[:43], *LONG_ENGLISH[:18]], "de") == (0.0, "")
    assert foreign_share(LONG_GERMAN[:20], "fr") == (1.0, "de")
    assert foreign_share(LONG_GERMAN[:19], "fr") == (0.0, "")
    both = [*LONG_GERMAN, *LONG_ENGLISH, *["short"] * 99]
    monkeypatch.setattr(identify, "IDENTIFIED_TEXTS", 10)  # every twelfth
    assert foreign_share(both, "de") == (0.5, "en") and foreign_share(both, "en") == (0.5, "de")
    monkeypatch.setattr(identify, "MIN_GAP", 1e9)
    assert foreign_share(both, "de") == (0.0, "")


def test_what_belongs_to_no_language_is_left_out():
    for text in (
        "<b class='a long value'>",
        "{a placeholder}",
        "/usr/share/doc",
        "C:\\folder",
        "long_name",
        "name@example.com",
        "100%",
        "`code`",
        "key=value",
        "A4711b",
        "&nbsp;&#160;",
    ):
        assert NO_LANGUAGE.sub(" ", text).strip() == "", text
        assert NO_LANGUAGE.sub(" ", f"Ein {text} Hund").split() == ["Ein", "Hund"], text
    assert CODES.sub("", "Typ AB12c, 7 第3章") == "Typ ,  第章"


def test_the_other_languages_of_the_model_are_named(capsys):
    warn_of_language("a.txt", GERMAN, "en", ["en", "de", "fr"])
    said = " ".join(capsys.readouterr().err.split())
    assert said.endswith("% of a.txt look like de or fr, not en.")
    warn_of_language("a.txt", GERMAN, "lb", ["de"])  # which alone would be too close
    assert " ".join(capsys.readouterr().err.split()).endswith("% of a.txt look like de, not lb.")
    warn_of_language("a.txt", ENGLISH, "en", ["en", "de", "fr"])
    assert capsys.readouterr().err == ""


def test_nothing_is_identified_without_the_package_or_room_for_its_file(monkeypatch, capsys):
    def full() -> Identifier:
        raise OSError("No space left on device")

    monkeypatch.setitem(sys.modules, "py3langid.langid", None)
    with pytest.raises(UserError, match=r"need the package py3langid\. Install it with pip"):
        Identifier()
    for opened in (Identifier, full):
        monkeypatch.setattr(identify, "identifier", opened)
        assert share_in_other_languages(LONG_GERMAN, "en", {"en", "de"}) is None
        assert foreign_share(LONG_GERMAN, "en") == (0.0, "")
        warn_of_language("a.txt", LONG_GERMAN, "en", ["de"])
    assert capsys.readouterr().err == ""


def test_scripts_are_only_known_with_babel(monkeypatch):
    assert identifier().label("sr_Latn") == ""
    monkeypatch.setitem(sys.modules, "babel.core", None)
    assert identifier().label("sr_Latn") == "sr"


CLOSE = {
    "Hunden løper gjennom den grønne parken sammen med barna.": "no nb nn da sv fo is",
    "Pas trči kroz zeleni park zajedno s djecom iz škole.": "hr bs sr sl",
    "Кучето тича през зеления парк заедно с децата.": "bg mk sr",
    "Pes běží zeleným parkem společně s dětmi ze školy.": "cs sk",
    "Anjing itu berlari melalui taman hijau bersama anak-anak.": "id ms jv ace",
    "El perro corre por el parque verde junto con los niños.": "gl pt es ca an ext oc",
    "Le chien court dans le parc vert avec les enfants.": "fr oc wa gcf gcr ht",
    "Il cane corre nel parco verde insieme ai bambini.": "it vec lij la",
    "Der Hund läuft mit den Kindern durch den grünen Park.": "de lb",
    "De hond rent door het groene park samen met de kinderen.": "nl af fy",
    "The dog runs through the green park together with the children.": "en pcm",
    "Собака бежит по зелёному парку вместе с детьми.": "ru uk be bg",
    "कुत्ता बच्चों के साथ हरे पार्क में दौड़ता है।": "hi ne mr sa gom",
    "سگ همراه با بچه‌ها در پارک سبز می‌دود.": "fa ps ur sdh ug tg",
    "يجري الكلب في الحديقة الخضراء مع الأطفال.": "ar ary arz",
    "那只狗和孩子们一起在绿色的公园里奔跑，今天的天气非常好。": "zh yue wuu ja",
    "Ang aso ay tumatakbo sa luntiang parke kasama ang mga bata.": "tl bcl",
    "Koira juoksee vihreän puiston läpi yhdessä lasten kanssa.": "et fi",
    "Suns skrien pa zaļo parku kopā ar bērniem no skolas.": "lv ltg lt",
    "Köpek çocuklarla birlikte yeşil parkta koşuyor.": "tr az tk crh uz uzs",
    "Ит балалармен бірге жасыл саябақта жүгіреді.": "kk ky tt ba",
    "Inja ibaleka epakini eluhlaza kunye nabantwana besikolo.": "xh zu nso st sn",
    "Ο σκύλος τρέχει στο πράσινο πάρκο μαζί με τα παιδιά.": "el grc",
    "הכלב רץ בפארק הירוק יחד עם הילדים מבית הספר.": "he hbo",
    "Tha an cù a' ruith tron phàirc uaine còmhla ris a' chloinn.": "gd ga",
}


@pytest.mark.parametrize("text", CLOSE)
def test_languages_that_are_hard_to_tell_apart_are_not_foreign(text, monkeypatch):
    monkeypatch.setattr(identify, "MIN_IDENTIFIED_TEXTS", 1)
    for code in CLOSE[text].split():
        assert foreign_share([text], code) == (0.0, ""), code
    share, label = foreign_share([text], "eu")
    assert share == 1 and label in CLOSE[text].split()


def test_the_most_frequent_of_several_foreign_languages_is_named():
    assert foreign_share([*LONG_GERMAN[:60], *LONG_ENGLISH[:40]], "fr") == (0.6, "de")
    assert foreign_share([*LONG_GERMAN[:40], *LONG_ENGLISH[:60]], "fr") == (0.6, "en")
