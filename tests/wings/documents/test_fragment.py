"""Tests of transduce/wings/documents/fragment.py."""

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transduce.text.formats import PRESERVED_TEXT
from transduce.wings.documents.fragment import Outline, read_fragment, with_marks, without_marks

NAMES = st.sampled_from(["p", "b", "x", "div"])
FRAGMENTS = st.recursive(
    st.sampled_from(["A dog", " ", "\n", "runs.", "&amp;", "<x/>", "<!-- note -->"]),
    lambda inner: st.builds(
        lambda name, parts: f"<{name}>{''.join(parts)}</{name}>",
        NAMES,
        st.lists(inner, max_size=4),
    ),
)
SOUP = st.lists(
    st.sampled_from(["<p>", "</p>", "<b", ">", "</b>", "a", " ", "<x/>", "<![CDATA[", "&"])
)


def texts(fragment: str, ignored: tuple[str, ...] = (), **outline: Any) -> list[str]:
    marked = with_marks(fragment, ignored)
    return list(map(without_marks, read_fragment(marked, Outline(**outline), PRESERVED_TEXT).texts))


@pytest.mark.parametrize(
    ("fragment", "outline", "expected"),
    [
        ("A <b>dog</b> runs.", {}, ["A <b>dog</b> runs."]),
        ("<p>One.</p>\n<p>A <b>dog</b>.</p>", {}, ["One.", "A <b>dog</b>."]),
        ("<d><m><t>One</t></m><p> Two. </p></d>", {}, ["One", "Two."]),
        ("<b>A</b> <i>dog</i>", {}, ["A", "dog"]),
        ("<p><b>A</b> <i>dog</i></p>", {"inline": ("b", "i")}, ["<b>A</b> <i>dog</i>"]),
        ("<p><b>A</b> <i>dog</i></p>", {"inline": ("b",)}, ["<b>A</b> <i>dog</i>"]),
        ("A <b><i>dog</i></b> runs", {}, ["A <b><i>dog</i></b> runs"]),
        ("<p>A</p> <p>dog</p>", {"detects": False}, ["<p>A</p> <p>dog</p>"]),
        ("<p>A</p> <q>dog</q>", {"detects": False, "splitting": ("p",)}, ["A", "<q>dog</q>"]),
        ("A <par>dog</par> runs", {"splitting": ("par",)}, ["A", "dog", "runs"]),
        ("One<br/>two", {"splitting": ("br",)}, ["One", "two"]),
        ("<p/><p> </p><!-- no --><![CDATA[no]]>", {}, []),
        ("", {}, []),
    ],
)
def test_texts_are_found_in_the_elements_that_hold_them(
    fragment: str, outline: dict[str, Any], expected: list[str]
) -> None:
    assert texts(fragment, **outline) == expected


def test_ignored_elements_are_no_texts() -> None:
    assert texts("<p>A</p><x>dog</x><p>runs</p>", ("x",)) == ["A", "runs"]
    assert texts("<x><p>A</p></x>", ("x",)) == []
    assert texts("A <x>dog</x> runs", ("x",)) == ["A <x>dog</x> runs"]
    assert texts("<x>A</x> <p>dog</p>", ("x",)) == ["dog"]  # the root has no text of its own


def test_only_elements_of_that_name_are_marked() -> None:
    marked = with_marks("<x id='1'><xy/></x><x/>", ("x",))
    assert marked.count("kept-by-transduce") == 2
    assert "<xy/>" in marked and "</x>" in marked


@given(st.one_of(FRAGMENTS, SOUP.map("".join)), st.sets(NAMES), st.sets(NAMES), st.booleans())
def test_untranslated_fragments_stay_as_they_are(
    fragment: str, ignored: set[str], splitting: set[str], detects: bool
) -> None:
    marked = with_marks(fragment, ignored)
    assert without_marks(marked) == fragment
    outline = Outline(detects, splitting, ignored)
    document = read_fragment(marked, outline, PRESERVED_TEXT)
    assert document.write(document.texts).decode() == marked


@given(FRAGMENTS)
def test_each_text_outside_tags_belongs_to_one_slot(fragment: str) -> None:
    document = read_fragment(fragment, Outline(), PRESERVED_TEXT)
    for word in ("A dog", "runs."):
        assert sum(text.count(word) for text in document.texts) == fragment.count(word)
    ends = [(slot.begin, slot.end) for slot in document.slots]
    assert all(end <= begin for (_, end), (begin, _) in pairwise(ends))
