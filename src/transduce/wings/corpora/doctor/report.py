"""What the doctor says of a corpus: one HTML page that needs nothing beside itself and runs no script."""

from collections.abc import Sequence
from itertools import groupby
from operator import attrgetter

import numpy as np

from transduce.wings.corpora.doctor.audit import LONGEST, Examination, Finding, Ints, Misaligned, quantiles
from transduce.wings.inspection.page import document, section, shown

EXAMPLES = 5  # of each rule
LINES = 40  # numbers of lines that are named
RARE = 60  # characters that are named
BARS = 48  # of a histogram
WIDE, HIGH = 600, 150  # of a drawing, in its own units


def checkup_page(
    name: str, examination: Examination, found: Sequence[Finding], uncovered: Sequence[tuple[str, int]]
) -> str:
    """The page of a corpus; uncovered: characters, and how often they occur, that have no piece of their own."""
    languages = " to ".join(code or "?" for code in examination.rules.languages)
    share = examination.faulty / examination.pairs
    summary = f"{examination.pairs:,} pairs, {languages}; {examination.faulty:,} of them ({share:.2%}) have a fault"
    summary += f"; {examination.mended:,} of these can be mended." if examination.mended else "."
    sections = [
        f"<header><h1>{shown(name)}</h1><p>{shown(summary)}</p></header>",
        f'<p class="stopped">Reading stopped: {shown(examination.stopped)}</p>' if examination.stopped else "",
        section("Faults", _rules(found, examination.pairs)),
        section("Misaligned stretches", _stretches(examination.stretches)),
        *(section(each.rule, _finding(each)) for each in found),
        section("Lengths", _lengths(examination)),
        section("Characters", _characters(examination, uncovered)),
    ]
    return document(f"Check-up: {name}", "\n".join(sections), STYLE)


def _rules(found: Sequence[Finding], pairs: int) -> str:
    """A bar for every rule."""
    if not found:
        return "<p>None was found.</p>"
    most = max(each.number for each in found)
    rows = "\n".join(
        f'<tr><th><a href="#{each.rule}">{each.rule}</a></th><td class="number">{each.number:,}</td>'
        f'<td class="number">{each.number / pairs:.2%}</td><td class="bar"><svg viewBox="0 0 100 8" '
        f'preserveAspectRatio="none"><rect width="{100 * each.number / most:.2f}" height="8"/></svg></td>'
        f"<td>{shown(each.meaning)}</td></tr>"
        for each in found
    )
    return f'<table class="rules"><tbody>{rows}</tbody></table>'


def _stretches(stretches: Sequence[Misaligned]) -> str:
    items = "\n".join(f"<li>{shown(str(each))}</li>" for each in stretches)
    return f"<ul>{items}</ul>" if stretches else ""


def named_lines(finding: Finding, first: int, most: int) -> str:
    """Where some of its pairs stand, from the given place on: numbers of lines, by file if they stand in several."""
    several = len({origin.file for origin in finding.lines}) > 1
    named = [
        f"{file}, " * several + f"lines {', '.join(str(origin.line) for origin in origins)}"
        for file, origins in groupby(finding.lines[first : first + most], key=attrgetter("file"))
    ]
    return "; ".join(named) + " …" * (finding.number > first + most)


def length_rows(examination: Examination) -> list[tuple[str, ...]]:
    """What lengths these shares of the texts don't exceed, as cells, for each side in characters and words."""
    rows: list[tuple[str, ...]] = [("", "median", "90 %", "99 %", "longest")]
    for counts, unit in ((examination.lengths, "characters"), (examination.words, "words")):
        for side, name in enumerate(("source", "target")):
            values = quantiles(counts[side], (0.5, 0.9, 0.99, 1.0))
            rows.append((f"{name}, {unit}", *(f"{value:,}" + " or more" * (value == LONGEST) for value in values)))
    return rows


def _finding(finding: Finding) -> str:
    """Examples, and where the others are."""
    rows = "\n".join(
        f'<tr><td class="place">{shown(pair.origin.file)}<br>line {pair.origin.line:,}</td>'
        f'<td dir="auto">{_text(pair.source)}</td><td dir="auto">{_text(pair.target)}</td></tr>'
        for pair in finding.examples[:EXAMPLES]
    )
    return (
        f'<p class="note" id="{finding.rule}">{finding.number:,} pairs with {shown(finding.meaning)}; '
        f'{shown(named_lines(finding, 0, LINES))}</p>\n<table class="pairs"><tbody>{rows}</tbody></table>'
    )


def _text(text: str) -> str:
    return shown(text) if text.strip() else '<span class="note">(blank)</span>'


