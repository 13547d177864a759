"""The time of a mixture-of-experts layer for several numbers of experts, and of experts per token.

    python benchmarks/experts.py [--threads 1]

Times forward and backward passes of one layer for 4,096 tokens (d_model 256, d_ff 1024), in turns with a feed-forward
layer without experts. The table has medians, minima and maxima of the ratio to the feed-forward layer's time.
"""

import argparse
import statistics
import time

import torch

from transduce.config.schema import ModelConfig, with_options
from transduce.model.transformer import FeedForward
from transduce_lab.families.experts import Experts

D_MODEL, D_FF, TOKENS, REPEATS = 256, 1024, 4096, 15


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--threads", type=int, default=1)
    torch.set_num_threads(parser.parse_args().threads)
    torch.manual_seed(1)
    shape = ModelConfig(d_model=D_MODEL, d_ff=D_FF)
    dense = FeedForward(shape)
    x = torch.randn(1, TOKENS, D_MODEL, requires_grad=True)
    print(
        "| experts | used by a token | time, relative to the layer without experts |\n| --- | --- | --- |"
    )
    for experts, used in [
        (8, 1),
        (8, 2),
        (8, 4),
        (8, 8),
        (4, 2),
        (16, 2),
        (32, 2),
        (64, 2),
        (128, 2),
    ]:
        layer = Experts(with_options(shape, experts=experts, experts_per_token=used))
        # After a warm-up.
        ratios = sorted([measure(layer, x) / measure(dense, x) for _ in range(REPEATS + 1)][1:])
        print(
            f"| {experts} | {used} | {statistics.median(ratios):.2f} [{ratios[0]:.2f}, {ratios[-1]:.2f}] |"
        )


def measure(layer: torch.nn.Module, x: torch.Tensor) -> float:
    began = time.perf_counter()
    layer(x).sum().backward()
    return time.perf_counter() - began


if __name__ == "__main__":
    main()
