"""Tests of transduce/wings/documents/foreign_files.py."""

import gzip
import os
from pathlib import Path

import pytest

from transduce.system.errors import UserError
from transduce.text.formats import FILE_FORMATS, read_document
from transduce.text.languages import LANGUAGE_CODE
from transduce.wings.documents.foreign_files import (
    BY_SUFFIX,
    CSV_FORMAT,
    JSON_FORMAT,
    KEYS_FORMAT,
    MESSAGES_FORMAT,
    TEXT_SUFFIXES,
    TIMES_FORMAT,
    XML_FORMAT,
    ForeignFormat,
    format_of_lines,
)
from transduce.wings.documents.lines_command import check_lines

SENTENCES = "It is raining now.\nEvery painter is waiting.\n"
JSON = '{"hello": "It is raining now."}\n'


def test_a_known_suffix_is_refused_unless_it_is_a_language(tmp_path: Path) -> None:
    for suffix in BY_SUFFIX:
        file = tmp_path / f"a{suffix.upper()}"
        file.write_text(SENTENCES, encoding="utf-8")
        if LANGUAGE_CODE.fullmatch(suffix[1:]):
            check_lines(str(file))
        else:
            with pytest.raises(UserError, match=rf"^{file} is an? .*\. [A-Z].*\.$") as raised:
                check_lines(str(file))
            assert ("add --plain" in str(raised.value)) == (suffix[1:] not in BINARY.split()), (
                suffix
            )


BINARY = (
    "doc docm rtf pages ppt pptm key xls xlsm ods pdf ps xps mobi azw3 fb2 idml "
    "mqxlz wsxz xlz sdlppx sdlrpx sdltm mo gmo"
)


