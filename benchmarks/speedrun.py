"""A speedrun: how long transduce needs from two text files to a translation quality. speedrun.md has the rules.

    python benchmarks/speedrun.py FOLDER --recipe multi30k-en-de --train train.en train.de --valid val.en val.de \
        --test test.en test.de [--bleu 39.5] [--chrf 0] [--seeds 1 2 3] [--options data.pack=512 train.steps=2000]
        [--languages en de]

Trains one model for each seed in a process of its own, FOLDER/SEED, whose clock runs from the start of the process to
its end: reading text, learning subwords, training, validation, and writing the model. Afterwards it translates the test
text and scores it with sacreBLEU. The last line says whether the mean score reaches the target, and the median time.
A record is valid if `transduce reproduce --check FOLDER/SEED` of each seed agrees.
"""

import statistics
import subprocess
import sys
import time
from pathlib import Path

import sacrebleu
import torch
from measuring import run_script

import transduce
from transduce.text.plain import read_lines


def main(
    folder: Path,
    /,
    *,
    train: list[str],
    valid: list[str],
    test: list[str],
    recipe: str = "",
    bleu: float = 0.0,
    chrf: float = 0.0,
    seeds: list[int] | None = None,
    options: list[str] | None = None,
    languages: tuple[str, str] = ("en", "de"),
) -> None:
    """Train and score one model for each seed, and print the table."""
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else "CPU"
    print(f"{device}, torch {torch.__version__}, {time.strftime('%Y-%m-%d')}\n")
    print("| seed | seconds | BLEU | chrF |\n| --- | --- | --- | --- |", flush=True)
    [sources, references] = ([*read_lines(file)] for file in test)
    rows: list[tuple[float, float, float]] = []
    for seed in seeds or [1, 2, 3]:
        out = folder / str(seed)
        seconds = trained(
            out, recipe, train, valid, languages, [*(options or []), f"train.seed={seed}"]
        )
        found = [each.text for each in transduce.load(out).translate(sources)]
        scores = [
            metric.corpus_score(found, [references]).score
            for metric in (sacrebleu.BLEU(), sacrebleu.CHRF())
        ]
        rows.append((seconds, *scores))
        print(f"| {seed} | {seconds:.0f} | {scores[0]:.1f} | {scores[1]:.1f} |", flush=True)
    means = [statistics.mean(column) for column in zip(*rows, strict=True)]
    reached = means[1] >= bleu and means[2] >= chrf
    print(
        f"\nmean BLEU {means[1]:.2f}, chrF {means[2]:.2f}: the target is {'' if reached else 'not '}reached; "
        f"median {statistics.median(row[0] for row in rows):.0f} s"
    )
    sys.exit(0 if reached else 1)


def trained(
    out: Path,
    recipe: str,
    train: list[str],
    valid: list[str],
    languages: tuple[str, str],
    options: list[str],
) -> float:
    """Train a model in a new folder; returns the seconds from the start of the process to its end."""
    if out.exists():
        sys.exit(f"{out} exists, so its training can't be timed. Choose another folder.")
    command = [sys.executable, "-m", "transduce", "train", *([recipe] if recipe else [])]
    command += ["--out", str(out), "--train", *train, "--valid", *valid]
    command += ["--from", languages[0], "--to", languages[1], *options]
    began = time.perf_counter()
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
    return time.perf_counter() - began


if __name__ == "__main__":
    run_script(main, __doc__)
