"""Language codes in file names."""

import pytest

from transduce.text.languages import language_name, language_of, main_language, nearest_code


@pytest.mark.parametrize(
    ("file", "code"),
    [
        ("train.en.bak", "en"),
        ("corpus.en-fil.fil", "fil"),
        ("train.eng.deu", "deu"),
        ("train.txt", ""),
    ],
)
def test_codes_in_file_names(file, code):
    assert language_of(file) == code


def test_names_are_the_same_for_both_ways_to_write_a_code():
    pytest.importorskip("babel")
    assert language_name("pt_BR") == language_name("pt-BR") == "Portuguese (Brazil)"
    assert (language_name("zh_Hant"), language_name("qqq")) == ("Chinese (Traditional)", "qqq")


@pytest.mark.parametrize(
    ("code", "main"), [("zh_Hant", "zh"), ("deu", "de"), ("iw", "he"), ("qqq", "qqq"), ("DE-at", "de")]
)
def test_the_usual_form_of_a_code(code, main):
    pytest.importorskip("babel")
    assert main_language(code) == main


def test_a_model_with_longer_codes_is_found():
    pytest.importorskip("babel")
    assert nearest_code("de", ["eng", "deu"]) == "deu" and nearest_code("eng", ["de-AT", "en-US"]) == "en-US"
