"""Makes table 4 (English constituency parsing) from the paper's scores and ours."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from transduce.commands.recipes import read_text
from transduce.config.parse import options_in, read_recipe
from transduce.system.errors import UserError
from transduce.system.files import make_folder, write_text
from transduce.wings.phrasebook.examples import examples
from transduce_lab.comparing import report
from transduce_lab.comparing.definition import Definition, RowDefinition, checked
from transduce_lab.comparing.outcomes import OUTCOME, outcome
from transduce_lab.comparing.runs import FILE_OPTIONS
from transduce_lab.comparing.standings import Standing, Standings
from transduce_lab.comparing.statistics import spread
from transduce_lab.comparing.tables import Part, Table
from transduce_lab.paper.printed import PLAIN_OPTIONS, definition
from transduce_lab.parsing.brackets import BracketScores, score_brackets
from transduce_lab.parsing.trees import read_trees

TABLE4 = definition("parsing")
TRAIN_TREES = 20_000  # training trees from the phrasebook
EVALB_HEADINGS = ("F1 by EVALB", "at most 40 words", "complete", "left out by EVALB")
SHARES = (1, 2, 4, 8)  # learning curve: train on every n-th tree of a corpus


def comparisons(own: Mapping[str, Any], folder: Path) -> list[Definition]:
    """A table of one row for the phrasebook, and one for the subsets of each corpus; writes the trees to `folder`.

    In the user's options `own`, the n-th files of data.corpora, data.valid and data.test form one corpus. Raises
    UserError if the numbers of files differ, if a file holds no trees, or if two corpora have the same name.
    """
    corpora, valid, tests = _files(own)
    sizes = {file: sum(1 for _ in read_trees(file)) for file in (*corpora, *valid, *tests)}
    for file, count in sizes.items():
        if not count:
            raise UserError(f"{file} holds no trees.")
    make_folder(folder)
    others = {name: value for name, value in own.items() if name not in FILE_OPTIONS}
    book = _phrasebook(folder)
    options = read_recipe(*read_text("phrasebook-parsing")) | others
    tables = [_comparison({"phrasebook": book["train"]}, book["valid"], book["test"], options)]
    options = (
        read_recipe(*read_text("craft-parsing")) | options_in(TABLE4["options"], "parsing") | others
    )
    for corpus, validation, test in zip(corpora, valid, tests, strict=True):
        tables.append(_comparison(_parts(corpus, sizes[corpus], folder), validation, test, options))
    return tables


def _files(own: Mapping[str, Any]) -> tuple[Sequence[str], Sequence[str], Sequence[str]]:
    """The training, validation and test files in the user's options; raises UserError if they do not match."""
    corpora = [file for corpus in own.get("data.corpora", ()) for file in corpus["files"]]
    valid = own.get("data.valid", ())
    tests = own.get("data.test") or valid
    if not len(corpora) == len(valid) == len(tests):
        raise UserError(
            f"The table has {len(corpora)} training files, {len(valid)} validation files and {len(tests)} test files.",
            "Give one validation file for each training file, in the same order, and no test files or equally "
            "many.",
            "data.corpora",
            "data.valid",
            "data.test",
        )
    for name, count in Counter(map(_name, corpora)).items():
        if count > 1:
            raise UserError(
                f"{count} training files are named '{name}', like their runs.",
                "Rename one of these files.",
            )
    return corpora, valid, tests


def _name(corpus: str) -> str:
    """The first part of the names of a corpus's rows."""
    return RowDefinition(Path(corpus).name.split(".")[0], {}).folder


def _parts(corpus: str, size: int, folder: Path) -> dict[str, str]:
    """Write every n-th of a corpus's `size` trees to a file, for the n of SHARES; returns the files by row.

    The first trees of a corpus would come from only a few documents.
    """
    files = dict[str, str]()
    for count, share in {len(range(0, size, share)): share for share in SHARES}.items():
        row = f"{_name(corpus)}-{count}"
        files[row] = str(folder / f"{row}.mrg")
        trees = islice(read_trees(corpus), 0, None, share)
        write_text(Path(files[row]), "".join(f"{tree}\n" for tree, _ in trees))
    return files


def _comparison(
    files: Mapping[str, str], valid: str, test: str, options: Mapping[str, Any]
) -> Definition:
    rows = [
        RowDefinition(name, {"data.corpora": [{"files": [file]}]}) for name, file in files.items()
    ]
    shared = {**PLAIN_OPTIONS, **options, "data.valid": (valid,), "data.test": (test,)}
    return checked(
        Definition(TABLE4["title"], rows, shared, judge="F1", parent="parsing"), {}, "parsing"
    )


def table(compared: Sequence[Standings], folder: Path) -> Table:
    """Make table 4 from the paper's rows and the finished runs in `folder`."""
    made = [_of_a_corpus(standings, folder) for standings in compared]
    printed = [[row["parser"], row["training"], f"{row['f1']:.1f}"] for row in TABLE4["printed"]]
    notes = [*TABLE4["notes"], *(note for each in made for note in each.notes)]
    return made[0]._replace(
        name="parsing",
        parts=[
            Part(TABLE4["headings"], printed, "In the paper"),
            *(part for each in made for part in each.parts),
        ],
        notes=list(dict.fromkeys(notes)),
        data={"published": TABLE4["printed"], "rows": [row for each in made for row in each.data]},
        runs=[run for each in made for run in each.runs],
        pictures=[picture for each in made for picture in each.pictures],
        command="transduce reproduce parsing",
    )


def _of_a_corpus(standings: Standings, folder: Path) -> Table:
    """The table of the parsers of one corpus, with EVALB's scores."""
    name = standings.definition.base_row.name
    ours = report.table(standings, f"parsing-{name}", folder)
    scores, costs = ours.parts
    cells = [
        [*found, *_evalb(row, standings)]
        for row, found in zip(standings.rows, scores.rows, strict=True)
    ]
    part = Part([*scores.headings, *EVALB_HEADINGS], cells, f"Here: {name}")
    base = f"the row '{name}'"
    notes = [note.replace(base, "the parser of all trees of the corpus") for note in ours.notes]
    return ours._replace(parts=[part, costs], notes=notes)


def _evalb(row: Standing, standings: Standings) -> list[str]:
    """EVALB's scores of a row's parses: F1, F1 of short sentences, complete matches, and trees that are left out."""
    gold = list(map(str, standings.text.trees))
    found = [
        outcome([run.folder], standings.text, run.folder / OUTCOME).outputs for run in row.runs
    ]
    scores: list[BracketScores] = [score_brackets(gold, parses) for parses in found]
    if not scores:
        return [""] * 4
    left_out = sum(each.all.errors + each.all.skipped for each in scores) / len(scores)
    values = [
        [each.all.figures["F1"], each.short.figures["F1"], each.all.figures["complete match"]]
        for each in scores
    ]
    # No bracket is right.
    values = [[0.0 if math.isnan(value) else value for value in row] for row in values]
    return [
        *(str(spread(each)) for each in zip(*values, strict=True)),
        f"{left_out:,g} of {len(gold):,}",
    ]


def _phrasebook(folder: Path) -> dict[str, str]:
    """Write the trees of the phrasebook to a training, a validation and a test file; returns the file names."""
    files = {}
    for part in ("train", "valid", "test"):
        files[part] = str(folder / f"phrasebook.{part}.mrg")
        trees = (example.tree for example in examples(part, TRAIN_TREES))
        write_text(Path(files[part]), "".join(f"{tree}\n" for tree in trees))
    return files
