"""Table 4 of the paper: English constituency parsing, as printed and of parsers trained here."""

import math
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from transduce.config.parse import read_recipe
from transduce.decoding.loading import load_models
from transduce.system.errors import UserError
from transduce.system.files import MANIFEST, write_text
from transduce.system.journal import say
from transduce.wings.paper.experiments import FILE_OPTIONS, Experiment, cached, figure, results
from transduce.wings.paper.tables import Table
from transduce.wings.parsing.evalb import COLLINS
from transduce.wings.parsing.parser import Parser, measure
from transduce.wings.parsing.trees import read_trees
from transduce.wings.phrasebook.examples import examples

TABLE4_HEADINGS = (
    "parser",
    "training",
    "F1 printed",
    "F1",
    "at most 40 words",
    "complete",
    "errors",
    "F1, all trees",
    "changed",
)
TRAIN_TREES = 20_000  # of the phrasebook
SHARES = (1, 2, 4, 8)  # learning curve: train on every n-th tree
RECIPE_TREES = 18_951  # number of trees for which the recipe sets its updates
SCORES_FILE = ".brackets.json"


class Published(NamedTuple):
    """A printed row: F1 on section 23 of the Wall Street Journal."""

    parser: str
    training: str
    f1: float


PRINTED_PARSERS = (
    Published("Vinyals & Kaiser et al. (2014)", "WSJ only, discriminative", 88.3),
    Published("Petrov et al. (2006)", "WSJ only, discriminative", 90.4),
    Published("Zhu et al. (2013)", "WSJ only, discriminative", 90.4),
    Published("Dyer et al. (2016)", "WSJ only, discriminative", 91.7),
    Published("Transformer (4 layers)", "WSJ only, discriminative", 91.3),
    Published("Zhu et al. (2013)", "semi-supervised", 91.3),
    Published("Huang & Harper (2009)", "semi-supervised", 91.3),
    Published("McClosky et al. (2006)", "semi-supervised", 92.1),
    Published("Vinyals & Kaiser et al. (2014)", "semi-supervised", 92.1),
    Published("Transformer (4 layers)", "semi-supervised", 92.7),
    Published("Luong et al. (2015)", "multi-task", 93.0),
    Published("Dyer et al. (2016)", "generative", 93.3),
)
TABLE4_NOTES = (
    "Printed: section 23 of the Wall Street Journal. The trees here are others, so the figures can't be compared.",
    "F1, at most 40 words, complete, errors: by EVALB, which excludes a parse as an error if it tags other words as "
    "punctuation than the gold tree. All trees: with the gold tree's punctuation, so that no parse is excluded. "
    "Changed: the share of parses that differ from those of a search without the constraint.",
)


class Task(NamedTuple):
    """A training on trees, and the gold trees that it is scored on."""

    experiment: Experiment
    training: str
    gold: str  # file


def tasks(own: Mapping[str, Any], folder: Path, recipe: tuple[str, str], phrasebook: tuple[str, str]) -> list[Task]:
    """Tasks on the phrasebook's trees, and on shares of each corpus in `own`; writes their files into `folder`.

    recipe, phrasebook: text and name of the recipe for corpora and for the phrasebook. own: data.corpora with one .mrg
    file per corpus, data.valid and data.test with a file for each of them in the same order, and any other options.
    """
    folder.mkdir(parents=True, exist_ok=True)
    others = {name: value for name, value in own.items() if name not in FILE_OPTIONS}
    files = _phrasebook(folder)
    planned = [_task("phrasebook", files["train"], files["valid"], files["test"], read_recipe(*phrasebook) | others)]
    corpora = [file for corpus in own.get("data.corpora", ()) for file in corpus["files"]]
    valid = own.get("data.valid", ())
    tests = own.get("data.test") or valid
    if not len(corpora) == len(valid) == len(tests):
        raise UserError(
            "Each .mrg file of --train needs one of --valid, and one of --test if any: --train A --valid B --test C."
        )
    sizes = {file: sum(1 for _ in read_trees(file)) for file in (*corpora, *valid, *tests)}
    for file, count in sizes.items():
        if not count:
            raise UserError(f"{file} holds no trees.")
    names = [Path(file).name.split(".")[0] for file in corpora]
    for name in names:
        if names.count(name) > 1:
            raise UserError(f"Two training files are named '{name}', and runs are named after them. Rename one.")
    for name, corpus, validation, test in zip(names, corpora, valid, tests, strict=True):
        for share in SHARES:
            count = len(range(0, sizes[corpus], share))
            trees = _every(share, corpus, folder / f"{name}-{count}.mrg")
            options = _shortened(read_recipe(*recipe), count) | others
            planned.append(_task(f"{name}-{count}", trees, validation, test, options, f"{name}, {count:,} trees"))
    return planned


def _task(name: str, train: str, valid: str, test: str, options: Mapping[str, Any], training: str = "") -> Task:
    files = {"data.corpora": [{"files": [train]}], "data.valid": (valid,)}
    return Task(Experiment(f"parsing/{name}", {**options, **files}), training or name, test)


def _shortened(options: dict[str, Any], trees: int) -> dict[str, Any]:
    """The options with fewer updates, in proportion to the square root of the number of trees."""
    names = ("train.steps", "train.warmup", "train.cooldown")
    return options | {name: round(options[name] * math.sqrt(trees / RECIPE_TREES)) for name in names}


def table(planned: Sequence[Task], folder: Path) -> Table:
    """The paper's rows, and the scores of the finished runs in `folder`, which are cached."""
    cells = [[row.parser, row.training, f"{row.f1:.1f}", *[""] * 6] for row in PRINTED_PARSERS]
    data: dict[str, Any] = {"published": [row._asdict() for row in PRINTED_PARSERS], "runs": []}
    made_by: list[str] = []
    for task in planned:
        made = results(task.experiment, folder)
        made_by += map(str, made)
        runs = [result.folder for result in made]
        scores = [brackets(run, task.gold) for run in runs]
        columns = [str(figure([each[key] for each in scores])) for key in ("f1", "f1_short", "complete")]
        changed = f"{100 * figure([each['changed'] for each in scores]).mean:.1f} %" if scores else ""
        errors = f"{figure([each['errors'] for each in scores]).mean:g}" if scores else ""
        agreed = str(figure([each["f1_agreed"] for each in scores]))
        cells.append(["here", task.training, "", *columns, errors, agreed, changed])
        data["runs"] += [
            {"training": task.training, "folder": str(run), **each} for run, each in zip(runs, scores, strict=True)
        ]
    return Table(
        "parsing", "Table 4: English constituency parsing", TABLE4_HEADINGS, cells, TABLE4_NOTES, data, made_by
    )


def brackets(run: Path, gold_file: str) -> dict[str, float]:
    """The scores of a finished run on gold trees, cached in the run's folder."""

    def parse() -> dict[str, float]:
        gold = [tree for tree, _ in read_trees(gold_file)]
        say(f"Parsing the {len(gold):,} sentences of {gold_file} with {run}")
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
    """Write the phrasebook's trees; test sentences have combinations of words that are not in training."""
    files = {}
    for part in ("train", "valid", "test"):
        files[part] = str(folder / f"phrasebook.{part}.mrg")
        trees = (example.tree for example in examples(part, TRAIN_TREES))
        write_text(Path(files[part]), "".join(f"{tree}\n" for tree in trees))
    return files


def _every(share: int, file: str, path: Path) -> str:
    """Write every `share`-th tree of a file: the first ones would be from a few documents."""
    write_text(path, "".join(f"{tree}\n" for tree, _ in islice(read_trees(file), 0, None, share)))
    return str(path)
