"""A corpus without the pairs that an examination found fault with, in the form that it has, and what became of them."""

import json
from collections.abc import Iterator, Sequence
from itertools import tee, zip_longest

from transduce.system.errors import UserError
from transduce.text import jsonl, tsv
from transduce.text.encoding_errors import as_windows, readable
from transduce.text.misalignment import FARTHEST, at_offsets
from transduce.text.pairs import Pair, are_line_aligned, read_lines, read_pairs
from transduce.text.plain import suffixes, without_byte_order_mark
from transduce.text.rules import ENCODING, MEANINGS, MISALIGNED
from transduce.wings.corpora.doctor.audit import MENDED

LINE_BY_LINE = (".tsv", ".tab", ".txt", ".jsonl")  # formats of bilingual files in which a pair is a line


def check_form(files: Sequence[str], outputs: Sequence[str]) -> None:
    """Raise UserError if the outputs don't have the form of the corpus, and aren't one file of JSON lines either."""
    forms = [suffixes(file)[0] for file in files]
    if len(outputs) == 1 and suffixes(outputs[0])[0] == ".jsonl":
        return
    if are_line_aligned(files):
        if len(outputs) != 2:
            raise UserError("--fix needs two files for a corpus of two files, or one whose name ends in .jsonl.")
    elif len(outputs) != 1 or len(files) != 1 or suffixes(outputs[0])[0] != forms[0] or forms[0] not in LINE_BY_LINE:
        wanted = forms[0] if len(files) == 1 and forms[0] in LINE_BY_LINE else ".jsonl"
        raise UserError(f"--fix needs one file whose name ends in {wanted}.")


class Mended:
    """What an examination says is to be done with a corpus, done while it is read again."""

    def __init__(self, files: Sequence[str], languages: tuple[str, str], verdicts: Sequence[int]) -> None:
        """verdicts: the examination's."""
        self._files, self._languages, self._verdicts = files, languages, verdicts

    def _pairs(self) -> Iterator[tuple[Pair, int]]:
        """All pairs, each with the target that is its own, and their verdicts."""
        here, there = tee(read_pairs(self._files, self._languages, lenient=True))
        offsets = (verdict - MENDED if _is_mended(verdict) else 0 for verdict in self._verdicts)
        for pair, other, verdict in zip_longest(here, at_offsets(there, offsets), self._verdicts):
            if pair is None or other is None or verdict is None:
                raise UserError(f"{' or '.join(self._files)} has changed while it was examined; do it again.")
            decode = as_windows if _is_kept(verdict) else readable
            yield Pair(decode(pair.source), decode(other.target), pair.origin), verdict

    def sides(self, side: int) -> Iterator[str]:
        """The texts of one side that are kept."""
        return ((pair.source, pair.target)[side] for pair, verdict in self._pairs() if _is_kept(verdict))

    def lines(self) -> Iterator[str]:
        """The lines of one bilingual file that are kept, with all that they hold."""
        lines = without_byte_order_mark(read_lines(self._files[0], lenient=True))
        for line, (pair, verdict) in zip(lines, self._pairs(), strict=True):
            if _is_kept(verdict):
                yield self._line(as_windows(line), pair.target) if verdict not in (0, MENDED) else as_windows(line)

    def _line(self, line: str, target: str) -> str:
        if suffixes(self._files[0])[0] == ".jsonl":
            return jsonl.with_target(line, target, self._languages)
        return tsv.with_target(line, target)

    def objects(self) -> Iterator[str]:
        """The pairs that are kept, as JSON lines."""
        for pair, verdict in self._pairs():
            if _is_kept(verdict):
                yield json.dumps({"source": pair.source, "target": pair.target}, ensure_ascii=False)

    def left_out(self) -> Iterator[str]:
        """The pairs that leave, as JSON lines: by which rule, from where, and what they are."""
        for pair, verdict in self._pairs():
            if not _is_kept(verdict):
                yield _listed(tuple(MEANINGS)[verdict - 1], pair)

    def mended(self) -> Iterator[str]:
        """The pairs that are kept and not as they were; offset: how many lines further down the target stood."""
        for pair, verdict in self._pairs():
            if _is_mended(verdict):
                offset = verdict - MENDED
                yield _listed(MISALIGNED if offset else ENCODING, pair, offset=offset)


def _listed(rule: str, pair: Pair, **more: int) -> str:
    texts = {"source": pair.source, "target": pair.target}
    return json.dumps({"rule": rule, **pair.origin._asdict(), **more, **texts}, ensure_ascii=False)


def _is_mended(verdict: int) -> bool:
    return verdict >= MENDED - FARTHEST


def _is_kept(verdict: int) -> bool:
    return verdict == 0 or _is_mended(verdict)
