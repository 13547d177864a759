"""Subtitles are paired by time, and pages by block."""

from pathlib import Path

import pytest

from transduce.system.errors import UserError
from transduce.wings.documents.parallel_documents import read_page_pairs, read_subtitle_pairs


def cues(path: Path, *texts: tuple[float, float, str]) -> str:
    """A file of subtitles, with times in seconds."""
    blocks = (
        f"{n}\n00:00:{begin:06.3f} --> 00:00:{end:06.3f}\n{text}\n"
        for n, (begin, end, text) in enumerate(texts, 1)
    )
    path.write_text("\n".join(blocks))
    return str(path)


def paired(
    tmp_path: Path, sources: list[tuple[float, float, str]], targets: list[tuple[float, float, str]]
):
    files = cues(tmp_path / "a.srt", *sources), cues(tmp_path / "b.srt", *targets)
    return list(read_subtitle_pairs(*files))


def test_cues_that_overlap_in_time_are_pairs(tmp_path):
    sources = [(1, 3, "one"), (4, 6, "two"), (7, 9, "three"), (20, 22, "five")]
    targets = [
        (1.5, 3.5, "eins"),
        (4, 5, "zwei"),
        (5, 6, "und"),
        (10, 12, "vier"),
        (20, 22, "fünf"),
    ]
    assert paired(tmp_path, sources, targets) == [
        ("one", "eins", 3),
        ("two", "zwei und", 7),
        ("three", "", 11),
        ("", "vier", 15),
        ("five", "fünf", 15),
    ]


@pytest.mark.parametrize(
    ("target", "is_pair"),
    [
        ((2.0, 4.0), False),
        ((1.99, 4.0), True),
        ((2.0, 3.0), True),
        ((0.0, 1.5), False),
        ((2.4, 2.9), True),
        ((3.0, 5.0), False),
    ],
)
def test_cues_overlap_if_half_of_the_shorter_is_shared(tmp_path, target, is_pair):
    sources, targets = [(1, 3, "a"), (50, 51, "x")], [(*target, "b"), (50, 51, "y")]
    found = [pair[:2] for pair in paired(tmp_path, sources, targets)]
    assert ("x", "y") in found and (("a", "b") in found) is is_pair


def test_several_cues_are_joined_if_one_overlaps_with_all_of_them(tmp_path):
    sources, targets = [(1, 3, "a"), (3, 5, "b"), (5, 7, "c")], [(1, 5, "x"), (5, 7, "y")]
    assert [pair[:2] for pair in paired(tmp_path, sources, targets)] == [("a b", "x"), ("c", "y")]
    assert [pair[:2] for pair in paired(tmp_path, targets, sources)] == [("x", "a b"), ("y", "c")]


def test_subtitles_of_different_films_are_refused(tmp_path):
    with pytest.raises(UserError, match=r"No texts of .*a.srt and .*b.srt appear at the same time"):
        paired(tmp_path, [(1, 3, "a")], [(4, 5, "b")])
    assert paired(tmp_path, [], [(1, 2, "b")]) == [("", "b", 3)]
    assert paired(tmp_path, [(1, 2, "a")], []) == [("a", "", 3)]


def pages(tmp_path: Path, source: str, target: str) -> list[tuple[str, str, int]]:
    for name, text in (("a.html", source), ("b.html", target)):
        (tmp_path / name).write_text(text)
    return list(read_page_pairs(str(tmp_path / "a.html"), str(tmp_path / "b.html")))


def test_blocks_of_two_pages_are_pairs(tmp_path):
    source = "<h1>One</h1>\n<p>Two <b>bold</b><img alt='three'></p><pre>x</pre>"
    target = "<h1>Eins</h1><p>Zwei <b>fett</b><img alt='drei'></p><pre>y</pre>"
    assert pages(tmp_path, source, target) == [
        ("One", "Eins", 1),
        ("Two bold", "Zwei fett", 2),
        ("three", "drei", 2),
    ]
    with pytest.raises(
        UserError, match=r"a.html has 3 texts and .*b.html has 2\. Two pages are paired"
    ):
        pages(tmp_path, source, target.replace("<img alt='drei'>", ""))
    with pytest.raises(UserError, match=r"a.html:1 and .*b.html:2 do not match"):
        pages(tmp_path, "<p>a</p><img alt='b'>", "<p>a\n<img alt='c'></p>")
