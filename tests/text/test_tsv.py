"""Tests of transduce/text/tsv.py."""

import pytest

from text_files import write
from transduce.system.errors import UserError
from transduce.text.formats import CorpusFile
from transduce.text.tsv import read_tsv


def read(folder, text, *, lenient=False):
    file = write(folder, "a.tsv", text)
    return list(read_tsv(CorpusFile(file, ("en", "de"), lenient)))


def test_the_first_two_columns_are_a_pair(tmp_path):
    assert read(tmp_path, "\ufeffa\tb\n\nc \t d\te\tf\n \n\tx\ny\t\n") == [
        ("a", "b", 1),
        ("", "", 2),
        ("c ", " d", 3),
        (" ", "", 4),
        ("", "x", 5),
        ("y", "", 6),
    ]
    comment = "# Glossary in tab-separated format -*- coding: utf-8 -*-\n"
    assert read(tmp_path, comment + "a\tb\n") == [("", "", 1), ("a", "b", 2)]
    with pytest.raises(UserError, match=r"a\.tsv:2: expected 2 columns, found 1"):
        read(tmp_path, "a\tb\n" + comment)


def test_only_the_first_line_needs_a_tab_if_lenient(tmp_path):
    assert read(tmp_path, "a\tb\nc\n", lenient=True) == [("a", "b", 1), ("c", "", 2)]
    for lenient in (True, False):
        with pytest.raises(UserError, match=r"a\.tsv:1: expected 2 columns, found 1"):
            read(tmp_path, "a\nc\td\n", lenient=lenient)


def test_sentence_numbers_are_no_texts(tmp_path):
    assert read(tmp_path, "12\ta\t34\tb\n") == [("a", "b", 1)]
    for line in ("12\ta\tx\tb", "x\ta\t34\tb", "12\t34"):
        assert read(tmp_path, line) == [(*line.split("\t")[:2], 1)]
    assert read(tmp_path, "a\tb\n12\ta\t34\tb\n")[1] == ("12", "a", 2)
