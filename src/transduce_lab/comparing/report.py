"""Presents a table of training runs: rows for Markdown, data for JSON, and pictures."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from transduce import model_folder
from transduce.system.journal import read_events
from transduce.wings.inspection.plots import chart
from transduce_lab.comparing.definition import Definition
from transduce_lab.comparing.operations import flops
from transduce_lab.comparing.outcomes import F1, PERPLEXITY
from transduce_lab.comparing.runs import FAILURE, LAST_ERROR
from transduce_lab.comparing.standings import Standing, Standings, failures
from transduce_lab.comparing.statistics import LEVEL, Difference, spread
from transduce_lab.comparing.tables import Part, Table

FEW_SENTENCES = 100  # with fewer sentences, the bootstrap underestimates the variance
MAX_LOG = 700.0  # the exponential of a larger number is no float
HUGE = 1e6  # perplexities and changes from here on are not printed with all their digits
Printed = Mapping[str, Mapping[str, float]]  # differences in the paper, by measure and row
NOT_PRINTED: Printed = {}
COSTS = ("params (10^6)", "operations", "minutes")
NOTE = (
    "± : standard deviation over seeds. Differences are from the row '{base}', with their 95 % confidence intervals, "
    "which cover other seeds and other test sentences (for an ensemble of all seeds, only other seeds of '{base}', and "
    "other sentences). Verdict: whether {judge} is better or worse by a t test at a level of 5 % for the whole table "
    "(after Holm). Perplexity: per {unit} of the test text; the end of a sentence is one, too. Length: {lengths}. "
    "Operations: floating-point operations "
    "of the matrix products in a run. Minutes: of the run (of a second stage, without the first). Compare them only "
    "if the machine was equally busy."
)


def headings(standings: Standings) -> list[str]:
    """The headings of the columns that `cells` fills."""
    unit = "word" if standings.per_word else "token"
    others = [
        name
        for measure in standings.definition.measures[1:]
        for name in (measure.rstrip("2"), "difference")
    ]
    return [f"perplexity ({unit})", "change", *others, "length", "verdict"]


def cells(row: Standing, definition: Definition) -> list[str]:
    """The scores, differences and verdict of a row; "–" for a row without runs."""
    if not row.row.scores[PERPLEXITY]:
        return ["–", *[""] * 2 * len(definition.measures), verdict(row, definition)]
    shown = list[str]()
    for measure in definition.measures:
        difference = row.differences.get(measure)
        shown += [_printed(row, measure), _difference(measure, difference) if difference else ""]
    return [*shown, f"{row.row.length_ratio:.2f}", verdict(row, definition)]


def cost_cells(row: Standing) -> list[str]:
    """The costs of a row, in the order of COSTS; empty for a row without runs.

    They are means over the runs, or the sums over the members of an ensemble.
    """
    runs = row.runs
    if not runs:
        return [""] * len(COSTS)
    share = (len(row.row.scores[PERPLEXITY]) if row.definition.ensemble else len(runs)) or 1
    parameters = sum(run.parameters for run in runs) / share
    operations = sum(map(flops, runs)) / share
    counted = "" if row.definition.init or math.isnan(operations) else f"{operations:.1e}"
    minutes = sum(run.seconds for run in runs) / 60 / share
    return [f"{parameters / 1e6:.3g}", counted, f"{minutes:.1f}"]


def verdict(row: Standing, definition: Definition) -> str:
    """Better, worse or not resolved, unless the row is the base; and how many of its runs diverged or failed."""
    failed = sum(file.name != FAILURE for file in row.failures)
    total = len(row.failures) + len(row.runs)
    counts = {
        "diverged": sum(run.diverged for run in row.runs) + len(row.failures) - failed,
        "failed": failed,
    }
    parts = [_tested(row, definition)] if row.differences else []
    parts += [
        kind if count == total else f"{count} of {total} runs {kind}"
        for kind, count in counts.items()
        if count
    ]
    return "; ".join(parts)


def _tested(row: Standing, definition: Definition) -> str:
    if math.isnan(row.p_value):
        return "too few runs for a test"
    difference = row.differences[definition.judge]
    if row.p_value < LEVEL:
        is_better = (difference.value < 0) == (definition.judge == PERPLEXITY)
        p_value = "< 0.001" if row.p_value < 0.001 else f"= {row.p_value:.3f}"
        return f"{'better' if is_better else 'worse'} (p {p_value})"
    return "not resolved"


def _printed(row: Standing, measure: str) -> str:
    if measure != PERPLEXITY:
        return str(row.row.spreads[measure])
    perplexities = [math.exp(min(MAX_LOG, value)) for value in row.row.scores[measure]]
    return str(spread(perplexities)) if max(perplexities) < HUGE else "> 10^6"


def _difference(measure: str, difference: Difference) -> str:
    form, unit = ("+.1f", " %") if measure == PERPLEXITY else ("+.2f", "")
    values = [_unit(measure, each) for each in (difference.value, *difference.interval)]
    value, low, high = (format(each, form) if each < HUGE else "> 10^6" for each in values)
    return f"{value}{unit}" + ("" if math.isnan(difference.error) else f" [{low}, {high}]")


def data(row: Standing, definition: Definition) -> dict[str, Any]:
    """A row for the JSON file of the table."""
    return {
        "row": row.definition.name,
        "options": dict(row.definition.options),
        "ensemble": list(row.definition.ensemble),
        "init": row.definition.init,
        "chosen": row.chosen,
        "scores": {_logarithm(name): values for name, values in row.row.scores.items()},
        "length_ratio": row.row.length_ratio,
        "differences": {
            _logarithm(name): {**each._asdict(), "interval": each.interval}
            for name, each in row.differences.items()
        },
        "p_value_corrected": row.p_value,
        "verdict": verdict(row, definition),
        "runs": [run.as_json() for run in row.runs],
        "failures": {str(file.parent): reason for file, reason in row.failures.items()},
    }


def _logarithm(measure: str) -> str:
    """The name of a measure in the JSON file, whose perplexities are logarithms."""
    return f"log_{measure}" if measure == PERPLEXITY else measure


def table(standings: Standings, name: str, pictures: Path, printed: Printed = NOT_PRINTED) -> Table:
    """The whole table; draws its pictures, also with the `printed` differences, into the folder `pictures`."""
    definition = standings.definition
    rows = standings.rows
    scores = list[list[str]]()
    spent = list[list[str]]()
    for row in rows:
        models = f"{len(row.runs)} models" if row.definition.ensemble else str(len(row.runs))
        scores.append([row.definition.name, models, *cells(row, definition)])
        chosen = [str(row.chosen.get(name, "")).lower() for name in definition.grid]
        spent.append([row.definition.name, *chosen, *cost_cells(row)])
    chosen_values = [f"{name}, chosen" for name in definition.grid]
    return Table(
        name,
        definition.title,
        [
            Part(["row", "runs", *headings(standings)], scores),
            Part(["row", *chosen_values, *COSTS], spent, "Costs"),
        ],
        [*definition.notes, note(standings), *code_notes(rows), *failure_notes(standings)],
        [data(row, definition) for row in rows],
        [run for row in rows if not row.definition.ensemble for run in row.runs],
        draw(rows, name, pictures, printed),
    )


def note(standings: Standings) -> str:
    """The explanation of the columns."""
    definition = standings.definition
    lengths = "words of the translations divided by words of the references"
    if F1 in definition.measures:
        lengths = "brackets of the parses divided by brackets of the gold trees. F1: of the brackets of all test trees"
    unit = "word" if standings.per_word else "token"
    text = NOTE.format(
        base=definition.base_row.name, judge=definition.judge, unit=unit, lengths=lengths
    )
    sentences = len(standings.text.pairs)
    is_short = 0 < sentences < FEW_SENTENCES
    return text + (f" The test text has only {sentences} sentences." if is_short else "")


def code_notes(rows: Sequence[Standing]) -> list[str]:
    """A warning if the rows were made by different versions of the code."""
    codes = {run.code: run.revision for row in rows for run in row.runs}
    names = ", ".join(f"{revision} [code {code}]" for code, revision in codes.items())
    return [f"The rows were made by different code: {names}."] if len(codes) > 1 else []


def failure_notes(standings: Standings) -> list[str]:
    """The rows for which the grid has not chosen yet or can't choose, and the trainings that failed."""
    definition = standings.definition
    folder = standings.folder
    open_rows = list[str]()
    failed = dict[Path, str]()
    for row in definition.trained:
        tunings = definition.tunings(row)
        if tunings and not definition.costs(row, folder):
            open_rows.append(f"'{row.name}'")
        for experiment in tunings:
            failed |= failures(experiment, folder)
    for standing in standings.rows:
        failed |= standing.failures
    notes = list[str]()
    if open_rows:
        notes.append(f"Not all values of the grid are tried yet for {', '.join(open_rows)}.")
    notes += definition.refusals(folder)
    kinds = {FAILURE: "diverged", LAST_ERROR: "failed"}
    return notes + [
        f"{file.parent} {kinds[file.name]}. {reason}" for file, reason in failed.items()
    ]


