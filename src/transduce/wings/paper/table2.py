"""Makes table 2 (BLEU and training cost) from the paper's results and ours."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from transduce import model_folder
from transduce.config.parse import configure
from transduce.config.schema import ModelConfig
from transduce.decoding.loading import load_models
from transduce.evaluation.evaluate import evaluate
from transduce.model.arithmetic import per_target_token
from transduce.system.console import log
from transduce.system.files import MANIFEST
from transduce.text.pairs import read_pairs
from transduce.wings.paper.experiments import (
    RECORD,
    RESOLVED,
    Experiment,
    Figure,
    Result,
    cached,
    difference,
    figure,
    plan,
    results,
)
from transduce.wings.paper.table3 import BASE, BIG
from transduce.wings.paper.tables import Table, definition, flat

TABLE2 = definition("table2")
GPUS, GPU, TFLOPS = 8, "P100", 9.5  # TFLOP/s: sustained per GPU in single precision (footnote 5)
TARGET_TOKENS = 25_000  # per update; the number of source tokens is the same
SENTENCE_TOKENS = 17  # assumed sentence length in our runs, for source and target
SHARED_OPTIONS = flat(TABLE2["options"])
COMPARED_FAMILIES = {name: flat(options) for name, options in TABLE2["families"].items()}


class Published(NamedTuple):
    """A row of table 2 in the paper, with BLEU on newstest2014 and None for empty cells."""

    name: str
    bleu_de: float | None = None
    bleu_fr: float | None = None
    flops_de: float | None = None  # floating-point operations of the training
    flops_fr: float | None = None


PRINTED_RESULTS = [Published(**row) for row in TABLE2["printed"]]


class Training(NamedTuple):
    """A training that the paper describes (section 5.2)."""

    model: ModelConfig
    steps: int
    hours: float


TRAININGS = {
    "Transformer (base)": Training(BASE, 100_000, 12),
    "Transformer (big)": Training(BIG, 300_000, 3.5 * 24),
}


def as_printed(training: Training) -> float:
    """The paper's estimate of a training's FLOPs, computed from the hours and the GPUs."""
    return training.hours * 3600 * GPUS * TFLOPS * 1e12


def of_the_model(training: Training, length: int = 25) -> float:
    """The FLOPs of a training's matrix products, if all sentences have `length` tokens."""
    return training.steps * TARGET_TOKENS * per_target_token(training.model, length, length)


def experiments(own: Mapping[str, Any]) -> list[Experiment]:
    """Make an experiment for each model family, with equal FLOPs; raises UserError as `plan` does."""
    families = {_slug(name): options for name, options in COMPARED_FAMILIES.items()}
    planned = plan("table2", SHARED_OPTIONS, families, own)
    return [one._replace(options={"train.steps": _steps(one.options), **one.options}) for one in planned]


def _steps(options: Mapping[str, Any]) -> int:
    """The number of updates whose FLOPs add up to `training_flops` in table2.toml."""
    shape = {name: value for name, value in options.items() if name.startswith("model.")}
    model = configure(shape, {"model.vocab_size": options["data.vocab_size"]}).model
    flops = per_target_token(model, SENTENCE_TOKENS, SENTENCE_TOKENS)
    return max(1, round(TABLE2["training_flops"] / flops / options["data.max_tokens"]))


class Measured(NamedTuple):
    """Our results for a model family (means over seeds) or an ensemble (BLEU and total costs)."""

    bleu: Figure
    flops: float
    minutes: float
    parameters: int


