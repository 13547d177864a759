"""What a command writes: a file that is whole or absent, lines on the standard output, a small table."""

import io
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from transduce.system.errors import UserError
from transduce.system.files import write_file
from transduce.text.plain import suffixes

STANDARD_OUTPUT = Path("-")


def check_output(output: Path, inputs: Iterable[str], option: str = "--output") -> None:
    """Raise UserError for an output that can't be written or is an input, before any work is done."""
    if output == STANDARD_OUTPUT:
        return
    if output.is_dir():
        raise UserError(f"{option} {output} is a folder; name a file in it.")
    if compression := suffixes(str(output))[1]:
        raise UserError(f"{option} {output} would not be compressed; leave {compression} out of its name.")
    if not output.parent.is_dir():
        raise UserError(f"{option} {output} can't be written: there is no folder {output.parent}; make it first.")
    for file in map(Path, inputs):
        if output.is_file() and file.exists() and output.samefile(file):
            raise UserError(f"{option} {output} is also the input; name another file.")


def read_bytes(file: str) -> bytes:
    """A whole file; raises UserError if it can't be read."""
    try:
        return Path(file).read_bytes()
    except OSError as error:
        raise UserError(f"{file} can't be read: {error.strerror or error}.") from None


def write_lines(output: Path, lines: Iterable[str]) -> None:
    """Write a file of lines; - is the standard output.

    The file is replaced when all lines are written, and stays as it was if `lines` or the writing fails. Raises
    UserError if it can't be written.
    """
    if output == STANDARD_OUTPUT:
        print_lines(lines)
    else:
        _write(output, (f"{line}\n".encode() for line in lines))


def write_bytes(output: Path, content: bytes) -> None:
    """Write a file as `write_lines` does."""
    if output == STANDARD_OUTPUT:
        sys.stdout.flush()
        sys.stdout.buffer.write(content)
    else:
        _write(output, [content])


def _write(output: Path, parts: Iterable[bytes]) -> None:
    if not output.exists() or output.is_file():
        with write_file(output.resolve()) as file:  # a link stays a link
            file.writelines(parts)
        return
    try:
        with output.open("wb") as file:  # a pipe or a device can't be replaced
            file.writelines(parts)
    except BrokenPipeError:  # the reader has gone: the command ends with status 141
        raise
    except OSError as error:
        raise UserError(f"{output} can't be written: {error.strerror or error}; write elsewhere.") from None


def print_lines(lines: Iterable[str]) -> None:
    """Print the lines as UTF-8 with line feeds between them, on every system."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8", newline="\n")
    for line in lines:
        print(line)


def print_table(rows: Sequence[Sequence[str]]) -> None:
    """Print the rows in columns; the last column may be long and is not folded, so that it can be copied."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
