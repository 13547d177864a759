"""Tests of tools/write_patterns.py; tests/wings/export/test_web.py tests what the patterns match."""

from write_patterns import FILE, patterns


def test_the_patterns_of_the_page_are_those_of_our_texts() -> None:
    assert FILE.read_text(encoding="utf-8") == patterns(), "run python tools/write_patterns.py"
