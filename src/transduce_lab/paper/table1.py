"""Measures the layers of the paper's table 1, for sequence length n and width d."""

import json
import math
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from transduce.system.console import log
from transduce.system.errors import UserError
from transduce.wings.inspection.plots import chart
from transduce_lab.comparing.tables import Part, Table
from transduce_lab.paper.layers import KERNEL, NEIGHBOURHOOD, Recurrence, layer
from transduce_lab.paper.printed import definition

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

REPEATS = 3
TIMED_WIDTH = 512
LENGTHS = tuple(2**power for power in range(6, 14))  # 64 to 8,192
NUM_FITTED = 4  # number of the longest lengths to which the exponents are fitted
CROSSING_WIDTHS = (64, 128, 256, 512, 1024)
# The timed layer's index in a stack: a dilated convolution then reads positions 27 apart.
TIMED_DEPTH = 3
COUNTED_LENGTHS = (128, 256, 512)  # lengths for counting sequential operations and path lengths
TABLE1 = definition("table1")
CLAIMS: dict[str, dict[str, str]] = TABLE1["claims"]
MEASURE = f"import json, sys; from {__name__} import _measure; print(json.dumps(_measure(*json.loads(sys.argv[1]))))"


class Cost(NamedTuple):
    """The cost of one layer's forward pass for one sentence."""

    n: int
    seconds: float  # the minimum over REPEATS
    megabytes: float  # increase of the peak memory


def measure(name: str, lengths: Sequence[int], d: int) -> list[Cost]:
    """Measure time and memory of a layer for increasing lengths, in a separate process."""
    command = [sys.executable, "-P", "-c", MEASURE, json.dumps([name, list(lengths), d])]
    process = None
    interrupts = list[int]()
    # Keeps Ctrl-C until `process` is known.
    before = signal.signal(signal.SIGINT, lambda number, _: interrupts.append(number))
    try:
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, text=True, start_new_session=True
        )
        signal.signal(signal.SIGINT, before)
        if interrupts:
            raise KeyboardInterrupt
        found, _ = process.communicate()
    finally:
        signal.signal(signal.SIGINT, before)
        if process:
            process.kill()
            process.wait()
    if process.returncode:
        raise UserError(
            f"Measuring {name} failed with status {process.returncode}. Is there enough free memory?"
        )
    return [Cost(*cost) for cost in json.loads(found)]


@torch.inference_mode()
def _measure(name: str, lengths: Sequence[int], d: int) -> list[Cost]:
    torch.set_num_threads(1)
    module = layer(name, d, TIMED_DEPTH)
    costs = []
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
    """The exponent p of the power law `values` ~ `sizes`^p, fitted to the logarithms; nan for fewer than two points."""
    points = [
        (math.log(size), math.log(value))
        for size, value in zip(sizes, values, strict=True)
        if value > 0
    ]
    return (
        statistics.linear_regression(*zip(*points, strict=True)).slope
        if len(points) > 1
        else math.nan
    )


def sequential_operations(name: str, n: int, d: int = 16) -> int:
    """The number of a layer's sequential operations, measured as the depth of its autograd graph."""
    module = layer(name, d)
    x = torch.randn(1, n, d, requires_grad=True)
    forward: Callable[[Tensor], Tensor] = (
        module.by_steps if isinstance(module, Recurrence) else module
    )
    return _depth(forward(x).grad_fn)


def _depth(root: object) -> int:
    """The length of the longest path from the root of an autograd graph."""
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
    """The path length from the first input to the last output, where a recurrent layer counts n times."""
    torch.manual_seed(1)
    # After a hundred convolutions, the gradient is too small for float32.
    x = torch.randn(1, n, d, dtype=torch.float64, requires_grad=True)
    y = x
    depth = 0
    while True:
        y = layer(name, d, depth).double()(y)
        depth += 1
        (gradient,) = torch.autograd.grad(y[0, -1].sum(), x, retain_graph=True)
        if gradient[0, 0].any():
            return depth * (n if name == "recurrent" else 1)


def crossing(d: int, lengths: Sequence[int] = LENGTHS) -> float:
    """The length above which self-attention of width d is slower than an LSTM; inf if there is no such length."""
    attention, recurrence = (measure(name, lengths, d) for name in ("self-attention", "recurrent"))
    return where_one(
        lengths,
        [one.seconds / other.seconds for one, other in zip(attention, recurrence, strict=True)],
    )


