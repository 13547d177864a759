"""Makes table 3 (variations on the Transformer) from the paper's results and ours."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from transduce.config.schema import ModelConfig
from transduce.model.build import count_parameters
from transduce.system.errors import UserError
from transduce.wings.inspection.plots import chart
from transduce_lab.comparing import report
from transduce_lab.comparing.definition import Definition, RowDefinition, checked
from transduce_lab.comparing.schedule import Standing, Standings
from transduce_lab.comparing.tables import Table
from transduce_lab.paper.printed import PLAIN_OPTIONS, definition, flat

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
        return flat(
            {"model": {name: getattr(small, name) for name in SHAPE_FIELDS}, "train": self.train}
        )


VARIATIONS = [
    Row(
        **row
        | {"printed": Printed(**row["printed"]), "model": replace(BASE, **row.get("model", {}))}
    )
    for row in TABLE3["rows"]
]
BIG = VARIATIONS[-1].model


def parameters(row: Row, vocab_size: int = BASE.vocab_size) -> float:
    """The number of parameters, in millions, of a row's model with a vocabulary of `vocab_size` subwords."""
    return count_parameters(replace(row.model, vocab_size=vocab_size)) / 1e6


def scaled(model: ModelConfig, factor: int) -> ModelConfig:
    """The model with the widths d_model, d_ff, d_k and d_v divided by `factor`."""
    return replace(
        model,
        **{name: getattr(model, name) // factor for name in ("d_model", "d_ff", "d_k", "d_v")},
    )


def comparison(own: Mapping[str, Any], names: Sequence[str] = ()) -> Definition:
    """The training runs of the base model and of the rows with these `names`, or of all rows.

    Raises UserError if a name is unknown, or if `own` sets what rows differ in.
    """
    known = [row.name for row in VARIATIONS]
    if unknown := [name for name in names if name not in known]:
        raise UserError(f"Table 3 has no row {unknown[0]}. Its rows are: {', '.join(known)}.")
    rows = [
        RowDefinition(row.name, row.options)
        for row in VARIATIONS
        if not names or row.name in (known[0], *names)
    ]
    options = PLAIN_OPTIONS | flat(TABLE3["options"]) | dict(own)
    return checked(Definition(TABLE3["title"], rows, options, parent="table3"), own, "table3")


def table(compared: Definition, standings: Standings, folder: Path) -> Table:
    """Make table 3 from the paper's rows and the runs in `folder`; draws pictures if there are enough runs."""
    rows = standings.rows()
    ours = report.table(compared, standings, rows, "table3", folder)
    cells = []
    data = []
    for row, found, facts in zip(_variations(rows), ours.rows, ours.data, strict=True):
        printed = row.printed
        millions = parameters(row)
        begin = [
            row.group,
            row.changes,
            f"{printed.parameters:g}" if printed.parameters else "",
            f"{millions:.1f}",
        ]
        cells.append([*begin, f"{printed.perplexity:.2f}", f"{printed.bleu:.1f}", *found[1:]])
        data.append({**facts, "printed": printed._asdict(), "parameters": round(millions, 3)})
    pictures = list(ours.pictures)
    if any(row.differences for row in rows):
        pictures.append("table3-paper.png")
        draw(folder / pictures[-1], rows)
    return ours._replace(
        pictures=pictures,
        headings=[*TABLE3["headings"], *ours.headings[1:]],
        rows=cells,
        notes=[*TABLE3["notes"], *ours.notes],
        data=data,
        command="transduce reproduce table3",
    )


def _variations(rows: Sequence[Standing]) -> list[Row]:
    named = {row.name: row for row in VARIATIONS}
    return [named[each.definition.name] for each in rows]


def draw(path: Path, rows: Sequence[Standing]) -> None:
    """Draw the effect of each variation on log perplexity and on BLEU, in the paper and in our runs."""
    base = VARIATIONS[0].printed
    compared = [
        (row, found)
        for row, found in zip(_variations(rows), rows, strict=True)
        if found.differences
    ]
    measures: dict[str, tuple[str, Callable[[Printed], float]]] = {
        "perplexity": ("log perplexity, difference", lambda each: math.log(each.perplexity)),
        "BLEU": ("BLEU, difference", lambda each: each.bleu),
    }
    with chart(path, (10, 0.8 + 0.28 * len(compared)), columns=2, sharey=True) as both:
        for axes, (name, (label, measure)) in zip(both, measures.items(), strict=True):
            ours = [found.differences[name] for _, found in compared]
            intervals = [(each.interval[1] - each.value) for each in ours]  # nan draws nothing
            printed = [measure(row.printed) - measure(base) for row, _ in compared]
            axes.axvline(0, color="0.7", linewidth=1)
            axes.plot(
                printed,
                range(len(compared)),
                "o",
                markerfacecolor="none",
                color="black",
                label="paper",
            )
            means = [each.value for each in ours]
            axes.errorbar(
                means, range(len(compared)), xerr=intervals, fmt="o", markersize=5, label="our runs"
            )
            axes.set(xlabel=f"{label} from the base model")
        both[0].set_yticks(
            range(len(compared)), [f"{row.group} {row.changes}".strip() for row, _ in compared]
        )
        both[0].invert_yaxis()
