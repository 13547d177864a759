"""Language codes in file names."""

import sys

import pytest

from transduce.decoding.directions import choose_direction
from transduce.system.errors import UserError
from transduce.text.languages import (
    Direction,
    language_name,
    language_of,
    languages_of,
    main_language,
    nearest_code,
    script_of,
    target_of,
)
from transduce.text.pairs import check_file_names


@pytest.mark.parametrize(
    ("file", "code"),
    [
        ("train.en.bak", "en"),
        ("corpus.en-fil.fil", "fil"),
        ("train.eng.deu", "deu"),
        ("news.sr-Latn-RS.gz", "sr-Latn-RS"),
        ("train.txt", ""),
        ("a.es-419", "es-419"),
        ("a.zh_Hans_CN.tok", "zh_Hans_CN"),
        ("a.en_USA", "en_USA"),
        ("a.es-4199", ""),
        ("a.zh_Han", "zh_Han"),
        ("a.zh_Hansen", ""),
        ("en.txt", ""),
        ("de/a.tok", ""),
        ("a.en.de", "de"),
        ("a.xq", ""),
    ],
)
def test_codes_in_file_names(file, code):
    assert language_of(file) == code


def test_names_are_the_same_for_both_ways_to_write_a_code():
    pytest.importorskip("babel")
    assert language_name("pt_BR") == language_name("pt-BR") == "Portuguese (Brazil)"
    assert (language_name("zt"), language_name("pb")) == (
        "Chinese (Traditional)",
        "Portuguese (Brazil)",
    )
    assert (language_name("zh_Hant"), language_name("qqq")) == ("Chinese (Traditional)", "qqq")
    assert [*map(language_name, ("arb", "zho", "iw", "tl"))] == [
        "Arabic",
        "Chinese",
        "Hebrew",
        "Filipino",
    ]
    assert [*map(language_name, ("no", "nb"))] == ["Norwegian", "Norwegian Bokmål"]


@pytest.mark.parametrize(
    ("code", "main"),
    [("zh_Hant", "zh"), ("deu", "de"), ("iw", "he"), ("qqq", "qqq"), ("DE-at", "de")],
)
def test_the_usual_form_of_a_code(code, main):
    pytest.importorskip("babel")
    assert main_language(code) == main


def test_a_model_with_longer_codes_is_found():
    pytest.importorskip("babel")
    assert (
        nearest_code("de", ["eng", "deu"]) == "deu"
        and nearest_code("eng", ["de-AT", "en-US"]) == "en-US"
    )
    assert nearest_code("nb-NO", ["no"]) == "no" and nearest_code("tl", ["fil"]) == "fil"


@pytest.mark.parametrize(
    ("code", "among", "found"),
    [
        ("zh-CN", ["zh_Hant", "zh_Hans"], "zh_Hans"),
        ("zh-HK", ["zh_Hans", "zh_TW"], "zh_TW"),
        ("zh", ["zh_Hant", "zh_Hans"], "zh_Hans"),
        ("zh-TW", ["zh"], "zh"),
        ("zh-TW", ["zh_Hans"], None),
        ("sr-Cyrl", ["sr_Latn"], None),
        ("sr", ["sr_Latn"], "sr_Latn"),
        ("cmn", ["zh_Hant", "zh"], "zh"),
        ("en_wiki", ["en_news"], "en_news"),
        ("zt", ["zh_Hans", "zh_Hant"], "zh_Hant"),
        ("ZT", ["zh_Hans"], None),
        ("zh-Hant", ["zh", "zt"], "zt"),
        ("zh-Hans", ["zt", "zh"], "zh"),
        ("pb", ["pt_PT", "pt_BR"], "pt_BR"),
        ("pt-BR", ["pt", "pb"], "pb"),
        ("pt", ["pb"], "pb"),
    ],
)
def test_nearest_code_has_the_same_script(code, among, found):
    assert nearest_code(code, among) == found


