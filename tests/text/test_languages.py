"""Language codes in file names."""

import pytest

from transduce.text.languages import language_of


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
