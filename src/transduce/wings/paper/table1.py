"""Table 1 of the paper: what a layer costs, how much of it is sequential, how far apart positions are; measured.

n = length, d = width, k = kernel, r = neighbourhood.
"""

import math
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

import torch
from matplotlib.figure import Figure
from torch import Tensor, nn
from torch.nn import functional as F

from transduce.config.schema import ModelConfig
from transduce.model.variants import make_attention
from transduce.system.errors import UserError
from transduce.system.journal import say
from transduce.wings.inspection.plots import save
from transduce.wings.paper.tables import Table

KERNEL, NEIGHBOURHOOD, HEADS = 3, 64, 8
REPEATS = 3
WIDTH = 512
LENGTHS = tuple(2**power for power in range(6, 14))  # 64 to 8,192
FITTED = 4  # longest lengths that the exponents are fitted to
WIDTHS = (64, 128, 256, 512, 1024)  # of the crossings
TIMED_DEPTH = 3  # layers below the one that is timed: a dilated convolution looks 27 positions apart there
COUNTED = (128, 256, 512)  # lengths at which operations and paths are counted
HEADINGS = (
    "layer",
    "complexity",
    "sequential",
    "path",
    "time",
    f"at n = {LENGTHS[-1]:,}",
    "memory",
    f"at n = {LENGTHS[-1]:,}",
    "operations in sequence",
    "path length",
)


class Claim(NamedTuple):
    """A row of the table.

    The paper prints four; that contiguous convolutions need n / k layers where dilated ones need log_k n, and what
    separable ones cost, stands in section 4.
    """

    complexity: str  # per layer
    sequential: str  # operations
    path: str  # longest between two positions


CLAIMS = {
    "self-attention": Claim("O(n^2 d)", "O(1)", "O(1)"),
    "restricted self-attention": Claim("O(r n d)", "O(1)", "O(n / r)"),
    "recurrent": Claim("O(n d^2)", "O(n)", "O(n)"),
    "convolutional": Claim("O(k n d^2)", "O(1)", "O(n / k)"),
    "convolutional, dilated": Claim("O(k n d^2)", "O(1)", "O(log_k n)"),
    "separable convolutional": Claim("O(k n d + n d^2)", "O(1)", "O(n / k)"),
}


class SelfAttention(nn.Module):
    """Over all positions, or those less than `window` away: a neighbourhood of r = 2 * window."""

    def __init__(self, d: int, window: int = 0):
        super().__init__()
        config = ModelConfig(d_model=d, num_heads=min(HEADS, d), window=window)
        self.attention = make_attention(config, to_self=True)

    def forward(self, x: Tensor) -> Tensor:
        """(1, n, d) -> the same shape."""
        return self.attention(x, self.attention.project(x))


