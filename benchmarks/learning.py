"""The time of a learning step, and the latency of a server while a model learns beside it.

    python benchmarks/learning.py MODEL CORRECTIONS SOURCE [--clients 64] [--seconds 20] [--minutes 1]

CORRECTIONS is a .tsv file in the model's direction, whose pairs become accepted corrections. Every line of SOURCE is a
request. First `transduce learn --minutes` runs alone. Then clients send requests to a server of the model for
--seconds, and for --seconds while `transduce learn` runs with the lowest priority, as `serve --learn` starts it. Prints
the seconds of the learning step, the median and the 99th percentile of the latencies, their ratios, and how many
requests were not answered with status 200.
"""

import asyncio
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from measuring import run_script
from serving import Answer, closed, server

import transduce
from transduce.text.pairs import read_pairs
from transduce.text.plain import read_lines
from transduce.wings.memories.database import Database, Unit
from transduce.wings.serving.idle_learning import LOWEST_PRIORITY


def start_learning(model: Path, memory: Path, minutes: float) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "transduce", "learn", str(model), "--memory", str(memory)]
    return subprocess.Popen(
        [*command, "--minutes", str(minutes)], stderr=subprocess.PIPE, text=True
    )


def said(process: subprocess.Popen[str], began: float) -> float:
    """Wait for a learning step, print its last lines, and return its seconds."""
    _, log = process.communicate()
    for line in log.splitlines()[-4:]:
        print(f"    {line}")
    return time.monotonic() - began


def percentile(answers: list[Answer], place: int) -> float:
    """A percentile of the latencies in milliseconds."""
    return 1000 * statistics.quantiles((each.seconds for each in answers), n=100)[place - 1]


def main(
    model: Path,
    corrections: str,
    source: str,
    *,
    clients: int = 64,
    seconds: float = 20,
    minutes: float = 1,
) -> None:
    """Measure the learning and the server, and print the results."""
    data = transduce.model_folder.read_config(model).data
    languages = (data.source, data.target)
    units = [
        Unit(pair.source, pair.target, "correction")
        for pair in read_pairs([corrections], languages)
    ]
    given = dict(zip(("source", "target"), languages, strict=True))
    bodies = [json.dumps({"q": line, **given}).encode() for line in read_lines(source)]
    with tempfile.TemporaryDirectory() as temporary:
        place = Path(temporary)
        memory = place / "memory.sqlite"
        Database(memory).add(units, "-".join(languages), "anna")
        own = shutil.copytree(model, place / "alone")
        began = time.monotonic()
        alone = said(start_learning(own, memory, minutes), began)
        own = shutil.copytree(model, place / "served")
        with server(own) as port:
            asyncio.run(closed(port, bodies, clients, 3.0))  # warm-up
            before = asyncio.run(closed(port, bodies, clients, seconds))
            process = start_learning(own, memory, minutes)
            os.setpriority(os.PRIO_PROCESS, process.pid, LOWEST_PRIORITY)
            during = asyncio.run(closed(port, bodies, clients, seconds))
            assert process.poll() is None, "the learning has ended before the measurement"
            process.kill()
    print(f"{len(units)} corrections; learning takes {alone:.0f} s")
    print("| | requests | p50 | p99 | not answered |")
    print("| --- | --- | --- | --- | --- |")
    for name, answers in (("without learning", before), ("while it learns", during)):
        lost = sum(each.status != 200 for each in answers)
        middle, high = (percentile(answers, place) for place in (50, 99))
        print(f"| {name} | {len(answers):,} | {middle:.0f} ms | {high:.0f} ms | {lost} |")
    ratios = (percentile(during, place) / percentile(before, place) for place in (50, 99))
    print(f"ratio: p50 {next(ratios):.2f}, p99 {next(ratios):.2f}")


if __name__ == "__main__":
    run_script(main, __doc__)
