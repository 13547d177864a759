"""Table 2 of the paper: what translations cost and how good they are, as printed, and the arithmetic behind it."""

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
from transduce.system.files import MANIFEST
from transduce.system.journal import say
from transduce.text.pairs import read_pairs
from transduce.wings.paper.experiments import (
    RECORD,
    RESOLVED,
    Experiment,
    Figure,
    Result,
    difference,
    figure,
    kept,
    refuse_varied,
    results,
)
from transduce.wings.paper.table3 import BASE, BIG
from transduce.wings.paper.tables import Table

HEADINGS = (
    "model",
    "BLEU en-de",
    "BLEU en-fr",
    "FLOPs en-de",
    "FLOPs en-fr",
    "FLOPs, our runs",
    "BLEU, our runs",
    "difference",
    "minutes",
    "params (10^6)",
)
GPUS, GPU, TFLOPS = 8, "P100", 9.5  # what one of them sustains in single precision (footnote 5 of the paper)
TARGET_TOKENS = 25_000  # of an update, and as many source tokens


class Published(NamedTuple):
    """A row: newstest2014; None where the cell is empty."""

    name: str
    bleu_de: float | None
    bleu_fr: float | None
    flops_de: float | None  # of training
    flops_fr: float | None


ROWS = (
    Published("ByteNet", 23.75, None, None, None),
    Published("Deep-Att + PosUnk", None, 39.2, None, 1.0e20),
    Published("GNMT + RL", 24.6, 39.92, 2.3e19, 1.4e20),
    Published("ConvS2S", 25.16, 40.46, 9.6e18, 1.5e20),
    Published("MoE", 26.03, 40.56, 2.0e19, 1.2e20),
    Published("Deep-Att + PosUnk, ensemble", None, 40.4, None, 8.0e20),
    Published("GNMT + RL, ensemble", 26.30, 41.16, 1.8e20, 1.1e21),
    Published("ConvS2S, ensemble", 26.36, 41.29, 7.7e19, 1.2e21),
    Published("Transformer (base)", 27.3, 38.1, 3.3e18, 3.3e18),
    Published("Transformer (big)", 28.4, 41.8, 2.3e19, 2.3e19),
)


class Training(NamedTuple):
    """How long the paper trained (section 5.2)."""

    model: ModelConfig
    steps: int
    hours: float


TRAININGS = {
    "Transformer (base)": Training(BASE, 100_000, 12),
    "Transformer (big)": Training(BIG, 300_000, 3.5 * 24),
}


def as_printed(training: Training) -> float:
    """Floating-point operations as the paper estimates them: time times GPUs times what one of them sustains."""
    return training.hours * 3600 * GPUS * TFLOPS * 1e12


def of_the_model(training: Training, length: int = 25) -> float:
    """Those of the model's matrix products in the same training, for sentences of `length` tokens on both sides."""
    return training.steps * TARGET_TOKENS * per_target_token(training.model, length, length)


BUDGET = 1e14  # floating-point operations of each of our trainings
LENGTH = 17  # tokens of a sentence, on either side, for the arithmetic
SHARED: dict[str, Any] = {
    "data.vocab_size": 6000,
    "data.max_tokens": 2048,
    "model.d_model": 256,
    "model.d_ff": 1024,
    "model.num_heads": 4,
    "model.dropout": 0.2,
    "train.warmup": 400,
    "train.learning_rate": 0.4,
    "train.average": 5,
    "train.save_every": 100,
    "train.validate_every": 500,
}
FAMILIES: dict[str, dict[str, Any]] = {
    "Transformer": {"model.num_encoder_layers": 3, "model.num_decoder_layers": 3},
    "recurrent (GNMT)": {
        "model.kind": "recurrent",
        "model.attention": "additive",
        "model.num_encoder_layers": 3,
        "model.num_decoder_layers": 3,
    },
    "convolutional (ConvS2S)": {
        "model.kind": "convolutional",
        "model.positions": "learned",
        "model.num_encoder_layers": 6,
        "model.num_decoder_layers": 6,
    },
    "convolutional (ByteNet)": {
        "model.kind": "bytenet",
        "model.num_encoder_layers": 10,
        "model.num_decoder_layers": 10,
    },
    "Transformer with experts": {
        "model.num_encoder_layers": 3,
        "model.num_decoder_layers": 3,
        "model.experts": 8,
        "model.experts_per_token": 2,
        "model.expert_layers": (2,),
    },
}


class Ours(NamedTuple):
    """What a row of ours costs and gives: a family's mean over seeds, or the sum of an ensemble's members."""

    bleu: Figure
    flops: float
    minutes: float
    parameters: int


def experiments(given: Mapping[str, Any]) -> list[Experiment]:
    """One for each family: the same text, pieces, batches, and floating-point operations.

    Raises UserError if something is given that families differ in.
    """
    refuse_varied(given, FAMILIES.values())
    found = []
    for name, own in FAMILIES.items():
        options = {**SHARED, **own, **given}
        shape = {option: value for option, value in options.items() if option.startswith("model.")}
        model = configure(shape, {"model.vocab_size": options["data.vocab_size"]}).model
        steps = max(1, round(BUDGET / per_target_token(model, LENGTH, LENGTH) / options["data.max_tokens"]))
        found.append(Experiment(f"table2/{_slug(name)}", {"train.steps": steps, **options}))
    return found