class Recurrence(nn.Module):
    """An LSTM, as one call for speed or step by step to be looked at."""

    def __init__(self, d: int):
        super().__init__()
        self.rnn = nn.LSTM(d, d, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        """(1, n, d) -> the same shape."""
        return self.rnn(x)[0]

    def by_steps(self, x: Tensor) -> Tensor:
        """The same, one call a position."""
        outputs, hidden = [], None
        for step in x.split(1, dim=1):
            y, hidden = self.rnn(step, hidden)
            outputs.append(y)
        return torch.cat(outputs, dim=1)


class Convolution(nn.Module):
    """Over each position and KERNEL - 1 before it, `dilation` apart; in two parts if separable.

    One-sided, as a decoder's: then k^depth for a dilation reaches every position in log_k n layers.
    """

    def __init__(self, d: int, dilation: int = 1, separable: bool = False):
        super().__init__()
        self.padding = dilation * (KERNEL - 1)
        self.conv = nn.Conv1d(d, d, KERNEL, dilation=dilation, groups=d if separable else 1, bias=not separable)
        self.point = nn.Linear(d, d) if separable else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        """(1, n, d) -> the same shape."""
        padded = F.pad(x.transpose(1, 2), (self.padding, 0))
        return self.point(self.conv(padded).transpose(1, 2))


def layer(name: str, d: int, depth: int = 0) -> nn.Module:
    """A layer of the table by its name; depth: its number in a stack, from 0, which decides its dilation."""
    match name:
        case "self-attention":
            return SelfAttention(d)
        case "restricted self-attention":
            return SelfAttention(d, NEIGHBOURHOOD // 2)
        case "recurrent":
            return Recurrence(d)
        case "convolutional, dilated":
            return Convolution(d, KERNEL**depth)
        case _:
            return Convolution(d, separable=name.startswith("separable"))


class Cost(NamedTuple):
    """Of one layer, forward, for one sentence."""

    n: int
    seconds: float  # the best of a few
    megabytes: float  # more than before, at the peak


def measure(name: str, lengths: Sequence[int], d: int) -> list[Cost]:
    """Time and memory of a layer over growing lengths, in a process of its own."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(_measure, name, lengths, d).result()


@torch.inference_mode()
def _measure(name: str, lengths: Sequence[int], d: int) -> list[Cost]:
    torch.set_num_threads(1)
    module, costs = layer(name, d, TIMED_DEPTH), []
    module(torch.randn(1, min(lengths), d))
    before = _peak()
    for n in lengths:
        x = torch.randn(1, n, d)
        times = []
        for _ in range(REPEATS):
            began = time.perf_counter()
            module(x)
            times.append(time.perf_counter() - began)
        costs.append(Cost(n, min(times), (_peak() - before) / 1e6))
    return costs


def exponent(sizes: Sequence[float], values: Sequence[float]) -> float:
    """The p of the power law values ~ sizes^p that fits best on logarithmic scales; nan without two points."""
    points = [(math.log(size), math.log(value)) for size, value in zip(sizes, values, strict=True) if value > 0]
    if len(points) < 2:
        return math.nan
    x, y = (sum(column) / len(points) for column in zip(*points, strict=True))
    return sum((a - x) * (b - y) for a, b in points) / sum((a - x) ** 2 for a, _ in points)


def sequential_operations(name: str, n: int, d: int = 16) -> int:
    """Operations that must wait for one another: the longest chain in the graph that autograd has of the layer."""
    module = layer(name, d)
    x = torch.randn(1, n, d, requires_grad=True)
    forward: Callable[[Tensor], Tensor] = module.by_steps if isinstance(module, Recurrence) else module
    return _depth(forward(x).grad_fn)


def _depth(root: object) -> int:
    """The longest path from the root of a graph of autograd."""
    depths: dict[object, int] = {}
    stack = [(root, False)]
    while stack:
        node, ready = stack.pop()
        below = [child for child, _ in node.next_functions if child is not None]  # type: ignore[attr-defined]
        if ready:
            depths[node] = 1 + max((depths[child] for child in below), default=0)
        elif node not in depths:
            stack.append((node, True))
            stack += [(child, False) for child in below if child not in depths]
    return depths[root]


def path_length(name: str, n: int, d: int = 8) -> int:
    """Layers until the last output depends on the first input, times the steps that a signal takes through each."""
    torch.manual_seed(1)
    # In double precision: a signal through a hundred convolutions is smaller than anything that float32 can hold.
    x = torch.randn(1, n, d, dtype=torch.float64, requires_grad=True)
    y, depth = x, 0
    while True:
        y = layer(name, d, depth).double()(y)
        depth += 1
        (gradient,) = torch.autograd.grad(y[0, -1].sum(), x, retain_graph=True)
        if gradient[0, 0].any():
            return depth * (n if name == "recurrent" else 1)


def crossing(d: int, lengths: Sequence[int] = LENGTHS) -> float:
    """The length from which on self-attention of width d takes longer than recurrence; inf if it never does."""
    attention, recurrence = (measure(name, lengths, d) for name in ("self-attention", "recurrent"))
    return where_one(lengths, [one.seconds / other.seconds for one, other in zip(attention, recurrence, strict=True)])


def table(folder: Path) -> Table:
    """The paper's claims with our measurements, and table1.png in `folder`; some minutes."""
    costs, crossings = {}, {}
    for name in CLAIMS:
        say(f"Measuring {name}, n = {LENGTHS[0]:,} to {LENGTHS[-1]:,}")
        costs[name] = measure(name, LENGTHS, WIDTH)
    for d in WIDTHS:
        say(f"Measuring where self-attention stops being cheaper than recurrence, d = {d:,}")
        crossings[d] = crossing(d)
    draw(folder / "table1.png", costs, crossings)
    rows, data = [], []
    for name, claim in CLAIMS.items():
        longest = costs[name][-FITTED:]
        sizes = [cost.n for cost in longest]
        time_exponent = exponent(sizes, [cost.seconds for cost in longest])
        memory_exponent = exponent(sizes, [cost.megabytes for cost in longest])
        operations = [sequential_operations(name, n) for n in COUNTED]
        paths = [path_length(name, n) for n in COUNTED]
        rows.append(
            [
                name,
                *claim,
                f"n^{time_exponent:.2f}",
                f"{1000 * longest[-1].seconds:,.0f} ms",
                f"n^{memory_exponent:.2f}",
                f"{longest[-1].megabytes:,.0f} MB",
                ", ".join(map(str, operations)),
                ", ".join(map(str, paths)),
            ]
        )
        data.append(
            {
                "layer": name,
                **claim._asdict(),
                "measured": [cost._asdict() for cost in costs[name]],
                "time_exponent": time_exponent,
                "memory_exponent": memory_exponent,
                "lengths_counted": COUNTED,
                "sequential_operations": operations,
                "path_lengths": paths,
            }
        )
    text = "; ".join(f"d = {d}: n = {n:,.0f}" for d, n in crossings.items())
    notes = (
        "Complexity, sequential, path: what is claimed. The paper has one row for convolutions; that contiguous ones "
        "need n / k layers where dilated ones need log_k n, and what separable ones cost, stands in its section 4.",
        f"Measured: one layer forward, one sentence, one CPU thread, d = {WIDTH}, k = {KERNEL}, r = {NEIGHBOURHOOD}; "
        f"the exponents fit n = {LENGTHS[-FITTED]:,} to {LENGTHS[-1]:,}, where times and memory are taken. "
        "Sequential operations: the longest chain of operations in the graph of the layer; path: layers until the "
        "last output depends on the first input (found from the derivative), times the steps through a recurrent "
        f"layer; both at n = {', '.join(map(str, COUNTED))}. Attention has projections, n d^2 that the claim leaves "
        "out, and is fused: it never forms the n x n weights, so that its memory grows with n alone.",
        f"Self-attention stops being cheaper than recurrence (an LSTM) at {text}; the paper: at n = d.",
    )
    found = {"layers": data, "crossings": crossings}
    return Table("table1", "Table 1: layers compared", HEADINGS, rows, notes, found, pictures=("table1.png",))


def draw(path: Path, costs: dict[str, list[Cost]], crossings: dict[int, float]) -> None:
    """Time and memory against length, and where self-attention and recurrence cost the same."""
    figure = Figure(figsize=(13, 4.2), layout="constrained")
    times, memory, line = figure.subplots(1, 3)
    for name, measured in costs.items():
        lengths = [cost.n for cost in measured]
        times.loglog(lengths, [cost.seconds for cost in measured], marker="o", markersize=3, label=name)
        memory.loglog(lengths, [max(cost.megabytes, 0.1) for cost in measured], marker="o", markersize=3)
    times.set(xlabel="n", ylabel="seconds", title=f"time of a layer, d = {WIDTH}")
    times.legend(frameon=False, fontsize=8)
    memory.set(xlabel="n", ylabel="MB", title="peak memory")
    finite = {d: n for d, n in crossings.items() if math.isfinite(n)}
    line.loglog(list(finite), list(finite.values()), marker="o", label="measured")
    line.loglog(WIDTHS, WIDTHS, linestyle=":", label="n = d")
    line.set(xlabel="d", ylabel="n", title="self-attention costs what recurrence does")
    line.legend(frameon=False)
    for axes in (times, memory, line):
        axes.grid(alpha=0.3)
    save(figure, path)


def where_one(lengths: Sequence[int], ratios: Sequence[float]) -> float:
    """Where the ratio reaches 1 for good, interpolated on logarithmic scales."""
    above = [i for i, ratio in enumerate(ratios) if ratio < 1]
    if not above:
        return float(lengths[0])
    last = above[-1]
    if last == len(lengths) - 1:
        return math.inf
    low, high = math.log(ratios[last]), math.log(ratios[last + 1])
    share = -low / (high - low)
    return math.exp(math.log(lengths[last]) * (1 - share) + math.log(lengths[last + 1]) * share)


def _peak() -> int:
    """Bytes of this process at its peak. Linux's getrusage counts the parent process in, so /proc comes first."""
    status = Path("/proc/self/status")
    if status.exists():
        (line,) = (line for line in status.read_text(encoding="utf-8").split("\n") if line.startswith("VmHWM"))
        return int(line.split()[1]) * 1024
    try:
        import resource
    except ImportError:
        raise UserError("Table 1 measures memory, which works only on Linux and macOS. Leave table 1 out.") from None
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
