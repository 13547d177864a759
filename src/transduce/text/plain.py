"""Text files: bytes from a file or a pipe, perhaps compressed, as lines of text.

A line ends at `\\n` and nowhere else: U+0085, U+2028, form feeds and lone carriage returns are part
of their line, which `str.splitlines()` and universal newlines would cut at. No file is held in
memory: it passes in blocks that end at a line feed.
"""

import bz2
import contextlib
import difflib
import lzma
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterator
from io import BufferedIOBase
from itertools import chain
from pathlib import Path
from typing import IO, NoReturn, Protocol, cast

from transduce.system.errors import UserError

BLOCK = 1 << 18  # bytes of text looked at together
COMPRESSED_BLOCK = 1 << 14  # smaller, as it may become a thousand times larger
SPOOL = 1 << 24  # bytes of a pipe kept in memory before the rest goes to a temporary file
STANDARD_INPUT = ("-", "/dev/stdin")  # its names
BYTE_ORDER_MARK = "\ufeff"
STARTS = {  # of what is often taken for UTF-8 text, and what it is
    b"\x1f\x8b": "gzip data; let its name end in .gz",
    b"\xfd7zXZ": "xz data; let its name end in .xz",
    b"BZh": "bzip2 data; let its name end in .bz2",
    b"\x28\xb5\x2f\xfd": "Zstandard data; let its name end in .zst",
    b"\xff\xfe": "UTF-16; convert it with `iconv -f UTF-16 -t UTF-8`",
    b"\xfe\xff": "UTF-16; convert it with `iconv -f UTF-16 -t UTF-8`",
}


def read_lines(file: str, *, lenient: bool = False) -> Iterator[str]:
    """The lines of a text file, or of standard input if it is "-", without their line feeds.

    The suffixes .gz, .xz, .bz2 and .zst are decompressed. One carriage return at the end of every
    line goes if every line has it. A byte order mark stays, as the first character of line 1.
    Raises UserError for a file that cannot be read, is damaged, or is not UTF-8. lenient: lines that are not UTF-8 are
    given, too; see `undecoded`.
    """
    all_crlf, blocks = _settle_line_ends(file, _whole_lines(read_pieces(file)))
    line = 1
    for block in blocks:
        lines = _decode(file, line, block, lenient).split("\n")
        if not lines[-1]:
            lines.pop()  # what follows the last line feed is no line
        line += len(lines)
        yield from (text.removesuffix("\r") for text in lines) if all_crlf else lines


def without_byte_order_mark(lines: Iterator[str]) -> Iterator[str]:
    """The lines of a file whose first character, if it is a byte order mark, is left out."""
    first = next(lines, None)
    if first is not None:
        yield first.removeprefix(BYTE_ORDER_MARK)
        yield from lines


def suffixes(file: str) -> tuple[str, str]:
    """The suffix that names a file's format and the one that names its compression: (".tsv", ".gz"); "" for none."""
    path = Path(file)
    compression = path.suffix.lower()
    if compression in DECOMPRESSORS:
        return path.with_suffix("").suffix.lower(), compression
    return compression, ""


class _Decompressor(Protocol):
    """What zlib, lzma, bz2 and zstandard agree on; one for every stream in the file."""

    @property
    def eof(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, /) -> bytes: ...


def _zstandard() -> _Decompressor:
    try:
        import zstandard
    except ImportError:
        raise UserError("Reading .zst files needs another package: pip install zstandard.") from None
    return cast(_Decompressor, zstandard.ZstdDecompressor().decompressobj())


DECOMPRESSORS: dict[str, Callable[[], _Decompressor]] = {
    ".gz": lambda: zlib.decompressobj(wbits=31),
    ".xz": lzma.LZMADecompressor,
    ".bz2": bz2.BZ2Decompressor,
    ".zst": _zstandard,
}


def read_pieces(file: str) -> Iterator[bytes]:
    """The decompressed bytes of a file as they come: what a pipe holds is passed on at once."""
    if file in STANDARD_INPUT:
        yield from _read(cast(BufferedIOBase, sys.stdin.buffer), BLOCK)
        return
    compression = suffixes(file)[1]
    try:
        with Path(file).open("rb") as raw:
            if compression:
                yield from _decompress(file, _read(raw, COMPRESSED_BLOCK), DECOMPRESSORS[compression])
            else:
                yield from _read(raw, BLOCK)
    except OSError as error:
        _refuse(file, error)


