"""Implements `transduce doctor` for a corpus."""

import json as json_format
import time
from collections import Counter
from collections.abc import Collection, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from transduce.config.schema import UNK
from transduce.system.console import count, log, with_progress
from transduce.system.errors import UserError
from transduce.system.machine import cores
from transduce.text.identify import identifier
from transduce.text.languages import languages_of
from transduce.text.pairs import DOCTORS_LISTS, check_file_names, read_pairs
from transduce.text.plain import STANDARD_INPUT, check_output, write_lines
from transduce.text.rules import (
    DUPLICATE,
    IN_TEST_SET,
    LANGUAGE_RULES,
    MEANINGS,
    OTHERS,
    SWAPPED,
    Rules,
    check_names,
)
from transduce.tokens.tokenizer import Tokenizer
from transduce.wings.corpora.doctor.audit import Audit, audit
from transduce.wings.corpora.doctor.repair import check_form, write_repaired
from transduce.wings.corpora.doctor.report import direction, print_report, report_page
from transduce.wings.rules.corpus_faults import SIDE_NAMES, repairs

MAX_PROCESSES = 1024


def check_corpus(
    files: Sequence[str],
    rules: Rules,
    suspicions: Collection[str],
    *,
    vocabulary: Path | None,
    out: Path | None,
    json: bool,
    fix: Sequence[str],
    threads: int,
) -> None:
    """Audit the corpus and print the findings. Writes a report to `out`, and the repaired corpus to `fix`.

    The repaired corpus keeps the pairs that only break rules of `suspicions`.
    """
    if not 0 <= threads <= MAX_PROCESSES:
        raise UserError(f"--threads must be from 0 to {MAX_PROCESSES:,}, not {threads:,}.")
    lists = [Path(fix[0] + suffix) for suffix in DOCTORS_LISTS] if fix else []
    _check_outputs([*map(Path, fix), *lists], out, (*files, *rules.test))
    if fix:
        _check_fix(files, fix, rules)
    languages = rules.languages[0] or "source", rules.languages[1] or "target"
    tokenizer = Tokenizer.load(vocabulary) if vocabulary else None
    began = time.monotonic()
    pairs = with_progress(read_pairs(files, languages, lenient=True), "Pairs checked")
    result = audit(pairs, rules, threads or cores(), suspicions)
    seconds = time.monotonic() - began
    uncovered = _uncovered(result, tokenizer) if tokenizer else []
    if json:
        print(json_format.dumps(_as_json(result, uncovered, seconds), ensure_ascii=False, indent=1))
    else:
        read = f"{count(result.pairs, 'pair')}, {direction(result)}, in {seconds:.1f} s"
        print(f"{' + '.join(files)}: {read} ({result.pairs / seconds:,.0f} pairs/s)")
        print_report(result, uncovered)
    if out:
        page = report_page(files, result, uncovered)
        write_lines(out, [page])
        log(f"Written: {out}")
    if fix:
        _fix(files, languages, fix, lists, result)
    if result.stopped:
        raise SystemExit(1)


def _check_outputs(fixed: Sequence[Path], out: Path | None, inputs: Sequence[str]) -> None:
    """Raise UserError unless each file that --fix and --out write can be written, and none is an input."""
    for path in fixed:
        # `/dev/stdout` may be a file.
        if (
            path.is_relative_to("/dev")
            or str(path) == "-"
            or (path.exists() and not path.is_file())
        ):
            raise UserError(f"--fix needs names of files, not {path}.")
    if out:
        check_output(out, inputs, "out")
    for path in fixed:
        check_output(path, inputs, "fix")
    outputs = [*([out] if out else []), *fixed]
    if len({output.resolve() for output in outputs}) < len(outputs):
        raise UserError(
            "Two of the files that --fix and --out write are the same.",
            "Give each output its own file.",
        )


def _check_fix(files: Sequence[str], fix: Sequence[str], rules: Rules) -> None:
    """Raise UserError if the corpus can't be repaired, or if the repaired corpus would replace one of its files."""
    if set(files) & set(STANDARD_INPUT):
        raise UserError(
            "--fix reads the corpus twice, which standard input does not allow.",
            "Name a file.",
        )
    for folder in (file for file in files if Path(file).is_dir()):
        if any(Path(output).resolve().is_relative_to(Path(folder).resolve()) for output in fix):
            raise UserError(
                f"{fix[0]} would become part of the corpus {folder}.",
                "Name another folder.",
                "fix",
            )
    check_form(files, fix)
    check_file_names(fix, languages_of(files) or rules.languages)


