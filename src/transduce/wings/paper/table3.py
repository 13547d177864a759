"""Makes table 3 (variations on the Transformer) from the paper's results and ours."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from transduce.config.schema import ModelConfig
from transduce.model.build import count_parameters
from transduce.wings.inspection.plots import chart
from transduce.wings.paper.experiments import RESOLVED, Experiment, Result, difference, figure, plan, results
from transduce.wings.paper.tables import Table, definition, flat

TABLE3 = definition("table3")
SHAPE_FIELDS = (  # set in every run, so that the size of the corpus doesn't choose them
    *("num_encoder_layers", "num_decoder_layers", "d_model", "d_ff", "num_heads", "d_k", "d_v"),
    *("dropout", "positions"),
)
BASE = ModelConfig()


class Printed(NamedTuple):
    """The paper's results for a row, on newstest2013 from English to German."""

    perplexity: float  # per subword
    bleu: float
    parameters: float | None = None  # millions; None: an empty cell


@dataclass(frozen=True)
class Row:
    """A row of table 3, with the paper's results, the model and the training options."""

    group: str
    printed: Printed
    changes: str = ""  # as printed
    model: ModelConfig = BASE
    train: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The name of the row's folder."""
        return f"{self.group} {self.changes}".strip().replace(" ", "-").replace("=", "")

    @property
    def options(self) -> dict[str, Any]:
        """The options for training the row's model with scaled-down widths."""
        small = scaled(self.model, TABLE3["width_divisor"])
        return flat({"model": {name: getattr(small, name) for name in SHAPE_FIELDS}, "train": self.train})


VARIATIONS = [
    Row(**row | {"printed": Printed(**row["printed"]), "model": replace(BASE, **row.get("model", {}))})
    for row in TABLE3["rows"]
]
BIG = VARIATIONS[-1].model


def parameters(row: Row, vocab_size: int = BASE.vocab_size) -> float:
    """The number of parameters, in millions, of a row's model with a vocabulary of `vocab_size` subwords."""
    return count_parameters(replace(row.model, vocab_size=vocab_size)) / 1e6


def scaled(model: ModelConfig, factor: int) -> ModelConfig:
    """The model with the widths d_model, d_ff, d_k and d_v divided by `factor`."""
    return replace(model, **{name: getattr(model, name) // factor for name in ("d_model", "d_ff", "d_k", "d_v")})


def experiments(own: Mapping[str, Any]) -> list[Experiment]:
    """Make an experiment for each row; raises UserError as `plan` does."""
    return plan("table3", flat(TABLE3["options"]), {row.name: row.options for row in VARIATIONS}, own)


def table(planned: Sequence[Experiment], folder: Path) -> Table:
    """Make table 3 from the paper's rows and the runs in `folder`; draws table3.png if there are enough runs."""
    runs_of = {row.name: results(one, folder) for row, one in zip(VARIATIONS, planned, strict=True)}
    base = figure([run.bleu for run in runs_of["base"]])
    cells, data = [], []
    for row in VARIATIONS:
        runs, printed, millions = runs_of[row.name], row.printed, parameters(row)
        bleu = figure([run.bleu for run in runs])
        cells.append(
            [
                row.group,
                row.changes,
                f"{printed.parameters:g}" if printed.parameters else "",
                f"{millions:.1f}",
                f"{printed.perplexity:.2f}",
                f"{printed.bleu:.1f}",
                str(figure([run.perplexity for run in runs])),
                str(bleu),
                difference(bleu, base) if row.name != "base" else "",
            ]
        )
        found = {"parameters": round(millions, 3), "runs": [run.as_json() for run in runs]}
        data.append({"row": row.name, "printed": printed._asdict(), **found})
    pictures = ["table3.png"] if runs_of["base"] and sum(map(bool, runs_of.values())) > 1 else []
    for name in pictures:
        draw(folder / name, runs_of)
    made_by = [run for runs in runs_of.values() for run in runs]
    notes = [*TABLE3["notes"], RESOLVED]
    return Table("table3", TABLE3["title"], TABLE3["headings"], cells, notes, data, made_by, pictures)


def draw(path: Path, runs_of: Mapping[str, Sequence[Result]]) -> None:
    """Draw the effect of each variation, in the paper and in our runs; `runs_of` must hold runs of the base model."""
    base, *rows = [row for row in VARIATIONS if runs_of[row.name]]
    measures: dict[str, Callable[[Printed | Result], float]] = {
        "log perplexity, difference": lambda each: math.log(each.perplexity),
        "BLEU, difference": lambda each: each.bleu,
    }
    with chart(path, (10, 0.8 + 0.28 * len(rows)), columns=2, sharey=True) as both:
        for axes, (label, measure) in zip(both, measures.items(), strict=True):
            ours = {row.name: figure([measure(run) for run in runs_of[row.name]]) for row in (base, *rows)}
            printed = [measure(row.printed) - measure(base.printed) for row in rows]
            means = [ours[row.name].mean - ours[base.name].mean for row in rows]
            spread = [ours[row.name].deviation for row in rows]  # nan draws nothing
            axes.axvline(0, color="0.7", linewidth=1)
            axes.plot(printed, range(len(rows)), "o", markerfacecolor="none", color="black", label="paper")
            axes.errorbar(means, range(len(rows)), xerr=spread, fmt="o", markersize=5, label="our runs")
            axes.set(xlabel=f"{label} from the base model")
        both[0].set_yticks(range(len(rows)), [f"{row.group} {row.changes}".strip() for row in rows])
        both[0].invert_yaxis()
