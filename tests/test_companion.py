"""The numbers of the sentence that the pages about the paper follow, and the search that its page runs."""

import ast
import importlib.util
import io
import json
import re
import subprocess
import sys
from contextlib import redirect_stdout
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from torch import Tensor

from models import make_model
from transduce import model_folder
from transduce.decoding.beam import beam_search
from transduce.decoding.types import length_penalty

DOCS = Path(__file__).parents[1] / "docs"
SENTENCE: dict[str, Any] = json.loads(
    (DOCS / "paper" / "beside" / "sentence.json").read_text(encoding="utf-8")
)
SEARCH = SENTENCE["search"]


def script(name: str) -> ModuleType:
    """A script of docs/, imported."""
    spec = importlib.util.spec_from_file_location(name, DOCS / f"{name}.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class StoredStepper:
    """A stepper that reads the stored probabilities."""

    device = torch.device("cpu")

    def __init__(self) -> None:
        self.hypotheses: list[tuple[int, ...]] = []

    def __call__(self, tokens: Tensor) -> Tensor:
        last = tokens.tolist()
        self.hypotheses = (
            [(*one, token) for one, token in zip(self.hypotheses, last, strict=True)]
            if self.hypotheses
            else [()]
        )
        log_probs = torch.full((len(last), SENTENCE["model"]["vocab_size"]), -torch.inf)
        for row, hypothesis in enumerate(self.hypotheses):
            for token, value in SEARCH["continuations"][" ".join(map(str, hypothesis))]:
                log_probs[row, token] = value
        return log_probs

    def reorder(self, rows: Tensor, _sentences: Tensor | None = None) -> None:
        self.hypotheses = [self.hypotheses[row] for row in rows.tolist()]


@pytest.mark.parametrize("alpha", SEARCH["alphas"])
@pytest.mark.parametrize("beam_size", SEARCH["sizes"])
def test_stored_probabilities_give_the_searches_of_the_model(beam_size: int, alpha: float) -> None:
    stepper = StoredStepper()
    [[best]] = beam_search(
        stepper, [SEARCH["limit"]], beam_size=beam_size, length_penalty=alpha, n_best=1
    )
    text = "".join(SEARCH["pieces"][str(token)] for token in best.tokens)
    expected, score = SEARCH["results"][f"{beam_size} {alpha}"]
    assert text.replace("▁", " ").strip() == expected
    assert best.score == pytest.approx(score, abs=1e-3)


def test_stored_numbers_fit_together() -> None:
    weights = torch.tensor(SENTENCE["heads"]["weights"])
    scores = torch.tensor(SENTENCE["heads"]["scores"])
    torch.testing.assert_close(weights, scores.softmax(-1), atol=0.006, rtol=0)
    vectors = {
        name: torch.tensor(SENTENCE["vectors"][name]) for name in ("embedding", "position", "sum")
    }
    torch.testing.assert_close(
        vectors["embedding"] + vectors["position"], vectors["sum"], atol=0.002, rtol=0
    )
    for each in SENTENCE["picture"]["search"]["complete"]:
        assert each["score"] == pytest.approx(
            each["log_prob"] / length_penalty(each["length"], 0.6)
        )
    [best] = [
        each
        for each in SENTENCE["picture"]["search"]["complete"]
        if each["text"] == SENTENCE["reference"]
    ]
    log_prob = torch.tensor(SENTENCE["losses"]["probability"]).log().sum().item()
    assert log_prob == pytest.approx(best["log_prob"], abs=2e-3)


def test_numbers_of_another_model_have_the_same_form(tmp_path: Path) -> None:
    folder = make_model(tmp_path / "model", {"model.norm": "post"})
    numbers = script("sentence").sentence(model_folder.load(folder), "ka ki", "lo mi")
    again = json.loads(json.dumps(numbers))
    assert again.keys() == SENTENCE.keys()
    assert again["losses"].keys() == SENTENCE["losses"].keys()
    assert len(again["losses"]["probability"]) == len(again["target"]["pieces"])
    total = torch.tensor(again["heads"]["weights"]).sum(-1)
    torch.testing.assert_close(total, torch.ones_like(total), atol=0.01, rtol=0)


def test_tables_have_a_row_for_each_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [str(DOCS), *sys.path])
    tables = script("sentence_tables")
    count = len(SENTENCE["target"]["pieces"])
    for name in ("tokens", "heads", "active", "best"):
        assert len(tables.table(name).splitlines()) == 2 + count, name
    assert "| ▁der | 0.3828 | 0.960 |" in tables.table("losses")


def run_cell(source: str, names: dict[str, Any]) -> str:
    """Run a cell as Jupyter does, and return what it prints or shows."""
    *statements, last = ast.parse(source).body
    printed = io.StringIO()
    with redirect_stdout(printed):
        exec(compile(ast.Module(statements, []), "cell", "exec"), names)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), "cell", "eval"), names)
            if value is not None:
                print(repr(value))
        else:
            exec(compile(ast.Module([last], []), "cell", "exec"), names)
    return printed.getvalue()


@pytest.mark.slow
def test_cells_of_the_notebook_show_what_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # the first cell goes to the folder of the repository
    command = [sys.executable, DOCS / "notebook.py", "beside.ipynb"]
    subprocess.run(command, check=True)
    notebook = json.loads(Path("beside.ipynb").read_text(encoding="utf-8"))
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert len(cells) > 120
    texts = "".join(cell["source"] for cell in notebook["cells"] if cell["cell_type"] == "markdown")
    assert not re.search(r"<!-- |</?div|```(?:math|pycon)", texts)
    names: dict[str, Any] = {"__name__": "__main__"}
    for cell in cells:
        expected = [
            output["text"]
            if output["output_type"] == "stream"
            else output["data"]["text/plain"] + "\n"
            for output in cell["outputs"]
        ]
        assert run_cell(cell["source"], names) == "".join(expected), cell["source"]
