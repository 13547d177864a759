"""The effect of training in bfloat16 instead of float32 on loss and BLEU, over seeds.

    python benchmarks/precision.py MODEL... [--every 250]

Each MODEL is a finished training with a test set. The trainings differ only in `train.precision` and `train.seed`. The
loss is the negative log-likelihood per target token, in nats, averaged over the updates since the row above. The table
has means, minima and maxima over seeds.
"""

import argparse
import json
import math
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from transduce.model_folder import read_config
from transduce.system.journal import read_events


class Run(NamedTuple):
    """The results of a finished training."""

    precision: str
    seed: int
    losses: dict[int, float]  # number of updates -> mean loss
    perplexity: float  # on the validation set
    bleu: float


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", nargs="+", type=Path, metavar="MODEL")
    parser.add_argument("--every", type=int, default=250, help="number of updates per row")
    arguments = parser.parse_args()
    runs = sorted(read_run(folder, arguments.every) for folder in arguments.models)
    sides = {
        name: [run for run in runs if run.precision == name]
        for name in sorted({run.precision for run in runs})
    }
    print("| seed | precision | perplexity, held out | BLEU |\n| --- | --- | --- | --- |")
    for run in runs:
        print(f"| {run.seed} | {run.precision} | {run.perplexity:.3f} | {run.bleu:.2f} |")
    for name, side in sides.items():
        perplexity = spread([run.perplexity for run in side], 3)
        bleu = spread([run.bleu for run in side])
        print(f"| all | {name} | {perplexity} | {bleu} |")
    print(f"\n| updates | {' | '.join(sides)} |\n| ---{' | ---' * len(sides)} |")
    for step in runs[0].losses:
        print(
            f"| {step:,} |",
            *(f"{spread([run.losses[step] for run in side], 3)} |" for side in sides.values()),
        )


def read_run(folder: Path, every: int) -> Run:
    """Read a training's results from its journal and its metrics."""
    train = read_config(folder).train
    metrics = json.loads((folder / "metrics.json").read_text(encoding="utf-8"))
    bleu = next(score["value"] for score in metrics["test"]["scores"] if score["name"] == "BLEU")
    rows: dict[int, list[float]] = {}
    for event in read_events(folder / "journal.jsonl"):
        if event["event"] == "update":
            rows.setdefault(math.ceil(event["step"] / every) * every, []).append(event["nll"])
    losses = {step: statistics.mean(row) for step, row in sorted(rows.items())}
    return Run(train.precision, train.seed, losses, metrics["validation"]["perplexity"], bleu)


def spread(values: Sequence[float], digits: int = 2) -> str:
    """The mean, minimum and maximum as text."""
    return (
        f"{statistics.mean(values):.{digits}f} [{min(values):.{digits}f}, {max(values):.{digits}f}]"
    )


if __name__ == "__main__":
    main()