def table(folder: Path) -> Table:
    """Measure all layers, write table1.png to `folder` and return table 1."""
    costs = {}
    crossings = {}
    total = len(CLAIMS) + len(CROSSING_WIDTHS)
    _peak()  # fails here if it can't be measured
    log(
        f"Table 1 is measured in {total} parts, and written at the end. This takes about 5 minutes of one core."
    )
    log("Nothing else should run on the machine.")
    for part, name in enumerate(CLAIMS, 1):
        log(
            f"{part} of {total}: time and memory of {name}, for n = {LENGTHS[0]:,} to {LENGTHS[-1]:,} positions"
        )
        costs[name] = measure(name, LENGTHS, TIMED_WIDTH)
    for part, d in enumerate(CROSSING_WIDTHS, 1 + len(CLAIMS)):
        log(
            f"{part} of {total}: where self-attention becomes slower than recurrence, for width d = {d:,}"
        )
        crossings[d] = crossing(d)
    draw(folder / "table1.png", costs, crossings)
    layers = [_facts(name, costs[name]) for name in CLAIMS]
    values = {
        "width": TIMED_WIDTH,
        "kernel": KERNEL,
        "neighbourhood": NEIGHBOURHOOD,
        "fitted": f"{LENGTHS[-NUM_FITTED]:,}",
        "longest": f"{LENGTHS[-1]:,}",
        "counted": _listed(COUNTED_LENGTHS),
        "crossings": "; ".join(f"d = {d}: n = {n:,.0f}" for d, n in crossings.items()),
    }
    headings, notes = (
        [text.format(**values) for text in TABLE1[key]] for key in ("headings", "notes")
    )
    rows = [_cells(each) for each in layers]
    data = {"layers": layers, "crossings": crossings}
    parts = [Part(headings, rows)]
    return Table("table1", TABLE1["title"], parts, notes, data, pictures=["table1.png"])


def _facts(name: str, costs: Sequence[Cost]) -> dict[str, Any]:
    """The paper's claims about a layer, its costs and the exponents of their growth, for the JSON file."""
    longest = costs[-NUM_FITTED:]
    sizes = [cost.n for cost in longest]
    return {
        "layer": name,
        **CLAIMS[name],
        "measured": [cost._asdict() for cost in costs],
        "time_exponent": exponent(sizes, [cost.seconds for cost in longest]),
        "memory_exponent": exponent(sizes, [cost.megabytes for cost in longest]),
        "lengths_counted": COUNTED_LENGTHS,
        "sequential_operations": [sequential_operations(name, n) for n in COUNTED_LENGTHS],
        "path_lengths": [path_length(name, n) for n in COUNTED_LENGTHS],
    }


def _cells(facts: Mapping[str, Any]) -> list[str]:
    """A layer's row of the table."""
    longest = Cost(**facts["measured"][-1])
    return [
        facts["layer"],
        *CLAIMS[facts["layer"]].values(),
        f"n^{facts['time_exponent']:.2f}",
        f"{1000 * longest.seconds:,.0f} ms",
        f"n^{facts['memory_exponent']:.2f}",
        f"{longest.megabytes:,.0f} MB",
        _listed(facts["sequential_operations"]),
        _listed(facts["path_lengths"]),
    ]


def _listed(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers))


def draw(path: Path, costs: dict[str, list[Cost]], crossings: dict[int, float]) -> None:
    """Draw the time and memory of each layer by length, and the `crossings` by width."""
    with chart(path, (13, 4.2), columns=3) as (times, memory, line):
        for name, measured in costs.items():
            lengths = [cost.n for cost in measured]
            times.loglog(
                lengths, [cost.seconds for cost in measured], marker="o", markersize=3, label=name
            )
            memory.loglog(
                lengths, [max(cost.megabytes, 0.1) for cost in measured], marker="o", markersize=3
            )
        times.set(xlabel="n", ylabel="seconds", title=f"time of a layer, d = {TIMED_WIDTH}")
        memory.set(xlabel="n", ylabel="MB", title="peak memory")
        finite = {d: n for d, n in crossings.items() if math.isfinite(n)}
        line.loglog(list(finite), list(finite.values()), marker="o", label="measured")
        line.loglog(CROSSING_WIDTHS, CROSSING_WIDTHS, linestyle=":", label="n = d")
        line.set(xlabel="d", ylabel="n", title="self-attention and recurrence take equal time")


def where_one(lengths: Sequence[int], ratios: Sequence[float]) -> float:
    """The length above which all `ratios` exceed 1, interpolated between `lengths`; inf if the last ratio is < 1."""
    below = [i for i, ratio in enumerate(ratios) if ratio < 1]
    if not below:
        return float(lengths[0])
    if below[-1] == len(lengths) - 1:
        return math.inf
    both = slice(below[-1], below[-1] + 2)
    return math.exp(np.interp(0, np.log(ratios[both]), np.log(lengths[both])))


def _peak() -> int:
    """The peak memory of this process in bytes (on Linux, getrusage would include the parent process)."""
    status = Path("/proc/self/status")
    if status.exists():
        _, _, peak = status.read_text(encoding="utf-8").partition("VmHWM:")
        return int(peak.split()[0]) * 1024
    if resource is None:
        raise UserError(
            "Table 1 needs the peak memory, which can be measured only on Linux and macOS."
        )
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (
        1 if sys.platform == "darwin" else 1024
    )
