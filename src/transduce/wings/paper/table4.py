"""Table 4 of the paper: English constituency parsing, as printed, and our parsers on the trees that are at hand."""

import math
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from transduce.config.schema import read_recipe
from transduce.decoding.loading import load_models
from transduce.system.errors import UserError
from transduce.system.files import MANIFEST, write_text
from transduce.system.journal import say
from transduce.wings.demo.phrasebook.sampling import split
from transduce.wings.paper.experiments import FILES, Experiment, figure, kept, results
from transduce.wings.paper.tables import Table
from transduce.wings.parsing.evalb import COLLINS
from transduce.wings.parsing.parser import Parser, measure
from transduce.wings.parsing.trees import parse_trees, read_trees

HEADINGS = (
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
SENTENCES = {"train": 20_000, "valid": 300, "test": 500}  # of the phrasebook
SHARES = (1, 2, 4, 8)  # the training trees are divided by, for the learning curve
RECIPE_TREES = 18_951  # that the updates of the recipe are meant for
BRACKETS = ".brackets.json"


class Published(NamedTuple):
    """A row: F1 on section 23 of the Wall Street Journal."""

    parser: str
    training: str
    f1: float


ROWS = (
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
NOTES = (
    "Printed: section 23 of the Wall Street Journal. Ours are other trees, so the figures say nothing of each other.",
    "F1, at most 40 words, complete, errors: as EVALB counts, which leaves out as an error what calls other words "
    "punctuation than the gold tree does; all trees: with the gold tree's punctuation, so that none is left out. "
    "Changed: the share of parses that a search without the constraint would have given otherwise.",
)


class Task(NamedTuple):
    """Trees to learn from, and trees to be measured on."""

    experiment: Experiment
    training: str
    gold: str  # file


def tasks(given: Mapping[str, Any], folder: Path, recipe: tuple[str, str], phrasebook: tuple[str, str]) -> list[Task]:
    """The phrasebook's own trees, and shares of those that were given; their files are written into `folder`.

    recipe and phrasebook: text and name of the recipes for the one and the other. given: data.corpora with the .mrg
    files to learn from, each on its own, data.valid and data.test with one for each of them in the same order, and
    whatever else is set; without data.corpora, the phrasebook alone.
    """
    folder.mkdir(parents=True, exist_ok=True)
    own = {name: value for name, value in given.items() if name not in FILES}
    files = _phrasebook(folder)
    found = [_task("phrasebook", files["train"], files["valid"], files["test"], read_recipe(*phrasebook) | own)]
    corpora = [file for corpus in given.get("data.corpora", ()) for file in corpus["files"]]
    valid = given.get("data.valid", ())
    tests = given.get("data.test") or valid
    if not len(corpora) == len(valid) == len(tests):
        raise UserError("Give each .mrg file to learn from its own to validate on: --train A --valid B, and --test C.")
    sizes = {file: sum(1 for _ in read_trees(file)) for file in (*corpora, *valid, *tests)}
    for file, count in sizes.items():
        if not count:
            raise UserError(f"{file} holds no trees.")
    names = [Path(file).name.split(".")[0] for file in corpora]
    for name in names:
        if names.count(name) > 1:
            raise UserError(f"Runs are named after the files to learn from, of which two are '{name}'; rename one.")
    for name, corpus, validation, test in zip(names, corpora, valid, tests, strict=True):
        for share in SHARES:
            count = len(range(0, sizes[corpus], share))
            trees = _every(share, corpus, folder / f"{name}-{count}.mrg")
            options = _shortened(read_recipe(*recipe), count) | own
            found.append(_task(f"{name}-{count}", trees, validation, test, options, f"{name}, {count:,} trees"))
    return found


def _task(name: str, train: str, valid: str, test: str, options: Mapping[str, Any], training: str = "") -> Task:
    files = {"data.corpora": [{"files": [train]}], "data.valid": (valid,)}
    return Task(Experiment(f"parsing/{name}", {**options, **files}), training or name, test)


def _shortened(options: dict[str, Any], trees: int) -> dict[str, Any]:
    """With as many updates as fewer trees take: in proportion to the square root of how many there are."""
    names = ("train.steps", "train.warmup", "train.cooldown")
    return options | {name: round(options[name] * math.sqrt(trees / RECIPE_TREES)) for name in names}


def table(found: Sequence[Task], folder: Path) -> Table:
    """The paper's rows, and the scores of the finished runs in `folder`, computed once and kept."""
    cells = [[row.parser, row.training, f"{row.f1:.1f}", *[""] * 6] for row in ROWS]
    data: dict[str, Any] = {"published": [row._asdict() for row in ROWS], "runs": []}
    made_by: list[str] = []
    for task in found:
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
    return Table("parsing", "Table 4: English constituency parsing", HEADINGS, cells, NOTES, data, made_by)


def brackets(run: Path, gold_file: str) -> dict[str, float]:
    """Scores of a finished run on gold trees, kept in the run's folder."""

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

    return kept(run / BRACKETS, (gold_file, run / MANIFEST), parse)


def _phrasebook(folder: Path) -> dict[str, str]:
    """Its trees as files; the test sentences put words together that no training sentence does."""
    training, held_out = split(SENTENCES["train"], SENTENCES["valid"] + SENTENCES["test"], seed=1)
    parts = {"train": training, "valid": held_out[: SENTENCES["valid"]], "test": held_out[SENTENCES["valid"] :]}
    files = {}
    for name, examples in parts.items():
        files[name] = str(folder / f"phrasebook.{name}.mrg")
        trees = (next(parse_trees([example.tree]))[0] for example in examples)
        write_text(Path(files[name]), "".join(f"{tree}\n" for tree in trees))
    return files


def _every(share: int, file: str, path: Path) -> str:
    """A file with each `share`-th tree of another, for the first would be those of a few documents."""
    write_text(path, "".join(f"{tree}\n" for tree, _ in islice(read_trees(file), 0, None, share)))
    return str(path)
