"""What a fine-tuned model gains on new text and loses on other text, with and without what keeps the old.

Fine-tunes MODEL on some of the pairs of a file, by `transduce train --init` with its defaults and with `--forget`, and
prints the chrF (greedy search) of MODEL and of both results on two test sets.

    python benchmarks/fine_tuning.py MODEL new.tsv --new new.en new.de --general other.en other.de --from en --to de

Each seed draws other pairs of the file, and trains with this seed.
"""

import json
import random
import statistics
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from measuring import run_script

import transduce
from transduce.decoding.loading import load
from transduce.decoding.translator import Translator
from transduce.evaluation.scores import score

SENTENCES = 1000
Texts = Mapping[str, tuple[list[str], list[str]]]


def lines(file: Path) -> list[str]:
    return file.read_text(encoding="utf-8").split("\n")[:-1]


def chrf(model: Path, texts: Texts) -> dict[str, float]:
    """The chrF of greedy translations of each text."""
    translator = load(model, engine="torch")
    greedy = replace(translator.config, beam_size=1)
    plain = Translator(translator.engine, translator.tokenizer, greedy)
    found = {}
    for name, (sources, references) in texts.items():
        outputs = [each.text for each in plain.translate(sources)]
        found[name] = score(outputs, references)[1].value
    return found


def fine_tune(
    model: Path,
    pairs: Sequence[str],
    seed: int,
    texts: Texts,
    source: str,
    target: str,
    *,
    forget: bool,
) -> dict[str, float]:
    """Fine-tune on `pairs`, and return the scores, the updates and the seconds."""
    with tempfile.TemporaryDirectory() as folder:
        corpus = Path(folder) / "new.tsv"
        corpus.write_text("\n".join(pairs) + "\n", encoding="utf-8")
        result = transduce.train(
            Path(folder) / "tuned",
            train=corpus,
            source=source,
            target=target,
            init=model,
            forget=forget,
            options={"train.seed": seed},
        )
        course = result.metrics["training"]
        figures = {"updates": course["steps"], "seconds": course["seconds"]}
        tuning = result.metrics.get("tuning", {})
        share = {"share": tuning["share"]} if tuning else {}
        return chrf(result.folder, texts) | figures | share


def main(
    model: Path,
    pairs: Path,
    *,
    new: tuple[Path, Path],
    general: tuple[Path, Path],
    source: Annotated[str, Parameter(name="--from")],
    target: Annotated[str, Parameter(name="--to")],
    sizes: tuple[int, ...] = (500, 2000, 5000),
    seeds: tuple[int, ...] = (1, 2, 3),
) -> None:
    """Print a row in JSON for each fine-tuning, and a table of their means."""
    texts = {
        name: (lines(first)[:SENTENCES], lines(second)[:SENTENCES])
        for name, (first, second) in (("new", new), ("general", general))
    }
    before = chrf(model, texts)
    print(json.dumps({"before": before}), flush=True)
    every = lines(pairs)
    table = []
    for size in sizes:
        rows = []
        for seed in seeds:
            some = random.Random(seed).sample(every, size)
            row = {}
            for name, forget in (("forget", True), ("default", False)):
                row[name] = fine_tune(model, some, seed, texts, source, target, forget=forget)
            rows.append(row)
            print(json.dumps({"pairs": size, "seed": seed} | row), flush=True)
        means = {
            f"{name} {text}": statistics.mean(row[name][text] for row in rows)
            for name in ("forget", "default")
            for text in texts
        }
        kept = [
            (row["default"]["new"] - before["new"]) / (row["forget"]["new"] - before["new"])
            for row in rows
        ]
        lost = [1 - row["default"]["general"] / before["general"] for row in rows]
        cells = [
            f"{size:,}",
            *(f"{mean:.1f}" for mean in means.values()),
            f"{statistics.mean(kept):.0%} [{min(kept):.0%}, {max(kept):.0%}]",
            f"{statistics.mean(lost):.1%} [{min(lost):.1%}, {max(lost):.1%}]",
        ]
        table.append(f"| {' | '.join(cells)} |")
    print("| pairs | forget: new | other | default: new | other | gain kept | lost |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    print("\n".join(table))


if __name__ == "__main__":
    run_script(main, __doc__)
