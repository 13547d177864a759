"""Learning curves: what the journal of a run recorded, against the number of updates."""

import io
import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from transduce.system.journal import Event

TRAINING = "#4c8bd6"  # blue and orange can be told apart by everybody, on white and on black
VALIDATION = "#e07b39"
INK = "#010203"  # stands for the page's own text colour, which only the page knows


class Curve(NamedTuple):
    """One value that a journal holds, by update."""

    steps: list[int]
    values: list[float]


def learning_curve(events: Iterable[Event]) -> str:
    """The negative log-likelihoods and, below them, the validation BLEU against updates, as SVG for an HTML page.

    Of the journal's events it reads "update" (step, nll) and "validation" (step, perplexity, and bleu where
    it was computed); without any of them the axes stay empty.
    """
    events = list(events)
    training, perplexity = _curve(events, "update", "nll"), _curve(events, "validation", "perplexity")
    validation = Curve(perplexity.steps, [math.log(value) for value in perplexity.values])
    bleu = _curve(events, "validation", "bleu")
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "transduce", "font.size": 11}):
        figure = Figure(figsize=(5.0, 4.2 if bleu.steps else 2.8), layout="constrained")
        heights = [3, 2] if bleu.steps else [1]
        axes = figure.subplots(len(heights), 1, sharex=True, squeeze=False, height_ratios=heights)[:, 0]
        _draw(axes[0], training, TRAINING, "training", marker="")
        _draw(axes[0], validation, VALIDATION, "validation", marker="o")
        axes[0].set_ylabel("nats per token")
        if bleu.steps:
            _draw(axes[1], bleu, VALIDATION, "validation", marker="o")
            axes[1].set_ylabel("BLEU")
        axes[-1].set_xlabel("updates")
        for each in axes:
            _style(each)
        return _to_svg(figure, "Learning curve: " + _in_words(training, validation, bleu))


def _curve(events: Sequence[Event], event: str, key: str) -> Curve:
    found = [(each["step"], each[key]) for each in events if each["event"] == event and each.get(key) is not None]
    return Curve([step for step, _ in found], [value for _, value in found])


def _draw(axes: Axes, curve: Curve, colour: str, label: str, *, marker: str) -> None:
    if curve.steps:
        axes.plot(curve.steps, curve.values, color=colour, label=label, marker=marker, markersize=4, linewidth=1.6)


def _style(axes: Axes) -> None:
    """No box, a quiet grid, everything in the page's own colours."""
    axes.patch.set_visible(False)
    axes.grid(color=INK, alpha=0.12)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.spines["bottom"].set_color(INK)
    axes.tick_params(colors=INK, length=0)
    axes.xaxis.label.set_color(INK)
    axes.yaxis.label.set_color(INK)
    if len(axes.lines) > 1:
        axes.legend(frameon=False, labelcolor=INK)


def _to_svg(figure: Figure, description: str) -> str:
    """The same figure gives the same text; it scales to the width that the page leaves it."""
    buffer = io.StringIO()
    metadata: dict[str, Any] = {"Date": None, "Creator": None}
    figure.savefig(buffer, format="svg", transparent=True, metadata=metadata)
    svg = buffer.getvalue()
    svg = svg[svg.index("<svg ") :].strip().replace(INK, "currentColor")
    return svg.replace("<svg ", f'<svg role="img" aria-label="{description}" ', 1)


def _in_words(training: Curve, validation: Curve, bleu: Curve) -> str:
    """For readers who don't see the drawing."""
    curves = {"training": training, "validation": validation, "BLEU": bleu}
    return "; ".join(
        f"{name} from {curve.values[0]:.3g} to {curve.values[-1]:.3g}" for name, curve in curves.items() if curve.values
    )
