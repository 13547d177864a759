"""The report of a training run, as a self-contained HTML page."""

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from transduce.evaluation.scores import Score
from transduce.system.files import write_text
from transduce.wings.inspection.page import document, drawing, header, packaged, section, shown
from transduce.wings.inspection.picture import Picture

# Kana and Chinese characters, which have no spaces between words.
EAST_ASIAN = "\u3040-\u30ff\u3400-\u9fff"
PUNCTUATION_MARKS = r""".,;:!?…"„“”«»()\[\]¿¡。、，！？"""
# A word, a punctuation mark or an East Asian character, with the white space after it.
COMPARED_UNIT = re.compile(
    rf"(?:[{EAST_ASIAN}]|[{PUNCTUATION_MARKS}]|[^\s{EAST_ASIAN}{PUNCTUATION_MARKS}]+)\s*"
)


class Example(NamedTuple):
    source: str
    translation: str
    reference: str


@dataclass(frozen=True)
class Report:
    """The content of a report."""

    title: str
    summary: str  # one sentence
    facts: Sequence[tuple[str, str]] = ()  # names and values
    scores: Sequence[Score] = ()
    curve: str = ""  # SVG, from `learning_curve`
    picture: Picture | None = None  # the attention and search of one sentence
    examples: Sequence[Example] = ()
    next_steps: Sequence[tuple[str, str]] = ()  # purposes and commands


def write_report(path: Path, report: Report) -> None:
    """Write a report as an HTML page; raises UserError if the file can't be written."""
    sections = [
        section("Scores", _scores(report.scores)),
        section("Facts", _facts(report.facts)),
        section(
            "Learning curve",
            report.curve and f'<figure><div class="drawing">{report.curve}</div></figure>',
        ),
        section("Sentences", _examples(report.examples)),
        section("Inside the model", _picture(report.picture)),
    ]
    head = header(report.title, report.summary, report.next_steps)
    body = "\n".join([head, *sections])
    draws = report.picture is not None
    write_text(
        path,
        document(
            report.title,
            body,
            packaged("report.css"),
            draws=draws,
            inline_styles=bool(report.curve),
        ),
    )


def mark_differences(text: str, other: str) -> tuple[str, str]:
    """Mark the words in which two texts differ; returns both texts as HTML with <mark> elements."""
    units = COMPARED_UNIT.findall(text)
    others = COMPARED_UNIT.findall(other)
    matcher = difflib.SequenceMatcher(
        None, [u.strip() for u in units], [u.strip() for u in others], autojunk=False
    )
    marked = ["", ""]
    for change, a, b, c, d in matcher.get_opcodes():
        for side, part in enumerate(("".join(units[a:b]), "".join(others[c:d]))):
            words = part.rstrip()
            html = f"<mark>{shown(words)}</mark>" if words and change != "equal" else shown(words)
            marked[side] += html + shown(part[len(words) :])
    return marked[0], marked[1]


def _scores(scores: Sequence[Score]) -> str:
    if not scores:
        return ""
    cards = "\n".join(
        f'<div class="card"><b>{shown(score.name)}</b><strong>{score.value:.1f}</strong>'
        f"<span>{score.low:.1f}–{score.high:.1f}</span></div>"
        for score in scores
    )
    signatures = "<br>".join(
        f"{shown(score.name)} <code>{shown(score.signature)}</code>" for score in scores
    )
    note = "The range under each score is the 95 % confidence interval of the score, computed by bootstrap resampling."
    return f'<div class="cards">{cards}</div>\n<p class="note">{note}<br>{signatures}</p>'


def _facts(facts: Sequence[tuple[str, str]]) -> str:
    rows = "\n".join(
        f"<div><dt>{shown(name)}</dt><dd>{shown(value)}</dd></div>" for name, value in facts
    )
    return f"<dl>{rows}</dl>" if facts else ""


def _picture(picture: Picture | None) -> str:
    if picture is None:
        return ""
    texts = f'<p dir="auto">{shown(picture.source)}<br><span dir="auto">→ {shown(picture.translation)}</span></p>'
    return f"{texts}\n{drawing(picture)}"


def _examples(examples: Sequence[Example]) -> str:
    if not examples:
        return ""
    rows = []
    for example in examples:
        translation, reference = mark_differences(example.translation, example.reference)
        cells = {
            "source": shown(example.source),
            "translation": translation,
            "reference": reference,
        }
        row = "".join(
            f'<td data-name="{name}" dir="auto">{html}</td>' for name, html in cells.items()
        )
        rows.append(f"<tr>{row}</tr>")
    head = "<tr><th>source</th><th>translation</th><th>reference</th></tr>"
    return f'<table class="examples"><thead>{head}</thead>\n<tbody>{"".join(rows)}</tbody></table>'
