"""`transduce reproduce`."""

import math
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from rich.console import Console
from rich.table import Table as ScreenTable

from transduce.commands.options import WIDE, Assignments
from transduce.commands.recipes import Files, FromCode, ToCode, gather, read_text
from transduce.system.errors import UserError
from transduce.system.journal import say

if TYPE_CHECKING:
    from transduce.wings.paper.tables import Table


def reproduce(
    what: Literal["table1", "table2", "table3", "figures", "parsing"],
    /,
    *,
    out: Path = Path("paper"),
    train: Files = (),
    valid: Files = (),
    test: Files = (),
    source: FromCode = "",
    target: ToCode = "",
    seeds: int = 3,
    budget: float = 0.0,
    model: Path | None = None,
    text: tuple[str, ...] = (),
    assignments: Assignments = (),
) -> None:
    """Compute a table of the paper, or its figures, with what the paper prints beside.

    table2, table3 and parsing train models on what is given, each run in a folder of its own, so that they add up over
    several starts; without --budget they show the runs that are there. parsing, table 4, takes .mrg files, each --train
    a corpus of its own with its own --valid and --test; it trains on the phrasebook's trees, then on all, a half, a
    quarter and an eighth of each file.

    Args:
        what: Which of them.
        out: The folder for the runs and for NAME.md, NAME.json and pictures.
        train: The corpus of the runs, as for `transduce train`; for parsing, see above.
        valid: Its held-out files.
        test: The files that the finished models are scored on.
        source: Language code of the source.
        target: Language code of the target.
        seeds: Runs of each row.
        budget: Minutes to train for, now.
        model: With figures: a model whose attention is drawn, too, all layers and heads of its three uses.
        text: A sentence that it translates for that; give --text again for more.
    """
    given = gather(None, train=train, valid=valid, test=test, languages=(source, target), assignments=assignments)
    if seeds < 1 or not 0 <= budget < math.inf:
        raise UserError("--seeds must be 1 or more, and --budget a number of minutes.")
    if what in ("table1", "figures") and (given or budget):
        raise UserError(f"{what} trains nothing: leave out the corpus, --budget and section.key=value.")
    if what != "figures" and (model or text):
        raise UserError("--model and --text are for figures.")
    if (model is None) != (not text):
        raise UserError("--model and --text go together: whose attention is drawn, and for which sentences.")
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"{out} cannot be made: {error.strerror}.") from None
    if what == "figures":
        if model:
            _draw_attention(out, model, text)
        _draw(out)
        return
    table = _table(what, out, given, seeds, budget)
    _print(table)
    for path in table.write(out):
        say(f"Written: {path}")


def _table(what: str, out: Path, given: Mapping[str, Any], seeds: int, budget: float) -> "Table":
    from transduce.wings.paper import (
        experiments,  # torch: too slow for --help
        table1,
        table2,
        table3,
    )
    from transduce.wings.paper import table4 as parsing

    if what == "table1":
        return table1.table(out)
    if what == "parsing":
        tasks = parsing.tasks(given, out / "trees", read_text("craft-parsing"), read_text("phrasebook-parsing"))
        if budget:
            experiments.carry_out([task.experiment for task in tasks], range(1, seeds + 1), out, budget)
        return parsing.table(tasks, out)
    module = {"table2": table2, "table3": table3}[what]
    if budget:
        if not given.get("data.corpora") or not given.get("data.test"):
            raise UserError("--budget trains models: give --train and --test, too.")
        experiments.carry_out(module.experiments(given), range(1, seeds + 1), out, budget)
    return module.table(given, out)


def _draw(out: Path) -> None:
    from transduce.wings.paper import figures

    scales = figures.scale_of_dot_products([2**power for power in range(1, 11)])
    figures.draw_positions(out / "positions.png")
    figures.draw_schedules(out / "schedules.png")
    figures.draw_scale(out / "scale.png", scales)
    for offset in (1, 10, 100):
        error = figures.shift_error(offset, 512, 1000)
        print(f"PE(pos + {offset}) = PE(pos) M: to within {error:.1e} for 1,000 positions")
    for name in ("positions", "schedules", "scale"):
        say(f"Written: {out / name}.png")


def _draw_attention(out: Path, model: Path, texts: Sequence[str]) -> None:
    from transduce import model_folder
    from transduce.decoding.loading import refuse_parser
    from transduce.wings.inspection.maps import attention_of
    from transduce.wings.inspection.plots import TITLES, draw_attention

    loaded = model_folder.load(model)
    refuse_parser(loaded.tokenizer, loaded.folder)
    for number, text in enumerate(texts, 1):
        for name, use in attention_of(loaded.model, loaded.tokenizer, text, loaded.config.decode).uses.items():
            path = out / f"attention-{number}-{name}.png"
            draw_attention(path, use, f"{TITLES[name]}: {text}")
            say(f"Written: {path}")


def _print(table: "Table") -> None:
    screen = ScreenTable(title=table.title, title_justify="left", header_style="bold")
    for heading in table.headings:
        screen.add_column(heading, overflow="fold")
    for row in table.rows:
        screen.add_row(*row)
    console = Console(width=None if sys.stdout.isatty() else WIDE, markup=False, emoji=False, highlight=False)
    console.print(screen)
    for note in table.notes:
        console.print(note, soft_wrap=False)
