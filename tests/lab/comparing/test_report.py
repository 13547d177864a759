"""Tests of transduce_lab/comparing/report.py."""

from pathlib import Path

import pytest

from transduce_lab.comparing import report, runs
from transduce_lab.comparing.command import train_rows
from transduce_lab.comparing.statistics import Difference

pytest.importorskip("scipy", reason="pip install 'transduce[lab]'")
from compared import ROWS, definition


@pytest.mark.parametrize(
    ("judge", "value", "told"),
    [("perplexity", -1.0, "better"), ("perplexity", 1.0, "worse"), ("BLEU", 1.0, "better")],
)
def test_a_lower_perplexity_and_a_higher_bleu_are_better(given, tmp_path, judge, value, told):
    table = definition(tmp_path, f"judge = '{judge}'\n" + ROWS, given)
    standing = train_rows(table, tmp_path, 0).rows[1]
    difference = Difference(value, 0.1, 9.0, 0.001)
    judged = standing._replace(differences={judge: difference}, p_value=0.004)
    assert report.verdict(judged, table) == f"{told} (p = 0.004)"
    assert report.verdict(judged._replace(p_value=0.2), table) == "not resolved"


def test_a_verdict_counts_the_runs_that_diverged_and_failed(given, tmp_path):
    table, made = definition(tmp_path, ROWS, given), runs.Result(Path(), "", "", 1, 1.0, 1.0, 1, 1)
    standing = train_rows(table, tmp_path, 0).rows[1]
    standing = standing._replace(runs=[made, made._replace(diverged=True)])
    assert report.verdict(standing, table) == "1 of 2 runs diverged"
    standing = standing._replace(failures={Path("seed-3/.failed"): "", Path("seed-4/.error"): ""})
    assert report.verdict(standing, table) == "2 of 4 runs diverged; 1 of 4 runs failed"
    assert (
        report.verdict(standing._replace(runs=[], failures={Path("seed-3/.failed"): ""}), table)
        == "diverged"
    )
