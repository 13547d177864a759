"""A translation through a third language: links, scores and flags by hand."""

import pytest

from transduce.decoding.pivot import hops_with_options, joined, relay, through
from transduce.decoding.types import (
    CUT,
    LOOP,
    TERM,
    Guide,
    Link,
    MemoryMatch,
    Term,
    Translation,
    TranslationOptions,
)


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


def test_links_are_sorted_by_target_and_only_words_that_overlap_are_linked():
    first = [Link((4, 6), (0, 3), 0.5), Link((0, 3), (3, 6), 0.25)]  # the pivot's words touch
    second = [Link((3, 6), (0, 2), 1 / 3), Link((0, 3), (2, 5), 1.0), Link((2, 4), (6, 7), 0.5)]
    found = through(
        Translation("abcdef", -1.0, (), links=tuple(first)),
        Translation("xxyyy z", -1.0, (), links=tuple(second)),
    )
    assert found.links == (
        ((0, 3), (0, 2), 0.0833),
        ((4, 6), (2, 5), 0.5),
        ((0, 3), (6, 7), 0.125),
        ((4, 6), (6, 7), 0.25),
    )


def test_both_hops_give_flags_alternatives_and_scores():
    links = (Link((0, 1), (0, 1), 1.0),)
    first = Translation("p", -1.0, ("p1",), flags=(LOOP, CUT), confidence=0.5, links=links)
    other = Translation("y", -4.0, ("y1",), flags=(LOOP,), confidence=0.25, links=links)
    last = Translation("x", -2.0, ("x1",), (other,), (CUT, TERM), links, 0.8)
    found = through(first, last)
    assert found.flags == (LOOP, CUT, TERM)
    assert (found.text, found.score, found.tokens) == ("x", -3.0, ("x1",))
    assert found.confidence == pytest.approx(0.4) and found.links == links
    [alternative] = found.alternatives
    assert (alternative.text, alternative.score, alternative.flags) == ("y", -5.0, (LOOP,))
    assert alternative.confidence == pytest.approx(0.125) and alternative.links == links
    assert [(hop.text, hop.score, hop.flags) for hop in found.hops] == [
        ("p", -1.0, (LOOP, CUT)),
        ("x", -2.0, (CUT, TERM)),
    ]
    assert not any(hop.links or hop.alternatives for hop in found.hops)
    for one, two in ((None, 0.5), (0.5, None)):
        pair = [Translation("text", -1.0, (), confidence=its) for its in (one, two)]
        assert through(*pair).confidence is None


def test_each_hop_translates_what_the_one_before_made():
    options = TranslationOptions(n_best=3, align=True, glossary=(Term("a", "b"),), sentences=True)
    calls = []

    def translate(hop, texts, its, guides):
        calls.append((hop, list(texts), its, guides))
        return [Translation(f"{hop}({text})", -1.0, ()) for text in texts]

    guides = [Guide(MemoryMatch("s", "d", 0.8, "m.tsv:1"), prefix="d"), Guide()]
    found = relay(["one", "two"], ["s", "t"], options, translate, guides)
    into = options._replace(n_best=1, glossary=(Term("a", "a"),), glossary_exact=True)
    prefixes = [Guide(prefix="d"), Guide()]
    assert calls == [
        ("one", ["s", "t"], into, None),
        ("two", ["one(s)", "one(t)"], options, prefixes),
    ]
    assert [(each.text, each.score) for each in found] == [
        ("two(one(s))", -2.0),
        ("two(one(t))", -2.0),
    ]
    assert hops_with_options(["only"], options, guides) == [("only", options, guides)]
    alone = [Translation("x", -1.0, ())]
    assert joined([alone]) is alone
