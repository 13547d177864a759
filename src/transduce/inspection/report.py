"""The report of a training: one HTML page that needs nothing beside itself, for phone and desk, day and night."""

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from transduce.evaluation.scores import Score
from transduce.inspection.attention import shown

EAST = "\u3040-\u30ff\u3400-\u9fff"  # kana and Chinese characters, written without spaces
MARKS = r""".,;:!?…"„“”«»()\[\]¿¡。、，！？"""
UNIT = re.compile(rf"(?:[{EAST}]|[{MARKS}]|[^\s{EAST}{MARKS}]+)\s*")  # what is compared: words, signs, characters


class Example(NamedTuple):
    """One sentence, what the model made of it, and what a person wrote."""

    source: str
    translation: str
    reference: str


class Step(NamedTuple):
    """Something that the reader can do next."""

    purpose: str
    command: str


@dataclass(frozen=True)
class Report:
    """What a report page says; what is empty is left out."""

    title: str
    summary: str  # one sentence
    facts: Sequence[tuple[str, str]] = ()  # what, how much
    scores: Sequence[Score] = ()
    curve: str = ""  # SVG, from `learning_curve`
    attention: str = ""  # SVG, from `attention_map`
    attention_note: str = ""  # which layer and heads are shown
    examples: Sequence[Example] = ()
    next_steps: Sequence[Step] = ()


def write_report(path: Path, report: Report) -> None:
    """Write the page; the folder must exist."""
    sections = [
        _section("Scores", _scores(report.scores)),
        _section("Facts", _facts(report.facts)),
        _section("Learning curve", _figure(report.curve, "")),
        _section("Sentences", _examples(report.examples)),
        _section("Where the model looked", _figure(report.attention, report.attention_note)),
        _section("What to do next", _next_steps(report.next_steps)),
    ]
    head = f"<header><h1>{shown(report.title)}</h1><p>{shown(report.summary)}</p></header>"
    page = PAGE.format(title=shown(report.title), style=STYLE, body="\n".join([head, *sections]))
    path.write_text(page, encoding="utf-8")


def mark_differences(text: str, other: str) -> tuple[str, str]:
    """Both texts as HTML, the words marked in which they differ."""
    units, others = UNIT.findall(text), UNIT.findall(other)
    matcher = difflib.SequenceMatcher(None, [u.strip() for u in units], [u.strip() for u in others], autojunk=False)
    marked = ["", ""]
    for change, a, b, c, d in matcher.get_opcodes():
        for side, part in enumerate(("".join(units[a:b]), "".join(others[c:d]))):
            words = part.rstrip()
            html = f"<mark>{shown(words)}</mark>" if words and change != "equal" else shown(words)
            marked[side] += html + shown(part[len(words) :])
    return marked[0], marked[1]


def _section(heading: str, content: str) -> str:
    return f"<section><h2>{heading}</h2>\n{content}\n</section>" if content else ""


def _scores(scores: Sequence[Score]) -> str:
    if not scores:
        return ""
    cards = "\n".join(
        f'<div class="card"><b>{shown(score.name)}</b><strong>{score.value:.1f}</strong>'
        f"<span>{score.low:.1f}–{score.high:.1f}</span></div>"
        for score in scores
    )
    signatures = "<br>".join(f"{shown(score.name)} <code>{shown(score.signature)}</code>" for score in scores)
    note = "Below each score the range in which 95 % of bootstrap resamples lie."
    return f'<div class="cards">{cards}</div>\n<p class="note">{note}<br>{signatures}</p>'


def _facts(facts: Sequence[tuple[str, str]]) -> str:
    rows = "\n".join(f"<div><dt>{shown(name)}</dt><dd>{shown(value)}</dd></div>" for name, value in facts)
    return f"<dl>{rows}</dl>" if facts else ""


def _figure(svg: str, note: str) -> str:
    caption = f"<figcaption>{shown(note)}</figcaption>" if note else ""
    return f'<figure><div class="drawing">{svg}</div>{caption}</figure>' if svg else ""


def _examples(examples: Sequence[Example]) -> str:
    if not examples:
        return ""
    rows = []
    for example in examples:
        translation, reference = mark_differences(example.translation, example.reference)
        cells = {"source": shown(example.source), "translation": translation, "reference": reference}
        row = "".join(f'<td data-name="{name}" dir="auto">{html}</td>' for name, html in cells.items())
        rows.append(f"<tr>{row}</tr>")
    head = "<tr><th>source</th><th>translation</th><th>reference</th></tr>"
    return f"<table><thead>{head}</thead>\n<tbody>{''.join(rows)}</tbody></table>"


