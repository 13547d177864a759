"""The time and memory of single layers, forward and backward, in float32.

    python benchmarks/layers.py attention      # scaled, unscaled and additive scores (section 3.2.1 of the paper)
    python benchmarks/layers.py restricted     # restricted self-attention by blocks, beside full attention
    python benchmarks/layers.py experts        # a feed-forward layer, and mixtures of experts

Each measurement is a separate process, and the rounds alternate between the rows. Time: the median of the rounds.
Ratio: to the first row of the same group in the same round, with the smallest and the largest. Memory: the rise of the
peak.
"""

import statistics
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Literal

import torch
from measuring import ratio, run_script
from torch.nn.functional import scaled_dot_product_attention

from transduce.config.schema import ModelConfig, with_options
from transduce.model.attention import MultiHeadAttention, attend_with_scores, dot_products
from transduce.model.transformer import FeedForward
from transduce_lab.families.additive import AdditiveAttention
from transduce_lab.families.experts import Experts
from transduce_lab.families.restricted import attend_nearby

Step = Callable[[int], torch.Tensor]  # from a number of tokens
Row = tuple[str, int, int]
WINDOW = 128
SHAPE = ModelConfig(d_model=256, d_ff=1024)
USED = [(8, 1), (8, 2), (8, 4), (8, 8), (4, 2), (16, 2), (32, 2), (64, 2), (128, 2)]
GROUPS: dict[str, list[list[Row]]] = {  # the rows that are compared; see the functions below
    "attention": [
        [(kind, d_k, length) for kind in ("scaled", "dot", "additive")]
        for length in (16, 64)
        for d_k in (16, 64, 512)
    ],
    "restricted": [
        [("by blocks", 16_384, 64), ("fused", 16_384, 64)],
        [("by blocks", 8_192, 64), ("plain", 8_192, 64)],
    ],
    "experts": [[("dense", 4096, 0), *((f"{used} used", 4096, of) for of, used in USED)]],
}


def attention(kind: str, d_k: int, length: int) -> tuple[Step, int]:
    """Self-attention as in benchmarks/tables/attention.toml: 1,024 tokens in sentences of the same length."""
    config = ModelConfig(vocab_size=8, d_model=128, num_heads=1, d_v=128, d_k=d_k, attention=kind)
    layer = (AdditiveAttention if kind == "additive" else MultiHeadAttention)(config)

    def step(tokens: int) -> torch.Tensor:
        x = torch.randn(tokens // length, length, 128, requires_grad=True)
        return layer(x, layer.project(x))

    return step, 1024


def restricted(kind: str, positions: int, width: int) -> tuple[Step, int]:
    """Attention from q, k and v with 8 heads; fused: torch's kernel; plain: n x n weights."""

    def step(tokens: int) -> torch.Tensor:
        q, k, v = (torch.randn(1, 8, tokens, width, requires_grad=True) for _ in range(3))
        if kind == "by blocks":
            return attend_nearby(q, k, v, WINDOW)
        if kind == "fused":
            return scaled_dot_product_attention(q, k, v)
        return attend_with_scores(dot_products(q, k), v)[0]

    return step, positions


def experts(kind: str, tokens: int, number: int) -> tuple[Step, int]:
    """A layer of experts, of which each token uses some; no experts: a feed-forward layer."""
    layer: torch.nn.Module = FeedForward(SHAPE)
    if number:
        used = int(kind.split()[0])
        layer = Experts(with_options(SHAPE, experts=number, experts_per_token=used))
    return lambda count: layer(torch.randn(1, count, SHAPE.d_model, requires_grad=True)), tokens


MAKERS = {"attention": attention, "restricted": restricted, "experts": experts}


def measure(layers: str, row: Row, threads: int, repeats: int) -> tuple[float, float]:
    """The milliseconds of the fastest of some steps, and the megabytes by which the peak memory rises."""
    torch.set_num_threads(threads)
    torch.manual_seed(1)
    step, tokens = MAKERS[layers](*row)
    step(256).sum().backward()  # a warm-up with little memory
    before = peak()
    seconds = []
    for _ in range(repeats):
        began = time.perf_counter()
        step(tokens).sum().backward()
        seconds.append(time.perf_counter() - began)
    return 1000 * min(seconds), (peak() - before) / 1e6


def peak() -> int:
    """The peak memory of this process in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))


def main(
    layers: Literal["attention", "restricted", "experts"],
    *,
    threads: int = 1,
    rounds: int = 3,
    repeats: int = 5,
) -> None:
    """Measure the rows of a group in turns, and print the table."""
    print("| layer | | | ms | ratio to the first | MB |\n| --- | --- | --- | --- | --- | --- |")
    for rows in GROUPS[layers]:
        found = list[list[tuple[float, float]]]()
        for _ in range(rounds):
            with ProcessPoolExecutor(1, get_context("spawn"), max_tasks_per_child=1) as pool:
                made = [pool.submit(measure, layers, row, threads, repeats) for row in rows]
                found.append([each.result() for each in made])
        times = [[one[place][0] for one in found] for place in range(len(rows))]
        for place, row in enumerate(rows):
            memory = statistics.median(one[place][1] for one in found)
            cells = (*row, f"{statistics.median(times[place]):.1f}", ratio(times[place], times[0]))
            print(f"| {' | '.join(map(str, cells))} | {memory:.0f} |", flush=True)


if __name__ == "__main__":
    run_script(main, __doc__)
