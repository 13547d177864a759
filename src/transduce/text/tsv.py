"""TAB-separated pairs: each line holds a source text, a TAB and its translation. Further columns are ignored."""

from collections.abc import Iterator

from transduce.system.errors import UserError
from transduce.text.formats import CorpusFile, TextPair
from transduce.text.plain import display_name, read_lines, without_byte_order_mark


def read_tsv(file: CorpusFile) -> Iterator[TextPair]:
    """Read the first two columns of every line; there is no quoting and no header line.

    A blank line is a pair of two empty texts. Raises UserError for a line without a TAB, and for Tatoeba's exports,
    whose first and third columns are sentence numbers. With `lenient`, a line without a TAB, except the first line, is
    read as a source without a translation.
    """
    name = display_name(file.path)
    lines = without_byte_order_mark(read_lines(file.path, lenient=file.lenient))
    for number, line in enumerate(lines, start=1):
        source, tab, rest = line.partition("\t")
        if not tab and line.strip() and not (file.lenient and number > 1):
            raise UserError(
                f"{name}:{number}: expected 2 columns, found 1. Separate source and target with a TAB; "
                "if your corpus is two line-aligned files, give both."
            )
        if number == 1 and _is_numbered(line):
            raise UserError(f"{name}:1: columns 1 and 3 are sentence numbers. Keep the two texts: `cut -f 2,4 {name}`.")
        yield source, rest.partition("\t")[0], number


def with_target(text: str, target: str) -> str:
    """A line of a TSV file with the line's target replaced by `target`."""
    source, _, rest = text.partition("\t")
    _, tab, more = rest.partition("\t")
    return f"{source}\t{target}{tab}{more}"


def _is_numbered(text: str) -> bool:
    columns = text.split("\t")
    return len(columns) == 4 and columns[0].isdecimal() and columns[2].isdecimal()
