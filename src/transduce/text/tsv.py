"""Tab-separated pairs: a source text, a TAB, its translation; further columns are not read."""

from collections.abc import Iterator

from transduce.system.errors import UserError
from transduce.text.plain import display_name, read_lines, without_byte_order_mark


def read_tsv(file: str, *, lenient: bool = False) -> Iterator[tuple[str, str]]:
    """The first two columns of every line, as they stand: there is no quoting and no header.

    A blank line is a pair of two empty texts. Raises UserError for a line without a TAB, and for
    Tatoeba's exports whose first and third columns are numbers of sentences. lenient: as for `read_lines`, and behind
    the first line one without a TAB is a text without a translation.
    """
    for line, text in enumerate(without_byte_order_mark(read_lines(file, lenient=lenient)), start=1):
        source, tab, rest = text.partition("\t")
        if not tab and text.strip() and not (lenient and line > 1):
            raise UserError(
                f"{display_name(file)}, line {line} has no TAB; in a bilingual file each line is a source text, a TAB "
                "and its translation. Two files with one text per line are given as two files."
            )
        if line == 1 and _is_numbered(text):
            raise UserError(
                f"{display_name(file)} has numbers of sentences in columns 1 and 3; keep the two texts: "
                f"`cut -f 2,4 {display_name(file)}`."
            )
        yield source, rest.partition("\t")[0]


def with_target(text: str, target: str) -> str:
    """A line that `read_tsv` has read, with another target."""
    source, _, rest = text.partition("\t")
    _, tab, more = rest.partition("\t")
    return f"{source}\t{target}{tab}{more}"


def _is_numbered(text: str) -> bool:
    columns = text.split("\t")
    return len(columns) == 4 and columns[0].isdecimal() and columns[2].isdecimal()
