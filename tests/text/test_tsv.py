"""Tests of transduce/text/tsv.py."""

import pytest

from text_files import write
from transduce.system.errors import UserError
from transduce.text.formats import CorpusFile
from transduce.text.pairs import read_pairs
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


@pytest.mark.parametrize(
    ("lines", "columns"),
    [
        (["1276\tOne try.\t373330\tEin Versuch.", "12\t7\t13\t7"], "2 and 4"),  # Tatoeba
        (["1.2046\tOne try.\tEin Versuch.", "1.1\t7\t7"], "2 and 3"),  # CCMatrix
        (["http://a.org/1\thttp://a.de/ www.a.de/2\tOne try.\tEin Versuch.\t0.7"] * 2, "3 and 4"),
        (["12\t13\tOne try.\tEin Versuch."], "3 and 4"),
        (["One try.\tEin Versuch.\tCC-BY 2.0 #1 & #2"], ""),  # manythings.org
        (["One try.\tEin Versuch.\t0.83", "7.5\t7.5\t0.8"], ""),
        (["12\tzwölf\ta number", "13\tdreizehn\tanother number"], ""),  # a glossary
        (["1.5\t1,5", "2.5\t2,5"], ""),
        (["7\t7\ta comment"], ""),
    ],
)
def test_columns_of_scores_addresses_and_numbers_are_not_read(tmp_path, lines, columns, capsys):
    name = f"{len(lines)}-{len(lines[0])}.tsv"  # the message is printed once for each file
    file = write(tmp_path, name, "".join(f"{line}\n" for line in lines))
    first, second = map(int, (columns or "1 and 2").split(" and "))
    cells = [line.split("\t") for line in lines]
    read = [pair[:2] for pair in read_pairs([file])]
    assert read == [(row[first - 1], row[second - 1]) for row in cells]
    said = " ".join(capsys.readouterr().err.split())
    named = f"{name}: the texts are read from the columns {columns}."
    assert named in said if columns else not said


def test_the_first_hundred_lines_show_which_columns_hold_texts(tmp_path, capsys):
    scores = "0.5\ta\tb\n"
    words = "x\ta\tb\n"
    for lines, expected in ((scores * 99 + words, "x"), (scores * 100 + words, "a")):
        assert read(tmp_path, lines)[-1][0] == expected
    comment = "# Glossary in tab-separated format -*- coding: utf-8 -*-\n"
    assert [pair[0] for pair in read(tmp_path, comment + "\n" + scores)] == ["", "", "a"]
    said = " ".join(capsys.readouterr().err.split())
    assert said.endswith("a.tsv: the texts are read from the columns 2 and 3."), "once for a file"


@pytest.mark.parametrize("cell", ["0.5", "-.5", "+1.25e-7", "http://a", "www.b.de https://c/d e"])
def test_scores_and_addresses(tmp_path, cell):
    is_text = cell.endswith(" e")
    assert read(tmp_path, f"{cell}\ta\tb\n") == [(cell, "a", 1) if is_text else ("a", "b", 1)]
