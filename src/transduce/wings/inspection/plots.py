"""Draw attention maps and other charts with matplotlib."""

import re
import textwrap
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from transduce.system.console import log
from transduce.system.errors import UserError
from transduce.system.files import write_file
from transduce.tokens.vocabulary import SPACE
from transduce.wings.inspection.maps import AttentionUse
from transduce.wings.inspection.page import drawable

MAX_PIXELS = 12_000  # maximum length of a picture's longer side
USE_TITLES = {
    "encoder": "self-attention of the encoder",
    "decoder": "self-attention of the decoder",
    "source": "attention over the source",
}
METADATA: dict[str, dict[str, None]] = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}


class Map(NamedTuple):
    title: str
    weights: Tensor  # (queries, keys)


def pick(
    use: AttentionUse, layer: int = 0, head: int = 0, *, mean: bool = False
) -> list[list[Map]]:
    """The attention maps of `layer` (0: all layers) and `head` (0: all heads), in one row per layer.

    If `mean` is true, returns only the mean of these maps. Raises UserError if the model has no such layer or head.
    """
    chosen = []
    for name, number, count in zip(
        ("layer", "head"), (layer, head), use.weights.shape[:2], strict=True
    ):
        if not 0 <= number <= count:
            raise UserError(
                f"The model has no {name} {number}.", f"Choose 1 to {count}, or 0 for all."
            )
        chosen.append([number - 1] if number else list(range(count)))
    layers, heads = chosen
    if mean:
        title = f"mean of {f'layer {layer}' if layer else 'all layers'}, {f'head {head}' if head else 'all heads'}"
        return [[Map(title, use.weights[layers][:, heads].mean(dim=(0, 1)))]]
    return [[Map(f"layer {i + 1}, head {j + 1}", use.weights[i, j]) for j in heads] for i in layers]


def draw_attention(
    path: Path, use: AttentionUse, title: str, maps: Sequence[Sequence[Map]] = ()
) -> None:
    """Draw attention maps (default: all maps) to `path`, a .png, .svg or .pdf file."""
    maps = maps or pick(use)
    rows = len(maps)
    columns = len(maps[0])
    alone = rows == columns == 1  # a single map is drawn larger
    size = max(1.6, (0.24 if alone else 0.16) * max(len(use.queries), len(use.keys)))
    # SVG keeps text as text, and PDF embeds fonts as publishers require. The same input gives the same file.
    with matplotlib.rc_context(
        {"svg.fonttype": "none", "svg.hashsalt": "transduce", "pdf.fonttype": 42}
    ):
        figure = Figure(figsize=(size * columns + 1, size * rows + 1), layout="constrained")
        grid = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True)
        for axes, each in zip(grid.flat, chain.from_iterable(maps), strict=True):
            _draw(axes, each, use, 8 if alone else 5)
        figure.colorbar(axes.images[0], ax=grid, fraction=0.05 if alone else 0.02).ax.tick_params(
            labelsize=8 if alone else 5
        )
        figure.suptitle(
            textwrap.fill(drawable(title), 100 if columns > 2 else 50), fontsize=9, parse_math=False
        )
        dpi = min(300 if alone else 150, MAX_PIXELS // max(figure.get_size_inches()))
        with warnings.catch_warnings(record=True, action="always") as caught:
            save(figure, path, dpi=dpi, metadata=METADATA.get(path.suffix))
    warned = "\n".join(str(each.message) for each in caught)
    missing = {chr(int(code)) for code in re.findall(r"(?m)^Glyph (\d+) ", warned)}
    if missing and path.suffix != ".svg":  # the viewer chooses the font of an .svg
        log(
            f"Matplotlib's font lacks {''.join(sorted(missing))}, so {path} shows boxes instead. Use an .svg file."
        )


def save(
    figure: Figure, path: Path, *, dpi: float = 120, metadata: dict[str, None] | None = None
) -> None:
    """Write a figure atomically, in the format that the suffix of `path` names; raises UserError if writing fails."""
    with write_file(path.resolve()) as file:  # a symbolic link is kept, and its target is replaced
        figure.savefig(file, format=path.suffix[1:], dpi=dpi, metadata=metadata)


@contextmanager
def chart(
    path: Path, size: tuple[float, float], columns: int = 1, **subplots: Any
) -> Iterator[list[Axes]]:
    """Yield axes side by side; when the `with` block ends, add grids and legends, and write the chart to `path`."""
    figure = Figure(figsize=size, layout="constrained")
    grid = list(figure.subplots(1, columns, squeeze=False, **subplots)[0])
    yield grid
    explained = set[str]()
    for axes in grid:
        if not axes.images:
            axes.grid(alpha=0.3)
        labels = set(axes.get_legend_handles_labels()[1])
        if labels - explained:
            axes.legend(frameon=False)
        explained |= labels
    # 0.0001 to 10,000 without powers of ten.
    with matplotlib.rc_context({"axes.formatter.min_exponent": 4}):
        save(figure, path)


def _draw(axes: Axes, each: Map, use: AttentionUse, font: int) -> None:
    axes.imshow(each.weights.numpy(), cmap="Blues", vmin=0, vmax=1, aspect="auto")
    axes.set_title(each.title, fontsize=font + 1)
    queries, keys = (
        [drawable(piece).lstrip(SPACE) or "␣" for piece in pieces]
        for pieces in (use.queries, use.keys)
    )
    axes.set_xticks(range(len(keys)), keys, rotation=90, fontsize=font, parse_math=False)
    axes.set_yticks(range(len(queries)), queries, fontsize=font, parse_math=False)
    axes.tick_params(length=0)
