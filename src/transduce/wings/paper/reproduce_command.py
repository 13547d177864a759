"""`transduce reproduce`."""

import math
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from rich.console import Console
from rich.table import Table as ScreenTable

from transduce.commands.options import PIPED_COLUMNS, Assignments
from transduce.commands.recipes import Files, FromCode, ToCode, gather
from transduce.system.console import log
from transduce.system.errors import UserError

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
    """Compute a table of the paper and compare its values with the printed values, or draw the paper's figures.

    table2, table3 and parsing show the scores of trained models. --budget trains these models; repeat the command until
    all models are trained. The word parsing stands for table 4. For each --train file (.mrg), give one --valid file,
    and one --test file if you have one. One parser learns from the built-in phrasebook. For each --train file,
    four parsers are trained: on all of its trees, on a half, on a quarter and on an eighth.

    Args:
        what: A table to compute (parsing: table 4), or figures.
        out: The folder for the training runs, the tables (.md and .json) and the pictures.
        train: The training corpus, in any form that `transduce train` accepts; for parsing, .mrg files.
        valid: The validation files.
        test: The test files on which finished models are scored.
        source: Language code of the source.
        target: Language code of the target.
        seeds: Number of models to train for each row of the table, each with its own random seed.
        budget: Minutes after which the training stops; 0: no training.
        model: The folder of a model; `transduce reproduce figures` also draws its attention maps for each --text.
        text: A sentence for which the attention maps of --model are drawn; repeat --text for more sentences.
    """
    options = gather(None, train=train, valid=valid, test=test, languages=(source, target), assignments=assignments)
    if seeds < 1 or not 0 <= budget < math.inf:
        raise UserError("--seeds must be at least 1, and --budget must be 0 or more minutes.")
    if what in ("table1", "figures") and (options or budget):
        raise UserError(f"{what} trains no models. Leave out the corpus, --budget and section.key=value.")
    if what != "figures" and (model or text):
        raise UserError("--model and --text are only for `transduce reproduce figures`.")
    if (model is None) != (not text):
        raise UserError("--model and --text go together: give a model, and sentences for its attention maps.")
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"{out} can't be created: {error.strerror}.") from None
    if what == "figures":
        if model:
            _draw_attention(out, model, text)
        _draw(out)
        return
    table = _table(what, out, options, seeds, budget)
    _print(table)
    for path in table.write(out):
        log(f"Written: {path}")


def _table(what: str, out: Path, options: Mapping[str, Any], seeds: int, budget: float) -> "Table":
    from transduce.wings.paper import table1, table2, table3, table4  # torch: too slow for --help
    from transduce.wings.paper.experiments import carry_out

    if what == "table1":
        return table1.table(out)
    module = {"table2": table2, "table3": table3, "parsing": table4}[what]
    if budget and module != table4 and not (options.get("data.corpora") and options.get("data.test")):
        raise UserError("Training needs a corpus. With --budget, give --train and --test, too.")
    planned = table4.experiments(options, out / "trees") if module == table4 else module.experiments(options)
    if budget:
        carry_out(planned, range(1, seeds + 1), out, budget)
    return module.table(planned, out)


def _draw(out: Path) -> None:
    from transduce.wings.paper import figures

    scales = figures.scale_of_dot_products([2**power for power in range(1, 11)])
    figures.draw_positions(out / "positions.png")
    figures.draw_schedules(out / "schedules.png")
    figures.draw_scale(out / "scale.png", scales)
    for offset in (1, 10, 100):
        error = figures.shift_error(offset, 512, 1000)
        print(f"PE(pos + {offset}) = PE(pos) M, with an error of at most {error:.1e}, for 1,000 positions")
    for name in ("positions", "schedules", "scale"):
        log(f"Written: {out / name}.png")


def _draw_attention(out: Path, model: Path, texts: Sequence[str]) -> None:
    from transduce import model_folder
    from transduce.decoding.loading import refuse_parser
    from transduce.wings.inspection.maps import attention_of
    from transduce.wings.inspection.plots import USE_TITLES, draw_attention

    loaded = model_folder.load(model)
    refuse_parser(loaded.tokenizer, loaded.folder)
    for number, text in enumerate(texts, 1):
        for name, use in attention_of(loaded.model, loaded.tokenizer, text, loaded.config.decode).uses.items():
            path = out / f"attention-{number}-{name}.png"
            draw_attention(path, use, f"{USE_TITLES[name]}: {text}")
            log(f"Written: {path}")


def _print(table: "Table") -> None:
    screen = ScreenTable(title=table.title, title_justify="left", header_style="bold")
    for heading in table.headings:
        screen.add_column(heading, overflow="fold")
    for row in table.rows:
        screen.add_row(*row)
    console = Console(width=None if sys.stdout.isatty() else PIPED_COLUMNS, markup=False, emoji=False, highlight=False)
    console.print(screen)
    for note in table.notes:
        console.print(note, soft_wrap=False)
