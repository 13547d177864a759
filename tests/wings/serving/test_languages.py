"""Tests of transduce/wings/serving/languages.py."""

from types import SimpleNamespace
from unicodedata import normalize

import pytest

from transduce.system.errors import UserError

pytest.importorskip("fastapi", reason="pip install 'transduce[serve]'")
from transduce.text.languages import Direction
from transduce.wings.serving import languages
from transduce.wings.serving.languages import Detected, Detector, codes, without_markup

# What people type, by language.
EVERYDAY = {
    "en": "OK|Hi|Hello|Hello!|Thanks|Thank you!|Yes|No|Please|Sorry|Good morning|Good night|See you|Bye|Help|Stop|"
    "Open|Save|Cancel|Log in|Sign out|Settings|Home|Next|Back|Search|How are you?|I am Tom.|What time is it?|"
    "Where is it?|It is late.|I love you|Dog|Big house|Made in Germany|Price: 12 EUR|MP3 player|Wi-Fi|See chapter 3",
    "de": "Ja|Nein|Danke|Danke!|Bitte|Hallo|Guten Morgen|Gute Nacht|Tschüss|Hilfe|Öffnen|Speichern|Abbrechen|Weiter|"
    "Zurück|Suchen|Wie geht's?|Wo ist das?|Es regnet|Es ist spät.|Ich bin Tom.|Hund|Großes Haus|Siehe Kapitel 3|Straße|"
    "Frühstück|Schadenfreude|Donaudampfschifffahrt|Zimmer frei|Kein Problem|Alles klar|Auf Wiedersehen",
    "fr": "Oui|Non|Merci|Merci beaucoup|Bonjour|Bonsoir|Salut|Au revoir|S'il vous plaît|Ouvrir|Annuler|Suivant|Retour|"
    "Chercher|Ça va ?|Où est-il ?|Il pleut|Je suis Tom.|Chien|Grande maison|Voir chapitre 3|À bientôt|D'accord|Déjà vu",
    "es": "Hola|Sí|Gracias|Muchas gracias|Adiós|Por favor|Buenos días|Buenas noches|Abrir|Guardar|Cancelar|Siguiente|"
    "Volver|Buscar|¿Qué tal?|¿Dónde está?|Llueve|Soy Tom.|Perro|Casa grande|Ver capítulo 3|Mañana|Lo siento|Vale",
    "it": "Ciao|Sì|Grazie|Grazie mille|Prego|Buongiorno|Buonanotte|Arrivederci|Apri|Salva|Annulla|Avanti|Indietro|"
    "Cerca|Come stai?|Dov'è?|Piove|Sono Tom.|Cane|Casa grande|Vedi capitolo 3|Domani|Mi dispiace|Va bene",
    "": "Tom|Maria|Berlin|Paris|Angela Merkel|Lech Wałęsa|Arnold Schwarzenegger|Reykjavík|São Paulo|Nguyễn Văn|IKEA|"
    "Zürich|Łódź|Franz Josef Strauß",  # names
}


def choose(detector: Detector, text: str, among: list[str]) -> Detected:
    [found] = detector.choose([text], among)
    return found


@pytest.mark.parametrize("among", ["en de fr es it", "en de", "en", "de", "fr", "es", "it"])
def test_everyday_texts_are_not_refused(among: str) -> None:
    languages = among.split()
    texts = [text for code in (*languages, "") for text in EVERYDAY[code].split("|")]
    assert len(texts) > 150 or len(languages) < 5
    detector = Detector(languages)
    for text in [*texts, "Hola", "Danke", "Dzień dobry", "See you soon"]:
        assert choose(detector, text, languages).language in languages, text
    assert {each.language for each in detector.choose(texts, languages)} <= {*languages}


def test_confidence_says_how_sure_the_language_is() -> None:
    detector = Detector(["en", "de"])
    found = [
        choose(detector, text, ["en", "de"]).confidence
        for text in ("Hola", "Es regnet jetzt auf der ganzen Straße.")
    ]
    assert found[0] < 60 and found[1] > 99


