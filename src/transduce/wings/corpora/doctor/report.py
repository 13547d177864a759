"""The report about a corpus: one self-contained HTML page without scripts."""

from collections.abc import Sequence
from importlib.resources import files
from itertools import groupby
from operator import attrgetter

import numpy as np

from transduce.system.console import count
from transduce.wings.corpora.doctor.audit import Audit, Finding, Misaligned, quantiles
from transduce.wings.corpora.doctor.chunk import MAX_LENGTH_COUNTED, Ints
from transduce.wings.inspection.page import document, section, shown

EXAMPLES_ON_PAGE = 5  # per rule
LINES_ON_PAGE = 40  # line numbers per rule
RARE_ON_PAGE = 60  # characters
HISTOGRAM_BARS = 48
CHART_WIDTH, CHART_HEIGHT = 600, 150  # in SVG units


def report_page(name: str, audit: Audit, uncovered: Sequence[tuple[str, int]]) -> str:
    """The HTML report about a corpus. `uncovered` has the characters without a vocabulary piece, and their counts."""
    languages = " to ".join(code or "?" for code in audit.rules.languages)
    findings = audit.findings()
    faults, suspicions = (
        [each for each in findings if each.is_suspicion == kind] for kind in (False, True)
    )
    summary = f"{count(audit.pairs, 'pair')}, {languages}. {verdict(audit)}"
    summary += f" {count(audit.repaired, 'faulty pair')} can be repaired." if audit.repaired else ""
    sections = [
        f"<header><h1>{shown(name)}</h1><p>{shown(summary)}</p></header>",
        f'<p class="stopped">Reading stopped early: {shown(str(audit.stopped))}</p>'
        if audit.stopped
        else "",
        section("Faults", _rules(faults, audit.pairs) or "<p>No faults.</p>"),
        section("Suspicions", _rules(suspicions, audit.pairs)) if suspicions else "",
        section("Misaligned stretches", _stretches(audit.stretches)),
        *(section(each.rule, _finding(each)) for each in findings),
        section("Lengths", _lengths(audit)),
        section("Characters", _characters(audit, uncovered)),
    ]
    style = (files("transduce.wings.corpora.doctor") / "report.css").read_text(encoding="utf-8")
    return document(f"Corpus report: {name}", "\n".join(sections), style)


def _rules(findings: Sequence[Finding], pairs: int) -> str:
    if not findings:
        return ""
    largest = max(finding.number for finding in findings)
    rows = "\n".join(
        f'<tr><th><a href="#{each.rule}">{each.rule}</a></th><td class="number">{each.number:,}</td>'
        f'<td class="number">{each.number / pairs:.2%}</td><td class="bar"><svg viewBox="0 0 100 8" '
        f'preserveAspectRatio="none"><rect width="{100 * each.number / largest:.2f}" height="8"/></svg></td>'
        f"<td>{shown(each.meaning)}</td></tr>"
        for each in findings
    )
    return f'<table class="rules"><tbody>{rows}</tbody></table>'


def _stretches(stretches: Sequence[Misaligned]) -> str:
    items = "\n".join(f"<li>{shown(str(each))}</li>" for each in stretches)
    return f"<ul>{items}</ul>" if stretches else ""


def verdict(audit: Audit) -> str:
    """A sentence that counts the pairs with faults and the suspicious pairs."""
    text = f"{count(audit.faulty, 'pair')} ({audit.faulty / audit.pairs:.2%}) with a fault"
    if audit.suspicious:
        share = f"{audit.suspicious / audit.pairs:.2%}"
        text += f"; {audit.suspicious:,} more ({share}) only suspicious: a clean copy keeps them"
    return f"{text}."


def line_numbers(finding: Finding, first: int, limit: int) -> str:
    """A text that lists up to `limit` line numbers of a finding, starting with the one at index `first`."""
    several = len({origin.file for origin in finding.lines}) > 1
    named = []
    for file, origins in groupby(finding.lines[first : first + limit], key=attrgetter("file")):
        lines = [str(origin.line) for origin in origins]
        numbers = f"{'lines' if len(lines) > 1 else 'line'} {', '.join(lines)}"
        named.append(f"{file}, {numbers}" if several else numbers)
    listed = "; ".join(named)
    return f"{listed} …" if finding.number > first + limit else listed


