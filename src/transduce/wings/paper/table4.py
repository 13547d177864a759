"""Makes table 4 (English constituency parsing) from the paper's scores and ours."""

import math
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
from transduce.system.files import MANIFEST, write_text
from transduce.wings.paper.experiments import FILE_OPTIONS, Experiment, cached, figure, results
from transduce.wings.paper.tables import Table, definition
from transduce.wings.parsing.evalb import COLLINS
from transduce.wings.parsing.parser import Parser, measure
from transduce.wings.parsing.trees import read_trees
from transduce.wings.phrasebook.examples import examples

TABLE4 = definition("parsing")
TRAIN_TREES = 20_000  # training trees from the phrasebook
SHARES = (1, 2, 4, 8)  # learning curve: train on every n-th tree of a corpus
RECIPE_TREES = 18_951  # the number of training trees that the recipe's train.steps is for
SCORES_FILE, SCORES = ".brackets.json", ("f1", "f1_short", "complete", "errors", "f1_agreed", "changed")


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
    folder.mkdir(parents=True, exist_ok=True)
    others = {name: value for name, value in own.items() if name not in FILE_OPTIONS}
    book = _phrasebook(folder)
    options = read_recipe(*read_text("phrasebook-parsing")) | others
    planned = [_experiment("phrasebook", "phrasebook", book["train"], book["valid"], book["test"], options)]
    recipe = read_recipe(*read_text("craft-parsing"))
    for name, corpus, validation, test in zip(names, corpora, valid, tests, strict=True):
        for share in SHARES:
            count = len(range(0, sizes[corpus], share))
            file = folder / f"{name}-{count}.mrg"
            # Every share-th tree: the first trees of a corpus come from only a few documents.
            write_text(file, "".join(f"{tree}\n" for tree, _ in islice(read_trees(corpus), 0, None, share)))
            options = _shortened(recipe, count) | others
            row = f"{name}, {count:,} trees"
            planned.append(_experiment(f"{name}-{count}", row, str(file), validation, test, options))
    return planned


def _experiment(name: str, row: str, train: str, valid: str, test: str, options: Mapping[str, Any]) -> Experiment:
    files = {"data.corpora": [{"files": [train]}], "data.valid": (valid,)}
    return Experiment(f"parsing/{name}", {**options, **files}, row, test)


def _shortened(options: dict[str, Any], trees: int) -> dict[str, Any]:
    """Scale the numbers of updates in `options` in proportion to the square root of `trees`."""
    names = ("train.steps", "train.warmup", "train.cooldown")
    return options | {name: round(options[name] * math.sqrt(trees / RECIPE_TREES)) for name in names}


def table(planned: Sequence[Experiment], folder: Path) -> Table:
    """Make table 4 from the paper's rows and the finished runs in `folder`."""
    cells = [[row["parser"], row["training"], f"{row['f1']:.1f}", *[""] * 6] for row in TABLE4["printed"]]
    runs, made_by = list[dict[str, Any]](), list[object]()
    for experiment in planned:
        made = results(experiment, folder)
        scores = [brackets(result.folder, experiment.gold) for result in made]
        means = {key: figure([each[key] for each in scores]) for key in SCORES}
        columns = [str(means[key]) for key in ("f1", "f1_short", "complete")]
        errors = f"{means['errors'].mean:g}" if scores else ""
        changed = f"{100 * means['changed'].mean:.1f} %" if scores else ""
        cells.append(["here", experiment.row, "", *columns, errors, str(means["f1_agreed"]), changed])
        for result, each in zip(made, scores, strict=True):
            runs.append({"training": experiment.row, "folder": str(result.folder), **each})
        made_by += made
    data = {"published": TABLE4["printed"], "runs": runs}
    return Table("parsing", TABLE4["title"], TABLE4["headings"], cells, TABLE4["notes"], data, made_by)


def brackets(run: Path, gold_file: str) -> dict[str, float]:
    """Score the parser of a run on gold trees, and cache the scores in the run's folder."""

    def parse() -> dict[str, float]:
        gold = [tree for tree, _ in read_trees(gold_file)]
        log(f"Parsing the {len(gold):,} sentences of {gold_file} with {run}")
        models = load_models([run])
        _, scores, agreed, changed = measure(Parser(models, models[0].config.decode), gold, COLLINS)
        return {
            "trees": len(gold),
            "f1": scores.all.figures["F1"],
            "f1_short": scores.short.figures["F1"],
            "complete": scores.all.figures["complete match"],
            "errors": scores.all.errors,
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
