"""Blanks between sentences of scripts with and without blanks."""

import pytest

from transduce.inline.gaps import target_gaps


@pytest.mark.parametrize(
    ("gap", "sources", "translated", "expected"),
    [
        ("", ["你好。", "再见。"], ["Hello.", "Bye."], " "),
        (" ", ["Hello.", "Bye."], ["你好。", "再见。"], ""),
        ("", ["你好。", "再见。"], ["こんにちは。", "じゃあね。"], ""),
        (" ", ["Hello.", "Bye."], ["Hallo.", "Tschüss."], " "),
        ("  ", ["Hello.", "Bye."], ["你好。", "再见。"], "  "),
        ("\n", ["Hello.", "Bye."], ["你好。", "再见。"], "\n"),
        (" ", ["Hello.", "Bye."], ["你好。", "Bye."], " "),
        (" ", ["Hello.”", "Bye."], ["你好。”", "“再见。"], ""),
        (" ", ["你好。", "再见。"], ["你好!", "再见!"], " "),  # the source has this blank, too
        ("", ["Hello", "Bye."], ["Hallo", "Tschüss."], ""),  # within a word
        ("", ["你好。", "再见。"], ["你好。", "再见。"], ""),
        ("", ["你好。", "<br>"], ["Hello.", "<br>"], ""),
        ("", ["你好。", "再见。"], ["Hello.", ", bye."], ""),
        ("", ["你好。", "再见。"], ["'Hello.'", "Bye."], " "),
        ("", ["你好。", "再见。"], ['"Hello."', '"Bye."'], " "),
        ("", ["你好。", "再见。"], ["Hello (", "Bye."], ""),
        ("", ["你好。", "OK。"], ["Hello.", "OK。"], " "),  # a copied text, but no tag
        ("", ["你好。", "<br>"], ["Hello.", "<b>x</b>"], " "),  # a tag, but no copied one
        ("", ["你好。", "<br>"], ["Hello.", "&lt;br/&gt;"], " "),
        ("", ["سلام؟", "نعم"], ["Hello?", "Yes"], " "),
        (" ", ["Hello.", "Bye."], ["你好。”’…", "“‘—再见。"], ""),
        (" ", ["Hello.", "Bye."], ["Hallo.", "再见。"], " "),
        (" ", ["。", "。"], ["你好。", "再见。"], " "),
        (" ", ["Hello.", "Bye."], ["你好Ａ", "再见。"], " "),
    ],
)
def test_a_gap_changes_where_only_one_script_needs_a_blank(gap, sources, translated, expected):
    assert target_gaps(["<", gap, ">"], sources, translated) == ["<", expected, ">"]


def test_each_border_has_its_own_gap():
    gaps = ["", "", " ", "x"]
    found = target_gaps(gaps, ["一。", "二。", "Three."], ["One.", "Two.", "Three."])
    assert found == ["", " ", " ", "x"] and gaps == ["", "", " ", "x"]
    assert target_gaps(["a", "b"], ["x"], ["y"]) == ["a", "b"]
