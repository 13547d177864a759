"""Table 3 of the paper: variations on the Transformer, as printed and of runs here."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Picture

from transduce.config.schema import ModelConfig
from transduce.model.build import count_parameters
from transduce.wings.inspection.plots import save
from transduce.wings.paper.experiments import (
    RESOLVED,
    Experiment,
    Result,
    check_not_varied,
    difference,
    figure,
    results,
)
from transduce.wings.paper.tables import Table

BASE = ModelConfig()
BIG = replace(BASE, d_model=1024, d_ff=4096, num_heads=16, dropout=0.3)


WIDTH_DIVISOR = 4  # runs here have a quarter of the paper's widths
TRAINING_OPTIONS = {  # of the runs here; more updates would overfit 30,000 pairs
    "data.max_tokens": 2048,
    "data.vocab_size": 6000,
    "train.steps": 1200,
    "train.warmup": 400,
    "train.learning_rate": 0.5,
    "train.average": 5,
    "train.save_every": 50,
    "train.validate_every": 400,
    "train.patience": 0,
}
SHAPE_FIELDS = (  # of ModelConfig: varied by the rows, or else chosen by the size of the corpus
    *("num_encoder_layers", "num_decoder_layers", "d_model", "d_ff", "num_heads", "d_k", "d_v"),
    *("dropout", "positions"),
)
TABLE3_HEADINGS = (
    "",
    "changes",
    "params, paper (10^6)",
    "params, here",
    "PPL, paper",
    "BLEU, paper",
    "PPL, our runs",
    "BLEU, our runs",
    "difference to base",
)
TABLE3_NOTES = (
    "The paper: newstest2013 English to German, perplexity per word piece. Parameters here: one matrix for both "
    "embeddings and the output, and 37,000 pieces. The remaining difference is the vocabulary: with 41,000 pieces "
    "every row but the last matches the paper to the last digit; the big model's 213 million match 35,000 to 36,000.",
    f"Our runs: widths (d_model, d_ff, d_k, d_v) divided by {WIDTH_DIVISOR}, heads and layers as in the row, all on "
    "the same text with the same number of updates. Perplexity of the validation text, BLEU of the test text, mean and "
    "deviation over seeds. – : not yet run.",
    RESOLVED,
)


class Printed(NamedTuple):
    """The printed figures of a row, for newstest2013, English to German."""

    perplexity: float  # per word piece
    bleu: float
    parameters: float | None = None  # millions; None: an empty cell


@dataclass(frozen=True)
class Row:
    """A row of the table."""

    group: str
    changes: str  # as printed
    model: ModelConfig
    printed: Printed
    train: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The name of the row's folder."""
        return f"{self.group} {self.changes}".strip().replace(" ", "-").replace("=", "")


VARIATIONS = (
    Row("base", "", BASE, Printed(4.92, 25.8, 65)),
    Row("A", "h=1 d_k=512 d_v=512", replace(BASE, num_heads=1, d_k=512, d_v=512), Printed(5.29, 24.9)),
    Row("A", "h=4 d_k=128 d_v=128", replace(BASE, num_heads=4, d_k=128, d_v=128), Printed(5.00, 25.5)),
    Row("A", "h=16 d_k=32 d_v=32", replace(BASE, num_heads=16, d_k=32, d_v=32), Printed(4.91, 25.8)),
    Row("A", "h=32 d_k=16 d_v=16", replace(BASE, num_heads=32, d_k=16, d_v=16), Printed(5.01, 25.4)),
    Row("B", "d_k=16", replace(BASE, d_k=16), Printed(5.16, 25.1, 58)),
    Row("B", "d_k=32", replace(BASE, d_k=32), Printed(5.01, 25.4, 60)),
    Row("C", "N=2", replace(BASE, num_encoder_layers=2, num_decoder_layers=2), Printed(6.11, 23.7, 36)),
    Row("C", "N=4", replace(BASE, num_encoder_layers=4, num_decoder_layers=4), Printed(5.19, 25.3, 50)),
    Row("C", "N=8", replace(BASE, num_encoder_layers=8, num_decoder_layers=8), Printed(4.88, 25.5, 80)),
    Row("C", "d_model=256 d_k=32 d_v=32", replace(BASE, d_model=256, d_k=32, d_v=32), Printed(5.75, 24.5, 28)),
    Row(
        "C",
        "d_model=1024 d_k=128 d_v=128",
        replace(BASE, d_model=1024, d_k=128, d_v=128),
        Printed(4.66, 26.0, 168),
    ),
    Row("C", "d_ff=1024", replace(BASE, d_ff=1024), Printed(5.12, 25.4, 53)),
    Row("C", "d_ff=4096", replace(BASE, d_ff=4096), Printed(4.75, 26.2, 90)),
    Row("D", "P_drop=0.0", replace(BASE, dropout=0.0), Printed(5.77, 24.6)),
    Row("D", "P_drop=0.2", replace(BASE, dropout=0.2), Printed(4.95, 25.5)),
    Row("D", "eps_ls=0.0", BASE, Printed(4.67, 25.3), {"train.label_smoothing": 0.0}),
    Row("D", "eps_ls=0.2", BASE, Printed(5.47, 25.7), {"train.label_smoothing": 0.2}),
    Row("E", "learned positions", replace(BASE, positions="learned"), Printed(4.92, 25.7)),
    Row("big", "", BIG, Printed(4.33, 26.4, 213)),
)


