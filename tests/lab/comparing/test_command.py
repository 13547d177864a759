"""Tests of transduce_lab/comparing/command.py."""

import math

import pytest

from transduce.system.errors import UserError
from transduce_lab.comparing.command import train_rows

pytest.importorskip("scipy", reason="pip install 'transduce[lab]'")
from compared import ROWS, definition


def test_the_runs_of_another_table_are_refused(given, tmp_path):
    out = tmp_path / "out"
    train_rows(
        definition(tmp_path, "seeds = 1\noptions.train.steps = 2\n" + ROWS, given),
        out,
        math.inf,
    )
    with pytest.raises(UserError, match=r"was made with train.steps = 2, not 3"):
        train_rows(
            definition(tmp_path, "seeds = 1\noptions.train.steps = 3\n" + ROWS, given),
            out,
            1.0,
        )
    more = "seeds = 1\noptions.train.steps = 2\n" + ROWS + "third = 'train.warmup=9'\n"
    assert len(train_rows(definition(tmp_path, more, given), out, 0).rows[0].runs) == 1, (
        "rows may be added"
    )


@pytest.mark.parametrize(
    ("change", "per_word"),
    [("data.vocab_size=90", True), ("data.joint=false", True), ("model.dropout=0.2", False)],
)
def test_rows_with_other_vocabularies_are_compared_per_word(given, tmp_path, change, per_word):
    own = {name: value for name, value in given.items() if name != "data.vocab_size"}
    table = definition(tmp_path, ROWS + f"other = '{change}'\n", own)
    assert train_rows(table, tmp_path, 0).per_word == per_word
