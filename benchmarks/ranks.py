"""The training speed of several processes with one thread each, compared with one process and as many threads.

    python benchmarks/ranks.py DATA [--processes 2] [--shapes small base] [--rounds 5] [--seconds 20]

DATA is a folder written by `transduce prepare … data.vocab_size=8000`. An update has one micro-batch of up to 4,096
tokens for each of --processes, and is the same in all rows. Training is in bfloat16, or float32 with --float32, with
dropout, label smoothing and Adam. Each measurement starts new processes, and the rows take turns. The first three
updates are not timed. One row shards the weights with FSDP.
"""

import json
import os
import socket
import statistics
import subprocess
import sys
import time
from itertools import cycle
from pathlib import Path
from typing import Any

import torch
from measuring import ratio, run_script

from training import BUDGET, SHAPES, WARM, Shape, options
from transduce.config.parse import configure
from transduce.model.build import build
from transduce.model.seq2seq import make_batch
from transduce.preparation.prepared import open_prepared
from transduce.system.machine import keep_few_kernels, keep_memory
from transduce.training.distributed import init_distributed, scatter_weights, wrap
from transduce.training.update import begin_update, make_optimizer

UPDATES = 40


def main(
    data: Path,
    *,
    shapes: list[Shape] | None = None,
    processes: int = 2,
    rounds: int = 5,
    seconds: float = 20.0,
    float32: bool = False,
) -> None:
    """Measure one process, DDP and FSDP in turns, and print the table."""
    sides = {
        f"one process, {processes} threads": (1, processes, False),
        f"{processes} processes, DDP": (processes, 1, False),
        f"{processes} processes, FSDP": (processes, 1, True),
    }
    print("| shape | | tokens/s | relative to one process |\n| --- | --- | --- | --- |")
    for shape in shapes or SHAPES:
        speeds: dict[str, list[float]] = {side: [] for side in sides}
        for _ in range(rounds):
            for side, (world, threads, shard) in sides.items():
                given = [str(data), shape, float32, threads, shard, seconds, processes]
                speeds[side].append(run_ranks(world, given))
        alone = next(iter(speeds.values()))
        for side, found in speeds.items():
            middle = statistics.median(found)
            print(f"| {shape} | {side} | {middle:,.0f} | {ratio(found, alone)} |", flush=True)


def run_ranks(world: int, given: list[Any]) -> float:
    """Run the processes of one measurement, and return its tokens a second."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    known = {
        **os.environ,
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "WORLD_SIZE": str(world),
    }
    command = [sys.executable, __file__, "measure", json.dumps(given)]
    processes = [
        subprocess.Popen(
            command, env={**known, "RANK": str(rank)}, stdout=subprocess.PIPE, text=True
        )
        for rank in range(world)
    ]
    outputs = [process.communicate()[0] for process in processes]
    if any(process.returncode for process in processes):
        raise SystemExit("A measurement failed. The reason is above.")
    return float(json.loads(outputs[0].splitlines()[-1]))


def measure(
    data: str,
    shape: Shape,
    float32: bool,
    threads: int,
    shard: bool,
    seconds: float,
    accumulate: int,
) -> None:
    """Train in one process of a measurement; rank 0 prints the tokens a second of all processes."""
    config = configure(options(shape, float32))
    keep_memory()
    keep_few_kernels()
    torch.set_num_threads(threads)
    mixture = open_prepared(Path(data)).mixture
    plan = mixture.plan(1, 0, budget=BUDGET, accumulate=accumulate, seed=1)[:UPDATES]
    with init_distributed() as ranks:
        model = build(config.model)
        wrapped_model = wrap(
            model, ranks, shard=shard, sparse=False, device=torch.device("cpu")
        ).train()
        scatter_weights(model, wrapped_model, ranks)
        optimizer = make_optimizer(wrapped_model.parameters(), config.train)
        tokens = 0
        began = 0.0
        for step, batches in enumerate(cycle(plan), start=1):
            slots = ranks.slots(len(batches))
            part = [batches[slot.index] for slot in slots]
            total = sum(int(mixture.lengths(batch)[1].sum()) + len(batch) for batch in batches)
            begin_update(
                wrapped_model,
                optimizer,
                [make_batch(mixture.sources(batch), mixture.targets(batch)) for batch in part],
                step=step,
                rate=step * 5e-6,
                train=config.train,
                ranks=ranks,
                slots=slots,
                total=total,
            ).read()
            tokens += total
            if step == WARM:
                tokens = 0
                began = time.perf_counter()
            elif step > WARM and ranks.highest(time.perf_counter() - began > seconds):
                break
        if ranks.first:
            print(json.dumps(tokens / (time.perf_counter() - began)))


if __name__ == "__main__":
    if sys.argv[1:2] == ["measure"]:
        measure(*json.loads(sys.argv[2]))
    else:
        run_script(main, __doc__)
