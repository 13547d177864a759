"""Translating on Ray: the same bytes although workers are killed, and how much two workers are faster than one.

    python benchmarks/scale.py MODEL kills [--lines 200000]
    python benchmarks/scale.py MODEL speed [--lines 60000] [--rounds 5]

The text is drawn from the phrasebook, greedy search, our own engine, a thread a worker. `kills`: one process translates
it; then `transduce translate --on ray` does with two workers, of which three are killed (SIGKILL): one at any time, one
in the middle of writing a shard, which is seen from the open file, one more when most shards are there. Then the whole
call is killed in the middle and started again. Outputs are compared to the byte. `speed`: one and two workers in turns;
lines a second from the begin of the first shard to the end of the last, without the start of Ray, which is told, too;
and lines a second of the workers' CPU time, which other processes on the machine change less.
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

DRAWN = 20_000  # sentences of the phrasebook that lines are drawn from
ENVIRONMENT = os.environ | {"OMP_NUM_THREADS": "1"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("what", choices=["kills", "speed"])
    parser.add_argument("--lines", type=int)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--engine", default="torch")
    parser.add_argument("--folder", help="for the files that are written on the way")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        text = Path(folder) / "text.txt"
        lines = arguments.lines or {"kills": 200_000, "speed": 60_000}[arguments.what]
        text.write_text("".join(f"{line}\n" for line in itertools.islice(drawn(), lines)), encoding="utf-8")
        command = [sys.executable, "-m", "transduce.cli", "translate", arguments.model, "--input", str(text)]
        command += ["--engine", arguments.engine, "--beam-size", "1"]
        if arguments.what == "kills":
            kills(command, Path(folder))
        else:
            speed(command, Path(folder), lines, arguments.rounds)


def drawn() -> Iterator[str]:
    """Lines without end, some blank, some joined of two sentences."""
    known = [example.english for example in examples("train", DRAWN)]
    draw = random.Random(1)
    while True:
        chance = draw.random()
        yield "" if chance < 0.01 else " ".join(draw.choices(known, k=2 if chance > 0.8 else 1))


def kills(command: list[str], folder: Path) -> None:
    """Three workers killed, then the whole call."""
    began = time.perf_counter()
    subprocess.run([*command, "--output", folder / "one.txt"], env=ENVIRONMENT, check=True, capture_output=True)
    print(f"one process: {time.perf_counter() - began:.0f} s", flush=True)
    expected = (folder / "one.txt").read_bytes()

    process, shards = start(command, folder / "killed.txt")
    wait(lambda: writers(shards), process)
    kill(next(iter(writers(shards).values())), "at any time")
    wait(lambda: [path for path in writers(shards) if path.stat().st_size], process)
    path, pid = next((path, pid) for path, pid in writers(shards).items() if path.stat().st_size)
    kill(pid, f"in the middle of writing a shard, {path.stat().st_size:,} bytes of it on the disk")
    wait(lambda: len(done(shards)) > count(shards) * 0.7 and writers(shards), process)
    kill(next(iter(writers(shards).values())), f"with {len(done(shards))} of {count(shards)} shards there")
    finish(process)
    report("three workers killed", folder / "killed.txt", expected)

    process, shards = start(command, folder / "again.txt")
    wait(lambda: len(done(shards)) > count(shards) / 2, process)
    os.killpg(process.pid, signal.SIGKILL)  # the group that it is the leader of
    process.wait()
    there = {path: path.stat().st_mtime_ns for path in done(shards)}
    print(f"the call killed with {len(there)} of {count(shards)} shards there", flush=True)
    process, shards = start(command, folder / "again.txt")
    wait(lambda: len(done(shards)) > len(there), process)
    untouched = all(path.stat().st_mtime_ns == then for path, then in there.items())
    finish(process)
    report(f"started again, shards that were there untouched: {untouched}", folder / "again.txt", expected)


def speed(command: list[str], folder: Path, lines: int, rounds: int) -> None:
    """One and two workers in turns."""
    rates: dict[int, list[float]] = {1: [], 2: []}
    costs: dict[int, list[float]] = {1: [], 2: []}
    for turn, workers in itertools.product(range(rounds), rates):
        began = time.time()
        process, shards = start(command, folder / f"{turn}-{workers}.txt", workers)
        times: dict[str, tuple[float, float]] = {}
        used: dict[int, tuple[float, float]] = {}  # by each worker when it was first and last seen writing
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
        first, last = min(begin for begin, _ in times.values()), max(end for _, end in times.values())
        rates[workers].append(lines / (last - first))
        costs[workers].append(lines / sum(end - begin for begin, end in used.values()))
        print(
            f"{workers} workers: {rates[workers][-1]:,.0f} lines/s, {costs[workers][-1]:,.0f} a second of CPU time, "
            f"{first - began:.1f} s before the first",
            flush=True,
        )
    ratios = [two / one for one, two in zip(rates[1], rates[2], strict=True)]
    told = ", ".join(f"{ratio:.2f}" for ratio in ratios)
    print(f"medians {statistics.median(rates[1]):,.0f} and {statistics.median(rates[2]):,.0f} lines/s")
    print(
        f"medians {statistics.median(costs[1]):,.0f} and {statistics.median(costs[2]):,.0f} lines a second of CPU time"
    )
    print(f"two workers to one, round by round: {told}; median {statistics.median(ratios):.2f}")


def cpu(pid: int) -> float:
    """Seconds that a process has computed; 0 if it has gone."""
    try:
        after_name = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(after_name[11]) + int(after_name[12])) / os.sysconf("SC_CLK_TCK")


def start(command: list[str], output: Path, workers: int = 2) -> tuple[subprocess.Popen[bytes], Path]:
    """A call on Ray, in a group of its own, and the folder where its shards will be."""
    options = ["--output", str(output), "--on", "ray", "--workers", str(workers)]
    process = subprocess.Popen([*command, *options], env=ENVIRONMENT, stderr=subprocess.DEVNULL, start_new_session=True)
    return process, output.with_name(f"{output.name}.shards")


def wait(until: Callable[[], object], process: subprocess.Popen[bytes]) -> None:
    while True:
        try:
            if until():
                return
        except FileNotFoundError:  # renamed meanwhile
            continue
        if process.poll() is not None:
            raise SystemExit("It ended too early: give more --lines.")
        time.sleep(0.02)


def writers(shards: Path) -> dict[Path, int]:
    """Shards that are being written, and by whom."""
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
    """The records of shards that are there."""
    return [path for path in shards.glob("*-of-*.json") if path.with_suffix(".txt").exists()]


def count(shards: Path) -> int:
    """Of shards, in all."""
    return int(json.loads((shards / "plan.json").read_bytes())["shards"])


def finish(process: subprocess.Popen[bytes]) -> None:
    if process.wait():
        raise SystemExit(f"It ended with status {process.returncode}.")


def report(what: str, output: Path, expected: bytes) -> None:
    got = output.read_bytes()
    same = "the same bytes" if got == expected else "OTHER BYTES"
    lines = got.count(b"\n")
    print(f"{what}: {lines:,} lines, {same} as by one process", flush=True)
    if got != expected:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
