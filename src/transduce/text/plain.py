"""Reads lines from text files, compressed files and pipes, and writes lines.

Only `\\n` ends a line, so U+0085, U+2028, form feeds and lone carriage returns stay inside lines.
"""

import bz2
import contextlib
import difflib
import errno
import filecmp
import io
import lzma
import os
import shutil
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from io import BufferedIOBase
from itertools import chain, count
from pathlib import Path
from typing import IO, Any, BinaryIO, NoReturn, cast

from transduce.system.console import log
from transduce.system.errors import UserError, needing
from transduce.system.files import write_file
from transduce.text.file_kinds import QT_LINGUIST, UNREADABLE, kind_of, utf_16

BLOCK_BYTES = 1 << 18
# Small blocks, since decompressed text may be a thousand times larger.
COMPRESSED_BLOCK_BYTES = 1 << 14
# Bytes of a pipe that are kept in memory for a second reading; more bytes go to a temporary file.
PIPE_MEMORY_BYTES = 1 << 24
STANDARD_INPUT = ("-", "/dev/stdin")
STANDARD_OUTPUT = Path("-")
BYTE_ORDER_MARK = "\ufeff"


def read_lines(file: str, *, lenient: bool = False, plain: bool = False) -> Iterator[str]:
    """Yield the lines of a text file without their line feeds. The file "-" is standard input.

    Decompresses files with the suffix .gz, .xz, .bz2 or .zst. Removes carriage returns only if every line ends in one.
    Keeps a byte order mark. If `lenient` is true, bytes that are not UTF-8 become lone surrogates. If `plain`, ignores
    the suffix of the format. Raises UserError if the file is missing, damaged or not UTF-8.
    """
    suffix = "" if plain else suffixes(file)[0]
    if advice := UNREADABLE.get(suffix):
        raise UserError(f"{display_name(file)}: transduce can't read {suffix} files.", advice)
    all_crlf, blocks = _detect_crlf(file, _whole_lines(read_pieces(file)))
    number = 1  # number of the block's first line
    for block in blocks:
        lines = _decode(file, number, block, lenient).split("\n")
        # The language code ts is Tsonga.
        if number == 1 and suffix == ".ts" and QT_LINGUIST.match(lines[0]):
            raise UserError(
                f"{display_name(file)} is a file of Qt Linguist.",
                "Convert it to .xlf: `lconvert`.",
            )
        if not lines[-1]:
            lines.pop()  # the block ends in a line feed
        number += len(lines)
        yield from (line.removesuffix("\r") for line in lines) if all_crlf else lines


def without_byte_order_mark(lines: Iterator[str]) -> Iterator[str]:
    """Yield the lines, without a byte order mark at the start of the first line."""
    first = next(lines, None)
    if first is not None:
        yield first.removeprefix(BYTE_ORDER_MARK)
        yield from lines


def suffixes(file: str) -> tuple[str, str]:
    """The suffixes of a file's format and of its compression, such as (".tsv", ".gz") or (".tsv", "")."""
    path = Path(file)
    compression = path.suffix.lower()
    if compression in DECOMPRESSORS:
        return path.with_suffix("").suffix.lower(), compression
    return compression, ""


def _zstandard() -> Any:
    with needing("zstd", "Reading .zst files"):
        import zstandard
    # The window of `zstd --long=31`.
    return zstandard.ZstdDecompressor(max_window_size=1 << 31).decompressobj()


# Each function makes a decompressor for one stream, with `decompress`, `eof` and `unused_data`.
DECOMPRESSORS: dict[str, Callable[[], Any]] = {
    ".gz": lambda: zlib.decompressobj(wbits=31),
    ".xz": lzma.LZMADecompressor,
    ".bz2": bz2.BZ2Decompressor,
    ".zst": _zstandard,
}


def read_pieces(file: str) -> Iterator[bytes]:
    """Yield the decompressed bytes of a file piece by piece."""
    if file in STANDARD_INPUT:
        yield from _read(cast(BufferedIOBase, sys.stdin.buffer), BLOCK_BYTES)
        return
    compression = suffixes(file)[1]
    try:
        with Path(file).open("rb") as raw:
            if compression:
                yield from _decompress(
                    file, _read(raw, COMPRESSED_BLOCK_BYTES), DECOMPRESSORS[compression]
                )
            else:
                yield from _read(raw, BLOCK_BYTES)
    except OSError as error:
        _refuse(file, error)


