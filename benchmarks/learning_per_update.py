"""BLEU on Multi30k with the settings and the number of updates of a fairseq run; mean over seeds.

    python benchmarks/learning_per_update.py MULTI30K --out FOLDER [--seeds 1,2,3] [--threads 2]

MULTI30K holds train.en.gz and train.de.gz, and the same for val and test_2016_flickr (raw text). Each seed is trained
in a folder of its own in FOLDER; the same command resumes an interrupted training. The table is printed at the end.
"""

import argparse
import json
import statistics
from pathlib import Path

from transduce.config.parse import read_recipe
from transduce.training.run import train

PEER = 31.7  # BLEU of fairseq, one seed, beam 4
RECIPE = Path(__file__).with_suffix(".toml")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seeds", default="1,2,3")
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    seeds = [int(seed) for seed in arguments.seeds.split(",")]
    rows = [
        measure(arguments.data, arguments.out / f"seed-{seed}", seed, arguments.threads)
        for seed in seeds
    ]
    print(
        "| seed | BLEU, beam 4 | perplexity | target tokens | seconds |\n| --- | --- | --- | --- | --- |"
    )
    for seed, row in zip(seeds, rows, strict=True):
        print(
            f"| {seed} | {row['bleu']:.2f} | {row['perplexity']:.2f} | {row['tokens']:,} | {row['seconds']:.0f} |"
        )
    scores = [row["bleu"] for row in rows]
    spread = f" ± {statistics.stdev(scores):.2f}" if len(scores) > 1 else ""
    print(f"mean {statistics.mean(scores):.2f}{spread}; fairseq {PEER}")


def measure(data: Path, out: Path, seed: int, threads: int) -> dict[str, float]:
    """Train with one seed unless the model is finished, and return its metrics."""
    if not (out / "metrics.json").exists():
        options = read_recipe(RECIPE.read_text(encoding="utf-8"), str(RECIPE))
        for split, name in (("valid", "val"), ("test", "test_2016_flickr")):
            options[f"data.{split}"] = [
                str(data / f"{name}.{language}.gz") for language in ("en", "de")
            ]
        files = [str(data / f"train.{language}.gz") for language in ("en", "de")]
        options |= {
            "data.corpora": [{"files": files}],
            "train.seed": seed,
            "train.threads": threads,
        }
        if train(options, out).reason == "interrupted":
            raise SystemExit(130)
    metrics = json.loads((out / "metrics.json").read_text(encoding="utf-8"))
    bleu = next(score["value"] for score in metrics["test"]["scores"] if score["name"] == "BLEU")
    training = metrics["training"]
    return {
        "bleu": bleu,
        "perplexity": metrics["test"]["perplexity"]["per_token"],
        "tokens": training["target_tokens"],
        "seconds": training["seconds"],
    }


if __name__ == "__main__":
    main()
