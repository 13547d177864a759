"""Makes table 3 (variations on the Transformer) from the paper's results and ours."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from transduce.config.parse import options_in
from transduce.config.schema import ModelConfig
from transduce.model.build import count_parameters
from transduce.system.errors import UserError
from transduce_lab.comparing import report
from transduce_lab.comparing.definition import Definition, RowDefinition, checked
from transduce_lab.comparing.outcomes import PERPLEXITY
from transduce_lab.comparing.standings import Standings
from transduce_lab.comparing.tables import Part, Table
from transduce_lab.paper.printed import PLAIN_OPTIONS, definition

TABLE3 = definition("table3")
SHAPE_FIELDS = (  # set in every run, so that the size of the corpus doesn't choose them
    "num_encoder_layers",
    "num_decoder_layers",
    "d_model",
    "d_ff",
    "num_heads",
    "d_k",
    "d_v",
    "dropout",
    "positions",
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
    changes: str = ""  # the changes as the paper prints them
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
        shape = {name: getattr(small, name) for name in SHAPE_FIELDS}
        return options_in({"model": shape, "train": self.train}, "table3")


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

    Raises UserError if a name is unknown, or if `own` sets an option in which rows differ.
    """
    known = [row.name for row in VARIATIONS]
    if unknown := [name for name in names if name not in known]:
        raise UserError(f"Table 3 has no row {unknown[0]}. Its rows are: {', '.join(known)}.")
    rows = [
        RowDefinition(row.name, row.options)
        for row in VARIATIONS
        if not names or row.name in (known[0], *names)
    ]
    options = PLAIN_OPTIONS | options_in(TABLE3["options"], "table3") | dict(own)
    return checked(Definition(TABLE3["title"], rows, options, parent="table3"), own, "table3")


def table(standings: Standings, folder: Path) -> Table:
    """Make table 3 from the paper's rows and the runs in `folder`; draws pictures if there are enough runs."""
    named = {row.name: row for row in VARIATIONS}
    rows = [named[each.name] for each in standings.definition.rows]
    base = VARIATIONS[0].printed
    differences = {
        PERPLEXITY: {row.name: math.log(row.printed.perplexity / base.perplexity) for row in rows},
        "BLEU": {row.name: row.printed.bleu - base.bleu for row in rows},
    }
    ours = report.table(standings, "table3", folder, differences)
    scores, costs = ours.parts
    cells = []
    data = []
    for row, found, facts in zip(rows, scores.rows, ours.data, strict=True):
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
    return ours._replace(
        parts=[Part([*TABLE3["headings"], *scores.headings[1:]], cells), costs],
        notes=[*TABLE3["notes"], *ours.notes],
        data=data,
        command="transduce reproduce table3",
    )