def test_a_text_in_another_language_does_not_refuse_the_others() -> None:
    french, english = "Je ne sais pas ce que vous voulez dire.", "The dog runs over the street."
    detector = Detector(["en", "de"])
    for texts in ([english, french], [french, french, "OK"], ["Hello", french * 20, "12"]):
        assert detector.choose(texts, ["en", "de"])[0].language == "en"
    [_, other] = detector.choose([english, french], ["en", "de"])
    assert other.language == "en" and other.confidence < 1
    for texts in ([french], [french, french], [french, "12", ""]):
        with pytest.raises(UserError, match=r"looks like French.* translates English, German"):
            detector.choose(texts, ["en", "de"])


def test_the_target_language_is_kept_if_the_texts_together_look_like_it() -> None:
    english, german = "The dog runs over the street and barks.", "Ein Hund rennt über die Straße."
    detector = Detector(["en", "de"])
    for texts, expected in (
        ([german], "de"),
        ([german, german], "de de"),
        ([german, german, english], "de de en"),
        ([german, "OK"], "de en"),
        (["12", german], "und de"),
        ([english, english, english, german], "en en en en"),
    ):
        found = detector.choose(texts, ["en"], "de")
        assert [each.language for each in found] == expected.split()
    assert found[-1].confidence == 0


def test_decomposed_letters_do_not_change_the_language() -> None:
    text = "Müßte man das öfter üben?"
    found = [
        choose(Detector(["de", "en"]), normalize(form, text), ["de", "en"])
        for form in ("NFC", "NFD")
    ]
    assert found[0] == found[1]


def test_the_languages_of_the_server_are_detected_first() -> None:
    detector = Detector(["en", "de"])
    assert detector.detect("Es regnet")[0].language == "de"
    assert {each.language for each in detector.detect("Es regnet")} <= {"en", "de"}
    assert detector.detect("今天天气很好，我们去公园散步吧。")[0].language == "zh"
    assert detector.detect("12 + 3") == [("und", 0.0)]
    assert (
        detector.detect("Bonjour")[0].language == "fr"
        and Detector(["tlh"]).detect("Bonjour")[0].language == "fr"
    )


@pytest.mark.parametrize(
    "code", ["a1b2c3d4e5f6", "2fd4e1c67a2d28fced849ee1bb76e7391b93eb12", "AB12 CD34 EF56"]
)
def test_serial_numbers_have_no_language(code: str) -> None:
    detector = Detector(["en", "de"])
    assert detector.detect(code) == [("und", 0.0)]
    assert choose(detector, f"The serial number is {code}.", ["en"]).language == "en"
    assert choose(detector, f"Die Seriennummer ist {code}.", ["en", "de"]).language == "de"


def test_variants_of_a_language_share_its_confidence() -> None:
    text = "Bom dia! Como você está hoje?"
    one = choose(Detector(["pt", "en"]), text, ["pt", "en"])
    variants = ["pt_BR", "pt_PT", "en"]
    assert choose(Detector(variants), text, variants).confidence == one.confidence


def test_languages_are_detected_by_their_other_codes() -> None:
    norwegian, french = (
        "Jeg vet ikke hva du mener. Hunden løper over plenen.",
        "Je ne sais pas ce que vous voulez dire.",
    )
    detector = Detector(["nb", "en", "deu", "fra", "fil", "rm", "co"])
    assert choose(detector, norwegian, ["en", "nb"]).language == "nb"
    assert choose(detector, french, ["deu", "fra"]).language == "fra"
    assert (
        choose(detector, "Hindi ko alam kung ano ang ibig mong sabihin.", ["es", "fil"]).language
        == "fil"
    )
    assert choose(detector, norwegian, ["en", "rm"]) == ("rm", 0.0), (
        "a language that py3langid lacks"
    )
    assert choose(detector, norwegian, ["rm"]) == ("rm", 0.0)
    assert choose(detector, "The dog runs over the street.", ["en", "rm"]).language == "en"
    for among in (["rm", "co"], ["en", "rm", "co"]):
        with pytest.raises(UserError, match="hoose the source language"):
            choose(detector, norwegian, among)


