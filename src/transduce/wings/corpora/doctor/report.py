"""The report about a corpus: on the terminal, or as a self-contained HTML page without scripts."""

import shlex
from collections.abc import Iterator, Sequence
from importlib.resources import files as packaged
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

from transduce.system.console import count, print_table
from transduce.text.pairs import Pair
from transduce.text.plain import STANDARD_INPUT
from transduce.text.rules import ENCODING, MEANINGS
from transduce.wings.corpora.doctor.audit import Audit, Finding
from transduce.wings.inspection.page import document, header, section, shown
from transduce.wings.rules.corpus_faults import sentences

MAX_TEXT_WIDTH = 100  # characters of each text of an example on the terminal


class Limits(NamedTuple):
    """The maximum numbers of examples and of further line numbers for each rule, and of characters."""

    examples: int
    lines: int
    characters: int


ON_TERMINAL = Limits(2, 8, 12)
ON_PAGE = Limits(5, 40, 60)


class Block(NamedTuple):
    """A part of a report: a table whose first row has the column names, or pairs, or a text."""

    heading: str
    text: str = ""
    table: Sequence[tuple[str, ...]] = ()
    pairs: Sequence[Pair] = ()


def summary(audit: Audit) -> str:
    """A sentence that counts the pairs with faults and the suspicious pairs."""
    text = f"{count(audit.faulty, 'pair')} ({audit.faulty / audit.pairs:.2%}) with a fault"
    if audit.suspicious:
        share = f"{audit.suspicious / audit.pairs:.2%}"
        text += f"; {audit.suspicious:,} more ({share}) only suspicious: a clean copy keeps them"
    repairs = f" {count(audit.repaired, 'faulty pair')} can be repaired."
    stopped = f"\nReading stopped early: {audit.stopped}"
    return f"{text}.{repairs if audit.repaired else ''}{stopped if audit.stopped else ''}"


def print_report(audit: Audit, uncovered: Sequence[tuple[str, int]]) -> None:
    """Print the report. `uncovered` has the characters that a vocabulary lacks, and their counts."""
    print(summary(audit))
    for block in _blocks(audit, uncovered, ON_TERMINAL):
        print()
        if block.table:
            print_table([(block.heading, *block.table[0][1:]), *block.table[1:]])
        if block.pairs:
            print(f"{block.heading}:")
        for pair in block.pairs:
            print(f"  {pair.origin.file}, line {pair.origin.line}")
            print(f"    {_cut(pair.source)}")
            print(f"    {_cut(pair.target)}")
        if block.text:
            print(block.text)


def report_page(files: Sequence[str], audit: Audit, uncovered: Sequence[tuple[str, int]]) -> str:
    """The HTML report about a corpus. `uncovered` has the characters that a vocabulary lacks, and their counts."""
    name = " + ".join(Path(file).name for file in files)
    said = f"{count(audit.pairs, 'pair')}, {direction(audit)}. {summary(audit)}"
    sections = [header(name, said, _next_steps(files, audit))]
    for block in _blocks(audit, uncovered, ON_PAGE):
        rows = [
            *block.table,
            *(
                (f"{pair.origin.file}, line {pair.origin.line}", pair.source, pair.target)
                for pair in block.pairs
            ),
        ]
        cells = ("".join(f'<td dir="auto">{shown(cell)}</td>' for cell in row) for row in rows)
        table = "".join(f"<tr>{row}</tr>" for row in cells)
        kind = "pairs" if block.pairs else "numbers"
        content = f'<table class="{kind}">{table}</table><p>{shown(block.text)}</p>'
        sections.append(section(block.heading, content))
    style = (packaged("transduce.wings.corpora.doctor") / "report.css").read_text(encoding="utf-8")
    return document(f"Corpus report: {name}", "\n".join(sections), style)


def _next_steps(files: Sequence[str], audit: Audit) -> list[tuple[str, str]]:
    """What to do with the corpus, and the commands."""
    clean = [f"clean-{Path(file).name}" for file in files]
    can_fix = audit.faulty and not audit.stopped and not {*files} & {*STANDARD_INPUT}
    corpus = shlex.join(clean if can_fix else files)
    source, target = (code or "LANGUAGE" for code in audit.rules.languages)
    fixed = f"transduce doctor {shlex.join(files)} --from {source} --to {target} --fix {shlex.join(clean)}"
    train = f"transduce train --train {corpus} --from {source} --to {target} --out MODEL"
    return [
        ("Look at the examples below. A fault is probably bad for training.", ""),
        *([("Write a copy of the corpus without faults:", fixed)] if can_fix else []),
        ("Train a model:", train),
    ]


def direction(audit: Audit) -> str:
    """Source and target language, such as "en to de"; "?" stands for an unknown language."""
    return " to ".join(code or "?" for code in audit.rules.languages)


def _blocks(audit: Audit, uncovered: Sequence[tuple[str, int]], limits: Limits) -> Iterator[Block]:
    findings = audit.findings()
    if whole := list(sentences(audit.corpus_faults())):
        advice = "A model learns to write such texts. `transduce doctor --fix` repairs what can be repaired."
        yield Block("faults of the whole corpus", "\n".join([*whole, advice]))
    for heading, is_suspicion in (("faults", False), ("suspicions", True)):
        rows = [
            (
                "",
                f"{each.number:,}",
                f"{each.number / audit.pairs:.2%}",
                each.rule,
                MEANINGS[each.rule],
            )
            for each in findings
            if each.is_suspicion == is_suspicion
        ]
        if rows:
            yield Block(heading, table=[("", "pairs", "share", "rule", ""), *rows])
    if audit.stretches:
        yield Block("misaligned stretches", "\n".join(map(str, audit.stretches)))
    for finding in findings:
        yield Block(finding.rule, _more(finding, limits), pairs=finding.examples[: limits.examples])
    if uncovered:
        first = uncovered[: limits.characters]
        named = " ".join(f"{character!r} ({number:,})" for character, number in first)
        rest = len(uncovered) - len(first)
        more = f" and {rest:,} more" if rest else ""
        pieces = f"{count(len(uncovered), 'character')} without a vocabulary piece"
        yield Block("characters", f"{pieces}: {named}{more}")


def _more(finding: Finding, limits: Limits) -> str:
    """The line numbers of more pairs after the examples, and advice."""
    end = limits.examples + limits.lines
    several = len({origin.file for origin in finding.lines}) > 1
    named = []
    for file, origins in groupby(finding.lines[limits.examples : end], key=attrgetter("file")):
        lines = [str(origin.line) for origin in origins]
        numbers = f"{'lines' if len(lines) > 1 else 'line'} {', '.join(lines)}"
        named.append(f"{file}, {numbers}" if several else numbers)
    said = [f"  also in {'; '.join(named)}{' …' if finding.number > end else ''}"] if named else []
    if finding.rule == ENCODING:
        said.append(
            "  If a whole file is not UTF-8, convert it first, for example with iconv -f WINDOWS-1252 -t UTF-8"
        )
    return "\n".join(said)


def _cut(text: str) -> str:
    """The text, cut to MAX_TEXT_WIDTH characters, with escapes for unprintable characters."""
    printable = "".join(
        character if character.isprintable() else repr(character)[1:-1] for character in text
    )
    if len(printable) <= MAX_TEXT_WIDTH:
        return printable
    return printable[: MAX_TEXT_WIDTH - 1] + "…"
