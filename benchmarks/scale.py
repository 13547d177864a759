"""Translating on Ray: checks that the output is right when workers are killed, and measures one and two workers.

    python benchmarks/scale.py MODEL kills [--lines 200000]
    python benchmarks/scale.py MODEL speed [--lines 60000] [--rounds 5]

The text is random sentences of the phrasebook. Search is greedy, with the torch engine and one thread per worker.
`kills`: one process translates the text, then `transduce translate --on ray` with two workers. Three workers are killed
with SIGKILL: the first at any time, the second while it writes a shard, the third when 70 % of the shards are complete.
Then a new call is killed when half of its shards are complete, and repeated. All outputs must have the same bytes.
`speed`: one and two workers take turns. Prints lines a second from the start of the first shard to the end of the last,
lines per second of the workers' CPU time, which depends less on other processes, and the time before the first shard.
"""

import argparse
import itertools
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from transduce.wings.phrasebook.examples import examples

DRAWN = 20_000  # number of phrasebook sentences that lines are drawn from
ENVIRONMENT = os.environ | {"OMP_NUM_THREADS": "1"}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model")
    parser.add_argument("what", choices=["kills", "speed"])
    parser.add_argument("--lines", type=int)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--engine", default="torch")
    parser.add_argument("--folder", help="parent folder for temporary files")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        text = Path(folder) / "text.txt"
        lines = arguments.lines or {"kills": 200_000, "speed": 60_000}[arguments.what]
        text.write_text(
            "".join(f"{line}\n" for line in itertools.islice(drawn(), lines)), encoding="utf-8"
        )
        command = [
            sys.executable,
            "-m",
            "transduce",
            "translate",
            arguments.model,
            "--input",
            str(text),
        ]
        command += ["--engine", arguments.engine, "--beam-size", "1"]
        if arguments.what == "kills":
            kills(command, Path(folder))
        else:
            speed(command, Path(folder), lines, arguments.rounds)


def drawn() -> Iterator[str]:
    """Yield random lines without end; some are blank, some have two sentences."""
    known = [example.english for example in examples("train", DRAWN)]
    draw = random.Random(1)
    while True:
        chance = draw.random()
        yield "" if chance < 0.01 else " ".join(draw.choices(known, k=2 if chance > 0.8 else 1))


def kills(command: list[str], folder: Path) -> None:
    """Kill three workers of one call, then a whole call, and check the outputs."""
    began = time.perf_counter()
    subprocess.run(
        [*command, "--output", folder / "one.txt"], env=ENVIRONMENT, check=True, capture_output=True
    )
    print(f"one process: {time.perf_counter() - began:.0f} s", flush=True)
    expected = (folder / "one.txt").read_bytes()

    process, shards = start(command, folder / "killed.txt")
    wait(lambda: writers(shards), process)
    kill(next(iter(writers(shards).values())), "at any time")
    wait(lambda: [path for path in writers(shards) if path.stat().st_size], process)
    path, pid = next((path, pid) for path, pid in writers(shards).items() if path.stat().st_size)
    kill(pid, f"while it wrote a shard, of which {path.stat().st_size:,} bytes were on disk")
    wait(lambda: len(done(shards)) > count(shards) * 0.7 and writers(shards), process)
    kill(
        next(iter(writers(shards).values())),
        f"with {len(done(shards))} of {count(shards)} shards complete",
    )
    finish(process)
    report("three workers killed", folder / "killed.txt", expected)

    process, shards = start(command, folder / "again.txt")
    wait(lambda: len(done(shards)) > count(shards) / 2, process)
    os.killpg(process.pid, signal.SIGKILL)  # its process group
    process.wait()
    there = {path: path.stat().st_mtime_ns for path in done(shards)}
    print(f"the call killed with {len(there)} of {count(shards)} shards complete", flush=True)
    process, shards = start(command, folder / "again.txt")
    wait(lambda: len(done(shards)) > len(there), process)
    untouched = all(path.stat().st_mtime_ns == then for path, then in there.items())
    finish(process)
    report(
        f"the same call repeated, complete shards unchanged: {untouched}",
        folder / "again.txt",
        expected,
    )


