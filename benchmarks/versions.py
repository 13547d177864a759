"""Compares the speed of two versions of transduce, to show whether a change made anything slower.

    python benchmarks/versions.py OLD NEW MODEL TEXT.en TEXT.de [--rounds 5] [--only train-small translate-torch]

OLD and NEW are checkouts, MODEL is a model folder that both can read, and TEXT is parallel text of at least about
20,000 lines. Each measurement runs `python -m transduce` in a separate process, with the checkout's src first in
PYTHONPATH. The versions take turns, and alternate in going first. The table has medians, and the median, smallest and
largest ratio of new to old in a round. Higher rates and fewer seconds are better.

    train-small, train-base   target tokens a second of `train`, from update 10 to the last; base: the paper's shape
    prepare                   pairs a second of `prepare --vocabulary`
    translate-*               lines a second of `translate --engine *`, with loading
    one-line, help            seconds of `translate` of one line with the default engine, and of `--help`
    serve                     answers a second of `serve` to 64 clients
"""

import argparse
import asyncio
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path

from serving import closed, server

STEPS = 30
TOKENS = {"small": 2048, "base": 1024}  # of an update, on either side
SHAPES = {
    "small": (
        "num_encoder_layers=3",
        "num_decoder_layers=3",
        "d_model=256",
        "d_ff=1024",
        "num_heads=4",
    ),
    "base": (
        "num_encoder_layers=6",
        "num_decoder_layers=6",
        "d_model=512",
        "d_ff=2048",
        "num_heads=8",
    ),
}
LINES = {"ctranslate2": 2_000, "torch": 500}
PREPARED_LINES = 20_000


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("versions", type=Path, nargs=2, metavar="CHECKOUT")
    parser.add_argument("model", type=Path)
    parser.add_argument("text", type=Path, nargs=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", nargs="*")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        measures = measurements(arguments.model.absolute(), arguments.text, Path(folder))
        versions = [version.absolute() for version in arguments.versions]
        print("| | old | new | new / old |\n| --- | --- | --- | --- |", flush=True)
        for name, measure in measures.items():
            if not arguments.only or name.partition(",")[0] in arguments.only:
                print(row(name, measure, versions, arguments.rounds), flush=True)


def row(name: str, measure: Callable[[Path], float], versions: Sequence[Path], rounds: int) -> str:
    """Measure both versions in turns, and return a row of the table."""
    rates: dict[Path, list[float]] = {version: [] for version in versions}
    for turn in range(rounds):
        for version in versions if turn % 2 else versions[::-1]:
            try:
                rates[version].append(measure(version))
            except subprocess.CalledProcessError as error:
                return (
                    f"| {name} | not possible here: {error.stderr.strip().splitlines()[-1]} | | |"
                )
    old, new = rates.values()
    ratios = sorted(after / before for before, after in zip(old, new, strict=True))
    middle = [f"{statistics.median(each):,.4g}" for each in (old, new, ratios)]
    return (
        f"| {name} | {middle[0]} | {middle[1]} | {middle[2]} [{ratios[0]:.2f}, {ratios[-1]:.2f}] |"
    )


def measurements(
    model: Path, text: Sequence[Path], folder: Path
) -> dict[str, Callable[[Path], float]]:
    """The measurements of a version, by name."""
    lines = [list(islice(path.open(encoding="utf-8"), PREPARED_LINES)) for path in text]
    files = [folder / f"text.{path.suffix.removeprefix('.')}" for path in text]
    for file, content in zip(files, lines, strict=True):
        file.write_text("".join(content), encoding="utf-8")
    languages = [
        f"--from={text[0].suffix.removeprefix('.')}",
        f"--to={text[1].suffix.removeprefix('.')}",
    ]
    corpus = [*languages, "--train", *map(str, files)]
    sentences = [line.strip() for line in lines[0][: max(LINES.values())]]

    def train(version: Path, shape: str) -> float:
        out = folder / "run"
        shutil.rmtree(out, ignore_errors=True)
        sizes = [f"model.{each}" for each in SHAPES[shape]]
        length = [
            f"train.steps={STEPS}",
            "train.warmup=10",
            f"data.max_tokens={TOKENS[shape]}",
            "data.vocab_size=8000",
        ]
        length += ["data.holdout=20"]  # the final validation is not measured
        run(version, "train", "--out", str(out), *corpus, *sizes, *length)
        journal = map(json.loads, (out / "journal.jsonl").read_text(encoding="utf-8").splitlines())
        updates = [event for event in journal if event["event"] == "update"]
        first = updates[0]
        last = updates[-1]
        return (last["tokens_seen"] - first["tokens_seen"]) / (last["seconds"] - first["seconds"])

    def prepare(version: Path) -> float:
        out = folder / "prepared"
        shutil.rmtree(out, ignore_errors=True)
        seconds = run(version, "prepare", "--out", str(out), "--vocabulary", str(model), *corpus)
        return PREPARED_LINES / seconds

    def translate(version: Path, engine: str) -> float:
        (folder / "input").write_text(
            "\n".join(sentences[: LINES[engine]]) + "\n", encoding="utf-8"
        )
        return LINES[engine] / run(
            version,
            "translate",
            str(model),
            "--engine",
            engine,
            "--input",
            str(folder / "input"),
            "--output",
            str(folder / "output"),
        )

    def one_line(version: Path) -> float:
        (folder / "line").write_text(sentences[0] + "\n", encoding="utf-8")
        return run(
            version,
            "translate",
            str(model),
            "--input",
            str(folder / "line"),
            "--output",
            str(folder / "out"),
        )

    def serve(version: Path) -> float:
        source, target = (each.partition("=")[2] for each in languages)
        bodies = [
            json.dumps({"q": each, "source": source, "target": target}).encode()
            for each in sentences
        ]
        before = os.environ.get("PYTHONPATH", "")
        os.environ["PYTHONPATH"] = str(version / "src")
        with server(model) as port:
            asyncio.run(closed(port, bodies, 64, 2.0))  # warm-up
            answers = asyncio.run(closed(port, bodies, 64, 10.0))
        os.environ["PYTHONPATH"] = before
        assert all(answer.status == 200 for answer in answers)
        return len(answers) / 10.0

    return {
        "train-small, tokens/s": lambda version: train(version, "small"),
        "train-base, tokens/s": lambda version: train(version, "base"),
        "prepare, pairs/s": prepare,
        "translate-ctranslate2, lines/s": lambda version: translate(version, "ctranslate2"),
        "translate-torch, lines/s": lambda version: translate(version, "torch"),
        "one-line, s": one_line,
        "help, s": lambda version: run(version, "--help"),
        "serve, answers/s": serve,
    }


def run(version: Path, *arguments: str) -> float:
    """Run a command of this version, and return its seconds."""
    began = time.perf_counter()
    subprocess.run(
        [sys.executable, "-m", "transduce", *arguments],
        check=True,
        env=os.environ | {"PYTHONPATH": str(version / "src")},
        capture_output=True,
        text=True,
    )
    return time.perf_counter() - began


if __name__ == "__main__":
    main()