def parameters(row: Row, vocab_size: int = BASE.vocab_size) -> float:
    """Millions of parameters of the row's model, by default with the paper's 37,000 pieces."""
    return count_parameters(replace(row.model, vocab_size=vocab_size)) / 1e6


def scaled(model: ModelConfig, factor: int) -> ModelConfig:
    """The model with all widths divided by `factor`, and as many heads and layers."""
    return replace(
        model,
        d_model=model.d_model // factor,
        d_ff=model.d_ff // factor,
        d_k=model.d_k // factor,
        d_v=model.d_v // factor,
    )


def experiment(row: Row, own: Mapping[str, Any]) -> Experiment:
    """The row's training, scaled down, with `own` options and text."""
    small = scaled(row.model, WIDTH_DIVISOR)
    shape = {f"model.{name}": getattr(small, name) for name in SHAPE_FIELDS}
    return Experiment(f"table3/{row.name}", {**TRAINING_OPTIONS, **shape, **row.train, **own})


def experiments(own: Mapping[str, Any]) -> list[Experiment]:
    """An experiment per row; raises UserError if `own` sets an option in which rows differ."""
    check_not_varied(own, [experiment(row, {}).options for row in VARIATIONS])
    return [experiment(row, own) for row in VARIATIONS]


def table(own: Mapping[str, Any], folder: Path) -> Table:
    """The paper's rows, parameters counted here, and the means of the runs in `folder`, drawn in table3.png."""
    runs_of = {row.name: results(one, folder) for row, one in zip(VARIATIONS, experiments(own), strict=True)}
    base = figure([run.bleu for run in runs_of["base"]])
    cells, data = [], []
    made_by = [str(run) for row in VARIATIONS for run in runs_of[row.name]]
    for row in VARIATIONS:
        runs = runs_of[row.name]
        perplexity, bleu = figure([run.perplexity for run in runs]), figure([run.bleu for run in runs])
        millions = parameters(row)
        printed = row.printed
        cells.append(
            [
                row.group,
                row.changes,
                f"{printed.parameters:g}" if printed.parameters else "",
                f"{millions:.1f}",
                f"{printed.perplexity:.2f}",
                f"{printed.bleu:.1f}",
                str(perplexity),
                str(bleu),
                difference(bleu, base) if row.name != "base" else "",
            ]
        )
        data.append(
            {
                "row": row.name,
                "printed": printed._asdict(),
                "parameters": round(millions, 3),
                "runs": [run.as_json() for run in runs],
            }
        )
    pictures = ("table3.png",) if runs_of["base"] and len(made_by) > len(runs_of["base"]) else ()
    for name in pictures:
        draw(folder / name, runs_of)
    return Table(
        "table3",
        "Table 3: variations on the Transformer",
        TABLE3_HEADINGS,
        cells,
        TABLE3_NOTES,
        data,
        made_by,
        pictures,
    )


def draw(path: Path, runs_of: Mapping[str, Sequence[Result]]) -> None:
    """Draw the effect of each variation, printed and of the runs here, which must include the base model."""
    base, *rows = [row for row in VARIATIONS if runs_of[row.name]]
    picture = Picture(figsize=(10, 0.8 + 0.28 * len(rows)), layout="constrained")
    perplexity, bleu = picture.subplots(1, 2, sharey=True)
    measures: tuple[tuple[Axes, Callable[[Printed | Result], float], str], ...] = (
        (perplexity, lambda each: math.log(each.perplexity), "perplexity, difference of logarithms"),
        (bleu, lambda each: each.bleu, "BLEU, difference"),
    )
    for axes, measure, label in measures:
        ours = {row.name: figure([measure(run) for run in runs_of[row.name]]) for row in (base, *rows)}
        printed = [measure(row.printed) - measure(base.printed) for row in rows]
        means = [ours[row.name].mean - ours[base.name].mean for row in rows]
        spread = [ours[row.name].deviation for row in rows]  # nan draws nothing
        axes.axvline(0, color="0.7", linewidth=1)
        axes.plot(printed, range(len(rows)), "o", markerfacecolor="none", color="black", label="the paper's")
        axes.errorbar(means, range(len(rows)), xerr=spread, fmt="o", markersize=5, label="of our runs")
        axes.set(xlabel=f"{label} to the base model")
        axes.grid(alpha=0.3)
    perplexity.set_yticks(range(len(rows)), [f"{row.group} {row.changes}".strip() for row in rows])
    perplexity.invert_yaxis()
    perplexity.legend(frameon=False)
    save(picture, path)