def _next_steps(steps: Sequence[Step]) -> str:
    items = "\n".join(f"<li>{shown(step.purpose)}<pre>{shown(step.command)}</pre></li>" for step in steps)
    return f"<ul>{items}</ul>" if steps else ""


PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<main>
{body}
</main>
</body>
</html>
"""

STYLE = """
:root { color-scheme: light dark; --ink: #1d2330; --soft: #5d6675; --page: #fbfaf7; --card: #ffffff;
  --line: #e2e0d9; --accent: #2f6fbf; --mark: #fde3c8; --marked: #8a3d05; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e8ec; --soft: #9aa3b2; --page: #14171d; --card: #1c2028;
  --line: #2f3541; --accent: #7db2f0; --mark: #4a2d14; --marked: #ffc48f; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink); font: 16px/1.55 system-ui, sans-serif; }
main { max-width: 58rem; margin: 0 auto; padding: 2.5rem 1.25rem 4rem; }
h1 { font-size: 1.9rem; line-height: 1.2; margin: 0 0 .4rem; letter-spacing: -.01em; overflow-wrap: anywhere; }
header p { font-size: 1.1rem; color: var(--soft); margin: 0; }
h2 { font-size: 1.15rem; margin: 2.6rem 0 .8rem; }
.cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(6rem, 1fr)); gap: .8rem; }
.card { background: var(--card); border: 1px solid var(--line); border-radius: .6rem; padding: .8rem 1rem;
  display: grid; }
.card b { color: var(--soft); font-weight: 500; }
.card strong { font-size: 1.9rem; line-height: 1.25; color: var(--accent); }
.card span, .note, figcaption { color: var(--soft); font-size: .875rem; }
code, pre { font: .875em/1.5 ui-monospace, monospace; }
code { overflow-wrap: anywhere; }
dl { margin: 0; display: grid; grid-template-columns: repeat(auto-fit, minmax(17rem, 1fr)); column-gap: 2.5rem; }
dl div { display: flex; justify-content: space-between; gap: 1.5rem; padding: .4rem 0;
  border-bottom: 1px solid var(--line); }
dt { color: var(--soft); }
dd { margin: 0; text-align: right; overflow-wrap: anywhere; font-variant-numeric: tabular-nums; }
figure { margin: 0; background: var(--card); border: 1px solid var(--line); border-radius: .6rem; padding: 1rem; }
.drawing { overflow-x: auto; }
.drawing svg { display: block; margin: 0 auto; }
.drawing svg:not([width$="pt"]) { max-width: none; }
.drawing svg[width$="pt"] { width: 100%; height: auto; max-width: 37rem; }
.drawing svg text { font-family: system-ui, sans-serif !important; }
figcaption { margin-top: .6rem; }
table { width: 100%; border-collapse: collapse; table-layout: fixed; }
th { text-align: left; font-weight: 500; color: var(--soft); font-size: .875rem; }
th, td { padding: .55rem 1rem .55rem 0; border-bottom: 1px solid var(--line); vertical-align: top;
  overflow-wrap: anywhere; }
mark { background: var(--mark); color: var(--marked); border-radius: .25rem; padding: .05em .2em; }
ul { padding-left: 1.2rem; margin: 0; }
li { margin-bottom: .8rem; }
pre { background: var(--card); border: 1px solid var(--line); border-radius: .5rem; padding: .6rem .8rem;
  margin: .35rem 0 0; white-space: pre-wrap; overflow-wrap: anywhere; }
@media (max-width: 640px) {
  main { padding-top: 1.5rem; }
  figure { padding: .6rem; }
  .cards { gap: .5rem; }
  .card { padding: .6rem .7rem; }
  thead { display: none; }
  tr { display: block; padding: .7rem 0; border-bottom: 1px solid var(--line); }
  td { display: block; border: 0; padding: .1rem 0 .1rem 6.6rem; position: relative; }
  td::before { content: attr(data-name); position: absolute; left: 0; color: var(--soft); font-size: .875rem; }
}
@media print { .card, figure, pre { break-inside: avoid; } }
"""
