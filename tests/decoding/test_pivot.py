"""A translation through a third language: links by hand."""

import pytest

from transduce.decoding.pivot import through
from transduce.decoding.types import Link, Translation


def test_links_through_a_pivot_are_joined_by_its_words():
    """Source words 0-2 and 3-5, pivot words 0-4, 5-9 and 10-12, target words 0-3 and 4-7."""
    first = [Link((0, 2), (0, 4), 0.5), Link((0, 2), (5, 9), 0.9), Link((3, 5), (10, 12), 0.4)]
    second = [Link((0, 4), (0, 3), 0.8), Link((5, 9), (0, 3), 0.2), Link((5, 9), (4, 7), 0.6)]
    found = through(
        Translation("pivo text is", -1.0, (), links=tuple(first), confidence=0.5),
        Translation("the end", -2.0, (), links=tuple(second), confidence=0.4),
    )
    assert found.links == (
        ((0, 2), (0, 3), pytest.approx(0.4)),
        ((0, 2), (4, 7), pytest.approx(0.54)),
    )
    assert (found.text, found.score, found.confidence) == ("the end", -3.0, pytest.approx(0.2))