def choose_rules(
    languages: tuple[str, str], test: tuple[str, ...], only: Sequence[str], without: Sequence[str]
) -> Rules:
    """The rules in `only`, or by default all rules that can be checked, except those in `without`."""
    known = (DUPLICATE, *OTHERS)
    check_names((*only, *without), known)
    chosen = [name for name in only or known if name not in without]
    if not chosen:
        raise UserError("--without names every rule that is to be checked.", "Name fewer rules.")
    if IN_TEST_SET in chosen and only and not test:
        raise UserError(
            f"The rule '{IN_TEST_SET}' needs a test set.", "Name its files with --test."
        )
    if find_spec("py3langid") is None and set(chosen) & set(LANGUAGE_RULES) - set(only):
        log(
            "Languages are not checked, since py3langid is missing: pip install 'transduce[doctor]'."
        )
        chosen = [name for name in chosen if name not in LANGUAGE_RULES]
    for code, rule in zip(languages, LANGUAGE_RULES[1:], strict=True):
        if code and rule in chosen and rule not in only and not identifier().label(code):
            log(f"Texts are not checked for the language '{code}', which py3langid doesn't know.")
            chosen = [name for name in chosen if name not in (rule, SWAPPED)]
    others = tuple(name for name in chosen if name in OTHERS and (name != IN_TEST_SET or test))
    return Rules(0, DUPLICATE in chosen, others, languages, test)


def _uncovered(audit: Audit, tokenizer: Tokenizer) -> list[tuple[str, int]]:
    """The characters of the corpus that the tokenizer lacks, with counts, the most frequent first."""
    uncovered = Counter[str]()
    for counts, encode, pieces in (
        (audit.characters[0], tokenizer.encode_source, tokenizer.source.pieces),
        (audit.characters[1], tokenizer.encode_target, tokenizer.target.pieces),
    ):
        characters = [chr(code) for code in np.flatnonzero(counts) if code not in (10, 32)]
        for character, ids in zip(characters, encode(characters), strict=True):
            if UNK in ids or any(piece.startswith("<0x") for piece in pieces(ids)):
                uncovered[character] += int(counts[ord(character)])
    return uncovered.most_common()


def _as_json(audit: Audit, uncovered: Sequence[tuple[str, int]], seconds: float) -> dict[str, Any]:
    return {
        "pairs": audit.pairs,
        "faulty": audit.faulty,
        "suspicious": audit.suspicious,
        "mendable": audit.repaired,
        "seconds": round(seconds, 3),
        "languages": audit.rules.languages,
        "stopped": str(audit.stopped or ""),
        "rules": {
            finding.rule: {
                "meaning": MEANINGS[finding.rule],
                "kind": "suspicion" if finding.is_suspicion else "fault",
                "pairs": finding.number,
                "lines": finding.lines,
                "examples": [
                    {"source": pair.source, "target": pair.target, **pair.origin._asdict()}
                    for pair in finding.examples
                ],
            }
            for finding in audit.findings()
        },
        "corpus": [
            {
                **each._asdict(),
                "side": SIDE_NAMES[each.side],
                "share": each.share,
                **origin._asdict(),
            }
            for each, origin in audit.corpus_faults()
        ],
        "stretches": [stretch._asdict() for stretch in audit.stretches],
        "uncovered": dict(uncovered),
    }


def _fix(
    files: Sequence[str],
    languages: tuple[str, str],
    outputs: Sequence[str],
    lists: Sequence[Path],
    audit: Audit,
) -> None:
    """Write the repaired corpus and the `lists` of the removed pairs and of the repaired pairs."""
    if audit.stopped:
        raise UserError(
            f"Nothing was repaired, since the corpus can't be read to its end: {audit.stopped.cause}",
            audit.stopped.hint,
        )
    left_out, repaired = lists
    repaired.unlink(missing_ok=True)
    chosen = repairs(each for each, _ in audit.corpus_faults())
    repaired_lists = lists if audit.repaired else [left_out]
    blank = write_repaired(files, languages, audit, outputs, repaired_lists, chosen)
    removed = audit.faulty - audit.repaired + blank
    written = f"Written: {' '.join(outputs)} ({count(audit.pairs - removed, 'pair')}), {left_out} ({removed:,})"
    if audit.repaired:
        written += f", {repaired} ({count(audit.repaired, 'kept pair')})"
    if any(chosen):
        written += f". Repaired in all texts: {', '.join(dict.fromkeys([*chosen[0], *chosen[1]]))}"
    log(written)
