"""What `transduce doctor` does with a corpus: have it examined, print what was found, write the page and the rest."""

import json as json_format
import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from transduce.commands.output import check_output, print_table, write_lines
from transduce.system.errors import UserError
from transduce.system.journal import say, telling
from transduce.system.machine import cores

if TYPE_CHECKING:
    from transduce.text.rules import Rules
    from transduce.wings.corpora.doctor.audit import Examination, Finding

SHOWN = 2  # examples of each rule in a terminal
WIDTH = 100  # characters of a text that a terminal shows
RARE = 12  # characters that are named


@dataclass(frozen=True)
class Options:
    """What the command was asked for, see `doctor`."""

    languages: tuple[str, str] = ("", "")
    test: tuple[str, ...] = ()
    vocabulary: Path | None = None
    only: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    out: Path | None = None
    json: bool = False
    fix: tuple[str, ...] = ()
    threads: int = 0


def check_corpus(files: Sequence[str], options: Options) -> None:
    """Read it once, report, and with --fix read it once more to write what is kept."""
    from transduce.text.pairs import read_pairs
    from transduce.text.plain import STANDARD_INPUT
    from transduce.wings.corpora.doctor.audit import examine, findings  # numpy: too slow for --help
    from transduce.wings.corpora.doctor.repair import check_form
    from transduce.wings.corpora.doctor.report import checkup_page

    outputs = [*([options.out] if options.out else []), *map(Path, options.fix)]
    for output in outputs:
        check_output(output, files, "--out" if output == options.out else "--fix")
    if len({output.resolve() for output in outputs}) < len(outputs):
        raise UserError("--fix and --out need a file of its own for each thing that is written.")
    if options.fix and set(files) & set(STANDARD_INPUT):
        raise UserError("--fix reads the corpus twice, which standard input does not allow; give it as a file.")
    if options.fix:
        check_form(files, options.fix)
    rules, languages = _rules(options), (options.languages[0] or "source", options.languages[1] or "target")
    began = time.monotonic()
    pairs = telling(read_pairs(files, languages, lenient=True), "pairs examined")
    examination = examine(pairs, rules, options.threads or cores())
    seconds = time.monotonic() - began
    found, uncovered = findings(examination), _uncovered(examination, options.vocabulary)
    if options.json:
        print(json_format.dumps(_as_json(examination, found, uncovered, seconds), ensure_ascii=False, indent=1))
    else:
        _print(examination, found, uncovered, seconds, files)
    if options.out:
        page = checkup_page(" + ".join(Path(file).name for file in files), examination, found, uncovered)
        write_lines(options.out, [page])
        say(f"Written: {options.out}")
    if options.fix:
        _fix(files, languages, options.fix, examination)


def _rules(options: Options) -> "Rules":
    """Those that are asked for, if what they need is there."""
    from transduce.text.rules import DUPLICATE, LANGUAGE_RULES, OTHERS, SWAPPED, TEST, Rules, check_names
    from transduce.wings.rules.identify import identifier

    known = (DUPLICATE, *OTHERS)
    check_names((*options.only, *options.without), known)
    asked = [name for name in options.only or known if name not in options.without]
    if find_spec("py3langid") is None and set(asked) & set(LANGUAGE_RULES) - set(options.only):
        say("Languages are not looked at: that needs another package, pip install 'transduce[doctor]'.")
        asked = [name for name in asked if name not in LANGUAGE_RULES]
    for code, rule in zip(options.languages, LANGUAGE_RULES[1:], strict=True):
        if code and rule in asked and rule not in options.only and not identifier().label(code):
            say(f"Which texts are in the language '{code}' is not looked at, for py3langid does not know it.")
            asked = [name for name in asked if name not in (rule, SWAPPED)]
    others = tuple(name for name in asked if name in OTHERS and (name != TEST or options.test or options.only))
    return Rules(0, DUPLICATE in asked, others, options.languages, options.test)


def _uncovered(examination: "Examination", vocabulary: Path | None) -> list[tuple[str, int]]:
    """Characters without a piece, and how many there are: in a vocabulary, or in one learnt from the corpus.

    They are spelt in bytes; in an imported vocabulary they are unknown.
    """
    import numpy as np

    from transduce.config.schema import UNK
    from transduce.tokens.learning import CHARACTER_COVERAGE
    from transduce.tokens.tokenizer import Tokenizer

    counts = examination.characters.copy()
    counts[:, [10, 32]] = 0
    if vocabulary is None:
        total = counts.sum(axis=0)
        order = np.argsort(-total, kind="stable")
        before = np.cumsum(total[order]) - total[order]
        rare = order[(total[order] > 0) & (before >= CHARACTER_COVERAGE * total.sum())]
        return [(chr(code), int(total[code])) for code in rare]
    tokenizer, found = Tokenizer.load(vocabulary), dict[str, int]()
    for side, encode, pieces in (
        (0, tokenizer.encode_source, tokenizer.source_pieces),
        (1, tokenizer.encode_target, tokenizer.target_pieces),
    ):
        characters = [chr(code) for code in np.flatnonzero(counts[side])]
        for character, ids in zip(characters, encode(characters), strict=True):
            if UNK in ids or any(piece.startswith("<0x") for piece in pieces(ids)):
                found[character] = found.get(character, 0) + int(counts[side, ord(character)])
    return sorted(found.items(), key=lambda item: -item[1])


