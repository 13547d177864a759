"""Language codes in file names."""

import pytest

from transduce.text.languages import language_name, language_of


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
