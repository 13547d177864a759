"""Tests of transduce/text/tree_symbols.py."""

from transduce.text.tree_symbols import ALL_MARKS, are_of_trees, mark


def test_the_marks_of_words_begin_again_after_32():
    assert [mark(index) for index in (0, 1, 31, 32, 95)] == ["0)", "1)", "31)", "0)", "31)"]
    assert ALL_MARKS.split(" ") == [f"{number})" for number in range(32)]


def test_a_vocabulary_with_all_marks_is_that_of_a_parser():
    symbols = [*ALL_MARKS.split(" "), ")", "(NP"]
    assert are_of_trees(iter(symbols)) and are_of_trees(symbols[:-1])
    for missing in (")", "0)", "31)"):
        assert not are_of_trees([each for each in symbols if each != missing])
