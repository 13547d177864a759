"""Tests of transduce/commands/info.py."""

import json
import re
import shutil

from small_corpus import output
from transduce import model_folder
from transduce.config.parse import configure


def test_info_of_a_finished_training(place, capsys):
    facts, _, sources = output(capsys, "info", place / "one").partition("\n\n")
    printed = dict(line.split("  ", 1) for line in facts.splitlines())
    assert re.search(r"data.corpora .*command line", sources)
    assert printed["languages"].strip() == "ka to zu"
    assert printed["model"].strip().startswith("transformer, 1+1 layers, d_model 32, ")
    assert printed["corpus"].strip() == f"{place}/train.tsv" and printed[
        "pairs"
    ].strip().startswith("300 (")
    assert printed["training"].strip().startswith("300 updates, ") and "state" not in printed
    found = json.loads(output(capsys, "info", place / "one", "--json"))
    assert configure(found["config"]) == model_folder.read_config(place / "one")
    assert found["finished"] is True
    assert found["metrics"] == json.loads((place / "one/metrics.json").read_text())


def test_info_of_a_running_training(place, tmp_path, capsys):
    shutil.copytree(place / "one", tmp_path / "run")
    (tmp_path / "run/manifest.json").unlink()
    printed = output(capsys, "info", tmp_path / "run")
    assert "not finished" in printed and "step-00000300/model.safetensors" in printed
    found = json.loads(output(capsys, "info", tmp_path / "run", "--json"))
    assert (found["finished"], found["metrics"]) == (False, {})
