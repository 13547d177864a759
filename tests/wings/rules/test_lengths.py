"""Tests of transduce/wings/rules/lengths.py."""

from transduce.wings.rules.lengths import _sentences


def test_sentences_are_counted_without_blanks_behind_them():
    counts = {
        "你好。再见。": 2,
        "真的？！好": 1,
        "Dr.No a.b e.g": 1,
        "A. B! C?": 3,
        "ሰላም። ደህና።": 2,
        "「你好。」他说。": 1,
    }
    assert {text: _sentences(text) for text in counts} == counts