class Ranked(Detector):
    """A detector for which every text has the same probabilities."""

    def __init__(self, labels: dict[str, str], **ranked: float) -> None:
        self._labels = labels
        self._ranked = ranked

    def _rank(self, _: str) -> dict[str, float]:
        return self._ranked


def test_languages_are_listed_if_they_are_likely_or_translated() -> None:
    labels = {"en": "en", "de": "de", "de_AT": "de"}
    found = Ranked(labels, fr=0.5, en=0.3, it=0.1, es=0.05, de=0.01, pt=0.009).detect("x")
    assert found == [("en", 30.0), ("de", 1.0)], "French is less than five times as likely"
    assert Ranked(labels, fr=0.75, en=0.15, de=0.009).detect("x") == [("fr", 75.0), ("en", 15.0)]
    assert Ranked({}, fr=0.75, it=0.2).detect("x") == [("fr", 75.0), ("it", 20.0)]
    assert Ranked({}, fr=0.009, it=0.008).detect("x") == [("fr", 0.9)], "the likeliest of all"
    assert Ranked(labels).detect("1") == [("und", 0.0)]
    # A language of the server that has no probability is no reason to leave out others.
    assert Ranked({"en": "en"}, fr=0.6, it=0.4).detect("x") == [("fr", 60.0), ("it", 40.0)]


@pytest.mark.parametrize(
    ("ranked", "among", "usual", "kept", "expected"),
    [
        ({"en": 0.6, "de": 0.3, "fr": 0.05}, "en de", "", "", ("en", 63.2)),
        ({"en": 0.6, "de": 0.3}, "de", "", "", ("de", 33.3)),  # English is not five times as likely
        ({"en": 0.6, "de": 0.3}, "en de", "de", "", ("de", 33.3)),
        ({"en": 0.6, "de": 0.12}, "en de", "de", "", ("en", 83.3)),
        ({"en": 0.19, "de": 0.01}, "en de", "de", "", ("de", 5.0)),  # nothing is likely
        ({"fr": 0.8, "en": 0.1}, "en de", "de", "", ("de", 0.0)),
        ({"fr": 0.8, "en": 0.1}, "en de", "de", "fr", ("fr", 80.0)),
        ({"fr": 0.8, "en": 0.2}, "en de", "de", "fr", ("en", 20.0)),
        ({"fr": 0.8, "en": 0.1}, "en rm", "", "", ("rm", 0.0)),
        ({"fr": 0.8}, "rm", "", "", ("rm", 0.0)),
        ({"fr": 0.8, "en": 0.15}, "en rm", "", "", ("rm", 0.0)),
        ({"fr": 0.7, "en": 0.15}, "en rm", "", "", ("en", 17.6)),
        ({"fr": 0.8, "en": 0.1}, "en rm", "en", "", ("en", 11.1)),
        ({"fr": 0.8, "en": 0.1}, "en rm co", "", "", ("en", 11.1)),
        ({"en": 0.5, "de": 0.1}, "en de", "de", "", ("en", 83.3)),  # five times as likely
        ({"en": 0.2, "de": 0.04}, "en de", "de", "", ("en", 83.3)),
        ({"fr": 0.5, "it": 0.4, "en": 0.1}, "en", "en", "fr", ("fr", 50.0)),
        ({"fr": 0.5, "it": 0.4, "en": 0.1}, "en", "en", "it", ("en", 16.7)),
        ({"en": 0.0, "fr": 1.0}, "en", "", "", ("en", 0.0)),
        ({}, "en de", "de", "", ("de", 0.0)),
        ({}, "en de", "", "", ("und", 0.0)),
    ],
)
def test_the_language_of_a_text_by_hand(
    ranked: dict[str, float], among: str, usual: str, kept: str, expected: tuple[str, float]
) -> None:
    detector = Ranked({"en": "en", "de": "de", "fr": "fr"})
    assert detector._choose("x", ranked, among.split(), usual=usual, kept=kept) == expected
    assert detector._choose("1", {}, among.split(), usual=usual) == ("und", 0.0)


