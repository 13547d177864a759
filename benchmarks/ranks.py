"""The training speed of several processes with one thread each, compared with one process and as many threads.

    python benchmarks/ranks.py DATA [--processes 2] [--shapes small base] [--rounds 5] [--seconds 20]

DATA is a folder written by `transduce prepare … data.vocab_size=8000`. An update has one micro-batch of up to 4,096
tokens for each of --processes, and is the same in all rows. Training is in bfloat16, or float32 with --float32, with
dropout, label smoothing and Adam. Each measurement starts new processes, and the rows take turns. The first three
updates are not timed. One row shards the weights with FSDP.
"""

import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
import time
from itertools import cycle

import torch

from training import BUDGET, WARM, options, parser_of
from transduce.config.parse import configure
from transduce.model.build import build
from transduce.model.seq2seq import make_batch
from transduce.preparation.prepared import open_prepared
from transduce.system.machine import keep_few_kernels, keep_memory
from transduce.training.distributed import init_distributed, scatter_weights, wrap
from transduce.training.update import make_optimizer, update

UPDATES = 40


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument(
        "--threads", type=int, help="internal: measure in this process, with so many threads"
    )
    parser.add_argument("--shard", action="store_true")
    arguments = parser.parse_args()
    if arguments.threads:
        measure(arguments)
    else:
        compare(arguments)


def compare(arguments: argparse.Namespace) -> None:
    """Measure one process, DDP and FSDP in turns, and print the table."""
    number = arguments.processes
    sides = {
        f"one process, {number} threads": (1, number, []),
        f"{number} processes, DDP": (number, 1, []),
        f"{number} processes, FSDP": (number, 1, ["--shard"]),
    }
    print("| shape | | tokens/s | relative to one process |\n| --- | --- | --- | --- |")
    for shape in arguments.shapes:
        speeds: dict[str, list[float]] = {side: [] for side in sides}
        for _ in range(arguments.rounds):
            for side, (world, threads, more) in sides.items():
                speeds[side].append(start(arguments, shape, world, threads, more))
        alone = next(iter(speeds.values()))
        for side, found in speeds.items():
            ratios = sorted(mine / one for mine, one in zip(found, alone, strict=True))
            times = f"{statistics.median(ratios):.2f} [{ratios[0]:.2f}, {ratios[-1]:.2f}]"
            print(f"| {shape} | {side} | {statistics.median(found):,.0f} | {times} |", flush=True)


def start(
    arguments: argparse.Namespace, shape: str, world: int, threads: int, more: list[str]
) -> float:
    """Start the processes of one measurement, and return its tokens a second."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    known = {
        **os.environ,
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "WORLD_SIZE": str(world),
    }
    command = [
        sys.executable,
        __file__,
        str(arguments.data),
        "--shapes",
        shape,
        "--threads",
        str(threads),
        *more,
    ]
    command += [f"--seconds={arguments.seconds}", f"--processes={arguments.processes}"]
    if arguments.float32:
        command.append("--float32")
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


def measure(arguments: argparse.Namespace) -> None:
    """Train in one process of a measurement; rank 0 prints the tokens a second of all processes."""
    config = configure(options(arguments.shapes[0], arguments.float32))
    keep_memory()
    keep_few_kernels()
    torch.set_num_threads(arguments.threads)
    mixture = open_prepared(arguments.data).mixture
    plan = mixture.plan(1, 0, budget=BUDGET, accumulate=arguments.processes, seed=1)[:UPDATES]
    with init_distributed() as ranks:
        model = build(config.model)
        wrapped_model = wrap(
            model, ranks, shard=arguments.shard, sparse=False, device=torch.device("cpu")
        ).train()
        scatter_weights(model, wrapped_model, ranks)
        optimizer = make_optimizer(wrapped_model.parameters(), config.train)
        tokens = 0
        began = 0.0
        for step, batches in enumerate(cycle(plan), start=1):
            slots = ranks.slots(len(batches))
            part = [batches[slot.index] for slot in slots]
            total = sum(int(mixture.lengths(batch)[1].sum()) + len(batch) for batch in batches)
            update(
                wrapped_model,
                optimizer,
                [make_batch(mixture.sources(batch), mixture.targets(batch)) for batch in part],
                step=step,
                rate=step * 5e-6,
                train=config.train,
                ranks=ranks,
                slots=slots,
                total=total,
            )
            tokens += total
            if step == WARM:
                tokens = 0
                began = time.perf_counter()
            elif step > WARM and ranks.highest(time.perf_counter() - began > arguments.seconds):
                break
        if ranks.first:
            print(json.dumps(tokens / (time.perf_counter() - began)))


if __name__ == "__main__":
    main()