def table(planned: Sequence[Experiment], folder: Path) -> Table:
    """Make table 2 from the paper's rows and the runs in `folder`."""
    cells = []
    for row in PRINTED_RESULTS:
        published = _number(row.bleu_de), _number(row.bleu_fr), _power(row.flops_de), _power(row.flops_fr)
        cells.append([row.name, *published, *[""] * 5])
    notes, arithmetic = [], []
    for name, training in TRAININGS.items():
        printed, counted = as_printed(training), of_the_model(training)
        notes.append(
            f"{name}: the paper estimates {training.hours:g} hours x {GPUS} {GPU} x {TFLOPS} TFLOP/s = {printed:.2g} "
            f"operations. The matrix products of this training ({training.steps:,} updates of {TARGET_TOKENS:,} target "
            f"tokens) have {counted:.2g}, {counted / printed:.0%} of the estimate."
        )
        arithmetic.append({"name": name, "as_printed": printed, "of_the_model": counted})
    runs = {name: results(each, folder) for name, each in zip(COMPARED_FAMILIES, planned, strict=True)}
    measured = {name: _mean(each) for name, each in runs.items()}
    first, trained = measured["Transformer"], sum(map(bool, runs.values()))
    members_of = f"{trained} of {len(runs)} families" if 1 < trained < len(runs) else "all families"
    ensembles = {
        "Transformer, ensemble of its seeds": runs["Transformer"],
        f"{members_of}, ensemble of their first seeds": [each[0] for each in runs.values() if each],
    }
    for name, members in ensembles.items():
        test = planned[0].options.get("data.test", ())
        measured[name] = _ensemble(name, members, folder, test) if len(members) > 1 else None
    cells += [_row(name, row, first) for name, row in measured.items()]
    data = {
        "published": [row._asdict() for row in PRINTED_RESULTS],
        "arithmetic": arithmetic,
        "runs": [{"family": name, **run.as_json()} for name, each in runs.items() for run in each],
    }
    notes += [*TABLE2["notes"], RESOLVED]
    made_by = [run for each in runs.values() for run in each]
    return Table("table2", TABLE2["title"], TABLE2["headings"], cells, notes, data, made_by)


def _row(name: str, row: Measured | None, first: Measured | None) -> list[str]:
    if row is None:
        return [f"here: {name}", *[""] * 5, "–", "", "", ""]
    change = difference(row.bleu, first.bleu) if first and row is not first else ""
    costs = _power(row.flops), str(row.bleu), change, f"{row.minutes:.1f}", f"{row.parameters / 1e6:.1f}"
    return [f"here: {name}", *[""] * 4, *costs]


def _mean(runs: Sequence[Result]) -> Measured | None:
    if not runs:
        return None
    flops, minutes = figure([_flops(run) for run in runs]).mean, figure([run.seconds / 60 for run in runs]).mean
    return Measured(figure([run.bleu for run in runs]), flops, minutes, runs[0].parameters)


def _ensemble(name: str, runs: Sequence[Result], folder: Path, test: Sequence[str]) -> Measured:
    """Evaluate an ensemble on the files `test` (default: the first run's test files); caches BLEU in `folder`."""
    path = folder / f"table2/{_slug(name)}.json"

    def translate() -> dict[str, float]:
        log(f"Translating with an ensemble of {len(runs)} models: {path.stem}")
        models = load_models([run.folder for run in runs])
        data, decode = models[0].config.data, models[0].config.decode
        pairs = list(read_pairs(test or data.test, (data.source, data.target)))
        return {"bleu": evaluate(models, pairs, decode, tokenize=data.bleu_tokenize).scores[0].value}

    bleu = cached(path, [run.folder / name for run in runs for name in (MANIFEST, RECORD)], translate)["bleu"]
    minutes = sum(run.seconds for run in runs) / 60
    return Measured(figure([bleu]), sum(map(_flops, runs)), minutes, sum(run.parameters for run in runs))


def _flops(run: Result) -> float:
    return run.target_tokens * per_target_token(
        model_folder.read_config(run.folder).model, SENTENCE_TOKENS, SENTENCE_TOKENS
    )


def _slug(name: str) -> str:
    return re.sub("[^a-z0-9]+", "-", name.lower()).strip("-")


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:g}"


def _power(value: float | None) -> str:
    return "" if value is None else f"{value:.1e}"