def test_no_suffix_is_in_two_tables() -> None:
    assert not BY_SUFFIX.keys() & {*TEXT_SUFFIXES, *FILE_FORMATS}


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.ts", "<!DOCTYPE TS>\n<TS>\n</TS>\n", "a file of Qt Linguist"),
        ("a.ts", 'export const x = {\n  hello: "Hello",\n  bye: f(2),\n};\n', "program code"),
        ("a.mo", b"\xde\x12\x04\x95\0\0", "a compiled gettext file"),
    ],
)
def test_the_lines_decide_if_a_suffix_is_also_a_language(
    name: str, text: str | bytes, said: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(UserError, match=said):
        check_lines(str(tmp_path / name))


TEXTS = {
    "sentences": SENTENCES,
    "one line": "It is raining now.",
    "chat": "Ann: hello\nBen: hi there\nAnn: how are you?\nBen: fine = good\n",
    "nicknames": "cool_guy: hello\nmad.max: hi there\ncool_guy: how are you?\nmad.max: fine\n",
    "times": "[12:01:33] <ann> hello\n[12:01:44] <ben> hi\n<ann> bye\n",
    "poem": "the rain falls down;\nthe sun comes up,\nfor all is well;\nif you are here:\n",
    "law": "(a) the first item;\n(b) the second;\n(c) the third:\n(d) all others;\n",
    "notes": "Note: this is important.\nWarning: it rains.\nTip: take a coat.\n",
    "comments": "# This adds two numbers.\n// See below\n/* A longer\n * comment here */\n",
    "screenplay": 'ANN:\n  Hello there.\nBEN: "Go away."\n  What is it?\n',
    "placeholders": "Hello {name}!\n{count} files\n{{ user }} is in\n%s is not a folder\n",
    "tags": "<b>Note</b> that it rains.\nPress <kbd>Enter</kbd> to go on.\n",
    "symbols of a corpus": "<s> it is raining </s>\nev@@ ery pain@@ ter\n▁it ▁is\n<2de> no\n",
    "quotes": '"It is raining," he said.\n"Go home!"\n',
    "formulas": "Let x = 3 and y = 4.\nThen x + y = 7.\nSo it is.\n",
    "mail": "From: ann@example.org\nSubject: Rain\n\nDear Ben,\n\nIt rains.\nI stay.\nAnd you?\n",
    "definitions": "dog: an animal\nmother-in-law: a mother\ncat: an animal\n",
    "song": "[Chorus]\nRain, rain, go away\n[Verse 1]\nCome again\nanother day\n",
    "footnotes": "[1] See the book.\n[Smith 1999] A paper.\n",
    "wiki": "== Rain ==\n'''Rain''' is water. [[File:a.png]]\n[[Cloud]]s are white.\n* one\n",
    "verses": "1:1 In the beginning God created the heaven.\n1:2 And the earth was dark.\n",
    "addresses": "https://example.org/a=b?c\nSee https://a.b\n",
    "Chinese": "今天下雨。\n注意：天气。\n",
}
STRUCTURED = {
    "JSON": '{\n  "hello": "It rains.",\n  "bye": {\n    "x": "Every one"\n  }\n}\n',
    "JSON lines": '{"id": 1, "text": "It rains."}\n{"id": 2, "text": "No."}\n',
    "desktop": "[Desktop Entry]\nName=Painter\nComment=It is raining now.\n",
    "Fluent": "hello = It is raining now.\nbye = Every { $who } is waiting.\n",
    "properties": "# x\nhello.world=It rains\nbye=No more\\\n  rain today\n",
    "Apple": '/* x */\n"hello" = "It rains";\n"bye" = "No";\n',
    "YAML": "en:\n  hello: It rains\n  bye: No\n",
    "flat YAML": "hello_world: It rains\nbye_all: No\nmenu.open: Open\n",
    "XML": '<?xml version="1.0"?>\n<a>\n  <b c="d">It rains</b>\n</a>\n',
    "SGML": '<doc id="1">\n<seg id="1">It rains.</seg>\n<seg id="2">No.</seg>\n</doc>\n',
    "HTML": "<!DOCTYPE html>\n<html>\n<body>\n<p>It rains.</p>\n<p>No, it\n</body></html>\n",
    "SubRip": "1\n00:00:01,000 --> 00:00:02,000\nIt rains.\nNever.\n",
    "MicroDVD": "{10}{25}It rains.\n{30}{40}No.\n",
    "lyrics": "[ti:Song]\n[00:12.00]It rains\n[00:15.30]All day\n",
    "PO": 'msgid "a"\nmsgstr ""\n',
    "CSV": '"id","text"\n"1","It rains"\n',
    "PHP": "<?php\nreturn [\n    'hello' => 'It rains',\n];\n",
    "code": "function f(x) {\n  const y = g(x);\n  return y;\n}\n",
}


@pytest.mark.parametrize("kind", TEXTS)
def test_texts_with_an_unknown_suffix_go_on(kind: str, tmp_path: Path) -> None:
    (tmp_path / "notes.foo").write_text(TEXTS[kind], encoding="utf-8")
    check_lines(str(tmp_path / "notes.foo"))


@pytest.mark.parametrize("kind", STRUCTURED)
def test_other_lines_with_an_unknown_suffix_are_refused(kind: str, tmp_path: Path) -> None:
    file = tmp_path / "notes.foo.gz"
    file.write_bytes(gzip.compress(b"\xef\xbb\xbf" + STRUCTURED[kind].encode()))
    with pytest.raises(UserError, match=rf"^{file} looks like an? .* add --plain\.$"):
        check_lines(str(file))
    for name in ("a.txt", "a.rst", "a", "a.en", "a.zh_CN", "a.deu_Latn", "a.tok"):
        (tmp_path / name).write_text(STRUCTURED[kind], encoding="utf-8")
        check_lines(str(tmp_path / name))


NAMED = [f"name_{letter}: It rains." for letter in "abcdefghij"]


@pytest.mark.parametrize(
    ("lines", "others", "expected"),
    [  # of lines with a mark of a format, and of other lines; one more of these, and the lines are texts
        (['{"a": 1}'] * 3, 3, JSON_FORMAT),
        (['"a","b"'] * 3, 3, CSV_FORMAT),
        (["<a>b</a>"] * 3, 3, XML_FORMAT),
        (["a = b"] * 3, 3, KEYS_FORMAT),
        (['msgid "a"', 'msgstr "b"', '"c"'], 3, MESSAGES_FORMAT),
        (["{10}{25}It rains."], 4, TIMES_FORMAT),
        (NAMED, 10, KEYS_FORMAT),
        ([*NAMED, NAMED[0]], 11, KEYS_FORMAT),  # 10 different names of 11
    ],
)
def test_a_share_of_the_lines_decides(
    lines: list[str], others: int, expected: ForeignFormat
) -> None:
    assert format_of_lines([*lines, *["It rains."] * others]) is expected
    assert format_of_lines([*lines, *["It rains."] * (others + 1)]) is None
    assert format_of_lines([]) is None


def test_names_that_recur_are_those_of_speakers() -> None:
    assert format_of_lines([*NAMED[:9], NAMED[0]]) is None
    assert format_of_lines(['"a"'] * 3) is None, "no message"


@pytest.mark.parametrize(("count", "is_json"), [(100, True), (99, False)])
def test_the_first_lines_decide(count: int, is_json: bool, tmp_path: Path) -> None:
    file = tmp_path / "a.foo"
    file.write_text('{"a": 1}\n# no\n\n' * count + "It rains.\n" * 300)
    if is_json:
        with pytest.raises(UserError, match="looks like a JSON file"):
            check_lines(str(file))
    else:
        check_lines(str(file))


def test_a_character_at_the_end_of_the_sample_is_not_cut(tmp_path: Path) -> None:
    (tmp_path / "a.foo").write_text('{"a": "ä"}\n' * 3 + "ä" * (1 << 18))
    with pytest.raises(UserError, match="looks like a JSON file"):
        check_lines(str(tmp_path / "a.foo"))


def test_only_files_are_looked_at(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.foo")
    for name in ("pipe.foo", "missing.foo"):
        check_lines(str(tmp_path / name))
    check_lines("-")
    (tmp_path / "latin.foo").write_bytes(b"caf\xe9\n")
    check_lines(str(tmp_path / "latin.foo"))  # the reader names the byte


def test_a_document_of_another_format_is_refused_by_its_name() -> None:
    with pytest.raises(UserError, match=r"^a\.sub can't be translated: it is a file of subtitles"):
        read_document(b"", "a.sub", "en", "de")
