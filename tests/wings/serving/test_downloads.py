"""Tests of transduce/wings/serving/downloads.py."""

import re

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
    assert kept.get(second).name == "1.zu.txt" and len({first, second, third}) == 3
    assert (
        kept.get(kept.add("a\\..\\b.vtt", "zu", b"")).name
        == kept.get(kept.add("../b.vtt", "zu", b"")).name
        == "b.zu.vtt"
    )
    now = 10.0
    fourth = kept.add("A.TXT", "zu", b"3")
    assert re.fullmatch(r"[\w-]{22}\.txt", fourth), "128 random bits"
    assert kept.get(fourth).name == "A.zu.TXT"
    fifth = kept.add("b.vtt", "zu", b"4")
    now = 20.0
    assert kept.get(fourth) and kept.get(fifth), "until the last second"
    now = 20.1
    assert kept.get(fourth) is kept.get(fifth) is None and not kept.kept
