"""What the pages about the paper conclude follows from the records of the runs."""

import importlib.util
import math
import statistics
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

pytest.importorskip("scipy", reason="pip install 'transduce[lab]'")
from transduce_lab.comparing.statistics import quantile

ROOT = Path(__file__).parents[3]
PAGES = ROOT / "benchmarks" / "results" / "paper"


@pytest.fixture(scope="module")
def script() -> ModuleType:
    """The script benchmarks/recompute.py."""
    path = ROOT / "benchmarks" / "recompute.py"
    spec = importlib.util.spec_from_file_location("recompute", path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(path.parent)
        spec.loader.exec_module(module)
    return module


def test_conclusions_of_table_2(script: ModuleType) -> None:
    rows = script.read_runs()
    page = " ".join((PAGES / "table2.md").read_text(encoding="utf-8").split())
    for name, runs in rows.items():
        norms = [run.gradient_norms() for run in runs]
        if not name.endswith("-RL"):
            continue
        stages = zip(rows[name.removesuffix("-RL")], runs, strict=True)
        likelihood = [script.likelihood_norm(*stage) for stage in stages]
        assert 0.8 < np.mean(likelihood) / np.mean(norms) < 1.5, "the likelihood drives the update"
    shares = {name: f"{runs[0].warmup_share:.0%}" for name, runs in rows.items()}
    assert shares["Transformer"] == "58%" and "This is 58 % of the Transformer's updates" in page
    assert shares["recurrent-with-experts-MoE"] == "70%" and "70 % of those of MoE" in page
    revisions = [run.revision for runs in rows.values() for run in runs]
    dirty = sum("132aa622-dirty" in revision for revision in revisions)
    assert f"the records of {dirty} of the {len(revisions)} runs say 132aa622-dirty" in page


def test_verdicts_of_table_2(script: ModuleType) -> None:
    """Per token, and corrected as if the ensemble were the least of all differences."""
    found = script.p_values(script.read_runs())
    assert found["recurrent-with-experts-MoE"] > 0.05, "not resolved"
    assert found["separable-convolutions"] < 0.001 and found["convolutional-ByteNet"] < 0.005


def test_limits_of_differences_on_multi30k() -> None:
    claims = " ".join((ROOT / "docs/paper/claims.md").read_text(encoding="utf-8").split())
    for scores, limit in (((32.55, 31.57, 32.81), "4.0"), ((8.613, 8.590, 8.627), "0.11")):
        half = quantile(2) * math.sqrt(2) * statistics.stdev(scores)
        assert f"{half:.{len(limit) - 2}f}" == limit
        *others, last = (f"{score:.{3 if score < 10 else 2}f}" for score in scores)
        assert f"{', '.join(others)} and {last}" in claims and limit in claims
