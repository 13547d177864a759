"""Lengths by hand, and the faults that they show."""

import numpy as np
import pytest

from transduce.wings.rules.lengths import (
    Scale,
    _breaks_off,
    _middle_and_width,
    _sentences,
    deviations,
    faults_at_ends,
    scale_of,
)


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


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A dog", True),
        ("A dog 3", True),
        ("A dog,", True),
        ("A dog –", True),
        ("A (dog", True),
        ("A dog.", False),
        ("A dog. ", False),
        ("A dog?“", False),
        ("“A dog”", True),
        ("A dog)", True),
        ("A dog:", False),
        ("A dog\t\n", True),
        *((f"A dog {sign}", True) for sign in ",;'’(–-"),
        *((f"A dog.{sign}", False) for sign in ' \u00a0\u202f*`"»”“)]'),
        ("***", False),
    ],
)
def test_a_text_without_an_end_breaks_off(text, expected):
    assert _breaks_off(text) is expected


def test_the_middle_is_that_of_values_without_outliers():
    middle, width = _middle_and_width(np.array([0.0, 1, 2, 3, 4, 500, 501]))
    # First: median 3, deviations of 2; then the values up to 4.
    assert (middle, width) == (2.0, pytest.approx(1.4826 * 1))
    # First: median 4, width 5.9; then the values up to 13, and no third time.
    middle, width = _middle_and_width(np.array([0.0, 1, 2, 3, 4, 13, 41, 56, 59]))
    assert (middle, width) == (2.5, pytest.approx(1.4826 * 1.5))
    assert _middle_and_width(np.array([7.0] * 5)) == (7.0, 0.05)


def test_deviations_by_hand():
    scale = Scale(2.0, (0.5, 0.1), (1.0, 2.0))
    # Ratio: log(8 / 5) and log(3 / 43); difference: (8 - 5) / sqrt(6.5) and -40 / sqrt(23).
    found = deviations(np.array([1, 20]), np.array([5, 0]), scale)
    first = (np.log(8 / 5) - 0.5) / 0.1, (3 / np.sqrt(6.5) - 1) / 2
    second = (np.log(3 / 43) - 0.5) / 0.1
    assert found.tolist() == pytest.approx([max(first, key=abs), second])
    wide = Scale(2.0, (0.5, 10.0), (1.0, 2.0))
    assert deviations(np.array([20]), np.array([0]), wide).tolist() == pytest.approx(
        [(-40 / np.sqrt(23) - 1) / 2]
    )


def pairs(count: int) -> tuple[list[str], list[str]]:
    """Targets of about 2 characters for each one of the source.

    Of 100, one target breaks off, two have one more sentence, and one source has two more. Another target is longer by
    1.3 to 1.5 standard deviations; it breaks off and has one more sentence.
    """
    sources, targets = [], []
    for i in range(count):
        length = 20 + i % 5
        end = {65: ". A. A."}.get(i % 100, ".")
        sources.append("a" * (length - len(end)) + end)
        end = {50: "b", 60: ". B.", 70: ". B.", 80: ". B. b"}.get(i % 100, ".")
        target_length = 2 * length + (2 if i % 100 == 80 else i % 3 - 1)
        targets.append("b" * (target_length - len(end)) + end)
    return sources, targets


def test_the_statistics_of_a_corpus_by_hand():
    scale = scale_of(*pairs(1000))
    assert scale.growth == pytest.approx(2.0)
    a = 2 * 22 + 3
    assert scale.ratio[0] == pytest.approx(0, abs=1e-9)
    assert scale.ratio[1] == 0.05
    assert scale.difference == (pytest.approx(0), pytest.approx(1.4826 / np.sqrt(a), rel=0.05))
    # Of 990 pairs of usual length. Either side may break off or have more sentences, so half of them are expected.
    assert scale.breaking == (10 / 2 + 1) / (990 + 2)
    assert scale.more_sentences == (1.0, (30 / 2 + 1) / 992, (10 / 2 + 1) / 992, 1 / 992)


def test_few_pairs_have_no_statistics():
    sources, targets = pairs(200)
    assert scale_of(sources, targets) is not None
    assert scale_of([*sources[1:], " "], [*targets[1:], "b"]) is None
    assert scale_of([*sources, "a"], [*targets, ""]) == scale_of(sources, targets)


SCALE = Scale(1.0, (0.0, 1.0), (0.0, 1.0), 0.01, (1.0, 0.1, 0.01, 0.001))


@pytest.mark.parametrize(
    ("shorter", "longer", "deviation", "expected"),
    [
        ("Cut", "Whole.", 2.7, (True, False)),  # 2.7² + 2 · 4.6 > 16
        ("Cut", "Whole.", 2.5, (False, False)),
        ("Cut", "Whole", 9.0, (False, False)),
        ("Whole.", "Cut", 9.0, (False, False)),
        ("A.", "A. B.", 3.4, (False, True)),  # 3.4² + 2 · 2.3 > 16
        ("A.", "A. B.", 3.3, (False, False)),
        ("A.", "A. B. C.", 2.7, (False, True)),
        ("A.", "A. B. C.", 2.5, (False, False)),
        ("A.", "A. B. C. D. E.", 1.5, (False, True)),  # as three more: 1.5² + 2 · 6.9 > 16
        ("A.", "A. B. C. D. E.", 1.4, (False, False)),
        ("A. B.", "A.", 9.0, (False, False)),
        ("Cut", "A. B. C.", 2.7, (True, True)),
    ],
)
def test_a_rare_fault_needs_a_smaller_deviation(shorter, longer, deviation, expected):
    assert faults_at_ends(shorter, longer, deviation, SCALE) == expected
