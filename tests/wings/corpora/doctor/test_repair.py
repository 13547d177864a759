"""Tests of transduce/wings/corpora/doctor/repair.py."""

import json

import pytest

from transduce.system.errors import UserError
from transduce.text.pairs import read_pairs
from transduce.text.rules import (
    Rules,
)
from transduce.wings.corpora.doctor.audit import audit
from transduce.wings.corpora.doctor.repair import check_form, with_target, write_repaired


def test_a_file_that_changes_meanwhile_is_not_mended(corpus):
    before = audit(read_pairs([str(corpus)]), Rules(0, False))
    with corpus.open("a", encoding="utf-8") as file:
        file.write("one\tmore\n")
    for name in ("mended.tsv", "mended.jsonl"):
        mended, left = corpus.with_name(name), corpus.with_name("left.jsonl")
        with pytest.raises(UserError, match="changed during the check"):
            write_repaired([str(corpus)], ("en", "de"), before, [str(mended)], [left])
        assert not mended.exists() and not left.exists()


@pytest.mark.parametrize("suffix", [".srt", ".tsv", ".jsonl"])
def test_pairs_of_structured_files_need_one_output_file(suffix):
    with pytest.raises(UserError, match="Name one output that ends in"):
        check_form([f"a{suffix}", f"b{suffix}"], [f"c{suffix}", f"d{suffix}"])


@pytest.mark.parametrize("half", ["\\ud83d", "\\udcff"])
def test_replacing_a_target_keeps_other_json_keys(half):
    """Also half of a character, which JSON can say and UTF-8 can't."""
    line = f'{{"src": "{half} ä", "tgt": "b"}}'
    changed = with_target(line, "c", ("en", "de"))
    assert json.loads(changed.encode()) == {**json.loads(line), "tgt": "c"}
