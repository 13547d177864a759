"""BLEU and speed of several models, in sentences a second from text to text.

    python benchmarks/front.py SOURCE REFERENCE MODEL... [--threads 2] [--repeats 5] [--plot front.png]

A MODEL is a folder, or NAME=FOLDER to name it in the table. The first model is the reference for ratios and BLEU
differences. All models translate the same lines with every --beam-size and the engine that `translate` chooses.
Loading and a first pass are not timed. The models take turns, --repeats times; the table shows medians, and the
smallest and largest ratio. BLEU differences are tested with the paired bootstrap of Koehn (2004).
"""

import statistics
import time
from pathlib import Path
from typing import NamedTuple

import torch
from matplotlib.figure import Figure
from measuring import ratio, run_script

import transduce
from transduce.evaluation.scores import compare
from transduce.model_folder import read_config
from transduce.text.plain import read_lines


class Point(NamedTuple):
    """The speed and BLEU of a model with one beam size, as a point on the plot."""

    label: str
    speed: float  # sentences a second
    bleu: float


def main(
    source: str,
    reference: str,
    *models: str,
    beam_size: list[int] | None = None,
    threads: int = 2,
    repeats: int = 5,
    plot: str = "",
) -> None:
    """Measure all models in turns, print the table, and draw the plot."""
    torch.set_num_threads(threads)
    sources = list(read_lines(source))
    references = list(read_lines(reference))
    translators = {}
    sizes = {}
    for each in models:
        name, _, folder = each.rpartition("=")
        for beam in beam_size or [4, 1]:
            label = f"{name or folder}, beam {beam}"
            translators[label] = transduce.load(
                folder, {"decode.beam_size": beam}, device="cpu", threads=threads
            )
            shape = read_config(Path(folder)).model
            sizes[label] = (
                f"{shape.num_encoder_layers} + {shape.num_decoder_layers}, {shape.d_model}"
            )
    found = {
        label: [one.text for one in ours.translate(sources)] for label, ours in translators.items()
    }
    seconds: dict[str, list[float]] = {label: [] for label in translators}
    for _ in range(repeats):
        for label, ours in translators.items():
            began = time.perf_counter()
            ours.translate(sources)
            seconds[label].append(time.perf_counter() - began)
    first = next(iter(translators))
    print(f"{len(sources):,} sentences, {threads} threads, torch {torch.__version__}, "
          f"{time.strftime('%Y-%m-%d')}\n")  # fmt: skip
    print(
        "| model | layers, width | engine | sentences/s | relative to the first | BLEU | difference (p) |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- |")
    points = []
    for label, each in seconds.items():
        bleu = compare(found[first], found[label], references)[0]
        points.append(Point(label, len(sources) / statistics.median(each), bleu.second.value))
        other = (
            f"{bleu.second.value - bleu.first.value:+.2f} ({bleu.p_value:.3f})"
            if label != first
            else ""
        )
        engine = translators[label].engine.name
        print(
            f"| {label} | {sizes[label]} | {engine} | {points[-1].speed:.0f} "
            f"| {ratio(seconds[first], each)} | {points[-1].bleu:.2f} | {other} |"
        )
    if plot:
        draw(plot, points)


def draw(path: str, points: list[Point]) -> None:
    """Draw all points, and a line through the points that no other point exceeds in both speed and BLEU."""
    figure = Figure(figsize=(7.5, 4.8), layout="constrained")
    axes = figure.subplots()
    front = [
        one
        for one in points
        if not any(each.speed > one.speed and each.bleu > one.bleu for each in points)
    ]
    front.sort(key=lambda point: point.speed)
    axes.plot([one.speed for one in front], [one.bleu for one in front], color="0.7", zorder=0)
    for one in points:
        axes.plot(one.speed, one.bleu, "o", color="C0")
        axes.annotate(
            one.label, (one.speed, one.bleu), xytext=(5, 4), textcoords="offset points", fontsize=8
        )
    axes.set(xscale="log", xlabel="sentences a second, two threads", ylabel="BLEU")
    axes.margins(x=0.3, y=0.15)
    axes.grid(alpha=0.3)
    figure.savefig(path, dpi=120)


if __name__ == "__main__":
    run_script(main, __doc__)
