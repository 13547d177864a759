"""Makes table 4 (English constituency parsing) from the paper's scores and ours."""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from transduce.commands.recipes import read_text
from transduce.config.parse import read_recipe
from transduce.decoding.loading import load_models
from transduce.system.console import log
from transduce.system.errors import UserError
from transduce.system.files import MANIFEST, make_folder, write_text
from transduce.wings.comparing.runs import FILE_OPTIONS, Experiment, cached, results
from transduce.wings.comparing.statistics import spread
from transduce.wings.comparing.tables import Table
from transduce.wings.paper.printed import PLAIN_OPTIONS, definition, flat
from transduce.wings.parsing.evalb import COLLINS
from transduce.wings.parsing.parser import Parser, measure
from transduce.wings.parsing.trees import read_trees
from transduce.wings.phrasebook.examples import examples

TABLE4 = definition("parsing")
TRAIN_TREES = 20_000  # training trees from the phrasebook
SHARES = (1, 2, 4, 8)  # learning curve: train on every n-th tree of a corpus
SCORES_FILE, SCORES = ".parses.json", ("f1_agreed", "f1", "f1_short", "complete", "left_out", "changed")


def experiments(own: Mapping[str, Any], folder: Path) -> list[Experiment]:
    """Make experiments on the phrasebook and on subsets of the user's corpora; writes the trees to `folder`.

    In the user's options `own`, the n-th files of data.corpora, data.valid and data.test form one corpus. Raises
    UserError if the numbers of files differ, if a file holds no trees, or if two corpora have the same name.
    """
    corpora = [file for corpus in own.get("data.corpora", ()) for file in corpus["files"]]
    valid = own.get("data.valid", ())
    tests = own.get("data.test") or valid
    if not len(corpora) == len(valid) == len(tests):
        raise UserError(
            "Give one validation file for each training file, in the same order, and no test files or equally many.",
            option="data.corpora data.valid data.test",
        )
    sizes = {file: sum(1 for _ in read_trees(file)) for file in (*corpora, *valid, *tests)}
    for file, count in sizes.items():
        if not count:
            raise UserError(f"{file} holds no trees.")
    names = [Path(file).name.split(".")[0] for file in corpora]
    for name, count in Counter(names).items():
        if count > 1:
            raise UserError(f"{count} training files are named '{name}', like their runs. Rename one of these files.")
    make_folder(folder)
    others = {name: value for name, value in own.items() if name not in FILE_OPTIONS}
    book = _phrasebook(folder)
    options = read_recipe(*read_text("phrasebook-parsing")) | others
    planned = [_experiment("phrasebook", "phrasebook", book["train"], book["valid"], book["test"], options)]
    recipe = read_recipe(*read_text("craft-parsing")) | flat(TABLE4["options"])
    for name, corpus, validation, test in zip(names, corpora, valid, tests, strict=True):
        for count, share in {len(range(0, sizes[corpus], share)): share for share in SHARES}.items():
            file = folder / f"{name}-{count}.mrg"
            # Every share-th tree: the first trees of a corpus come from only a few documents.
            write_text(file, "".join(f"{tree}\n" for tree, _ in islice(read_trees(corpus), 0, None, share)))
            options = {**recipe, **others}
            row = f"{name}, {count:,} trees"
            planned.append(_experiment(f"{name}-{count}", row, str(file), validation, test, options))
    return planned


def _experiment(name: str, row: str, train: str, valid: str, test: str, options: Mapping[str, Any]) -> Experiment:
    files = {"data.corpora": [{"files": [train]}], "data.valid": (valid,)}
    return Experiment(f"parsing/{name}", {**PLAIN_OPTIONS, **options, **files}, row, test)


def table(planned: Sequence[Experiment], folder: Path) -> Table:
    """Make table 4 from the paper's rows and the finished runs in `folder`."""
    cells = [[row["parser"], row["training"], f"{row['f1']:.1f}", *[""] * 6] for row in TABLE4["printed"]]
    runs, made_by = list[dict[str, Any]](), list[object]()
    for experiment in planned:
        made = results(experiment, folder)
        scores = [brackets(result.folder, experiment.gold) for result in made]
        means = {key: spread([each[key] for each in scores]) for key in SCORES}
        columns = [str(means[key]) for key in SCORES[:4]]
        left_out = f"{means['left_out'].mean:,g} of {scores[0]['trees']:,}" if scores else ""
        changed = f"{100 * means['changed'].mean:.1f} %" if scores else ""
        cells.append(["here", experiment.row, "", *columns, left_out, changed])
        for result, each in zip(made, scores, strict=True):
            runs.append({"training": experiment.row, "folder": str(result.folder), **each})
        made_by += made
    data = {"published": TABLE4["printed"], "runs": runs}
    return Table(
        "parsing",
        TABLE4["title"],
        TABLE4["headings"],
        cells,
        TABLE4["notes"],
        data,
        made_by,
        command="transduce reproduce parsing",
    )


def brackets(run: Path, gold_file: str) -> dict[str, float]:
    """Score the parser of a run on gold trees, and cache the scores in the run's folder."""

    def parse() -> dict[str, float]:
        gold = [tree for tree, _ in read_trees(gold_file)]
        log(f"Parsing the {len(gold):,} sentences of {gold_file} with {run}")
        models = load_models([run])
        _, scores, agreed, changed, _ = measure(Parser(models, models[0].config.decode), gold, COLLINS)
        return {
            "trees": len(gold),
            "f1": scores.all.figures["F1"],
            "f1_short": scores.short.figures["F1"],
            "complete": scores.all.figures["complete match"],
            "left_out": scores.all.errors + scores.all.skipped,
            "f1_agreed": agreed.all.figures["F1"],
            "changed": changed / len(gold),
        }

    return cached(run / SCORES_FILE, (gold_file, run / MANIFEST), parse)


def _phrasebook(folder: Path) -> dict[str, str]:
    """Write the trees of the phrasebook to a training, a validation and a test file; returns the file names."""
    files = {}
    for part in ("train", "valid", "test"):
        files[part] = str(folder / f"phrasebook.{part}.mrg")
        trees = (example.tree for example in examples(part, TRAIN_TREES))
        write_text(Path(files[part]), "".join(f"{tree}\n" for tree in trees))
    return files
