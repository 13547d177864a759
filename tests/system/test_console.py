"""What is printed and written for people: tables."""

import io
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transduce.system.console import markdown_table
from transduce.system.wrapping import fit

CELLS = st.text(st.characters(exclude_categories=["C", "Z"], exclude_characters="\\"), min_size=1)
ROWS = st.integers(1, 4).flatmap(
    lambda count: st.lists(st.lists(CELLS, min_size=count, max_size=count), min_size=1)
)


@given(ROWS)
def test_each_cell_of_a_markdown_table_can_be_read_back(rows):
    headings, rule, *lines = (
        [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        for line in markdown_table(rows[0], rows[1:]).split("\n")
    )
    assert [headings, *lines] == rows
    assert rule == ["---"] * len(headings)


class Terminal(io.StringIO):
    """A stream that is a terminal."""

    def isatty(self) -> bool:
        return True


@given(st.lists(st.text("ab", max_size=30), max_size=12).map(" ".join))
def test_on_a_terminal_lines_are_wrapped_between_words(text):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", "40")
        lines = fit(text, Terminal()).split("\n")
    assert " ".join(lines).split() == text.split()
    assert all(len(line) <= 40 for line in lines)
    assert fit(text, io.StringIO()) == text
