"""`transduce compare`."""

import contextlib
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from transduce.commands.options import Assignments
from transduce.commands.recipes import Files, FromCode, ToCode, gather, with_languages
from transduce.config.settings import Settings
from transduce.system.console import log
from transduce.system.errors import UserError
from transduce.system.files import make_folder

if TYPE_CHECKING:
    from transduce_lab.comparing.definition import Definition
    from transduce_lab.comparing.outcomes import EvaluationText
    from transduce_lab.comparing.standings import Standings
    from transduce_lab.comparing.tables import Table


def compare(
    table: Path,
    /,
    *,
    out: Path,
    train: Files = (),
    valid: Files = (),
    test: Files = (),
    source: FromCode = "",
    target: ToCode = "",
    budget: float = 0.0,
    assignments: Assignments = (),
) -> None:
    """Train models with different options, and say which options are better.

    TABLE is a TOML file with one line of options per row. Every row is trained with several seeds, and compared with
    the first row on the test text. The result is a table with perplexity, BLEU and chrF (of parsers: F1), differences
    with confidence intervals, and a verdict for each row. Runs add up: repeat the command until all runs are finished.

    Args:
        table: The definition of the table. docs/guides/compare.md describes its keys.
        out: The folder for the runs, the table (.md and .json) and the pictures.
        train: The training corpus, in any form that `transduce train` accepts.
        valid: The validation files. The values of a grid are chosen on them.
        test: The test files, by which the rows are compared.
        source: Language code of the source.
        target: Language code of the target.
        budget: Minutes after which the training stops; 0: no training, only the table.
    """
    if not 0 <= budget < math.inf:
        raise UserError("--budget must be 0 or more minutes.")
    given = gather(
        None,
        train=train,
        valid=valid,
        test=test,
        languages=(source, target),
        assignments=assignments,
    )
    # Imports torch: too slow for --help.
    from transduce.preparation.prepared import is_prepared, read_facts
    from transduce_lab.comparing import definition as definitions
    from transduce_lab.comparing import report

    definition = definitions.read(table, with_corpus_languages(given, train))
    files = [
        file for corpus in definition.options.get("data.corpora", ()) for file in corpus["files"]
    ]
    for name in (
        ("data.corpora", "data.test")
        if is_prepared(files)
        else ("data.corpora", "data.valid", "data.test")
    ):
        if not definition.options.get(name):
            raise UserError(
                f"{table}: a table needs training, validation and test files.",
                "Name these files.",
                name,
            )
    if definition.grid and is_prepared(files) and not read_facts(Path(files[0])).held_out:
        raise UserError(
            f"{table}: a grid needs a validation set, and {files[0]} was prepared without one."
        )
    _check_folder(out, [row.name for row in definition.rows])
    make_folder(out)
    standings = train_rows(definition, out, budget)
    present(report.table(standings, "table", out), standings.failures, out)


def present(table: "Table", failures: Sequence[str], out: Path) -> None:
    """Print and write a table. Then raise UserError if there are sentences about failures."""
    table.show()
    for path in table.write(out):
        log(f"Written: {path}")
    if failures:
        raise UserError(" ".join(failures))


def _check_folder(out: Path, rows: Sequence[str]) -> None:
    """Raise UserError if the folder holds a table that has none of these rows."""
    # The table is missing or damaged.
    with contextlib.suppress(OSError, ValueError, TypeError, LookupError):
        known = {row["row"] for row in json.loads((out / "table.json").read_bytes())}
        if known and known.isdisjoint(rows):
            raise UserError(f"{out} holds another table.", "Choose another folder.")


def with_corpus_languages(given: Settings, train: Sequence[str]) -> dict[str, Any]:
    """The options `given`, with the languages in the names of the corpus files, or of a prepared corpus."""
    from transduce.training.start import with_known_languages  # imports torch: too slow for --help

    return dict(with_known_languages(with_languages(given, train), None))


def train_rows(definition: "Definition", out: Path, budget: float) -> "Standings":
    """Train the models of a table for at most `budget` minutes, and return what is finished and what failed.

    Raises UserError if scipy is missing, if the test text can't be used, or if runs in `out` have other options.
    """
    from transduce_lab.comparing import runs
    from transduce_lab.comparing.standings import Standings
    from transduce_lab.comparing.statistics import student

    student(1)  # reports a missing package before the training
    standings = Standings(definition, out, _text(definition))
    if budget:
        planned = list(definition.planned_runs(out))
        after = len(definition.trained) * definition.seeds
        is_open = all(seed == runs.TUNING_SEED for _, seed in planned)
        log(
            runs.count(planned, out)
            + (f" Then come {after} with the chosen values." if is_open else "")
        )
        try:
            is_finished = runs.carry_out(definition.planned_runs(out), out, budget)
        except runs.RunsFailedError as error:
            standings.failures.append(str(error))
        standings.failures += definition.refusals(out)
        if not (standings.failures or is_finished):
            log(
                "Some runs are not finished: the time is over, or another process trains them. Repeat the command."
            )
    return standings


def _text(definition: "Definition") -> "EvaluationText":
    """The test text or trees of a table; empty if the options name none."""
    from transduce.commands.test_sets import read_test_set
    from transduce.config.parse import configure
    from transduce.evaluation.evaluate import direction_of
    from transduce.text.multilingual import is_multilingual
    from transduce.text.pairs import are_trees, expand_folders, single_lines
    from transduce_lab.comparing.outcomes import EvaluationText
    from transduce_lab.parsing.trees import read_trees, simplify

    data = configure(
        {name: value for name, value in definition.options.items() if name.startswith("data.")}
    ).data
    if is_multilingual(data.test):
        raise UserError(
            "The test text has several directions.",
            "Compare models on the text of one direction.",
        )
    read = single_lines(read_test_set(data.test, data, ("", ""))) if data.test else ()
    pairs = [pair for pair in read if pair.source.strip() and pair.target.strip()]
    if data.test and not pairs:
        raise UserError(
            f"The test files {' and '.join(data.test)} contain no lines.",
            "Name other files.",
            "data.test",
        )
    files = expand_folders(data.test) if are_trees(data.test) else []
    trees = [tree for file in files for tree, _ in read_trees(file) if simplify(tree)]
    return EvaluationText(data.test, pairs, direction_of(pairs, data), data.bleu_tokenize, trees)
