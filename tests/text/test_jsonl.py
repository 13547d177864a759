"""Tests of transduce/text/jsonl.py."""

import json

import pytest

from text_files import write
from transduce.system.errors import UserError
from transduce.text import jsonl
from transduce.text.formats import CorpusFile


def read(folder, text, *, lenient=False, languages=("en", "pt_BR")):
    file = write(folder, "a.jsonl", text)
    return list(jsonl.read_jsonl(CorpusFile(file, languages, lenient)))


@pytest.mark.parametrize(
    "record",
    [
        {"en": "a", "pt_BR": "b", "source": "no"},
        {"en": "a", "pt-BR": "b"},
        {"source": "a", "target": "b", "src": "no", "tgt": "no"},
        {"src": "a", "tgt": "b", "en": "no", "source": "no"},
        {"translation": {"en": "a", "pt_BR": "b"}, "en": "no", "pt_BR": "no"},
        {"translation": "text", "source": "a", "target": "b"},
        {"source": "a", "target": "b", "en": 1, "pt_BR": "no"},
    ],
)
def test_texts_are_found_under_their_keys(tmp_path, record):
    assert read(tmp_path, json.dumps(record)) == [("a", "b", 1)]


def test_null_is_an_empty_text(tmp_path):
    text = '{"src": null, "tgt": "b"}\n{"src": "a", "tgt": null}\n{"src": null, "tgt": null}'
    for lenient in (False, True):
        assert read(tmp_path, text, lenient=lenient) == [("", "b", 1), ("a", "", 2), ("", "", 3)]


def test_codes_with_a_hyphen_may_be_written_with_an_underscore(tmp_path):
    assert read(tmp_path, '{"en_GB": "a", "de": "b"}', languages=("en-GB", "de")) == [("a", "b", 1)]


def test_blank_lines_are_pairs_of_empty_texts(tmp_path):
    text = '\ufeff{"src": "a", "tgt": "b"}\n\n  \n{"src": "", "tgt": "c"}\n'
    assert read(tmp_path, text) == [("a", "b", 1), ("", "", 2), ("", "", 3), ("", "c", 4)]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{", ":2: not valid JSON: Expecting property name enclosed in double quotes at column 2."),
        ("[1]", ":2: not a JSON object such as"),
        ("[" * 200_000, ":2: not valid JSON: "),
        ('{"source": 1, "target": null}', 'found "source" (a number), "target" (null).'),
        (
            '{"a": true, "b": [], "c": {}, "d": 1.5, "e": "x"}',
            '"a" (a boolean), "b" (a list), "c" (an object), "d" (a number), "e" (a string)',
        ),
        (
            "{}",
            'expected strings under "en" and "pt_BR" or "source" and "target" or "src" and "tgt", found no keys.',
        ),
        (
            '{"src": "\\ud83d", "tgt": "b"}',
            ":2: \\ud83d is only half of a surrogate pair. Write both halves.",
        ),
    ],
)
def test_malformed_lines_are_named(tmp_path, line, said):
    with pytest.raises(UserError) as error:
        read(tmp_path, '{"src": "a", "tgt": "b"}\n' + line)
    assert said in str(error.value)


def test_halves_of_pairs_are_bytes_that_do_not_exist_if_lenient(tmp_path):
    """Undecoded bytes stay as they are."""
    text = b'{"src": "\\ud83d a", "tgt": "b"}\n{"src": "c\xe9", "tgt": "d"}\n{"src": "c\xe9", "tgt": "\\udce9"}'
    assert read(tmp_path, text, lenient=True) == [
        (f"{jsonl.NO_BYTE} a", "b", 1),
        ("c\udce9", "d", 2),
        (f"c{jsonl.NO_BYTE}", jsonl.NO_BYTE, 3),
    ]


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ('[{"src": "a", "tgt": "b"}, {"src": "c", "tgt": "d"}]', [1, 1]),
        ('\ufeff [\n{"src": "a", "tgt": "b"},\n\n{"src": "c", "tgt": "d"}\n]\n', [2, 4]),
        ('{\n"src": "a",\n"tgt": "b"\n}\n{\n"src": "c",\n"tgt": "d"}', [1, 5]),
        ('{ \n"src": "a", "tgt": "b"} {"src": "c", "tgt": "d"}', [1, 2]),
        ('{"src": "a", "tgt": "b"}\n\n{\n"src": "c", "tgt": "d"}', [1, 3]),
        ('[\n[{"src": "a", "tgt": "b"}], [\n{"src": "c",\n"tgt": "d"}]]', [2, 3]),
    ],
)
def test_objects_on_several_lines_have_the_number_of_their_first_line(tmp_path, text, lines):
    pairs = [pair for pair in read(tmp_path, text) if pair[0]]
    assert pairs == [("a", "b", lines[0]), ("c", "d", lines[1])]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{\n"src": "a",\n"tgt" "b"}', ":3: not valid JSON: Expecting ':' delimiter at column 7."),
        (
            '{"src": "a", "tgt": "b"}\n[\n{"src": "a", "tgt": "b"},\n{"src": 1}]',
            ':4: expected strings under "en" and "pt_BR"',
        ),
        ('[\n{"src": "a", "tgt": "b"},\n{"src": "c"', ":3: not valid JSON"),
        ('[{"src": "a", "tgt": "b"},\n', ":1: not valid JSON"),  # cut off behind an object
        ('[\n{"src": "a", "tgt": "b"}\n', ":1: not valid JSON"),
        ('[{"src": "a",\n"tgt": "b"}\n]\n1\n', ":4: not a JSON object"),
    ],
)
def test_faults_of_objects_on_several_lines_have_their_own_line(tmp_path, text, said):
    with pytest.raises(UserError) as error:
        read(tmp_path, text)
    assert f"a.jsonl{said}" in str(error.value)


def test_bytes_in_an_array_are_kept_if_lenient(tmp_path):
    text = b'[{"src": "c\xe9", "tgt": "d"},\n{"src": "\\udce9", "tgt": null}]'
    found = read(tmp_path, text, lenient=True)
    assert found == [("c\udce9", "d", 1), (jsonl.NO_BYTE, "", 2)]
    with pytest.raises(UserError, match="byte 0xE9"):
        read(tmp_path, text)