@pytest.mark.parametrize(
    ("files", "languages", "contradict"),
    [
        (("a.en", "a.de"), ("en", "de"), False),
        (("a.en", "a.de"), ("de", "tgt"), True),  # only --from was given
        (("a.en", "a.de"), ("src", "en"), True),
        (("a.de", "a.en-US"), ("en", "de"), True),
        (("a.en_GB", "a.de"), ("en", "de-AT"), False),
        (("a.zh_Hans", "a.zh_Hant"), ("zh_Hans", "zh_Hant"), False),
        (("a.zh_Hant", "a.zh_Hans"), ("zh_Hans", "zh_Hant"), True),
        (("a.en", "a.de"), ("source", "target"), False),
        (("a.en.tsv", "b.de.tsv"), ("de", "en"), False),
    ],
)
def test_file_names_that_contradict_the_languages_are_refused(files, languages, contradict):
    if contradict:
        with pytest.raises(UserError, match="but their names say"):
            check_file_names(files, languages)
    else:
        check_file_names(files, languages)


def test_of_several_variants_of_the_source_the_one_with_the_target_is_chosen():
    directions = [Direction("en", "de"), Direction("en_GB", "fr")]
    assert [
        str(choose_direction(directions, *codes))
        for codes in (("en", "fr"), ("en-US", "de"), ("en_GB", "de"))
    ] == [
        "en_GB-fr",
        "en-de",
        "en-de",
    ]


def test_directions_are_parsed_and_written():
    direction = Direction.parse("pt_BR-en")
    assert direction == ("pt_BR", "en") and str(direction) == "pt_BR-en"
    assert Direction("pt-BR", "zh-Hans").as_codes == ("pt_BR", "zh_Hans")
    assert direction.reverse == ("en", "pt_BR") and Direction.parse("en") == ("en", "")
    assert target_of("en-de") == "de" and target_of("") == ""


@pytest.mark.parametrize(
    ("files", "languages"),
    [
        (["a.en", "b.de"], ("en", "de")),
        (["a.en", "b.en"], None),
        (["a.en", "b"], None),
        (["a.en"], None),
        (["a.en", "b.de", "c.fr"], None),
        (["en/a.fr.txt", "de.x"], None),
    ],
)
def test_the_languages_of_two_files(files, languages):
    assert languages_of(files) == languages


@pytest.mark.parametrize(
    ("code", "script"),
    [
        ("zh-TW", "hant"),
        ("zh_MO", "hant"),
        ("zh-SG", "hans"),
        ("yue-HK", ""),
        ("zh", ""),
        ("sr_Latn_RS", "latn"),
        ("en-US", ""),
        ("zh_Hant_CN", "hant"),
        ("hans", ""),
    ],
)
def test_the_script_of_a_code(code, script):
    assert script_of(code) == script


@pytest.mark.parametrize(
    ("code", "among", "found"),
    [
        ("EN_us", ["en", "en-US"], "en-US"),
        ("en", ["en-GB", "en"], "en"),
        ("en-GB-x", ["en-US", "en-GB"], "en-GB"),
        ("pt", ["pt_BR", "pt_PT"], "pt_BR"),
        ("fr", ["en"], None),
        ("", ["en"], None),
        ("zh_Hant", ["zh", "zh_Hant"], "zh_Hant"),
        ("sr_Latn", ["sr", "sr_Cyrl"], "sr"),
    ],
)
def test_the_most_similar_code_is_found(code, among, found):
    assert nearest_code(code, among) == found


def test_without_babel_codes_stay_as_they_are(monkeypatch):
    monkeypatch.setitem(sys.modules, "babel", None)
    monkeypatch.setitem(sys.modules, "babel.core", None)
    main_language.cache_clear()
    try:
        codes = ("deu", "de_AT", "iw", "no", "zt")
        assert [*map(main_language, codes)] == ["deu", "de", "iw", "nb", "zh"]
        assert nearest_code("de", ["deu", "de-AT"]) == "de-AT"
        assert language_name("pt-BR") == "pt-BR"
    finally:
        main_language.cache_clear()
