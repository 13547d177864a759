"""Reads the files of `translate --prefixes` and `--suffixes`, which have a line for each line of the input."""

from collections.abc import Iterator
from itertools import repeat, tee
from pathlib import Path

from transduce.decoding.types import Guide
from transduce.system.errors import UserError
from transduce.text.plain import read_lines, without_byte_order_mark

LINE_PER_LINE = (
    "--prefixes and --suffixes name files with one line per line of the input; a line may be blank."
)


def guided_lines(
    lines: Iterator[str], prefixes: Path | None, suffixes: Path | None
) -> tuple[Iterator[str], Iterator[Guide]]:
    """The lines, and a guide for each. Their iterators raise UserError if a file has more or fewer lines."""
    pairs, same_pairs = tee(_pairs(lines, prefixes, suffixes))
    return (line for line, _ in pairs), (guide for _, guide in same_pairs)


def _pairs(
    lines: Iterator[str], prefixes: Path | None, suffixes: Path | None
) -> Iterator[tuple[str, Guide]]:
    begins = _lines(prefixes)
    ends = _lines(suffixes)
    number = 0
    for number, line in enumerate(lines, start=1):
        prefix = next(begins, None)
        suffix = next(ends, None)
        if prefix is None or suffix is None:
            file = prefixes if prefix is None else suffixes
            raise UserError(f"{file} has only {number - 1:,} lines.", LINE_PER_LINE)
        yield line, Guide(prefix=prefix, suffix=suffix)
    for file, rest in ((prefixes, begins), (suffixes, ends)):
        if file and next(rest, None) is not None:
            raise UserError(f"{file} has more lines than the input: {number:,}.", LINE_PER_LINE)


def _lines(file: Path | None) -> Iterator[str]:
    return without_byte_order_mark(read_lines(str(file), plain=True)) if file else repeat("")
