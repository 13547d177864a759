"""Reads lines of a source text, a TAB and its translation."""

from collections.abc import Iterator

from transduce.system.errors import UserError
from transduce.text.formats import CorpusFile, TextPair
from transduce.text.plain import display_name, read_lines, without_byte_order_mark

COMMENT = "# Glossary in tab-separated format"


def read_tsv(file: CorpusFile) -> Iterator[TextPair]:
    """Read a pair from the first two columns of each line, without quoting or a header line.

    A blank line is a pair of empty texts, as is the comment at the beginning of OmegaT's glossaries. Raises UserError
    for any other line without a TAB, and if the first line contains sentence numbers. If `file.lenient` is true, only
    the first line must have a TAB.
    """
    name = display_name(file.path)
    lines = without_byte_order_mark(read_lines(file.path, lenient=file.lenient))
    for number, line in enumerate(lines, start=1):
        if number == 1 and line.startswith(COMMENT):
            line = ""
        source, tab, rest = line.partition("\t")
        if not tab and line.strip() and not (file.lenient and number > 1):
            raise UserError(
                f"{name}:{number}: expected 2 columns, found 1.",
                "Separate source and target with a TAB.",
            )
        if number == 1 and _is_numbered(line):
            raise UserError(
                f"{name}:1: columns 1 and 3 are sentence numbers.",
                "Keep the two texts, for instance with `cut -f 2,4`.",
            )
        yield source, rest.partition("\t")[0], number


def _is_numbered(text: str) -> bool:
    columns = text.split("\t")
    return len(columns) == 4 and columns[0].isdecimal() and columns[2].isdecimal()
