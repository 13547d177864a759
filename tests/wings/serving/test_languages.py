"""Tests of transduce/wings/serving/languages.py."""

import pytest

from transduce.system.errors import UserError

pytest.importorskip("fastapi", reason="pip install 'transduce[serve]'")
from transduce.wings.serving.languages import Detector


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
    assert detector.choose(f"The serial number is {code}.", ["en"]).language == "en"
    assert detector.choose(f"Die Seriennummer ist {code}.", ["en", "de"]).language == "de"


def test_variants_of_a_language_share_its_confidence() -> None:
    text = "Bom dia! Como você está hoje?"
    one = Detector(["pt", "en"]).choose(text, ["pt", "en"])
    assert (
        Detector(["pt_BR", "pt_PT", "en"]).choose(text, ["pt_BR", "pt_PT", "en"]).confidence
        == one.confidence
    )


def test_languages_are_detected_by_their_other_codes() -> None:
    norwegian, french = (
        "Jeg vet ikke hva du mener. Hunden løper over plenen.",
        "Je ne sais pas ce que vous voulez dire.",
    )
    detector = Detector(["nb", "en", "deu", "fra", "fil", "rm", "co"])
    assert detector.choose(norwegian, ["en", "nb"]).language == "nb"
    assert detector.choose(french, ["deu", "fra"]).language == "fra"
    assert (
        detector.choose("Hindi ko alam kung ano ang ibig mong sabihin.", ["es", "fil"]).language
        == "fil"
    )
    assert detector.choose(norwegian, ["en", "rm"]) == ("rm", 0.0), (
        "a language that py3langid lacks"
    )
    assert detector.choose(norwegian, ["rm"]) == ("rm", 0.0)
    assert detector.choose("The dog runs over the street.", ["en", "rm"]).language == "en"
    for among in (["rm", "co"], ["en", "rm", "co"]):
        with pytest.raises(UserError, match="hoose the source language"):
            detector.choose(norwegian, among)
