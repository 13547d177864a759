"""Removes or repairs the faulty pairs of a corpus after its audit."""

import json
from collections.abc import Iterator, Sequence
from itertools import tee, zip_longest

from transduce.system.errors import Hint, UserError
from transduce.text import jsonl
from transduce.text.encoding_errors import readable
from transduce.text.pairs import Pair, are_line_aligned, read_pairs
from transduce.text.plain import read_lines, suffixes, without_byte_order_mark
from transduce.text.rules import ENCODING, MEANINGS, MISALIGNED
from transduce.wings.corpora.doctor.audit import Audit, Verdict
from transduce.wings.corpora.doctor.windows import as_windows
from transduce.wings.rules.misalignment import at_offsets

LINE_BY_LINE = (".tsv", ".tab", ".txt", ".jsonl")  # bilingual formats with one pair per line


def check_form(files: Sequence[str], outputs: Sequence[str]) -> None:
    """Raise UserError unless the outputs have the format of the corpus or are a single .jsonl file."""
    forms = [suffixes(file)[0] for file in files]
    if len(outputs) == 1 and suffixes(outputs[0])[0] == ".jsonl":
        return
    if are_line_aligned(files):
        if len(outputs) != 2:
            raise UserError(
                "The corpus has two files.",
                Hint.about("Name two outputs, or one that ends in .jsonl.", "fix"),
            )
    elif (
        len(outputs) != 1
        or len(files) != 1
        or suffixes(outputs[0])[0] != forms[0]
        or forms[0] not in LINE_BY_LINE
    ):
        wanted = forms[0] if len(files) == 1 and forms[0] in LINE_BY_LINE else ".jsonl"
        raise UserError(
            "The repaired corpus is one file.",
            Hint.about(f"Name one output that ends in {wanted}.", "fix"),
        )


class RepairedCorpus:
    """Reads a corpus again, and removes or repairs the pairs that its audit found faulty."""

    def __init__(self, files: Sequence[str], languages: tuple[str, str], audit: Audit) -> None:
        self._files = files
        self._languages = languages
        self._audit = audit

    def _pairs(self) -> Iterator[tuple[Pair, Verdict]]:
        """Yield each pair, realigned if possible, with its verdict."""
        sources, targets = tee(read_pairs(self._files, self._languages, lenient=True))
        partners = at_offsets(targets, (verdict.offset for verdict in self._audit.verdicts))
        for pair, other, verdict in zip_longest(sources, partners, self._audit.verdicts):
            if pair is None or other is None or verdict is None:
                raise UserError(
                    f"{' or '.join(self._files)} changed during the check.",
                    Hint("Run the check again."),
                )
            decode = readable if verdict.rule else as_windows
            yield Pair(decode(pair.source), decode(other.target), pair.origin), verdict

    def side(self, side: int) -> Iterator[str]:
        """The sources (`side` 0) or the targets (`side` 1) of the kept pairs."""
        return (
            (pair.source, pair.target)[side] for pair, verdict in self._pairs() if not verdict.rule
        )

    def lines(self) -> Iterator[str]:
        """The lines of the kept pairs in a bilingual file. Other columns and JSON keys keep their undecoded bytes."""
        lines = without_byte_order_mark(read_lines(self._files[0], lenient=True))
        for line, (pair, verdict) in zip(lines, self._pairs(), strict=True):
            if not verdict.rule:
                yield self._with_texts(line, pair) if verdict.repaired else line

    def _with_texts(self, line: str, pair: Pair) -> str:
        if suffixes(self._files[0])[0] == ".jsonl":
            return jsonl.with_target(line, pair.target, self._languages, pair.source)
        return "\t".join([pair.source, pair.target, *line.split("\t")[2:]])

    def objects(self) -> Iterator[str]:
        """The kept pairs as JSON lines."""
        for pair, verdict in self._pairs():
            if not verdict.rule:
                yield json.dumps({"source": pair.source, "target": pair.target}, ensure_ascii=False)

    def left_out(self) -> Iterator[str]:
        """The removed pairs as JSON lines with the keys rule, file, line, source and target."""
        for pair, verdict in self._pairs():
            if verdict.rule:
                yield _as_json(tuple(MEANINGS)[verdict.rule - 1], pair)

    def repaired(self) -> Iterator[str]:
        """The repaired pairs as JSON lines. The key `offset` says how many lines the target stood below its source."""
        for pair, verdict in self._pairs():
            if verdict.repaired:
                yield _as_json(
                    MISALIGNED if verdict.offset else ENCODING, pair, offset=verdict.offset
                )


def _as_json(rule: str, pair: Pair, **more: int) -> str:
    texts = {"source": pair.source, "target": pair.target}
    return json.dumps({"rule": rule, **pair.origin._asdict(), **more, **texts}, ensure_ascii=False)