def speed(command: list[str], folder: Path, lines: int, rounds: int) -> None:
    """Measure one and two workers in turns."""
    rates: dict[int, list[float]] = {1: [], 2: []}
    costs: dict[int, list[float]] = {1: [], 2: []}
    for turn, workers in itertools.product(range(rounds), rates):
        began = time.time()
        process, shards = start(command, folder / f"{turn}-{workers}.txt", workers)
        times: dict[str, tuple[float, float]] = {}
        # Process id -> CPU seconds when first and last seen writing.
        used: dict[int, tuple[float, float]] = {}
        while process.poll() is None:
            for pid in set(writers(shards).values()):
                if seconds := cpu(pid):
                    used[pid] = used.get(pid, (seconds, 0.0))[0], seconds
            for path in done(shards):
                if path.name not in times:
                    try:
                        end = path.stat().st_mtime
                        times[path.name] = end - json.loads(path.read_bytes())["seconds"], end
                    except (OSError, ValueError):
                        continue
            time.sleep(0.05)
        finish(process)
        first = min(begin for begin, _ in times.values())
        last = max(end for _, end in times.values())
        rates[workers].append(lines / (last - first))
        costs[workers].append(lines / sum(end - begin for begin, end in used.values()))
        print(
            f"{workers} workers: {rates[workers][-1]:,.0f} lines/s, {costs[workers][-1]:,.0f} lines per CPU second, "
            f"{first - began:.1f} s before the first shard",
            flush=True,
        )
    ratios = [two / one for one, two in zip(rates[1], rates[2], strict=True)]
    told = ", ".join(f"{ratio:.2f}" for ratio in ratios)
    print(
        f"medians {statistics.median(rates[1]):,.0f} and {statistics.median(rates[2]):,.0f} lines/s"
    )
    print(
        f"medians {statistics.median(costs[1]):,.0f} and {statistics.median(costs[2]):,.0f} lines per CPU second"
    )
    print(
        f"ratio of two workers to one in each round: {told}; median {statistics.median(ratios):.2f}"
    )


def cpu(pid: int) -> float:
    """A process's CPU seconds; 0 if the process has ended."""
    try:
        after_name = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(after_name[11]) + int(after_name[12])) / os.sysconf("SC_CLK_TCK")


def start(
    command: list[str], output: Path, workers: int = 2
) -> tuple[subprocess.Popen[bytes], Path]:
    """Start a call on Ray in a new process group; returns its process and the folder of its shards."""
    options = ["--output", str(output), "--on", "ray", "--workers", str(workers)]
    process = subprocess.Popen(
        [*command, *options], env=ENVIRONMENT, stderr=subprocess.DEVNULL, start_new_session=True
    )
    return process, output.with_name(f"{output.name}.shards")


def wait(until: Callable[[], object], process: subprocess.Popen[bytes]) -> None:
    while True:
        try:
            if until():
                return
        except FileNotFoundError:  # renamed in the meantime
            continue
        if process.poll() is not None:
            raise SystemExit("The call ended too early. Give more --lines.")
        time.sleep(0.02)


def writers(shards: Path) -> dict[Path, int]:
    """The shard files that are open for writing, and the process ids of their writers."""
    found = {}
    for link in Path("/proc").glob("[0-9]*/fd/*"):
        try:
            target = link.readlink()
        except OSError:
            continue
        if target.parent == shards and ".txt.aside-" in target.name:
            found[target] = int(link.parts[2])
    return found


def kill(pid: int, when: str) -> None:
    os.kill(pid, signal.SIGKILL)
    print(f"killed worker {pid} {when}", flush=True)
    time.sleep(1)


def done(shards: Path) -> list[Path]:
    """The records of complete shards."""
    return [path for path in shards.glob("*-of-*.json") if path.with_suffix(".txt").exists()]


def count(shards: Path) -> int:
    """The number of shards of a call."""
    return int(json.loads((shards / "plan.json").read_bytes())["shards"])


def finish(process: subprocess.Popen[bytes]) -> None:
    if process.wait():
        raise SystemExit(f"The call ended with status {process.returncode}.")


def report(what: str, output: Path, expected: bytes) -> None:
    got = output.read_bytes()
    same = "the same bytes" if got == expected else "OTHER BYTES"
    lines = got.count(b"\n")
    print(f"{what}: {lines:,} lines, {same} as from one process", flush=True)
    if got != expected:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
