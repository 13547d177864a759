"""Reads lines of a source text, a TAB and its translation."""

import re
from collections.abc import Iterator
from itertools import dropwhile

from transduce.system.errors import UserError
from transduce.text.formats import CorpusFile, TextPair
from transduce.text.plain import display_name, read_lines, without_byte_order_mark


def read_tsv(file: CorpusFile) -> Iterator[TextPair]:
    """Read a pair from the first two columns of each line, without quoting or a header line.

    A blank line is a pair of empty texts. Comments may precede the first pair, as in OmegaT's glossaries: lines without
    a TAB that begin with #. Raises UserError for any other line without a TAB, and if the first line contains sentence
    numbers. If `file.lenient` is true, only the first line must have a TAB.
    """
    name = display_name(file.path)
    lines = without_byte_order_mark(read_lines(file.path, lenient=file.lenient))
    comment = re.compile(r"#[^\t]*")
    for number, line in dropwhile(lambda each: comment.fullmatch(each[1]), enumerate(lines, start=1)):
        source, tab, rest = line.partition("\t")
        if not tab and line.strip() and not (file.lenient and number > 1):
            raise UserError(
                f"{name}:{number}: expected 2 columns, found 1. Separate source and target with a TAB; "
                "if your corpus is two line-aligned files, give both."
            )
        if number == 1 and _is_numbered(line):
            raise UserError(f"{name}:1: columns 1 and 3 are sentence numbers. Keep the two texts: `cut -f 2,4 {name}`.")
        yield source, rest.partition("\t")[0], number


def _is_numbered(text: str) -> bool:
    columns = text.split("\t")
    return len(columns) == 4 and columns[0].isdecimal() and columns[2].isdecimal()
