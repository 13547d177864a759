"""The notebook of the documentation runs, with fewer updates, and shows what it computed."""

import json
from pathlib import Path
from typing import Any

import matplotlib
import pytest

import transduce

NOTEBOOK = Path(__file__).parents[1] / "docs" / "notebooks" / "pairs-to-plot.ipynb"
CELLS: list[dict[str, Any]] = [
    cell
    for cell in json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    if cell["cell_type"] == "code"
]


@pytest.mark.slow
def test_the_cells_run_in_their_order(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    with matplotlib.rc_context({"backend": "agg"}):
        space: dict[str, Any] = {}
        for cell in CELLS:
            code = "".join(cell["source"]).replace("STEPS = 500", "STEPS = 10")
            exec(compile(code, str(NOTEBOOK), "exec"), space)
    assert space["STEPS"] == 10 and space["result"].reason == "steps"
    assert isinstance(space["evaluation"], transduce.Evaluation)
    assert len(space["evaluation"].translations) == len(space["test"]) == 100
    assert not {*space["train"]} & {*space["test"]}
    assert space["updates"] and len(space["weights"]) == len(space["rows"]) > 0
    assert "BLEU" in capsys.readouterr().out


def test_outputs_are_those_of_one_run_and_have_no_errors():
    assert [cell["execution_count"] for cell in CELLS] == list(range(1, len(CELLS) + 1))
    outputs = [output for cell in CELLS for output in cell["outputs"]]
    assert {output["output_type"] for output in outputs} <= {
        "stream",
        "display_data",
        "execute_result",
    }
    assert sum("image/png" in output.get("data", {}) for output in outputs) == 2


@pytest.mark.parametrize("name", ["train", "evaluate", "load"])
def test_every_function_of_the_guide_is_used(name):
    assert any(f"transduce.{name}(" in line for cell in CELLS for line in cell["source"])
