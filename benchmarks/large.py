"""What a large prepared corpus costs: its store, the start of a training, and the plan of an epoch.

    python benchmarks/large.py DATA --pairs 1000000 10000000 100000000 [--folder DIR]

DATA is a folder written by `transduce prepare`. For each size, a prepared folder of so many random pairs of DATA is
written. `transduce train` then trains a tiny model for twenty updates, at first without cached files. The time is
processor time, which depends less on other programs than real time. Memory is the largest anonymous memory. At last, a
whole epoch is planned. Exits if a pair is not in exactly one batch.

mates: how many other pairs of its run of 256 neighbours share a pair's update, on average.
correlation: of the places of pairs in the corpus and in the epoch.
"""

import dataclasses
import json
import os
import resource
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from measuring import run_script

from preparation import COMMAND, run
from transduce.preparation.prepared import FACTS_FILE, open_prepared, read_facts
from transduce.system.files import write_folder
from transduce.tokens.mixture import RUN_PAIRS, Mixture
from transduce.tokens.store import Encoded, write_store
from transduce.tokens.vocabulary import Rows

PAIRS_PER_CHUNK = 200_000
MAX_TOKENS = 4096
STORE = "corpus-0"
TINY = (
    "model.d_model=64 model.d_ff=128 model.num_heads=2 model.num_encoder_layers=1 model.num_decoder_layers=1 "
    f"data.max_tokens={MAX_TOKENS} train.threads=1 train.accumulate=1 train.steps=20"
).split()


def main(data: Path, *, pairs: list[int], folder: Path | None = None) -> None:
    """Print a row of the table for each number of pairs."""
    print("| pairs | bytes for each pair | 20 updates | memory | an epoch | mates | correlation |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for count in pairs:
        with tempfile.TemporaryDirectory(dir=folder) as place:
            large = Path(place) / "large"
            write_large(data, large, count)
            files = list((large / STORE).iterdir())
            size = sum(path.stat().st_size for path in files if path.suffix != ".ids") / count
            command = [*COMMAND, "train", "--train", str(large), "--out", str(large / "model")]
            forget(files)
            before = used()
            memory = run([*command, *TINY])[1] / 2**20
            seconds = used() - before
            plan = planned(open_prepared(large).mixture)
            print(
                f"| {count:,} | {size:.2f} | {seconds:.1f} s | {memory:,.0f} MiB | {plan} |",
                flush=True,
            )


def write_large(data: Path, large: Path, count: int) -> None:
    """Write a prepared folder of random pairs."""
    known = open_prepared(data).mixture
    every = np.arange(len(known))
    sides = [
        Rows(np.concatenate(rows), np.array([*map(len, rows)]))
        for rows in (known.sources(every), known.targets(every))
    ]

    def blocks() -> Iterator[Encoded]:
        draw = np.random.default_rng(1)
        for first in range(0, count, PAIRS_PER_CHUNK):
            places = draw.integers(0, len(known), min(PAIRS_PER_CHUNK, count - first))
            source, target = (side.take(places) for side in sides)
            lines = np.arange(first + 1, first + 1 + len(places))
            yield Encoded(source, target, np.zeros(len(places), np.int32), lines)

    with write_folder(large) as aside:
        for path in data.iterdir():
            if path.is_file() and path.name != "manifest.json":
                shutil.copy(path, aside)
        write_store(aside / STORE, blocks())
        facts = dataclasses.replace(read_facts(data), pairs=count)
        (aside / FACTS_FILE).write_text(json.dumps(dataclasses.asdict(facts)))


def forget(files: list[Path]) -> None:
    """Drop files from the page cache."""
    for path in files:
        with path.open("rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def used() -> float:
    """The processor seconds of the commands that have ended."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return children.ru_utime + children.ru_stime


def planned(corpus: Mixture) -> str:
    """Plan an epoch; returns the cells of the table."""
    place = np.full(len(corpus), -1, np.int32)
    seconds = 0.0
    first = 1
    mates = 0
    for block in range(corpus.blocks):
        before = time.process_time()
        plan = corpus.plan(0, block, budget=MAX_TOKENS, accumulate=1, seed=1)
        seconds += time.process_time() - before
        for number, (batch,) in enumerate(plan, start=first):
            if (place[batch] != -1).any():
                raise SystemExit("A pair is in two batches.")
            place[batch] = number
            runs = np.unique(batch // RUN_PAIRS, return_counts=True)[1]
            mates += int((runs * (runs - 1)).sum())
        first += len(plan)
    if (place == -1).any():
        raise SystemExit("A pair is in no batch.")
    some = np.random.default_rng(1).integers(0, len(corpus), 1_000_000)
    correlation = np.corrcoef(some, place[some])[0, 1]
    blocks = f"{seconds:.1f} s in {corpus.blocks} blocks"
    return f"{blocks} | {mates / len(corpus):.3f} | {correlation:.4f}"


if __name__ == "__main__":
    run_script(main, __doc__)
