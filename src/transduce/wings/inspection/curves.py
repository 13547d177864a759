"""Learning curves of a run from its journal, as SVG."""

import io
import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from transduce.system.journal import Event

TRAINING_COLOUR = "#4c8bd6"  # blue and orange: safe for colour-blind readers, on white and on black
VALIDATION_COLOUR = "#e07b39"
TEXT_COLOUR = "#010203"  # placeholder for the page's text colour


class Curve(NamedTuple):
    """A value of the journal by update."""

    steps: list[int]
    values: list[float]


def learning_curve(events: Iterable[Event]) -> str:
    """Draw training and validation loss and, below, validation BLEU against updates, as SVG for an HTML page.

    Reads the events "update" (step, nll) and "validation" (step, perplexity, and bleu if computed). Without events the
    axes are empty.
    """
    events = list(events)
    training, perplexity = _curve(events, "update", "nll"), _curve(events, "validation", "perplexity")
    validation = Curve(perplexity.steps, [math.log(value) for value in perplexity.values])
    bleu = _curve(events, "validation", "bleu")
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "transduce", "font.size": 11}):
        figure = Figure(figsize=(5.0, 4.2 if bleu.steps else 2.8), layout="constrained")
        heights = [3, 2] if bleu.steps else [1]
        axes = figure.subplots(len(heights), 1, sharex=True, squeeze=False, height_ratios=heights)[:, 0]
        _draw(axes[0], training, TRAINING_COLOUR, "training", marker="")
        _draw(axes[0], validation, VALIDATION_COLOUR, "validation", marker="o")
        axes[0].set_ylabel("nats per token")
        if bleu.steps:
            _draw(axes[1], bleu, VALIDATION_COLOUR, "validation", marker="o")
            axes[1].set_ylabel("BLEU")
        axes[-1].set_xlabel("updates")
        for each in axes:
            _style(each)
        return _to_svg(figure, "Learning curve: " + _in_words(training, validation, bleu))


def _curve(events: Sequence[Event], event: str, key: str) -> Curve:
    points = [(each["step"], each[key]) for each in events if each["event"] == event and each.get(key) is not None]
    return Curve([step for step, _ in points], [value for _, value in points])


def _draw(axes: Axes, curve: Curve, colour: str, label: str, *, marker: str) -> None:
    if curve.steps:
        axes.plot(curve.steps, curve.values, color=colour, label=label, marker=marker, markersize=4, linewidth=1.6)


def _style(axes: Axes) -> None:
    """Remove the box, lighten the grid, and use the page's text colour."""
    axes.patch.set_visible(False)
    axes.grid(color=TEXT_COLOUR, alpha=0.12)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.spines["bottom"].set_color(TEXT_COLOUR)
    axes.tick_params(colors=TEXT_COLOUR, length=0)
    axes.xaxis.label.set_color(TEXT_COLOUR)
    axes.yaxis.label.set_color(TEXT_COLOUR)
    if len(axes.lines) > 1:
        axes.legend(frameon=False, labelcolor=TEXT_COLOUR)


def _to_svg(figure: Figure, description: str) -> str:
    """The figure as SVG, the same text every time; the page scales it to its width."""
    buffer = io.StringIO()
    metadata: dict[str, Any] = {"Date": None, "Creator": None}
    figure.savefig(buffer, format="svg", transparent=True, metadata=metadata)
    svg = buffer.getvalue()
    svg = svg[svg.index("<svg ") :].strip().replace(TEXT_COLOUR, "currentColor")
    return svg.replace("<svg ", f'<svg role="img" aria-label="{description}" ', 1)


def _in_words(training: Curve, validation: Curve, bleu: Curve) -> str:
    """The description for screen readers."""
    curves = {"training": training, "validation": validation, "BLEU": bleu}
    return "; ".join(
        f"{name} from {curve.values[0]:.3g} to {curve.values[-1]:.3g}" for name, curve in curves.items() if curve.values
    )
