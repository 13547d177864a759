"""Makes table 2 (BLEU and training cost) from the paper's results and ours."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from transduce.config.parse import options_in
from transduce.config.schema import ModelConfig
from transduce_lab.comparing import report
from transduce_lab.comparing.definition import Definition, RowDefinition, checked
from transduce_lab.comparing.operations import updates_for
from transduce_lab.comparing.standings import Standings
from transduce_lab.comparing.tables import Part, Table
from transduce_lab.operations import per_target_token
from transduce_lab.paper.printed import PLAIN_OPTIONS, definition
from transduce_lab.paper.table3 import BASE, BIG

TABLE2 = definition("table2")
GPUS, GPU, TFLOPS = 8, "P100", 9.5  # TFLOP/s: sustained per GPU in single precision (footnote 5)
TARGET_TOKENS = 25_000  # per update; the number of source tokens is the same
SHARED_OPTIONS = PLAIN_OPTIONS | options_in(TABLE2["options"], "table2")
COMPARED_FAMILIES = {
    name: options_in(tables, "table2") for name, tables in TABLE2["families"].items()
}


# Formats of the paper's values: BLEU on newstest2014, and floating-point operations of the training.
VALUE_FORMATS = {"bleu_de": "g", "bleu_fr": "g", "flops_de": ".1e", "flops_fr": ".1e"}


class Training(NamedTuple):
    """A training run that the paper describes (section 5.2)."""

    model: ModelConfig
    steps: int
    hours: float


TRAININGS = {
    "Transformer (base)": Training(BASE, 100_000, 12),
    "Transformer (big)": Training(BIG, 300_000, 3.5 * 24),
}


def as_printed(training: Training) -> float:
    """The paper's estimate of a training run's FLOPs, computed from the hours and the GPUs."""
    return training.hours * 3600 * GPUS * TFLOPS * 1e12


def of_the_model(training: Training, length: int = 25) -> float:
    """The FLOPs of a training run's matrix products, if all sentences have `length` tokens."""
    return training.steps * TARGET_TOKENS * per_target_token(training.model, length, length)


def comparison(own: Mapping[str, Any]) -> Definition:
    """Runs of each model family with equal FLOPs; raises UserError if `own` sets an option in which rows differ."""
    shared = SHARED_OPTIONS | dict(own)
    rows = list[RowDefinition]()
    for name, options in COMPARED_FAMILIES.items():
        steps = updates_for(TABLE2["training_flops"], {**shared, **options})
        rows.append(RowDefinition(name, {**options, "train.steps": steps}))
    for name in TABLE2["reinforced"]:
        for stage, suffix in (("reinforcement", " + RL"), ("control", ", as long without RL")):
            options = options_in(TABLE2[stage], "table2")
            rows.append(RowDefinition(name + suffix, options, init=name))
    rows += [
        RowDefinition(name, {}, tuple(members)) for name, members in TABLE2["ensembles"].items()
    ]
    return checked(
        Definition(TABLE2["title"], rows, shared, TABLE2["grid"], parent="table2"), own, "table2"
    )


def table(standings: Standings, folder: Path) -> Table:
    """Make table 2 from the paper's rows and the runs in `folder`."""
    ours = report.table(standings, "table2", folder)
    scores, costs = ours.parts
    cells = []
    for row in TABLE2["printed"]:
        values = [
            format(row[key], form) if key in row else "" for key, form in VALUE_FORMATS.items()
        ]
        cells.append([row["name"], *values])
    notes = []
    arithmetic = []
    for name, training in TRAININGS.items():
        printed = as_printed(training)
        counted = of_the_model(training)
        notes.append(
            f"{name}: the paper estimates {training.hours:g} hours x {GPUS} {GPU} x {TFLOPS} TFLOP/s = {printed:.2g} "
            f"operations. The matrix products of this training ({training.steps:,} updates of {TARGET_TOKENS:,} target "
            f"tokens) have {counted:.2g}, {counted / printed:.0%} of the estimate."
        )
        arithmetic.append({"name": name, "as_printed": printed, "of_the_model": counted})
    return ours._replace(
        parts=[
            Part(TABLE2["headings"], cells, "In the paper"),
            scores._replace(title="Here"),
            costs,
        ],
        notes=[*notes, *TABLE2["notes"], *ours.notes],
        data={
            "published": [dict.fromkeys(VALUE_FORMATS) | row for row in TABLE2["printed"]],
            "arithmetic": arithmetic,
            "rows": ours.data,
        },
        command="transduce reproduce table2",
    )