def _lengths(examination: Examination) -> str:
    """Histograms of both sides, one above the other, and what shares of the texts don't exceed."""
    headings, *found = length_rows(examination)
    head = f"<tr>{''.join(f'<th>{heading}</th>' for heading in headings)}</tr>"
    rows = [
        f"<tr><th>{name}</th>" + "".join(f'<td class="number">{value}</td>' for value in values) + "</tr>"
        for name, *values in found
    ]
    return (
        f"<figure>{_histogram(examination.lengths)}<figcaption>Pairs by characters: the source above the line, the "
        f'target below.</figcaption></figure>\n<table class="lengths"><thead>{head}</thead>'
        f"<tbody>{''.join(rows)}</tbody></table>"
    )


def _histogram(counts: Ints) -> str:
    longest = max(quantiles(side, (0.995,))[0] for side in counts) + 1
    width = max(1, -(-longest // BARS))
    bars = np.stack([np.add.reduceat(side[: width * BARS], np.arange(0, width * BARS, width)) for side in counts])
    scale = HIGH / 2 / max(1, bars.max())
    step = WIDE / BARS
    drawn = "".join(
        f'<rect class="{name}" x="{place * step:.1f}" y="{HIGH / 2 - (value * scale if side == 0 else 0):.1f}" '
        f'width="{step - 1:.1f}" height="{value * scale:.1f}"><title>{place * width} to {(place + 1) * width - 1} '
        f"characters: {value:,}</title></rect>"
        for side, name in enumerate(("source", "target"))
        for place, value in enumerate(bars[side].tolist())
        if value
    )
    marks = "".join(
        f'<text x="{place * step:.1f}" y="{HIGH + 14}">{place * width}</text>' for place in range(0, BARS, BARS // 6)
    )
    return (
        f'<svg viewBox="0 0 {WIDE} {HIGH + 18}" role="img" aria-label="Histogram of lengths">{drawn}'
        f'<line x1="0" x2="{WIDE}" y1="{HIGH / 2}" y2="{HIGH / 2}"/>{marks}</svg>'
    )


def _characters(examination: Examination, uncovered: Sequence[tuple[str, int]]) -> str:
    different = [int(np.count_nonzero(side)) for side in examination.characters]
    said = f"{different[0]:,} different ones in the source, {different[1]:,} in the target."
    if uncovered:
        said += f" {len(uncovered):,} have no piece of their own, for they are rare or not in the vocabulary:"
    items = "".join(_character(character, count) for character, count in uncovered[:RARE])
    more = " …" if len(uncovered) > RARE else ""
    return f'<p>{said}</p><p class="characters">{items}{more}</p>'


def _character(character: str, count: int) -> str:
    return f"<span><b>{shown(character)}</b> U+{ord(character):04X} <i>{count:,}</i></span> "


STYLE = """
h2 { margin-bottom: .6rem; }
table { border-collapse: collapse; width: 100%; }
th { text-align: left; font-weight: 500; vertical-align: top; white-space: nowrap; padding: .4rem 1rem .4rem 0; }
td { padding: .4rem 1rem .4rem 0; vertical-align: top; overflow-wrap: anywhere; }
tr { border-bottom: 1px solid var(--line); }
th a { color: var(--accent); text-decoration: none; }
.number { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }
.bar { width: 8rem; }
.bar svg { width: 8rem; height: .7rem; display: block; margin-top: .45rem; }
.bar rect { fill: var(--accent); }
.place, figcaption { color: var(--soft); font-size: .875rem; }
.pairs { table-layout: fixed; }
.pairs .place { width: 9rem; }
.lengths { margin-top: 1rem; max-width: 34rem; }
.lengths thead th { text-align: right; color: var(--soft); font-size: .875rem; }
.stopped { background: var(--mark); color: var(--marked); border-radius: .4rem; padding: .6rem .8rem; }
figure svg { display: block; width: 100%; height: auto; }
figure .source { fill: var(--accent); }
figure .target { fill: var(--marked); }
figure line { stroke: var(--line); }
figure text { fill: var(--soft); font-size: 11px; }
.characters span { display: inline-block; margin: 0 1rem .3rem 0; color: var(--soft); font-size: .875rem; }
.characters b { color: var(--ink); font-size: 1rem; font-weight: 500; }
.characters i { font-style: normal; font-variant-numeric: tabular-nums; }
@media (max-width: 640px) {
  .rules tr { display: grid; grid-template-columns: 1fr auto auto; padding: .4rem 0; }
  .rules .bar, .rules td:last-child { grid-column: 1 / -1; padding: 0; }
  .rules .bar, .bar svg { width: 100%; }
  .pairs tr { display: block; padding: .5rem 0; }
  .pairs td, .pairs .place { display: block; width: auto; padding: .1rem 0; }
  .lengths th { white-space: normal; }
  .lengths th, .lengths td { padding-right: .5rem; }
}
"""
