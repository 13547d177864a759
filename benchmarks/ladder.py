"""Trains models on nested subsets of a corpus with several settings, and compares their BLEU.

    python benchmarks/ladder.py train.tsv.xz dev.tsv.xz --from en --to de --pairs 5000 20000 --out ladder.jsonl \\
      --setting today --setting "dropout train.sample_source=0.1 train.sample_target=0.1" [--seeds 1 2 3] \\
      [--test FILE] [--plot ladder.png]

A subset is the first lines of the training file. A setting is a name and options of `transduce train`. Every run adds a
line to --out as soon as it is complete, and is not repeated. The table has BLEU of the development text, or of the test
text with --test, and the minutes of training. The plot shows BLEU against the number of pairs for all runs in --out.
"""

import argparse
import json
import lzma
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from itertools import islice, product
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("train", type=Path)
    parser.add_argument("dev", type=Path)
    parser.add_argument("--test", type=Path)
    parser.add_argument("--from", dest="source", required=True)
    parser.add_argument("--to", dest="target", required=True)
    parser.add_argument("--pairs", type=int, nargs="+", required=True)
    parser.add_argument("--setting", action="append", required=True)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--plot", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for pairs, seed, setting in product(arguments.pairs, arguments.seeds, arguments.setting):
            name, *options = setting.split()
            key = {
                "train": arguments.train.name,
                "pairs": pairs,
                "name": name,
                "options": options,
                "seed": seed,
            }
            if not any(key.items() <= row.items() for row in rows(arguments.out)):
                row = key | measure(
                    arguments, pairs, [*options, f"train.seed={seed}"], Path(folder)
                )
                with arguments.out.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(row) + "\n")
                print(
                    "{pairs:>7,} {name:<20} seed {seed}  BLEU {bleu:.2f}  {minutes:.1f} min".format(
                        **row
                    ),
                    flush=True,
                )
    if arguments.plot:
        plot(list(rows(arguments.out)), arguments.plot)


def plot(runs: Sequence[dict[str, Any]], path: Path) -> None:
    """Draw a line for each setting, through the mean BLEU over the seeds."""
    figure = Figure(figsize=(7, 4.2), layout="constrained")
    axes = figure.add_subplot(xlabel="sentence pairs", ylabel="BLEU", xscale="log")
    for name in dict.fromkeys(run["name"] for run in runs):
        scores: dict[int, list[float]] = {}
        for run in runs:
            if run["name"] == name:
                scores.setdefault(run["pairs"], []).append(run["bleu"])
        pairs = sorted(scores)
        axes.plot(
            pairs,
            [sum(scores[size]) / len(scores[size]) for size in pairs],
            "o-",
            label=name.replace("-", " "),
        )
    sizes = sorted({run["pairs"] for run in runs})
    axes.set_xticks(sizes, [f"{size:,}" for size in sizes])
    axes.minorticks_off()
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(path, dpi=120)


def rows(file: Path) -> Iterator[dict[str, Any]]:
    """The runs that are complete."""
    if file.exists():
        yield from map(json.loads, file.read_text(encoding="utf-8").split("\n")[:-1])


def measure(
    arguments: argparse.Namespace, pairs: int, options: Sequence[str], folder: Path
) -> dict[str, Any]:
    """Train a model on the first `pairs` lines, and score it."""
    subset = folder / f"{pairs}.tsv"
    with lzma.open(arguments.train, "rt", encoding="utf-8", newline="\n") as file:
        subset.write_text("".join(islice(file, pairs)), encoding="utf-8", newline="\n")
    model = folder / "model"
    shutil.rmtree(model, ignore_errors=True)
    languages = [f"--from={arguments.source}", f"--to={arguments.target}"]
    files = ["--train", str(subset), "--valid", unpacked(arguments.dev, folder)]
    transduce("train", "--out", str(model), *languages, *files, *options)
    text = unpacked(arguments.test or arguments.dev, folder)
    scores = json.loads(transduce("evaluate", str(model), text, "--json"))
    training = json.loads((model / "metrics.json").read_text(encoding="utf-8"))["training"]
    return {
        "bleu": next(score["value"] for score in scores["scores"] if score["name"] == "BLEU"),
        "chrf": next(
            (score["value"] for score in scores["scores"] if score["name"].startswith("chrF")), None
        ),
        "minutes": training["seconds"] / 60,
        "updates": training["steps"],
        "reason": training["reason"],
    }


def unpacked(file: Path, folder: Path) -> str:
    """A copy of a compressed file of pairs."""
    copy = folder / file.name.removesuffix(".xz")
    with lzma.open(file, "rt", encoding="utf-8", newline="\n") as text:
        copy.write_text(text.read(), encoding="utf-8", newline="\n")
    return str(copy)


def transduce(*arguments: str) -> str:
    """Run a command and return what it prints."""
    return subprocess.run(
        [sys.executable, "-m", "transduce", *arguments],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    ).stdout


if __name__ == "__main__":
    main()