def _read(stream: BufferedIOBase, size: int) -> Iterator[bytes]:
    while piece := stream.read1(size):
        yield piece


def _decompress(file: str, pieces: Iterator[bytes], start: Callable[[], Any]) -> Iterator[bytes]:
    """Decompress one or more concatenated streams. Raises UserError if a stream is damaged or incomplete."""
    stream = start()
    for piece in pieces:
        while piece := piece.lstrip(b"\0") if stream.eof else piece:
            if stream.eof:
                stream = start()
            try:
                yield stream.decompress(piece)
            except Exception as error:  # the four libraries have no exception class in common
                raise UserError(
                    f"{file} is damaged, or not compressed as its suffix says: {error}.",
                    "Download or compress it again, or correct its suffix.",
                ) from error
            piece = stream.unused_data
    if not stream.eof:
        raise UserError(
            f"{file} is cut short: its compressed data ends too early.",
            "Download or compress it again.",
        )


def _whole_lines(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Regroup the pieces into blocks that end at a line feed or at the end of the file."""
    waiting: list[bytes] = []
    for piece in pieces:
        end = piece.rfind(b"\n") + 1
        if end:
            yield b"".join((*waiting, piece[:end]))
            waiting = []
        if end < len(piece):
            waiting.append(piece[end:])
    if waiting:
        yield b"".join(waiting)


def _detect_crlf(file: str, blocks: Iterator[bytes]) -> tuple[bool, Iterator[bytes]]:
    """Return whether all lines end in a carriage return, and an iterator over all blocks."""
    first = next(blocks, b"")
    if not _ends_in_cr(first):
        return False, chain((first,), blocks)
    if file not in STANDARD_INPUT and Path(file).is_file():
        return all(map(_ends_in_cr, blocks)), _whole_lines(read_pieces(file))
    spool = cast(IO[bytes], tempfile.SpooledTemporaryFile(PIPE_MEMORY_BYTES))  # noqa: SIM115 (closed by _replay)
    for block in chain((first,), blocks):
        spool.write(block)
        if not _ends_in_cr(block):
            return False, chain(_replay(spool), blocks)
    return True, _replay(spool)


def _replay(spool: IO[bytes]) -> Iterator[bytes]:
    with spool:
        spool.seek(0)
        yield from _whole_lines(iter(lambda: spool.read(BLOCK_BYTES), b""))


def _ends_in_cr(block: bytes) -> bool:
    """Whether a carriage return precedes every line feed of the block."""
    return block.count(b"\n") == block.count(b"\r\n")


def _decode(file: str, first_line: int, block: bytes, lenient: bool) -> str:
    """Decode a block that begins at line `first_line` of the file. Raises UserError for invalid UTF-8."""
    if first_line == 1 and (codec := utf_16(block)):
        raise UserError(
            f"{display_name(file)} looks like {codec}.",
            f"Convert the file with `iconv -f {codec} -t UTF-8`.",
        )
    try:
        return block.decode("utf-8")
    except UnicodeDecodeError as error:
        bad = error.start
    line = first_line + block.count(b"\n", 0, bad)
    offset = bad - block.rfind(b"\n", 0, bad) - 1
    reason = f"{display_name(file)}:{line}: byte 0x{block[bad]:02X} at offset {offset} of the line is not UTF-8"
    if first_line == 1 and (kind := kind_of(block)):
        looks_like, advice = kind
        raise UserError(f"{reason}; the file looks like {looks_like}.", advice)
    if lenient:
        return block.decode("utf-8", "surrogateescape")
    raise UserError(
        f"{reason}.", "Convert the file, for instance with `iconv -f WINDOWS-1252 -t UTF-8`."
    )


def display_name(file: str) -> str:
    """The name of a file in messages, with "standard input" for "-"."""
    return "standard input" if file in STANDARD_INPUT else file


def _refuse(file: str, error: OSError) -> NoReturn:
    """Raise UserError for a file that can't be opened or read."""
    match error:
        case FileNotFoundError() | NotADirectoryError():
            raise _missing(Path(file)) from None
        case IsADirectoryError():
            raise UserError(f"{file} is a folder.", "Name a file in it.") from None
        case PermissionError():
            raise UserError(
                f"{file} can't be read: permission denied.", "Run `chmod +r` on the file."
            ) from None
        case _:
            raise UserError(f"{file} can't be read: {error.strerror or error}.") from error


def _missing(file: Path) -> UserError:
    """The error for a missing file, with a similar file name if there is one."""
    if file.is_symlink():
        return UserError(
            f"{file} does not exist: it is a broken symbolic link to {file.readlink()}."
        )
    folder = file.parent
    if not folder.is_dir():
        return UserError(f"{file} does not exist, nor does the folder {folder}.")
    with contextlib.suppress(OSError):
        names = [path.name for path in folder.iterdir()]
        for name in difflib.get_close_matches(file.name, names, n=1, cutoff=0.5):
            return UserError(f"{file} does not exist.", f"Did you mean {file.with_name(name)}?")
        folder = folder.resolve()
    return UserError(f"{file} does not exist; no file in {folder} has a similar name.")


def check_output(output: Path, inputs: Iterable[str], option: str = "output") -> None:
    """Raise UserError if `output` can't be written or is one of the inputs."""
    if output == STANDARD_OUTPUT:
        return
    try:
        output.stat()
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise UserError(
                f"{output} is a symbolic link to itself.", "Remove it.", option
            ) from None
    if output.is_dir():
        raise UserError(f"{output} is a folder.", "Name a file in it.", option)
    if compression := suffixes(str(output))[1]:
        raise UserError(
            f"{output} would not be compressed.",
            f"Leave {compression} out of its name.",
            option,
        )
    if not output.parent.is_dir():
        raise UserError(
            f"{output} can't be written: there is no folder {output.parent}.",
            "Make it first.",
            option,
        )
    if output.exists() and not os.access(output, os.W_OK):
        raise UserError(f"{output} is write-protected.", "Name another file.", option)
    if (output.is_file() or not output.exists()) and not os.access(output.parent, os.W_OK):
        raise UserError(
            f"{output} can't be written: {output.parent} is read-only.",
            "Choose another place.",
            option,
        )
    for file in (Path("/dev/stdin" if name in STANDARD_INPUT else name) for name in inputs):
        if output.is_file() and file.exists() and output.samefile(file):
            raise UserError(f"{output} is also the input.", "Name another file.", option)


def write_lines(output: Path, lines: Iterable[str], *, keep: bool = False) -> None:
    """Write lines to a file, or to standard output for "-". Raises UserError if the file can't be written.

    If an error occurs, an existing file stays unchanged. If `keep` is true, a copy of an earlier file is kept.
    """
    if output == STANDARD_OUTPUT:
        print_lines(lines)
    else:
        write_parts(output, (f"{line}\n".encode() for line in lines), keep=keep)


def keep_earlier(output: Path, new: BinaryIO) -> None:
    """Copy a file that the open file `new` will replace, unless both are equal: the user may have edited the file."""
    new.flush()
    if output.is_file() and not filecmp.cmp(output, new.name, shallow=False):
        names = (f"{output.name}.bak{number or ''}" for number in count())
        kept = next(path for path in map(output.with_name, names) if not path.exists())
        shutil.copy2(output, kept)
        log(f"The earlier {output} is now {kept}.")


def write_parts(output: Path, parts: Iterable[bytes], *, keep: bool = False) -> None:
    """Write bytes to a file, a pipe or a device, as `write_lines` does."""
    if not output.exists() or output.is_file():
        # A symbolic link is kept, and its target is replaced.
        with write_file(output.resolve()) as file:
            file.writelines(parts)
            if keep:
                keep_earlier(output, file)
        return
    try:
        with output.open("wb") as file:  # a pipe or a device can't be replaced
            file.writelines(parts)
    except BrokenPipeError:  # the reading process has ended: the command ends with status 141
        raise
    except OSError as error:
        raise UserError(
            f"{output} can't be written: {error.strerror or error}.", "Choose another place."
        ) from None


def print_lines(lines: Iterable[str]) -> None:
    """Print each line in UTF-8, followed by a line feed, even on Windows."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8", newline="\n")
    for line in lines:
        print(line)