def _read(stream: BufferedIOBase, size: int) -> Iterator[bytes]:
    while piece := stream.read1(size):
        yield piece


def _decompress(file: str, pieces: Iterator[bytes], start: Callable[[], _Decompressor]) -> Iterator[bytes]:
    """The content of one or more compressed streams, which must be whole and have only zeros between them."""
    stream = start()
    for piece in pieces:
        while piece := piece.lstrip(b"\0") if stream.eof else piece:
            if stream.eof:
                stream = start()
            try:
                yield stream.decompress(piece)
            except Exception as error:  # each of the four libraries has its own
                raise UserError(f"{file} is damaged or not compressed as its suffix says: {error}.") from error
            piece = stream.unused_data
    if not stream.eof:
        raise UserError(f"{file} is cut short: its compressed data ends too early; fetch or compress it again.")


def _whole_lines(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """The same bytes in blocks of whole lines: each but the last ends in a line feed."""
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


def _settle_line_ends(file: str, blocks: Iterator[bytes]) -> tuple[bool, Iterator[bytes]]:
    """Whether every line ends in a carriage return, and the blocks once more.

    Only a file that may be one is read twice; a pipe that may be one is kept until its end.
    """
    first = next(blocks, b"")
    if not _ends_in_cr(first):
        return False, chain((first,), blocks)
    if file not in STANDARD_INPUT and Path(file).is_file():
        return all(map(_ends_in_cr, blocks)), _whole_lines(read_pieces(file))
    spool = cast(IO[bytes], tempfile.SpooledTemporaryFile(SPOOL))  # noqa: SIM115 (closed by _replay)
    for block in chain((first,), blocks):
        spool.write(block)
        if not _ends_in_cr(block):
            return False, chain(_replay(spool), blocks)
    return True, _replay(spool)


def _replay(spool: IO[bytes]) -> Iterator[bytes]:
    with spool:
        spool.seek(0)
        yield from _whole_lines(iter(lambda: spool.read(BLOCK), b""))


def _ends_in_cr(block: bytes) -> bool:
    """Whether every line of the block does; a last line without a line feed need not."""
    return block.count(b"\n") == block.count(b"\r\n")


def _decode(file: str, line: int, block: bytes, lenient: bool) -> str:
    """The text of a block that begins with the given line; raises UserError that names the first bad byte."""
    try:
        return block.decode("utf-8")
    except UnicodeDecodeError as error:
        at = error.start
    line += block.count(b"\n", 0, at)
    offset = at - block.rfind(b"\n", 0, at) - 1
    place = f"{display_name(file)}, line {line}: byte 0x{block[at]:02X} at offset {offset} of the line is not UTF-8"
    for start, kind in STARTS.items():
        if line == 1 and block.startswith(start):
            raise UserError(f"{place}; it looks like {kind}.")
    if lenient:
        return block.decode("utf-8", "surrogateescape")
    raise UserError(f"{place}; convert the file, for instance with `iconv -f WINDOWS-1252 -t UTF-8`.")


def display_name(file: str) -> str:
    """A file as a complaint names it."""
    return "standard input" if file in STANDARD_INPUT else file


def _refuse(file: str, error: OSError) -> NoReturn:
    """Raise the sentence for a file that the system does not let us read."""
    match error:
        case FileNotFoundError() | NotADirectoryError():
            raise UserError(f"{file} does not exist{_nearest(Path(file))}") from None
        case IsADirectoryError():
            raise UserError(f"{file} is a folder; name a file in it.") from None
        case PermissionError():
            raise UserError(f"{file} may not be read by this user; change its permissions with `chmod +r`.") from None
        case _:
            raise UserError(f"{file} cannot be read: {error.strerror or error}.") from error


def _nearest(missing: Path) -> str:
    if not missing.parent.is_dir():
        return f", nor does the folder {missing.parent}."
    with contextlib.suppress(OSError):
        names = [path.name for path in missing.parent.iterdir()]
        for close in difflib.get_close_matches(missing.name, names, n=1, cutoff=0.5):
            return f"; did you mean {missing.with_name(close)}?"
    return f"; there is no file with a similar name in {missing.parent.resolve()}."
