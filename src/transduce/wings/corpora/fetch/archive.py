"""Reads members of an archive as streams, up to a size limit.

This module writes no files, so member names with `../` are harmless.
"""

import bz2
import errno
import gzip
import io
import lzma
import tarfile
import zipfile
import zlib
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, cast

from transduce.system.errors import UserError

MAX_EXPANSION = 100  # an archive may unpack to this many times its size; text rarely compresses to less than a fiftieth
MIN_LIMIT_BYTES = 1 << 24  # archives of any size may unpack to this size
MAX_HEADER_BYTES = 1 << 20  # maximum size of the headers between two members of a tar archive
ZIP_KIND_MASK, ZIP_LINK = 0o170000, 0o120000
ZIP_STARTS = (b"PK\x03\x04", b"PK\x05\x06")  # the second one starts an empty archive
DAMAGE_ERRORS = (
    EOFError,
    zlib.error,
    lzma.LZMAError,
    tarfile.TarError,
    zipfile.BadZipFile,
    RuntimeError,
    ValueError,
    OverflowError,  # a member's name or size is too large
)


class _Limited(io.RawIOBase):
    """A stream that raises UserError if it is far larger than the archive at `path`."""

    def __init__(self, stream: IO[bytes], path: Path) -> None:
        self.stream = stream
        self.path = path
        self.left = max(MAX_EXPANSION * path.stat().st_size, MIN_LIMIT_BYTES)
        # Bytes of headers that may still come; None: no header is being read.
        self.headers: int | None = None

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        block = self.stream.read(len(buffer))
        self.left -= len(block)
        if self.headers is not None:
            self.headers -= len(block)
        if self.left < 0 or (self.headers is not None and self.headers < 0):
            raise UserError(
                f"{self.path} is refused: it unpacks to more than {MAX_EXPANSION} times its size."
            )
        buffer[: len(block)] = block
        return len(block)


def members(
    path: Path, wanted: Collection[str], optional: Collection[str] = ()
) -> Iterator[tuple[str, IO[bytes]]]:
    """Yield the names and decompressed streams of the members in `wanted` or `optional`. Call inside `readable`.

    Read each stream before you take the next one. The name "" stands for the whole file. Raises UserError if a member
    in `wanted` is missing, or if a member occurs twice, or is a link or a device.
    """
    if "" in wanted:
        with path.open("rb") as file:
            yield "", _plain(file, path)
        return
    missing = {*wanted, *optional}
    read = _zip_members if _is_zip(path) else _tar_members
    for name, stream in read(path, {*missing}):
        if name not in missing:
            raise UserError(f"{path} is refused: it contains {name} twice.")
        if stream is None:
            raise UserError(f"{path} is refused: {name} is a link or a device, not a file.")
        missing.remove(name)
        # The variable keeps the stream open: without a reference, it would be closed.
        member = _plain(stream, path)
        yield name, member
    if missing := missing.intersection(wanted):
        raise UserError(
            f"{path} doesn't hold {', '.join(sorted(missing))}.",
            "Check whether the table of corpora is out of date.",
        )


def _zip_members(path: Path, wanted: Collection[str]) -> Iterator[tuple[str, IO[bytes] | None]]:
    """Yield the names and streams of the members in `wanted`. The stream of a link is None."""
    with zipfile.ZipFile(path) as archive:
        for entry in archive.infolist():
            if entry.filename in wanted:
                is_link = (entry.external_attr >> 16) & ZIP_KIND_MASK == ZIP_LINK
                with archive.open(entry) as stream:
                    yield entry.filename, None if is_link else stream


def _tar_members(path: Path, wanted: Collection[str]) -> Iterator[tuple[str, IO[bytes] | None]]:
    """Yield the names and streams of the members in `wanted`. The stream of a link or a device is None."""
    with path.open("rb") as file:
        raw = _Limited(
            _decompressed(file), path
        )  # members that are skipped also count towards the limit
        raw.headers = MAX_HEADER_BYTES  # opening the archive reads the first member's headers
        content = cast(IO[bytes], io.BufferedReader(raw, tarfile.RECORDSIZE))
        with tarfile.open(fileobj=content, mode="r|") as archive:
            while entry := archive.next():
                raw.headers = None
                archive.members = []  # type: ignore[attr-defined]  # tarfile would keep all entries in memory
                stream = (
                    archive.extractfile(entry) if entry.isreg() and not entry.issparse() else None
                )
                if not stream and archive.offset - entry.offset_data > raw.left:
                    # Tarfile would skip it in small blocks.
                    raise tarfile.ReadError(f"{entry.name} is too large")
                if entry.name in wanted:
                    yield entry.name, stream
                while stream and stream.read(1 << 16):
                    pass  # read to the end of the member: only headers separate it from the next member
                raw.headers = MAX_HEADER_BYTES
            raw.headers = None
        while content.read(1 << 16):
            pass  # read to the end, where the checksum of the compressed data is verified


def _plain(stream: IO[bytes], path: Path) -> IO[bytes]:
    return io.BufferedReader(_Limited(_decompressed(stream), path), 1 << 18)


def _decompressed(stream: IO[bytes]) -> IO[bytes]:
    """The stream, decompressed if its first bytes are those of gzip, xz or bzip2."""
    buffered = io.BufferedReader(cast(io.RawIOBase, stream), 1 << 16)
    start = buffered.peek(10)
    if start.startswith(b"\x1f\x8b"):
        return cast(IO[bytes], gzip.GzipFile(fileobj=buffered))
    if start.startswith(b"\xfd7zXZ"):
        return lzma.LZMAFile(buffered)
    if start[:3] == b"BZh" and start[4:10] == b"1AY&SY":
        return bz2.BZ2File(buffered)
    return buffered


def _is_zip(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(4) in ZIP_STARTS


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """Raise UserError if the archive proves to be damaged inside the `with` block."""
    try:
        yield
    except (*DAMAGE_ERRORS, OSError) as error:
        # EINVAL: a negative offset in a zip.
        if isinstance(error, OSError) and error.errno not in (
            None,
            errno.EINVAL,
        ):
            raise  # a disk error
        raise UserError(
            f"{path} is damaged or not an archive ({error}).", "Remove it to fetch it again."
        ) from error
