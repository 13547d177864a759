"""The time and memory of one attention layer with scaled, unscaled and additive scores (section 3.2.1 of the paper).

    python benchmarks/attention_cost.py

Self-attention as in benchmarks/tables/attention.toml: d_model 128, one head, 1,024 tokens in sentences of the same
length, forward and backward pass, one thread, float32. Each measurement is a process of its own, and the rounds
alternate between the rows. Time: the median of the rounds. To scaled: the ratio in the same round, with the lowest and
the highest. Memory: the rise of the peak.
"""

import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

import torch

from transduce.config.schema import ModelConfig
from transduce.model.attention import MultiHeadAttention
from transduce_lab.families.additive import AdditiveAttention

KINDS, WIDTHS, LENGTHS = ("scaled", "dot", "additive"), (16, 64, 512), (16, 64)
TOKENS, ROUNDS, REPEATS = 1024, 3, 5


def peak() -> int:
    """The peak memory of this process in bytes."""
    (line,) = (
        line
        for line in Path("/proc/self/status").read_text().split("\n")
        if line.startswith("VmHWM")
    )
    return int(line.split()[1]) * 1024


def measure(kind: str, d_k: int, length: int) -> tuple[float, float]:
    """Milliseconds of a forward and a backward pass, and the megabytes by which the peak memory rises."""
    torch.set_num_threads(1)
    torch.manual_seed(1)
    config = ModelConfig(vocab_size=8, d_model=128, num_heads=1, d_v=128, d_k=d_k, attention=kind)
    layer = (AdditiveAttention if kind == "additive" else MultiHeadAttention)(config)

    def step(sentences: int) -> None:
        x = torch.randn(sentences, length, 128, requires_grad=True)
        layer(x, layer.project(x)).sum().backward()

    step(1)
    before = peak()
    seconds = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        step(TOKENS // length)
        seconds.append(time.perf_counter() - began)
    return 1000 * min(seconds), (peak() - before) / 1e6


def main() -> None:
    """Measure all rows, or one row whose options are the argument."""
    if len(sys.argv) > 1:
        print(json.dumps(measure(*json.loads(sys.argv[1]))))
        return
    rows = [(kind, d_k, length) for length in LENGTHS for d_k in WIDTHS for kind in KINDS]
    found = dict[tuple[str, int, int], list[tuple[float, float]]]()
    for _ in range(ROUNDS):
        for row in rows:
            made = subprocess.run(
                [sys.executable, __file__, json.dumps(row)], capture_output=True, check=True
            )
            found.setdefault(row, []).append(json.loads(made.stdout))
    print("| length | d_k | scores | ms | to scaled | MB |\n| --- | --- | --- | --- | --- | --- |")
    for kind, d_k, length in rows:
        times, memory = zip(*found[kind, d_k, length], strict=True)
        of_scaled = [
            time / base for time, (base, _) in zip(times, found["scaled", d_k, length], strict=True)
        ]
        ratio = f"{statistics.median(of_scaled):.2f} ({min(of_scaled):.2f} to {max(of_scaled):.2f})"
        values = f"{statistics.median(times):.1f} | {ratio} | {statistics.median(memory):.0f}"
        print(f"| {length} | {d_k} | {kind} | {values} |")


if __name__ == "__main__":
    main()
