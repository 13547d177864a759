"""Tests of transduce/text/jsonl.py."""

import json

import pytest

from transduce.text import jsonl


@pytest.mark.parametrize("half", ["\\ud83d", "\\udcff"])
def test_replacing_a_target_keeps_other_json_keys(half):
    """Also half of a character, which JSON can say and UTF-8 can't."""
    line = f'{{"src": "{half} ä", "tgt": "b"}}'
    changed = jsonl.with_target(line, "c", ("en", "de"))
    assert json.loads(changed.encode()) == {**json.loads(line), "tgt": "c"}
