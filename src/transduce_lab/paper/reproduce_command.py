"""`transduce reproduce`."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from transduce.commands.options import Assignments
from transduce.commands.recipes import Files, FromCode, ToCode, gather
from transduce.system.console import log
from transduce.system.errors import UserError
from transduce.system.files import make_folder
from transduce_lab.comparing.command import present, train_rows, with_corpus_languages

if TYPE_CHECKING:
    from transduce_lab.comparing.standings import Standings
    from transduce_lab.comparing.tables import Table

SEEDS = 3
NO_TIME = 1e-9  # time limit in minutes with which missing runs are only reported


def reproduce(
    what: Literal["table1", "table2", "table3", "figures", "parsing"] | None = None,
    /,
    *,
    check: Path | None = None,
    out: Path | None = None,
    train: Files = (),
    valid: Files = (),
    test: Files = (),
    source: FromCode = "",
    target: ToCode = "",
    seeds: int = SEEDS,
    rows: Annotated[tuple[str, ...], Parameter(consume_multiple=True)] = (),
    budget: float = 0.0,
    assignments: Assignments = (),
) -> None:
    """Compute a table of the paper and compare its values with the printed values, or draw the paper's figures.

    table2, table3 and parsing show the scores of trained models. --budget trains these models; repeat the command until
    all models are trained. The word parsing stands for table 4. For each --train file (.mrg), give one --valid file,
    and one --test file if you have one. One parser learns from the built-in phrasebook. For each --train file,
    four parsers are trained: on all of its trees, on a half, on a quarter and on an eighth.

    --check runs the training of a model again and compares the weights. If an input file is missing or has changed, it
    trains nothing, and the exit status is 1. If code, versions, machine and threads are the same, and no GPU was used,
    the weights must be the same, bit by bit. If they are not, the exit status is 1. If any of these conditions fails,
    the command shows how perplexity and scores differ, without a verdict. To resume a check, repeat the command.

    Args:
        what: A table to compute (parsing: table 4), or figures.
        check: The folder of a model that `transduce train` wrote. Its training runs again.
        out: The folder for the training runs, the tables (.md and .json) and the pictures; by default, paper. With
            --check, the folder for the second training; by default, FOLDER.check.
        train: The training corpus, in any form that `transduce train` accepts; for parsing, .mrg files.
        valid: The validation files.
        test: The test files on which finished models are scored.
        source: Language code of the source.
        target: Language code of the target.
        seeds: Number of models to train for each row of the table, each with its own random seed.
        rows: The rows of table3 to train, by the names of their folders, such as C-N2; by default all. The base model
            is always trained.
        budget: Minutes after which the training stops; 0: no training.
    """
    options = gather(
        None,
        train=train,
        valid=valid,
        test=test,
        languages=(source, target),
        assignments=assignments,
    )
    if check and (what or options or rows or budget or seeds != SEEDS):
        raise UserError(
            "--check takes all options from the model's folder.",
            "Give only --check and --out.",
        )
    if check:
        _check(check, out)
    elif what:
        named = with_corpus_languages(options, train) if what in ("table2", "table3") else options
        _compute(what, out or Path("paper"), named, seeds, rows, budget)
    else:
        raise UserError(
            "Name what to compute: table1, table2, table3, figures or parsing. Or use --check FOLDER."
        )


def _compute(
    what: str,
    out: Path,
    options: Mapping[str, Any],
    seeds: int,
    rows: Sequence[str],
    budget: float,
) -> None:
    if seeds < 1 or not 0 <= budget < math.inf:
        raise UserError("--seeds must be at least 1, and --budget must be 0 or more minutes.")
    if what in ("table1", "figures") and (options or budget or seeds != SEEDS):
        raise UserError(
            f"{what} trains no models.",
            "Leave out the corpus, --budget, --seeds and section.key=value.",
        )
    if rows and what != "table3":
        raise UserError("--rows is only for `transduce reproduce table3`.")
    make_folder(out)
    if what == "figures":
        _draw(out)
        return
    present(*_table(what, out, options, seeds, rows, budget), out)


def _check(folder: Path, out: Path | None) -> None:
    from transduce_lab.paper.check import check  # imports torch: too slow for --help

    if not check(folder, out or Path(f"{folder.resolve()}.check")):
        raise SystemExit(1)


def _table(
    what: str, out: Path, options: Mapping[str, Any], seeds: int, rows: Sequence[str], budget: float
) -> tuple["Table", list[str]]:
    """A table, and sentences about failed trainings."""
    # Imports torch: too slow for --help.
    from transduce_lab.paper import table1, table2, table3, table4

    if what == "table1":
        return table1.table(out), []
    if what == "parsing":
        definitions = table4.comparisons(options, out / "trees")
    elif budget and not (options.get("data.corpora") and options.get("data.test")):
        raise UserError("Training needs a corpus.", "With --budget, give --train and --test, too.")
    elif what == "table2":
        definitions = [table2.comparison(options)]
    else:
        definitions = [table3.comparison(options, rows)]
    until = monotonic() + 60 * budget
    standings = list["Standings"]()
    failures = list[str]()
    for each in definitions:
        left = max(NO_TIME, (until - monotonic()) / 60) if budget else 0.0
        try:
            standings.append(train_rows(replace(each, seeds=seeds), out, left))
            failures += standings[-1].failures
        except UserError as error:  # the other treebanks are trained nevertheless
            failures.append(str(error))
    if not standings:
        raise UserError(" ".join(failures))
    if what == "parsing":
        return table4.table(standings, out), failures
    return {"table2": table2, "table3": table3}[what].table(standings[0], out), failures


def _draw(out: Path) -> None:
    from transduce_lab.paper import figures

    scales = figures.scale_of_dot_products([2**power for power in range(1, 11)])
    figures.draw_positions(out / "positions.png")
    figures.draw_schedules(out / "schedules.png")
    figures.draw_scale(out / "scale.png", scales)
    for offset in (1, 10, 100):
        error = figures.shift_error(offset, 512, 1000)
        print(
            f"PE(pos + {offset}) = PE(pos) M, with an error of at most {error:.1e}, for 1,000 positions"
        )
    for name in ("positions", "schedules", "scale"):
        log(f"Written: {out / name}.png")
