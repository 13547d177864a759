"""A corpus without the pairs that an examination found fault with, in the form that it has."""

import json
from collections.abc import Iterator, Sequence
from itertools import zip_longest

from transduce.corpus.pairs import Pair, read_lines
from transduce.corpus.plain import suffixes
from transduce.corpus.rules import MEANINGS
from transduce.errors import UserError

LINE_BY_LINE = (".tsv", ".tab", ".txt", ".jsonl")  # formats of bilingual files in which a pair is a line


def copies_lines(files: Sequence[str], outputs: Sequence[str]) -> bool:
    """Whether what is kept can be copied as it stands; otherwise it is written as JSON lines.

    Raises UserError if the outputs don't have the form of the corpus.
    """
    if len(files) == len(outputs) == 2:
        return True
    if len(files) == len(outputs) == 1 and suffixes(files[0])[0] in LINE_BY_LINE:
        if suffixes(outputs[0])[0] == suffixes(files[0])[0]:
            return True
    elif len(outputs) == 1 and suffixes(outputs[0])[0] == ".jsonl":
        return False
    if len(files) == 2:
        raise UserError("--fix needs two files for a corpus of two files, or one whose name ends in .jsonl.")
    wanted = suffixes(files[0])[0]
    raise UserError(f"--fix needs one file whose name ends in {wanted if wanted in LINE_BY_LINE else '.jsonl'}.")


def kept_lines(file: str, verdicts: Sequence[int]) -> Iterator[str]:
    """The lines of a file of the corpus whose pairs have no fault; raises UserError if it isn't what it was."""
    for line, verdict in zip_longest(read_lines(file), verdicts):
        if line is None or verdict is None:
            raise UserError(f"{file} has changed while it was examined; do it again.")
        if not verdict:
            yield line


def kept_pairs(pairs: Iterator[Pair], verdicts: Sequence[int]) -> Iterator[str]:
    """The same pairs as JSON lines."""
    for pair, verdict in zip(pairs, verdicts, strict=True):
        if not verdict:
            yield json.dumps({"source": pair.source, "target": pair.target}, ensure_ascii=False)


def left_out(pairs: Iterator[Pair], verdicts: Sequence[int]) -> Iterator[str]:
    """What leaves, as JSON lines: by which rule, from where, and what it is."""
    rules = tuple(MEANINGS)
    for pair, verdict in zip(pairs, verdicts, strict=True):
        if verdict:
            texts = {"source": pair.source, "target": pair.target}
            yield json.dumps({"rule": rules[verdict - 1], **pair.origin._asdict(), **texts}, ensure_ascii=False)
