"""Tests of transduce_lab/paper/table3.py."""

import json
import math
from dataclasses import replace

import pytest

from command_line import run
from transduce.system.errors import UserError
from transduce_lab.comparing.command import train_rows
from transduce_lab.paper import table2, table3

pytest.importorskip("scipy", reason="pip install 'transduce[lab]'")


@pytest.mark.parametrize("row", table3.VARIATIONS, ids=lambda row: row.name)
def test_the_parameters_of_table_3(row):
    """With 41,000 pieces all rows whose parameters are printed are the paper's, rounded; the big model's are near."""
    if row.name == "big":
        assert table3.parameters(row) == pytest.approx(row.printed.parameters, rel=0.01)
    elif row.printed.parameters:
        assert round(table3.parameters(row, 41_000)) == row.printed.parameters
        assert table3.parameters(row) == pytest.approx(row.printed.parameters, rel=0.07)


def test_every_row_changes_its_named_options():
    assert len({row.name for row in table3.VARIATIONS}) == len(table3.VARIATIONS)
    for row in table3.VARIATIONS[1:-1]:
        assert (row.model != table3.BASE) != bool(row.train), row.name


def test_scaling_keeps_heads_and_layers():
    small = table3.scaled(replace(table3.BASE, num_heads=4, d_k=128, d_v=128), 4)
    assert (small.d_model, small.d_ff, small.d_k, small.d_v, small.num_heads) == (
        128,
        512,
        32,
        32,
        4,
    )


@pytest.mark.slow
def test_table_3_shows_our_runs_beside_the_papers(given, tmp_path, monkeypatch):
    monkeypatch.setattr(table3, "VARIATIONS", [table3.VARIATIONS[0], table3.VARIATIONS[6]])
    # Two updates at a low rate look like a divergence.
    quick = {
        "train.learning_rate": 0.05,
        "train.warmup": 2,
    }
    compared = replace(table3.comparison({**given, **quick}), seeds=1)
    assert compared.options["train.average"] == 1, "section 6.2 does not average"
    table = table3.table(train_rows(compared, tmp_path, math.inf), tmp_path)
    paths = table.write(tmp_path)
    page = paths[0].read_text()
    assert (
        "| B | d_k=32 | 60 | 58.4 | 5.01 | 25.4 | 1 |" in page
        and "`transduce reproduce table3`" in page
    )
    assert len(paths) == 3 and all(path.stat().st_size > 1000 for path in paths[2:])
    rows = json.loads(paths[1].read_text())
    assert [len(row["runs"]) for row in rows] == [1, 1] and rows[1]["printed"]["bleu"] == 25.4
    empty = table3.table(train_rows(table3.comparison({}), tmp_path, 0), tmp_path)
    assert "–" in empty.parts[0].rows[0], "without a test text"


def test_rows_of_table_3_can_be_chosen(tmp_path, capsys):
    compared = table3.comparison({}, ["C-N2", "base"])
    assert [row.name for row in compared.rows] == ["base", "C-N2"] and compared.rows[1].options[
        "model.d_model"
    ] == 128
    status, printed, _ = run(
        capsys, "reproduce", "table3", "--out", tmp_path, "--rows", "C-N4", "D-P_drop0.0"
    )
    assert status == 0 and "P_drop=0.0" in printed and "N=2" not in printed
    assert [
        row["printed"]["bleu"] for row in json.loads((tmp_path / "table3.json").read_text())
    ] == [25.8, 25.3, 24.6]
    status, _, said = run(capsys, "reproduce", "table3", "--out", tmp_path, "--rows", "N=2")
    assert status == 2 and "Table 3 has no row N=2. Its rows are: base, A-h1-d_k512-d_v512," in said
    status, _, said = run(capsys, "reproduce", "table2", "--out", tmp_path, "--rows", "C-N2")
    assert status == 2 and "--rows is only for" in said


def test_options_that_rows_vary_can_not_be_set():
    for table, name, value in (
        (table2, "model.kind", "recurrent"),
        (table3, "model.d_model", 64),
        (table3, "train.label_smoothing", 0.15),
    ):
        with pytest.raises(UserError, match=f"The rows of the table differ in {name}"):
            table.comparison({name: value})
