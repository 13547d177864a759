"""Tests of transduce_lab/comparing/operations.py."""

import pytest

from transduce_lab.comparing.definition import read
from transduce_lab.comparing.operations import updates_for

pytest.importorskip("scipy", reason="pip install 'transduce[lab]'")
from compared import TABLES


@pytest.mark.parametrize(("name", "total"), [("modern", 1.5e13), ("separable", 1e14)])
def test_rows_of_equal_cost_have_their_number_of_updates(name, total):
    (path,) = [path for path in TABLES if path.stem == name]
    table = read(path, {})
    for row in table.rows:
        options = {**table.options, **row.options}
        assert options["train.steps"] == updates_for(total, options)
