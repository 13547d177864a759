"""Draw the figures of the pages about the paper: `python docs/figures.py docs/images/paper`.

Each figure is an SVG without fonts and scripts. Text and axes have the colour of the text around them: a page shows the
SVG inside its HTML (`docs/generate.py`). Where a file is shown as an image, a rule in it follows the dark mode.
"""

import argparse
import re
from collections.abc import Callable
from html import escape
from io import StringIO
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from transduce.config.schema import TrainConfig
from transduce.model.attention import causal_mask
from transduce.model.embedding import sinusoids
from transduce.training.schedule import learning_rate

INK = "#010203"  # stands for the colour of the text
BLUE, ORANGE, GREEN = (
    "#3b7dd8",
    "#c8661a",
    "#2e8b57",
)  # 4 : 1 or more on white, 3 : 1 or more on the dark page
STYLE: dict[str, Any] = {
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.prop_cycle": mpl.cycler(color=[BLUE, ORANGE, GREEN]),
    "axes.spines.right": False,
    "axes.spines.top": False,
    "font.size": 9,
    "legend.frameon": False,
    "svg.fonttype": "none",
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
}
DARK = "<style>svg{color:#1d2330}@media(prefers-color-scheme:dark){svg{color:#e6e8ec}}</style>"
BOX_WIDTH, BOX_HEIGHT = 158, 36


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path, help="the folder for the SVG files")
    folder: Path = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in figures().items():
        (folder / f"{name}.svg").write_text(text, encoding="utf-8")


def figures() -> dict[str, str]:
    """The SVG of each figure, by its name."""
    plots: tuple[Callable[[Figure], None], ...] = (
        masks,
        positions,
        clock,
        learning_rates,
        smoothing,
        path_lengths,
    )
    drawn = {plot.__name__.replace("_", "-"): drawing(plot) for plot in plots}
    return drawn | {"figure-1": figure_1(), "beam": beam()}


def drawing(plot: Callable[[Figure], None]) -> str:
    """The SVG of a plot, the same bytes each time."""
    with mpl.rc_context(STYLE | {"svg.hashsalt": plot.__name__}):
        figure = Figure(figsize=(5, 2.6), layout="constrained")
        plot(figure)
        text = StringIO()
        figure.savefig(text, format="svg", transparent=True, metadata={"Date": None})
    svg = text.getvalue()
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>|<!--.*?-->", "", svg, flags=re.DOTALL)
    # Several figures stand in one page: only what is referred to has a name.
    svg = re.sub(r'<g id="[a-zA-Z]+[\w.]*_\d+"', "<g", svg)
    svg = re.sub(r"font: ([\d.]+)px '[^;\"]*", r"font: \1px sans-serif", svg)
    svg = svg.replace(INK, "currentColor")
    svg = re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", svg)
    svg = re.sub(r'(<svg[^>]*?) width="[^"]*"', r"\1", svg)
    return "".join(
        line.strip() + "\n"
        for line in svg.replace("<defs>", DARK + "<defs>", 1).splitlines()
        if line.strip()
    )


def masks(figure: Figure) -> None:
    """The masks of the three uses of attention, for a source of 5 and a target of 6 positions, one of them padding."""
    source = np.array([True] * 5 + [False])
    shown = {
        "encoder": np.tile(source, (6, 1)),
        "decoder": causal_mask(6, 6).numpy(),
        "decoder to encoder": np.tile(source, (6, 1)),
    }
    for axes, (title, mask) in zip(figure.subplots(1, 3), shown.items(), strict=True):
        axes.pcolormesh(
            np.where(mask, 1, np.nan),
            cmap=mpl.colors.ListedColormap([BLUE]),
            edgecolors=INK,
            linewidth=0.5,
        )
        axes.set(title=title, xlabel="key", ylabel="query", aspect="equal", xticks=[], yticks=[])
        axes.title.set_fontsize(9)
        axes.set_xlim(0, 6)
        axes.set_ylim(6, 0)
        for spine in axes.spines.values():
            spine.set_visible(True)


def positions(figure: Figure) -> None:
    """The positional encodings of 50 positions with 64 channels: blue is positive, orange negative."""
    table = sinusoids(50, 64).numpy()
    colours = np.empty((*table.shape, 4))
    for sign, colour in ((table >= 0, BLUE), (table < 0, ORANGE)):
        colours[sign] = mpl.colors.to_rgba(colour)
    colours[..., 3] = np.abs(table)
    axes = figure.subplots()
    axes.imshow(colours, aspect="auto", interpolation="none")
    axes.set(xlabel="channel", ylabel="position")


