"""Tests of transduce/wings/serving/command.py."""

import pytest

pytest.importorskip("fastapi", reason="pip install 'transduce[serve]'")
from transduce.wings.serving.command import _origins


def test_origins_are_written_as_browsers_write_them() -> None:
    given = ["https://Example.org:443/", "http://a.b:80", "http://a.b:8080", "https://a.b:80", "*"]
    assert _origins(given) == [
        "https://example.org",
        "http://a.b",
        "http://a.b:8080",
        "https://a.b:80",
        "*",
    ]
