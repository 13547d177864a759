"""Tests of transduce_lab/paper/table2.py."""

import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from transduce.config.parse import configure
from transduce.model.build import build
from transduce.model.seq2seq import make_batch
from transduce.system.errors import UserError
from transduce.training.objectives import sums_of
from transduce.training.schedule import learning_rate
from transduce_lab.comparing.command import train_rows
from transduce_lab.comparing.operations import SENTENCE_TOKENS
from transduce_lab.paper import table2

pytest.importorskip("scipy", reason="pip install 'transduce[lab]'")


def test_the_papers_training_flops():
    printed = {row["name"]: row.get("flops_de") for row in table2.TABLE2["printed"]}
    for name, training in table2.TRAININGS.items():
        assert table2.as_printed(training) == pytest.approx(printed[name], rel=0.01)


@pytest.mark.slow
def test_table_2_tunes_each_family_and_has_ensembles(given, tmp_path, monkeypatch):
    small = {"model.num_encoder_layers": 1, "model.num_decoder_layers": 1, "model.d_ff": 32}
    families = {
        name: table2.COMPARED_FAMILIES[name] | small for name in ("Transformer", "recurrent (GNMT)")
    }
    monkeypatch.setattr(table2, "COMPARED_FAMILIES", families)
    stage = {"train": {**table2.TABLE2["reinforcement"]["train"], "steps": 4, "risk_steps": 4}}
    parts = {
        "grid": {"train.warmup": [1, 9]},
        "ensembles": {"both": list(families)},
        "reinforced": ["Transformer"],
    }
    parts["reinforcement"] = stage
    parts["control"] = {"train": {**table2.TABLE2["control"]["train"], "steps": 4}}
    monkeypatch.setattr(table2, "TABLE2", {**table2.TABLE2, **parts, "training_flops": 2e8})
    own = {name: value for name, value in given.items() if name != "train.steps"}
    compared = replace(table2.comparison({**own, "model.d_model": 16}), seeds=2)
    table = table2.table(train_rows(compared, tmp_path, math.inf), tmp_path)
    printed, rows = (
        {row[0]: dict(zip(part.headings, row, strict=True)) for row in part.rows}
        for part in table.parts[:2]
    )
    assert printed["Transformer (big)"]["FLOPs en-de"] == "2.3e+19"
    assert rows["both"]["runs"] == "4 models" and "±" in rows["both"]["BLEU"]
    costs = {row[0]: row for row in table.parts[2].rows}
    assert float(costs["both"][-3]) == pytest.approx(
        sum(float(costs[name][-3]) for name in families), abs=0.1
    )
    assert {costs[name][1] for name in families} <= {"1", "9"} and len(
        list(tmp_path.glob("table2/*/tuning/*"))
    ) == 4


def test_the_control_of_a_second_stage_has_its_rates():
    compared = table2.comparison({})
    rows = {
        row.name: configure(compared.experiment(row, Path()).options).train
        for row in compared.rows
        if row.init == "Transformer"
    }
    risk, control = rows["Transformer + RL"], rows["Transformer, as long without RL"]
    risk = replace(risk, learning_rate=0.131, warmup=30)  # as chosen for this corpus
    rates = [[learning_rate(n, train, 256) for n in range(1, 121)] for train in (risk, control)]
    assert rates[0] == pytest.approx(rates[1], rel=0.01)
    assert control.risk_steps == 0 and control.steps == risk.steps


def test_a_family_that_costs_more_a_token_has_fewer_updates(tmp_path):
    compared = table2.comparison({})
    assert {"train.learning_rate", "model.dropout"} == compared.grid.keys()
    steps = {
        row.name: experiment.options["train.steps"]
        for row in compared.trained
        for experiment in compared.tunings(row)
    }
    assert 900 < steps["Transformer with experts"] < steps["Transformer"] < 1200
    table = table2.table(train_rows(compared, tmp_path, 0), tmp_path)
    assert any(row[:3] == ["recurrent (GNMT)", "0", "–"] for row in table.parts[1].rows)


@pytest.mark.parametrize(
    ("own", "message"),
    [({"train.risk_steps": 9}, "minimum-risk"), ({"data.max_tokens": 10**7}, "One update has")],
)
def test_uncountable_trainings_of_table_2_are_refused(own, message):
    with pytest.raises(UserError, match=message):
        table2.comparison(own)


@pytest.mark.parametrize("family", table2.COMPARED_FAMILIES)
def test_families_begin_near_the_even_distribution_with_small_gradients(family):
    own = {"model.vocab_size": 1000, "train.precision": "float32"}
    config = configure({**table2.SHARED_OPTIONS, **table2.COMPARED_FAMILIES[family], **own})
    draw = torch.Generator().manual_seed(1)
    rows = torch.randint(4, 1000, (8, SENTENCE_TOKENS), generator=draw).tolist()
    model = build(config.model)
    batch = make_batch(rows, rows)
    sums = sums_of(model, batch, config.train)
    sums.loss.backward()
    gradients = [
        weight.grad / batch.num_tokens for weight in model.parameters() if weight.grad is not None
    ]
    assert sums.loss.item() / batch.num_tokens < 2 * math.log(1000)
    assert torch.nn.utils.get_total_norm(gradients) < 50
