"""The speed of `transduce translate --on ray` with one and with two workers, in lines a second.

    python benchmarks/scale.py MODEL [--lines 60000] [--rounds 5]

The text is random sentences of the phrasebook; search is greedy, with the torch engine and one thread for each worker.
The time begins when a worker begins the first shard, so that the start of Ray does not count. One and two workers take
turns.
"""

import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from measuring import ratio, run_script

from transduce.wings.phrasebook.examples import examples

DRAWN = 20_000  # number of phrasebook sentences that lines are drawn from


def main(model: Path, *, lines: int = 60_000, rounds: int = 5, engine: str = "torch") -> None:
    """Measure one and two workers in turns."""
    known = [example.english for example in examples("train", DRAWN)]
    drawn = random.Random(1).choices(known, k=lines)
    rates: dict[int, list[float]] = {1: [], 2: []}
    with tempfile.TemporaryDirectory() as folder:
        text = Path(folder) / "text.txt"
        text.write_text("\n".join(drawn) + "\n", encoding="utf-8")
        command = [sys.executable, "-m", "transduce", "translate", str(model), "decode.beam_size=1"]
        command += ["--engine", engine, "--input", str(text), "--on", "ray"]
        for turn in range(rounds):
            for workers, found in rates.items():
                output = Path(folder) / f"{turn}-{workers}.txt"
                options = ["--workers", str(workers), "--output", str(output)]
                found.append(lines / seconds([*command, *options], output))
    one, two = (statistics.median(found) for found in rates.values())
    print(f"medians {one:,.0f} and {two:,.0f} lines/s; ratio {ratio(rates[2], rates[1])}")


def seconds(command: list[str], output: Path) -> float:
    """The seconds from the begin of the first shard to the end of a command."""
    shards = output.with_name(f"{output.name}.shards")
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    with subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL) as process:
        while process.poll() is None and not any(shards.glob("*.txt*")):
            time.sleep(0.05)
        began = time.perf_counter()
    if process.returncode:
        raise SystemExit(f"The command ended with status {process.returncode}.")
    return time.perf_counter() - began


if __name__ == "__main__":
    run_script(main, __doc__)
