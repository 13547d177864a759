"""The effect of OpenMP's busy waiting on training speed, with and without another busy process on the machine.

    python benchmarks/spinning.py DATA [--shape small] [--spins 300000 10000 1000 0] [--rounds 5] [--seconds 10]

DATA is a folder written by `transduce prepare … data.vocab_size=8000`. A waiting OpenMP thread spins GOMP_SPINCOUNT
times (libgomp's default: 300,000) before it sleeps. Each measurement is a separate process. The values of --spins take
turns, first alone on the machine and then with one other process that is always busy. The table has medians, and the
smallest and largest ratio to the first value.
"""

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from training import SHAPES, write_batches


@contextlib.contextmanager
def busy(processes: int) -> Iterator[None]:
    """Run a number of busy processes during the block, each in its own session."""
    command = [sys.executable, "-c", "while True: pass"]
    started = [subprocess.Popen(command, start_new_session=True) for _ in range(processes)]
    try:
        yield
    finally:
        for each in started:
            each.kill()
            each.wait()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path)
    parser.add_argument("--shape", default="small", choices=SHAPES)
    parser.add_argument("--spins", type=int, nargs="+", default=[300_000, 10_000, 1_000, 0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument(
        "--busy", type=int, nargs="+", default=[0, 1], help="numbers of other busy processes"
    )
    arguments = parser.parse_args()
    print("| other busy processes | spins before sleep | tokens/s | relative to the first |")
    print("| --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as folder:
        batches = Path(folder) / "batches.npz"
        write_batches(arguments.data, batches)
        command = [
            sys.executable,
            str(Path(__file__).with_name("training.py")),
            str(batches),
            "--side=transduce",
        ]
        command += [
            f"--shapes={arguments.shape}",
            f"--threads={arguments.threads}",
            f"--seconds={arguments.seconds}",
        ]
        for processes in arguments.busy:
            speeds: dict[int, list[float]] = {spins: [] for spins in arguments.spins}
            with busy(processes):
                for _ in range(arguments.rounds):
                    for spins, measured in speeds.items():
                        environment = os.environ | {"GOMP_SPINCOUNT": str(spins)}
                        run = subprocess.run(
                            command, stdout=subprocess.PIPE, text=True, check=True, env=environment
                        )
                        measured.append(json.loads(run.stdout.splitlines()[-1])["speed"])
            for spins, measured in speeds.items():
                ratios = sorted(
                    one / first
                    for one, first in zip(measured, speeds[arguments.spins[0]], strict=True)
                )
                print(
                    f"| {processes} | {spins:,} | {statistics.median(measured):,.0f} "
                    f"| {statistics.median(ratios):.2f} [{ratios[0]:.2f}, {ratios[-1]:.2f}] |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