def draw(rows: Sequence[Standing], name: str, folder: Path, printed: Printed) -> list[str]:
    """Draw the differences of the rows and the learning curves; returns the names of the files."""
    names = list[str]()
    compared = [row for row in rows if row.differences]
    if compared:
        names.append(f"{name}.png")
        _draw_differences(compared, folder / names[-1], printed)
    curves = dict[str, list[tuple[float, float]]]()
    for row in rows:
        if row.runs and not row.definition.ensemble and not row.runs[0].diverged:
            points = _curve(row.runs[0].folder)
            if len(points) > 1:
                curves[row.definition.name] = points
    if curves:
        names.append(f"{name}-curves.png")
        _draw_curves(curves, folder / names[-1])
    return names


def _draw_differences(compared: Sequence[Standing], path: Path, printed: Printed) -> None:
    """Draw the differences from the base with their intervals, in one panel per measure, beside the printed ones."""
    measures = tuple(compared[0].differences)
    with chart(path, (11, 1.2 + 0.3 * len(compared)), columns=len(measures), sharey=True) as panels:
        for axes, measure in zip(panels, measures, strict=True):
            axes.axvline(0, color="0.7", linewidth=1)
            for place, row in enumerate(compared):
                difference = row.differences[measure]
                ends = [_unit(measure, end) for end in difference.interval]
                axes.plot(ends, [place, place], color="C0")  # nan draws nothing
                axes.plot(_unit(measure, difference.value), place, "o", color="C0", markersize=5)
            if measure in printed:
                values = [_unit(measure, printed[measure][row.definition.name]) for row in compared]
                axes.plot(values, range(len(compared)), "ko", fillstyle="none", label="paper")
            axes.set(
                xlabel="perplexity, change in %"
                if measure == PERPLEXITY
                else f"{measure}, difference"
            )
        panels[0].set_yticks(
            range(len(compared)), [row.definition.name for row in compared], parse_math=False
        )
        panels[0].set_ylim(len(compared) - 0.5, -0.5)


def _draw_curves(curves: Mapping[str, Sequence[tuple[float, float]]], path: Path) -> None:
    """Draw the points of each row's learning curve."""
    with chart(path, (8, 4.5)) as (axes,):
        for place, (label, points) in enumerate(curves.items()):
            style = "-" if place < 10 else "--"  # the colours repeat
            axes.semilogy(
                *zip(*points, strict=True), style, label=label.replace("$", r"\$"), linewidth=1.2
            )
        axes.set(
            xlabel="target tokens (10^6)",
            ylabel="perplexity on the validation text",
            title="first seed",
        )


def _unit(measure: str, value: float) -> float:
    """A difference as shown in the table. For perplexity, it is the change in per cent."""
    return 100 * math.expm1(min(value, MAX_LOG)) if measure == PERPLEXITY else value


def _curve(folder: Path) -> list[tuple[float, float]]:
    """Million target tokens and perplexity of each validation of a training run."""
    tokens = 0
    points = list[tuple[float, float]]()
    journal = folder / model_folder.JOURNAL
    for event in read_events(journal) if journal.exists() else ():
        tokens = event.get("tokens_seen") or tokens
        if event["event"] == "validation" and event.get("perplexity"):
            points.append((tokens / 1e6, event["perplexity"]))
    return points