def table(given: Mapping[str, Any], folder: Path) -> Table:
    """The paper's rows, its arithmetic and the model's own, and the means of the runs that `folder` holds."""
    cells = []
    for row in ROWS:
        published = _number(row.bleu_de), _number(row.bleu_fr), _power(row.flops_de), _power(row.flops_fr)
        cells.append([row.name, *published, *[""] * 5])
    data: dict[str, Any] = {"published": [row._asdict() for row in ROWS], "arithmetic": [], "runs": []}
    notes = []
    for name, training in TRAININGS.items():
        printed, own = as_printed(training), of_the_model(training)
        notes.append(
            f"{name}: {training.hours:g} hours x {GPUS} {GPU} x {TFLOPS} TFLOP/s = "
            f"{printed:.2g}; the matrix products of the same training ({training.steps:,} updates of "
            f"{TARGET_TOKENS:,} target tokens) are {own:.2g}, {own / printed:.0%} of it."
        )
        data["arithmetic"].append({"name": name, "as_printed": printed, "of_the_model": own})
    runs = {name: results(each, folder) for name, each in zip(FAMILIES, experiments(given), strict=True)}
    ours = {name: _mean(each) for name, each in runs.items()}
    first, trained = ours["Transformer"], sum(map(bool, runs.values()))
    there = f"{trained} of {len(runs)} families" if 1 < trained < len(runs) else "all families"
    ensembles = {
        "Transformer, ensemble of its seeds": runs["Transformer"],
        f"{there}, ensemble of their first seeds": [each[0] for each in runs.values() if each],
    }
    for name, members in ensembles.items():
        ours[name] = _together(name, members, folder, given.get("data.test", ())) if len(members) > 1 else None
    cells += [_row(name, own, first) for name, own in ours.items()]
    for name, each in runs.items():
        data["runs"] += [{"family": name, **run.as_json()} for run in each]
    notes.append("The paper prints one figure of FLOPs for both languages of the Transformer.")
    notes.append(
        f"Here: the families on the text that was given, with the same pieces, batches, search and about {BUDGET:.0e} "
        "operations of training each; BLEU of the test text, mean and deviation over seeds, and the difference to "
        "the Transformer. Ensembles: the cost of all members, and the BLEU of the mean of their probabilities. – : not "
        "yet run."
    )
    notes.append(RESOLVED)
    return Table(
        "table2",
        "Table 2: translation, quality and cost",
        HEADINGS,
        cells,
        notes,
        data,
        [str(run) for each in runs.values() for run in each],
    )


def _row(name: str, own: Ours | None, first: Ours | None) -> list[str]:
    if own is None:
        return [f"here: {name}", *[""] * 5, "–", "", "", ""]
    other = difference(own.bleu, first.bleu) if first and own is not first else ""
    cost = _power(own.flops), str(own.bleu), other, f"{own.minutes:.1f}", f"{own.parameters / 1e6:.1f}"
    return [f"here: {name}", *[""] * 4, *cost]


def _mean(runs: Sequence[Result]) -> Ours | None:
    """Of a family's runs, if there are any."""
    if not runs:
        return None
    flops, minutes = figure([_flops(run) for run in runs]).mean, figure([run.seconds / 60 for run in runs]).mean
    return Ours(figure([run.bleu for run in runs]), flops, minutes, runs[0].parameters)


def _together(name: str, runs: Sequence[Result], folder: Path, test: Sequence[str]) -> Ours:
    """Of an ensemble of runs; its BLEU is kept in a file. test: where its text lies now; empty: where it lay then."""
    path = folder / f"table2/{_slug(name)}.json"

    def translate() -> dict[str, float]:
        say(f"Translating with {len(runs)} models together: {path.stem}")
        models = load_models([run.folder for run in runs])
        data, decode = models[0].config.data, models[0].config.decode
        pairs = list(read_pairs(test or data.test, (data.source, data.target)))
        return {"bleu": evaluate(models, pairs, decode, tokenize=data.bleu_tokenize).scores[0].value}

    bleu = kept(path, [run.folder / name for run in runs for name in (MANIFEST, RECORD)], translate)["bleu"]
    minutes = sum(run.seconds for run in runs) / 60
    return Ours(figure([bleu]), sum(map(_flops, runs)), minutes, sum(run.parameters for run in runs))


def _flops(run: Result) -> float:
    return run.target_tokens * per_target_token(model_folder.read_config(run.folder).model, LENGTH, LENGTH)


def _slug(name: str) -> str:
    return re.sub("[^a-z0-9]+", "-", name.lower()).strip("-")


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:g}"


def _power(value: float | None) -> str:
    return "" if value is None else f"{value:.1e}"
