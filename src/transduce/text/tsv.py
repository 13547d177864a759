"""Reads lines of a source text, a TAB and its translation."""

import re
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import chain, islice, zip_longest

from transduce.system.console import log
from transduce.system.errors import UserError
from transduce.text.formats import CorpusFile, TextPair
from transduce.text.plain import display_name, read_lines, without_byte_order_mark

COMMENT = "# Glossary in tab-separated format"
SAMPLE_LINES = 100  # number of first lines that show which columns hold texts
INTEGER = re.compile(r"\d+")
# A score or addresses.
NO_TEXT = re.compile(r"[-+]?\d*\.\d+(?:[eE][-+]?\d+)?|(?:(?:https?://|www\.)\S+ ?)+")


def read_tsv(file: CorpusFile) -> Iterator[TextPair]:
    """Read a pair from the two columns of texts in each line, without quoting or a header line.

    A blank line is a pair of empty texts, as is the comment at the beginning of OmegaT's glossaries. Raises UserError
    for any other line that lacks a column. If `file.lenient` is true, only the first line must have both columns.
    """
    name = display_name(file.path)
    lines = without_byte_order_mark(read_lines(file.path, lenient=file.lenient))
    sample = list(islice(lines, SAMPLE_LINES))
    first, second = text_columns(sample)
    if second > 1:
        _announce(f"{name}: the texts are read from the columns {first + 1} and {second + 1}.")
    for number, line in enumerate(chain(sample, lines), start=1):
        if number == 1 and line.startswith(COMMENT):
            line = ""
        cells = line.split("\t")
        is_short = len(cells) <= second
        if is_short and line.strip() and not (file.lenient and number > 1):
            raise UserError(
                f"{name}:{number}: expected {second + 1} columns, found {len(cells)}.",
                "Separate source and target with a TAB.",
            )
        cells += [""] * second
        yield cells[first], cells[second], number


def text_columns(sample: Sequence[str]) -> tuple[int, int]:
    """The indices of the two columns of texts, from the first lines of a file.

    They are the first two columns that hold no scores, addresses or pairs of numbers, with which the lines of CCMatrix,
    ParaCrawl and Tatoeba begin.
    """
    rows = [line.split("\t") for line in sample if line.strip() and not line.startswith(COMMENT)]
    columns = list(zip_longest(*rows, fillvalue=""))
    numbers = [place for place, cells in enumerate(columns) if all(map(INTEGER.fullmatch, cells))]
    others = {place for place, cells in enumerate(columns) if all(map(NO_TEXT.fullmatch, cells))}
    others.update(numbers if len(numbers) > 1 else ())
    texts = [place for place in range(len(columns)) if place not in others]
    return (texts[0], texts[1]) if len(texts) > 1 else (0, 1)


@cache  # a corpus may be read several times
def _announce(message: str) -> None:
    log(message)
