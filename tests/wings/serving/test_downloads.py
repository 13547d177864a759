"""Tests of transduce/wings/serving/downloads.py."""

import pytest

pytest.importorskip("fastapi", reason="pip install 'transduce[serve]'")
from transduce.wings.serving.downloads import Downloads


def test_documents_are_forgotten() -> None:
    now = 0.0
    kept = Downloads(2, 10, lambda: now)
    first, second, third = (kept.add(f"{i}.txt", "zu", b"%d" % i) for i in range(3))
    assert [found and found.content for found in map(kept.get, (first, second, third))] == [
        None,
        b"1",
        b"2",
    ]
    assert kept.get(second).name == "1.zu.txt"
    assert (
        kept.get(kept.add("a\\..\\b.vtt", "zu", b"")).name
        == kept.get(kept.add("../b.vtt", "zu", b"")).name
        == "b.zu.vtt"
    )
    now = 11.0
    assert kept.get(second) is kept.get(third) is None