@pytest.mark.parametrize(
    ("text", "english", "other", "among", "kept", "is_foreign"),
    [
        ("a b c d", 0.016, 0.8, "en de", "", True),
        ("a b c", 0.016, 0.8, "en de", "", False),  # three words
        ("a b c d", 0.017, 0.8, "en de", "", False),  # less than fifty times as likely
        ("a b c d", 0.001, 0.19, "en de", "", False),
        ("a b c d", 0.001, 0.2, "en de", "", True),
        ("a b c d", 0.016, 0.8, "en rm", "", False),  # it may be Romansh
        ("a b c d", 0.016, 0.8, "en rm co", "", True),
        ("a b c d", 0.016, 0.8, "rm co", "", False),
        ("a b c d", 0.016, 0.8, "en de", "fr", False),
    ],
)
def test_a_text_in_another_language_is_refused(
    text: str, english: float, other: float, among: str, kept: str, is_foreign: bool
) -> None:
    detector = Ranked({"en": "en", "de": "de", "fr": "fr"}, fr=other, en=english)
    assert detector._is_foreign(text, detector._ranked, among.split(), kept) is is_foreign
    if is_foreign:
        with pytest.raises(UserError, match=rf"looks like French \({other:.0%}".replace("%", " %")):
            detector.choose([text, text], among.split(), kept)


def test_the_texts_of_a_request_are_read_together_without_those_in_other_languages() -> None:
    detector = Ranked({"en": "en", "de": "de"})
    ranks: dict[str, dict[str, float]] = {
        "a b c d": {"fr": 0.9, "en": 0.001},
        "German": {"de": 0.9, "en": 0.01},
        "short": {"en": 0.5, "de": 0.4},
        "German\nshort": {"de": 0.8, "en": 0.1},
        "12": {},
    }
    detector._rank = ranks.__getitem__  # type: ignore[assignment]
    found = detector.choose(["German", "a b c d", "short", "12"], ["en", "de"])
    assert [each.language for each in found] == ["de", "de", "de", "und"]
    assert [each.language for each in detector.choose(["short"], ["en", "de"])] == ["en"]
    assert [each.language for each in detector.choose(["short", "12"], ["en"])] == ["en", "und"]


def test_several_languages_that_are_not_known_are_not_told_apart() -> None:
    detector = Ranked({"en": "en"}, fr=0.8)
    with pytest.raises(UserError, match=r"can't tell Romansh, Corsican apart"):
        detector.choose(["x"], ["rm", "co"])
    assert Ranked({"en": "en"}).choose(["1", "x"], ["en"]) == [(languages.UNDETERMINED, 0.0)] * 2


def test_only_the_beginning_of_a_text_is_read() -> None:
    detector = Detector(["en", "de"])
    read: list[str] = []
    detector._identifier = SimpleNamespace(rank=lambda text: read.append(text) or [("de", 1.0)])  # type: ignore[assignment,func-returns-value]
    for length in (9_999, 10_000, 10_001, 50_000):
        text = "Der Hund. " * 5_000
        assert detector.detect(text[:length]) == [("de", 100.0)]
        assert read.pop() == text[: min(length, 10_000)]
    code = "2fd4e1c67a2d28fced849ee1bb76e7391b93eb12"
    detector.detect(f"Der {code} Mu\u0308ller")
    assert read.pop().split() == ["Der", "Müller"]


def test_markup_has_no_language() -> None:
    text = "<p class='der die das'>The &quot;dog&quot;<br/>runs</p><!-- und die Katze -->"
    assert without_markup(text).split() == ["The", '"dog"', "runs"]
    long = "a" * 65_536 + "b"
    assert "b" not in without_markup(long) and len(without_markup(long)) == len(long) - 1


def test_sources_come_first_among_the_codes() -> None:
    pairs = [Direction.parse(name) for name in ("en-de", "fr-de", "de-it")]
    assert codes(pairs) == ["en", "fr", "de", "it"] and codes([]) == []
    assert Detected("en", 1.0) == ("en", 1.0)