def length_rows(audit: Audit) -> list[tuple[str, ...]]:
    """A table of length quantiles for both sides, in characters and in words. Row 0 has the column names."""
    rows: list[tuple[str, ...]] = [("", "median", "90 %", "99 %", "longest")]
    for counts, unit in ((audit.lengths, "characters"), (audit.words, "words")):
        for side, name in enumerate(("source", "target")):
            values = quantiles(counts[side], (0.5, 0.9, 0.99, 1.0))
            lengths = (
                f"{value:,} or more" if value == MAX_LENGTH_COUNTED else f"{value:,}"
                for value in values
            )
            rows.append((f"{name}, {unit}", *lengths))
    return rows


def _finding(finding: Finding) -> str:
    rows = "\n".join(
        f'<tr><td class="place">{shown(pair.origin.file)}<br>line {pair.origin.line:,}</td>'
        f'<td dir="auto">{_text(pair.source)}</td><td dir="auto">{_text(pair.target)}</td></tr>'
        for pair in finding.examples[:EXAMPLES_ON_PAGE]
    )
    return (
        f'<p class="note" id="{finding.rule}">{count(finding.number, "pair")} with {shown(finding.meaning)}; '
        f'{shown(line_numbers(finding, 0, LINES_ON_PAGE))}</p>\n<table class="pairs"><tbody>{rows}</tbody></table>'
    )


def _text(text: str) -> str:
    return shown(text) if text.strip() else '<span class="note">(blank)</span>'


def _lengths(audit: Audit) -> str:
    headings, *quantile_rows = length_rows(audit)
    head = f"<tr>{''.join(f'<th>{heading}</th>' for heading in headings)}</tr>"
    rows = [
        f"<tr><th>{name}</th>"
        + "".join(f'<td class="number">{value}</td>' for value in values)
        + "</tr>"
        for name, *values in quantile_rows
    ]
    return (
        f"<figure>{_histogram(audit.lengths)}<figcaption>Number of texts by length in characters: source "
        f'above the line, target below.</figcaption></figure>\n<table class="lengths"><thead>{head}</thead>'
        f"<tbody>{''.join(rows)}</tbody></table>"
    )


def _histogram(counts: Ints) -> str:
    longest = max(quantiles(side, (0.995,))[0] for side in counts) + 1
    width = max(1, -(-longest // HISTOGRAM_BARS))
    bars = np.stack(
        [
            np.add.reduceat(
                side[: width * HISTOGRAM_BARS], np.arange(0, width * HISTOGRAM_BARS, width)
            )
            for side in counts
        ]
    )
    scale = CHART_HEIGHT / 2 / max(1, bars.max())
    step = CHART_WIDTH / HISTOGRAM_BARS
    drawn = "".join(
        f'<rect class="{name}" x="{place * step:.1f}" y="{CHART_HEIGHT / 2 - (value * scale if side == 0 else 0):.1f}" '
        f'width="{step - 1:.1f}" height="{value * scale:.1f}"><title>{place * width} to {(place + 1) * width - 1} '
        f"characters: {value:,}</title></rect>"
        for side, name in enumerate(("source", "target"))
        for place, value in enumerate(bars[side].tolist())
        if value
    )
    marks = "".join(
        f'<text x="{place * step:.1f}" y="{CHART_HEIGHT + 14}">{place * width}</text>'
        for place in range(0, HISTOGRAM_BARS, HISTOGRAM_BARS // 6)
    )
    return (
        f'<svg viewBox="0 0 {CHART_WIDTH} {CHART_HEIGHT + 18}" role="img" aria-label="Histogram of lengths">{drawn}'
        f'<line x1="0" x2="{CHART_WIDTH}" y1="{CHART_HEIGHT / 2}" y2="{CHART_HEIGHT / 2}"/>{marks}</svg>'
    )


def _characters(audit: Audit, uncovered: Sequence[tuple[str, int]]) -> str:
    different = [int(np.count_nonzero(side)) for side in audit.characters]
    said = f"{different[0]:,} different characters in the source, {different[1]:,} in the target."
    if uncovered:
        said += f" {len(uncovered):,} are rare or missing from the vocabulary, so they have no piece of their own:"
    items = "".join(_character(character, count) for character, count in uncovered[:RARE_ON_PAGE])
    more = " …" if len(uncovered) > RARE_ON_PAGE else ""
    return f'<p>{said}</p><p class="characters">{items}{more}</p>'


def _character(character: str, count: int) -> str:
    return f"<span><b>{shown(character)}</b> U+{ord(character):04X} <i>{count:,}</i></span> "
