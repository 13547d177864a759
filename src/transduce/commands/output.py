"""What a command writes: lines into a file that is whole or absent, lines to the standard output, a small table."""

import io
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from transduce.system.errors import UserError
from transduce.system.files import write_file
from transduce.text.plain import suffixes

STANDARD_OUTPUT = Path("-")


def check_output(output: Path, inputs: Iterable[str], option: str = "--output") -> None:
    """Raise UserError for a file that can't be written, or that is read, before any work is done for it."""
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
            raise UserError(f"{option} {output} is the file that is read; give another one.")


def read_bytes(file: str) -> bytes:
    """A whole file; raises UserError if it can't be read."""
    try:
        return Path(file).read_bytes()
    except OSError as error:
        raise UserError(f"{file} can't be read: {error.strerror or error}.") from None


def write_lines(output: Path, lines: Iterable[str]) -> None:
    """Write the lines beside `output`, into whose place they are moved when all are there; - is the standard output.

    Raises UserError if that is not possible. What was there before stays if `lines` or the writing fails.
    """
    if output == STANDARD_OUTPUT:
        print_lines(lines)
    else:
        _write(output, (f"{line}\n".encode() for line in lines))


def write_bytes(output: Path, content: bytes) -> None:
    """Write a whole file, in the same way."""
    if output == STANDARD_OUTPUT:
        sys.stdout.flush()
        sys.stdout.buffer.write(content)
    else:
        _write(output, [content])


def _write(output: Path, parts: Iterable[bytes]) -> None:
    if not output.exists() or output.is_file():
        with write_file(output.resolve()) as file:  # a link goes on to point to the file
            file.writelines(parts)
        return
    try:
        with output.open("wb") as file:  # a pipe or a device, which can't be replaced
            file.writelines(parts)
    except BrokenPipeError:  # the reader has gone: no mistake, the command ends with status 141
        raise
    except OSError as error:
        raise UserError(f"{output} can't be written: {error.strerror or error}; write elsewhere.") from None


def print_lines(lines: Iterable[str]) -> None:
    """Print the lines as UTF-8 and with nothing but line feeds between them, whatever the system prefers."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8", newline="\n")
    for line in lines:
        print(line)


def print_table(rows: Sequence[Sequence[str]]) -> None:
    """Print the rows in columns; the last, which may be long, is not folded, so that it can be copied."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
