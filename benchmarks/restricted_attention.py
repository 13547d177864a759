"""Restricted self-attention compared with full attention: time, peak memory, and the largest numerical difference.

    python benchmarks/restricted_attention.py [--window 128] [--threads 2]

Times forward and backward passes from q, k and v for one sentence, 8 heads and 64 channels per head. Every measurement
is a separate process. "fused": torch's scaled_dot_product_attention over all positions; "plain": n x n weights.
"""

import argparse
import resource
import statistics
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

HEADS, WIDTH, REPEATS = 8, 64, 5
TIMED, WEIGHED, COMPARED = 16_384, 8_192, 2_048  # positions for time, memory and difference


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--window", type=int, default=128)
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    own = arguments.window, arguments.threads
    blocks = alone("blocks", TIMED, REPEATS, *own)
    fused = alone("fused", TIMED, 2, *own)
    ratios = sorted(one / other for one in fused[0] for other in blocks[0])
    seconds = [statistics.median(times) for times in (blocks[0], fused[0])]
    print(
        f"n = {TIMED:,}: blocks {seconds[0]:.3f} s, fused {seconds[1]:.3f} s, ratio {seconds[1] / seconds[0]:.1f} ",
        end="",
    )
    print(f"[{ratios[0]:.1f}, {ratios[-1]:.1f}]")
    sizes = [alone(kind, WEIGHED, 1, *own)[1] for kind in ("blocks", "plain")]
    print(
        f"n = {WEIGHED:,}: blocks {sizes[0]:,.0f} MB, plain {sizes[1]:,.0f} MB, ratio {sizes[1] / sizes[0]:.1f}"
    )
    print(
        f"n = {COMPARED:,}: largest difference from full attention with a mask {difference(arguments.window):.1e}"
    )


def alone(kind: str, n: int, repeats: int, window: int, threads: int) -> tuple[list[float], float]:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(measure, kind, n, repeats, window, threads).result()


def measure(
    kind: str, n: int, repeats: int, window: int, threads: int
) -> tuple[list[float], float]:
    """The seconds of every repeat, and the increase of peak memory in megabytes."""
    import torch
    from torch.nn.functional import scaled_dot_product_attention

    from transduce.model.attention import attend_with_scores, dot_products
    from transduce.model.restricted import attend_nearby

    torch.set_num_threads(threads)
    q, k, v = (torch.randn(1, HEADS, n, WIDTH, requires_grad=True) for _ in range(3))

    def run() -> None:
        match kind:
            case "blocks":
                y = attend_nearby(q, k, v, window)
            case "fused":
                y = scaled_dot_product_attention(q, k, v)
            case _:
                y = attend_with_scores(dot_products(q, k), v)[0]
        y.sum().backward()

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        run()
        times.append(time.perf_counter() - began)
    return times, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024


def difference(window: int) -> float:
    import torch
    from torch.nn.functional import scaled_dot_product_attention

    from transduce.model.restricted import attend_nearby, window_mask

    q, k, v = (torch.randn(1, HEADS, COMPARED, WIDTH) for _ in range(3))
    mask = window_mask(COMPARED, COMPARED, window, causal=False)
    return (
        (attend_nearby(q, k, v, window) - scaled_dot_product_attention(q, k, v, mask))
        .abs()
        .max()
        .item()
    )


if __name__ == "__main__":
    main()