def clock(figure: Figure) -> None:
    """The binary digits of the positions 0 to 15, and three pairs of channels that turn like the digits."""
    left, right = figure.subplots(1, 2)
    places = np.arange(16)
    for row, digit in enumerate((0, 1, 2)):
        left.step(
            places, 1.4 * row + (places >> digit & 1), where="mid", color=(BLUE, ORANGE, GREEN)[row]
        )
        wave = np.linspace(0, 15, 200)
        right.plot(
            wave,
            1.4 * row + 0.5 - 0.5 * np.sin(np.pi * (wave + 0.5) / 2**digit),
            color=(BLUE, ORANGE, GREEN)[row],
        )
    for axes, title in ((left, "binary digits"), (right, "sinusoids of the same periods")):
        axes.set(xlabel="position", yticks=[0.5, 1.9, 3.3], yticklabels=["1", "2", "4"])
        axes.set_title(title, fontsize=9)
    left.set_ylabel("value of the digit")


def learning_rates(figure: Figure) -> None:
    """Equation 3 for the base model and two variants."""
    axes = figure.subplots()
    updates = np.arange(1, 20_001, 50)
    for d_model, warmup in ((512, 4000), (512, 8000), (1024, 4000)):
        train = TrainConfig(learning_rate=1.0, warmup=warmup, steps=100_000)
        rates = [1000 * learning_rate(int(step), train, d_model) for step in updates]
        axes.plot(updates, rates, label=f"d_model {d_model:,}, warm-up {warmup:,}")
    axes.set(xlabel="update", ylabel="learning rate × 1,000", ylim=(0, None))
    axes.legend()


def smoothing(figure: Figure) -> None:
    """The smoothed target of five tokens, and the loss against the probability of the right token."""
    left, right = figure.subplots(1, 2)
    left.bar(range(5), [0.02] * 4 + [0.92], color=[ORANGE] * 4 + [BLUE])
    left.set(
        xlabel="token",
        ylabel="target probability",
        xticks=range(5),
        xticklabels=["", "", "", "", "right"],
    )
    p = np.linspace(0.02, 0.9999, 400)
    smoothed = -0.92 * np.log(p) - 0.08 * np.log((1 - p) / 4)
    right.plot(p, smoothed, label="ε = 0.1")
    right.plot(p, -np.log(p), label="ε = 0", linestyle="--")
    right.axvline(0.92, color=INK, linewidth=0.6)
    right.set(xlabel="probability of the right token", ylabel="loss", ylim=(0, 3))
    right.legend()


def path_lengths(figure: Figure) -> None:
    """The longest path between two of n positions, by layer."""
    axes = figure.subplots()
    n = np.arange(2, 201)
    axes.plot(n, n - 1, label="recurrent: n − 1")
    axes.plot(n, np.ceil((n - 1) / 2), label="convolutional, k = 3: (n − 1) / 2")
    axes.plot(
        n,
        [np.ceil(round(np.log(each) / np.log(3), 9)) for each in n],
        label="dilated, k = 3: log₃ n",
    )
    axes.plot(n, np.ones(len(n)), color=INK, label="self-attention: 1")
    axes.set(xlabel="positions n", ylabel="longest path", yscale="log", ylim=(0.8, 800))
    axes.legend(ncols=2, fontsize=8, loc="upper left")


# ---- drawings ---------------------------------------------------------------------------------


def svg_of(width: int, height: int, content: str) -> str:
    """An SVG of this size, in the type of the plots."""
    size = f'viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size}>\n{DARK}\n{content}\n</svg>\n'


def label(x: float, y: float, text: str, *, size: int = 12, colour: str = "currentColor") -> str:
    """A centred line of text."""
    return f'<text x="{x:g}" y="{y:g}" text-anchor="middle" font-size="{size}" fill="{colour}">{escape(text)}</text>'


def line(*points: tuple[float, float], colour: str = "currentColor", width: float = 1.2) -> str:
    """A line through points."""
    path = " ".join(f"{x:g},{y:g}" for x, y in points)
    return f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="{width:g}"/>'


def link(target: str, content: str) -> str:
    return f'<a href="{target}">{content}</a>'