def _print(
    examination: "Examination",
    found: Sequence["Finding"],
    uncovered: Sequence[tuple[str, int]],
    seconds: float,
    files: Sequence[str],
) -> None:
    from transduce.text.rules import ENCODING
    from transduce.wings.corpora.doctor.report import length_rows, named_lines

    pairs, faulty = examination.pairs, examination.faulty
    languages = " to ".join(code or "?" for code in examination.rules.languages)
    print(f"{' + '.join(files)}: {pairs:,} pairs, {languages}, in {seconds:.1f} s ({pairs / seconds:,.0f} pairs/s)")
    mended = f"; --fix mends {examination.mended:,} of them" if examination.mended else ""
    print(f"{faulty:,} pairs ({faulty / pairs:.2%}) have a fault{mended}.")
    if examination.stopped:
        print(f"Reading stopped there: {examination.stopped}")
    rows = [("", f"{each.number:,}", f"{each.number / pairs:.2%}", each.rule, each.meaning) for each in found]
    if rows:
        print()
        print_table([("", "pairs", "share", "rule", ""), *rows])
    for stretch in examination.stretches:
        print(f"\n{stretch}")
    for each in found:
        print(f"\n{each.rule}:")
        for pair in each.examples[:SHOWN]:
            print(f"  {pair.origin.file}, line {pair.origin.line}\n    {_cut(pair.source)}\n    {_cut(pair.target)}")
        if each.number > SHOWN:
            print(f"  also in {named_lines(each, SHOWN, 8)}")
        if each.rule == ENCODING:
            print("  A file that is in another encoding as a whole: convert it first, iconv -f WINDOWS-1252 -t UTF-8")
    print()
    headings, *rest = length_rows(examination)
    print_table([("lengths", *headings[1:]), *rest])
    if uncovered:
        named = " ".join(f"{character!r} ({count:,})" for character, count in uncovered[:RARE])
        more = f" and {len(uncovered) - RARE:,} more" if len(uncovered) > RARE else ""
        print(f"\n{len(uncovered):,} characters have no piece of their own: {named}{more}")


def _cut(text: str) -> str:
    """On one line, with signs for what can't be seen."""
    shown = "".join(character if character.isprintable() else repr(character)[1:-1] for character in text)
    return shown if len(shown) <= WIDTH else shown[: WIDTH - 1] + "…"


def _as_json(
    examination: "Examination", found: Sequence["Finding"], uncovered: Sequence[tuple[str, int]], seconds: float
) -> dict[str, Any]:
    from transduce.wings.corpora.doctor.report import length_rows

    return {
        "pairs": examination.pairs,
        "faulty": examination.faulty,
        "mendable": examination.mended,
        "seconds": round(seconds, 3),
        "languages": examination.rules.languages,
        "stopped": examination.stopped,
        "rules": {
            each.rule: {
                "meaning": each.meaning,
                "pairs": each.number,
                "lines": [[origin.file, origin.line] for origin in each.lines],
                "examples": [
                    {"source": pair.source, "target": pair.target, **pair.origin._asdict()} for pair in each.examples
                ],
            }
            for each in found
        },
        "stretches": [stretch._asdict() for stretch in examination.stretches],
        "lengths": {row[0]: row[1:] for row in length_rows(examination)[1:]},
        "uncovered": dict(uncovered),
    }


def _fix(
    files: Sequence[str],
    languages: tuple[str, str],
    outputs: Sequence[str],
    examination: "Examination",
) -> None:
    """Write what is kept, what leaves, and what is kept but changed."""
    from transduce.text.plain import suffixes
    from transduce.wings.corpora.doctor.repair import Mended

    if examination.stopped:
        raise UserError(f"Nothing was written, for the corpus could not be read to its end: {examination.stopped}")
    corpus = Mended(files, languages, examination.verdicts)
    if len(outputs) == 2:
        for side, output in enumerate(outputs):
            write_lines(Path(output), corpus.sides(side))
    elif len(files) == 1 and suffixes(files[0])[0] == suffixes(outputs[0])[0]:
        write_lines(Path(outputs[0]), corpus.lines())
    else:
        write_lines(Path(outputs[0]), corpus.objects())
    left_out, mended = (Path(f"{outputs[0]}.{what}.jsonl") for what in ("left-out", "mended"))
    write_lines(left_out, corpus.left_out())
    leaving = examination.faulty - examination.mended
    written = f"Written: {' '.join(outputs)} ({examination.pairs - leaving:,} pairs), {left_out} ({leaving:,})"
    if examination.mended:
        write_lines(mended, corpus.mended())
        written += f", {mended} ({examination.mended:,} of those that are kept)"
    say(written)
