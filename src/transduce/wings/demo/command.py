"""`transduce demo`."""

import contextlib
import json
import math
import os
import shlex
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from transduce.commands.options import Assignments
from transduce.commands.recipes import gather
from transduce.config.settings import RECIPE
from transduce.system.console import duration, log
from transduce.system.errors import UserError
from transduce.system.files import make_folder
from transduce.system.journal import read_events

if TYPE_CHECKING:
    from transduce.wings.phrasebook.examples import Example

MAX_SHOWN_SENTENCES = 8
TRAINING_SECONDS = 140  # time for all updates, if the machine is fast enough
MIN_UPDATES = 2000  # 2,000 updates reach 92.0 BLEU; 1,600 reach 88.2
PACE = (  # options of the recipe that change with the number of updates
    "train.steps",
    "train.warmup",
    "train.cooldown",
    "train.learning_rate",
    "train.validate_every",
    "train.save_every",
)


def demo(*, out: Path = Path("demo"), assignments: Assignments = ()) -> None:
    """Train and evaluate a small English-German model on generated sentences in a few minutes, and write a report.

    The test sentences contain word combinations that do not occur in the training sentences.

    Args:
        out: The folder for the text, the model and report.html.
    """
    text = out / "text"
    model = out / "model"
    files: dict[str, Any] = {
        name: [str(text / f"{name}.{code}") for code in ("en", "de")]
        for name in ("train", "valid", "test")
    }
    options = gather("phrasebook", **files, languages=("en", "de"), assignments=assignments)
    if list(options["data.test"]) != files["test"] or options.get("data.directions"):
        raise UserError(
            "The demo generates its own text in one direction.",
            "Leave out data.test and data.directions.",
        )
    from transduce.training.distributed import check_single_process
    from transduce.training.run import train  # imports torch: too slow for --help
    from transduce.wings.phrasebook.examples import examples

    check_single_process("transduce demo")
    if (model / "manifest.json").exists() and (out / "report.html").exists():
        raise UserError(
            f"{model} already exists.", f"Delete {out} or choose another folder with --out."
        )
    log(
        "The sentences are generated. The test sentences contain word combinations that occur in no training sentence."
    )
    make_folder(text)
    for part, names in files.items():
        _write(names, examples(part))
    is_free = options.source("train.steps") == RECIPE
    pace = {name: options[name] for name in PACE if is_free and options.source(name) == RECIPE}
    result = train(options.without(*pace), model, fit=partial(fitted, pace) if pace else None)
    if result.reason == "interrupted":
        raise KeyboardInterrupt
    report = out / "report.html"
    _report(report, model, result.metrics)
    _print_result(result.metrics, report)
    print("Next steps:")
    for purpose, command in next_steps(model):
        print(f"  {purpose}:\n    {command}")


def _print_result(metrics: Mapping[str, Any], report: Path) -> None:
    test = metrics["test"]
    _print_table(test["examples"][:MAX_SHOWN_SENTENCES])
    bleu = next(score for score in test["scores"] if score["name"] == "BLEU")
    print(
        f"\nBLEU {bleu['value']:.1f} on {test['sentences']} sentences with word combinations unseen in training."
    )
    print(f"Trained in {duration(metrics['training']['seconds'])}. Report: {report}\n")


def fitted(pace: Mapping[str, Any], seconds: float) -> dict[str, Any]:
    """Adapt the options `pace` to a training run of about TRAINING_SECONDS, if an update takes `seconds` seconds."""
    steps = pace["train.steps"]
    updates = min(steps, max(MIN_UPDATES, round(TRAINING_SECONDS / seconds)))
    share = updates / steps
    took = f"An update takes {1000 * seconds:.0f} ms on this machine"
    log(
        f"{took}, so the demo makes {updates:,} updates (at least {MIN_UPDATES:,}, at most {steps:,})."
    )
    return {
        # This factor on the learning rate keeps its peak.
        name: value * math.sqrt(share) if name == "train.learning_rate" else round(value * share)
        for name, value in pace.items()
    }


def _write(files: Sequence[str], examples: "Iterable[Example]") -> None:
    for file, lines in zip(
        files, zip(*((each.english, each.german) for each in examples), strict=True), strict=True
    ):
        Path(file).write_text(
            "".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n"
        )


def _print_table(examples: Iterable[dict[str, str]]) -> None:
    table = Table(header_style="bold", show_lines=True)
    for heading in ("sentence", "translation", "reference"):
        table.add_column(heading, ratio=1)
    for each in examples:
        same = each["translation"] == each["reference"]
        table.add_row(
            each["source"], each["translation"], "the same" if same else each["reference"]
        )
    Console(markup=False, emoji=False, highlight=False).print(table)


def next_steps(folder: Path) -> list[tuple[str, str]]:
    """The commands that the demo suggests next, as pairs (purpose, command)."""
    transduce = (
        "transduce" if shutil.which("transduce") else shlex.quote(os.path.relpath(sys.argv[0]))
    )
    python = "python" if shutil.which("transduce") else shlex.quote(os.path.relpath(sys.executable))
    sentence = "The young doctor is reading the book."
    model = shlex.quote(str(folder))
    name = json.dumps(str(folder), ensure_ascii=False)
    program = f'import transduce; print(transduce.load({name}).translate(["{sentence}"])[0].text)'
    return [
        ("Translate a sentence", f'echo "{sentence}" | {transduce} translate {model}'),
        ("Translate in the browser", f"{transduce} serve {model}"),
        ("Show details of the model", f"{transduce} info {model}"),
        ("Use the model from Python", f"{python} -c {shlex.quote(program)}"),
        (
            "Train on your own text",
            f"{transduce} train --train FILE.en FILE.de --from en --to de --out MODEL",
        ),
    ]


def _report(path: Path, model: Path, metrics: Any) -> None:
    from transduce import model_folder
    from transduce.evaluation.scores import Score
    from transduce.wings.inspection.curves import learning_curve
    from transduce.wings.inspection.maps import attention_of
    from transduce.wings.inspection.picture import picture_of
    from transduce.wings.inspection.report import Example, Report, write_report

    loaded = model_folder.load(model)
    examples = [
        Example(each["source"], each["translation"], each["reference"])
        for each in metrics["test"]["examples"]
    ]
    picture = None
    with contextlib.suppress(UserError):  # a family without attention
        recorded = attention_of(
            loaded.model, loaded.tokenizer, examples[0].source, loaded.config.decode
        )
        picture = picture_of(loaded.model, recorded)
    training = metrics["training"]
    corpus = metrics["corpus"]
    write_report(
        path,
        Report(
            title="English to German: the phrasebook",
            summary="A model trained on this machine, and tested on word combinations unseen in training.",
            facts=[
                ("Sentence pairs", f"{corpus['pairs']:,}"),
                ("Parameters", f"{metrics['parameters']:,}"),
                ("Updates", f"{training['steps']:,}"),
                ("Training time", duration(training["seconds"])),
                (
                    "Target tokens per second",
                    f"{training['target_tokens'] / max(training['seconds'], 0.1):,.0f}",
                ),
                ("Computed on", training["device"]),
            ],
            scores=[Score(**each) for each in metrics["test"]["scores"]],
            curve=learning_curve(read_events(model / model_folder.JOURNAL)),
            picture=picture,
            examples=examples,
            next_steps=next_steps(model),
        ),
    )
