"""Draw the learning curves of a training run from its journal, as SVG."""

import io
import math
from collections.abc import Iterable
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from transduce.system.journal import Event

TRAINING_COLOUR = (
    "#4c8bd6"  # blue and orange: colour-blind readers can tell them apart, on white and on black
)
VALIDATION_COLOUR = "#e07b39"
TEXT_COLOUR = "#010203"  # placeholder for the page's text colour
# Text is written as text, without a frame, with a light grid and the page's text colour. The same curve gives the same
# SVG.
STYLE: dict[Any, Any] = {
    **{
        "svg.fonttype": "none",
        "svg.hashsalt": "transduce",
        "font.size": 11,
        "text.color": TEXT_COLOUR,
    },
    **{"axes.grid": True, "grid.color": TEXT_COLOUR, "grid.alpha": 0.12, "axes.facecolor": "none"},
    **{f"axes.spines.{side}": False for side in ("top", "right", "left")},
    **{"axes.edgecolor": TEXT_COLOUR, "axes.labelcolor": TEXT_COLOUR},
    **{"xtick.color": TEXT_COLOUR, "ytick.color": TEXT_COLOUR},
    **{"xtick.major.size": 0, "ytick.major.size": 0},
}


Curve = list[tuple[int, float]]  # pairs of an update and a value from the journal


def learning_curve(events: Iterable[Event]) -> str:
    """An SVG chart of a journal's training loss, validation loss and, if present, validation BLEU."""
    events = list(events)
    training = _curve(events, "update", "nll")
    bleu = _curve(events, "validation", "bleu")
    validation = [
        (step, math.log(value)) for step, value in _curve(events, "validation", "perplexity")
    ]
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(5.0, 4.2 if bleu else 2.8), layout="constrained")
        heights = [3, 2] if bleu else [1]
        axes = figure.subplots(len(heights), 1, sharex=True, squeeze=False, height_ratios=heights)[
            :, 0
        ]
        _draw(axes[0], training, TRAINING_COLOUR, "training", marker="")
        _draw(axes[0], validation, VALIDATION_COLOUR, "validation", marker="o")
        axes[0].set_ylabel("nats per token")
        if len(axes[0].lines) > 1:
            axes[0].legend(frameon=False)
        if bleu:
            _draw(axes[1], bleu, VALIDATION_COLOUR, "validation", marker="o")
            axes[1].set_ylabel("BLEU")
        axes[-1].set_xlabel("updates")
        curves = {"training": training, "validation": validation, "BLEU": bleu}
        spans = [
            f"{name} from {curve[0][1]:.3g} to {curve[-1][1]:.3g}"
            for name, curve in curves.items()
            if curve
        ]
        return _to_svg(figure, "Learning curve: " + "; ".join(spans))


def _curve(events: Iterable[Event], event: str, key: str) -> Curve:
    return [
        (each["step"], each[key])
        for each in events
        if each["event"] == event and each.get(key) is not None
    ]


def _draw(axes: Axes, curve: Curve, colour: str, label: str, *, marker: str) -> None:
    if curve:
        axes.plot(
            *zip(*curve, strict=True),
            color=colour,
            label=label,
            marker=marker,
            markersize=4,
            linewidth=1.6,
        )


def _to_svg(figure: Figure, description: str) -> str:
    """The SVG text of a figure, with a description for screen readers."""
    buffer = io.StringIO()
    metadata: dict[str, Any] = {"Date": None, "Creator": None}
    figure.savefig(buffer, format="svg", transparent=True, metadata=metadata)
    svg = buffer.getvalue()
    svg = svg[svg.index("<svg ") :].strip().replace(TEXT_COLOUR, "currentColor")
    return svg.replace("<svg ", f'<svg role="img" aria-label="{description}" ', 1)