def figure_1() -> str:
    """Figure 1 of the paper. A box's first line leads to the section, its second line to the code."""
    model, api = "beside/model.html", "../api/model.html#transduce.model"
    attention = (
        f"{model}#322-multi-head-attention",
        "MultiHeadAttention",
        f"{api}.attention.MultiHeadAttention",
    )
    add_norm = (
        f"{model}#31-residual-connections-and-layer-normalisation",
        "Residual",
        f"{api}.transformer.Residual",
    )
    feed_forward = (
        f"{model}#33-feed-forward-layers",
        "FeedForward",
        f"{api}.transformer.FeedForward",
    )
    embedding = (f"{model}#34-embeddings-and-softmax", "Embedding", f"{api}.embedding.Embedding")
    masked = (
        f"{model}#323-three-uses-of-attention-and-their-masks",
        "causal_mask",
        f"{api}.attention.causal_mask",
    )
    places = (f"{model}#35-positional-encodings", "sinusoids", f"{api}.embedding.sinusoids")
    output = (
        f"{model}#34-embeddings-and-softmax",
        "logits",
        f"{api}.transformer.Transformer.logits",
    )
    parts = list[str]()

    def box(x: float, y: float, title: str, about: tuple[str, str, str], colour: str) -> None:
        section, name, code = about
        middle = x + BOX_WIDTH / 2
        size = f'x="{x:g}" y="{y:g}" width="{BOX_WIDTH}" height="{BOX_HEIGHT}" rx="5"'
        parts.append(f'<rect {size} class="paper" fill="Canvas"/>')  # hides the line below
        parts.append(f'<rect {size} fill="{colour}" fill-opacity=".14" stroke="{colour}"/>')
        parts.append(link(section, label(middle, y + 15, title)))
        parts.append(link(code, label(middle, y + 30, name, size=10)))

    left, right = 10, 192
    rows = {
        left: [
            (204, "Add and norm", add_norm, ORANGE),
            (250, "Feed forward", feed_forward, GREEN),
            (310, "Add and norm", add_norm, ORANGE),
            (356, "Multi-head attention", attention, BLUE),
        ],
        right: [
            (98, "Add and norm", add_norm, ORANGE),
            (144, "Feed forward", feed_forward, GREEN),
            (204, "Add and norm", add_norm, ORANGE),
            (250, "Attention to the source", attention, BLUE),
            (310, "Add and norm", add_norm, ORANGE),
            (356, "Masked attention", masked, BLUE),
        ],
    }
    for (x, boxes), text in zip(rows.items(), ("encoder × 6", "decoder × 6"), strict=True):
        top = boxes[0][0] - 8
        size = f'x="{x - 7}" y="{top}" width="{BOX_WIDTH + 14}" height="{402 - top}" rx="9"'
        parts.append(f'<rect {size} fill="none" stroke="currentColor" stroke-dasharray="4 3"/>')
        parts.append(label(x + 27, top - 6, text, size=11))
        middle = x + BOX_WIDTH / 2
        parts.append(line((middle, 508), (middle, 182 if x == left else 20)))
        # Residual connections pass each sublayer at its outer side.
        outside, edge = (x - 4, x) if x == left else (x + BOX_WIDTH + 4, x + BOX_WIDTH)
        for (y, *_), (below, *_) in zip(boxes[::2], boxes[1::2], strict=True):
            start = below + BOX_HEIGHT + 5
            corners = (middle, start), (outside, start), (outside, y + 18), (edge, y + 18)
            parts.append(line(*corners))
        for row in boxes:
            box(x, *row)
        box(x, 410, "Positional encoding", places, GREEN)
        box(x, 458, "Embedding", embedding, ORANGE)
    # The encoder's output becomes the keys and values of the decoder.
    bend = left + BOX_WIDTH / 2, 182
    parts.append(line(bend, (180, 182), (180, 268), (right, 268), colour=BLUE, width=2))
    parts.append(label(left + BOX_WIDTH / 2, 522, "Source"))
    shifted = label(right + BOX_WIDTH / 2, 522, "Target, shifted")
    parts.append(link(f"{model}#3-encoder-and-decoder", shifted))
    box(right, 32, "Linear and softmax", output, ORANGE)
    parts.append(label(right + BOX_WIDTH / 2, 13, "probabilities of the next token", size=11))
    return svg_of(360, 530, "\n".join(parts))


def beam() -> str:
    """The tree of section 6.1: greedy search takes the orange path, a beam of 2 finds the blue one."""
    first = {"A": (60, 0.6), "B": (190, 0.4)}
    second = {
        "A": [("C", 0.3), ("D", 0.25), ("E", 0.25), ("F", 0.2)],
        "B": [("C", 0.9), ("D", 0.1)],
    }
    parts = [label(20, 128, "start")]
    for token, (y, probability) in first.items():
        chosen = ORANGE if token == "A" else BLUE
        parts.append(line((42, 124), (120, y), colour=chosen, width=3 * probability + 0.8))
        parts.append(label(150, y + 4, f"{token}  {probability}", colour=chosen))
        step = 32
        begin = y - step * (len(second[token]) - 1) / 2
        for place, (next_token, share) in enumerate(second[token]):
            end = begin + step * place
            colour = chosen if place == 0 else "currentColor"
            parts.append(line((180, y), (255, end), colour=colour, width=3 * share + 0.5))
            text = f"{token} {next_token}  {probability} · {share} = {probability * share:.2f}"
            parts.append(f'<text x="262" y="{end + 4:g}" fill="{colour}">{text}</text>')
    return svg_of(420, 226, "\n".join(parts))


if __name__ == "__main__":
    main()
