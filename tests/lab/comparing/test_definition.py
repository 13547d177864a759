"""Tests of transduce_lab/comparing/definition.py."""

import re

import pytest

from transduce_lab.comparing.definition import read

pytest.importorskip("scipy", reason="pip install 'transduce[lab]'")
from compared import ROOT, TABLES, definition

GUIDE = ROOT / "docs/guides/compare.md"


@pytest.mark.parametrize("path", TABLES, ids=lambda path: path.stem)
def test_each_table_of_the_benchmarks_can_be_read(path):
    assert len(read(path, {}).trained) > 1


def test_the_tables_of_the_guide_can_be_read(tmp_path):
    tables = re.findall(r"```toml\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
    assert tables and all(definition(tmp_path, text, {}).trained for text in tables)
