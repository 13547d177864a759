"""Members of an archive as streams: nothing is unpacked under a name that the archive chose.

Only members that are asked for by name are read, one after the other. So a path out of the folder, a link or a device
has no effect: the members that are asked for must be plain files, the others are skipped. What comes out is bounded.
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
from typing import IO, Any, NoReturn, cast

from transduce.system.errors import UserError

MOST_EXPANSION = 100  # times an archive's size; text is compressed to a fifth, and hardly ever to a fiftieth
LEAST_BOUND = 1 << 24  # bytes, which a small archive may always become
HEADERS = 1 << 20  # bytes between two members of a tar archive
LINK_IN_ZIP, KINDS_IN_ZIP = 0o120000, 0o170000
ENCRYPTED = 1  # a flag of zip archives
ZIP = (b"PK\x03\x04", b"PK\x05\x06")  # what they begin with; the second is an empty one
DAMAGE = (EOFError, zlib.error, lzma.LZMAError, tarfile.TarError, zipfile.BadZipFile, RuntimeError)


class _Bounded(io.RawIOBase):
    """A stream that raises UserError when it gives more than it may."""

    def __init__(self, stream: IO[bytes], bound: int, path: Path) -> None:
        self.stream, self.left, self.path = stream, bound, path
        self.headers: int | None = None  # how many bytes of headers may still come, while they are read

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        block = self.stream.read(len(buffer))
        self.left -= len(block)
        if self.headers is not None:
            self.headers -= len(block)
        if self.left < 0 or (self.headers is not None and self.headers < 0):
            raise UserError(
                f"{self.path} grows beyond measure when it is unpacked, more than {MOST_EXPANSION} times its size: "
                "it is refused."
            )
        buffer[: len(block)] = block
        return len(block)


def members(path: Path, wanted: Collection[str]) -> Iterator[tuple[str, IO[bytes]]]:
    """The wanted members in the archive's order, decompressed; each is read before the next is asked for.

    The member "" is the whole file, which then is no archive. To be used inside `readable`. Raises UserError for a
    member that is no plain file, is there twice, or not at all.
    """
    if "" in wanted:
        with path.open("rb") as file:
            yield "", _bounded(_decompressed(file), path)
        return
    missing = set(wanted)
    for name, stream in (_zip if _is_zip(path) else _tar)(path, frozenset(wanted)):
        if name not in missing:
            raise UserError(f"{path} holds {name} twice, so that it is not known which is meant.")
        missing.remove(name)
        yield name, stream
    if missing:
        raise UserError(f"{path} doesn't hold {', '.join(sorted(missing))}; is the table out of date?")


def optional_members(path: Path, wanted: Collection[str], limit: int) -> dict[str, bytes]:
    """The beginnings of those wanted members that a zip archive has."""
    if not wanted or not _is_zip(path):
        return {}
    with readable(path), zipfile.ZipFile(path) as archive:
        return {name: archive.open(name).read(limit) for name in wanted if name in archive.namelist()}


def _zip(path: Path, wanted: Collection[str]) -> Iterator[tuple[str, IO[bytes]]]:
    with zipfile.ZipFile(path) as archive:
        for entry in archive.infolist():
            if entry.filename in wanted:
                if (entry.external_attr >> 16) & KINDS_IN_ZIP == LINK_IN_ZIP:
                    _refuse_kind(path, entry.filename)
                if entry.flag_bits & ENCRYPTED:
                    raise UserError(f"{path}: {entry.filename} is encrypted.")
                with archive.open(entry) as stream:
                    yield entry.filename, _bounded(_decompressed(stream), path)


def _tar(path: Path, wanted: Collection[str]) -> Iterator[tuple[str, IO[bytes]]]:
    """One pass from front to end, in which what is skipped is counted as well."""
    with path.open("rb") as file:
        raw = _Bounded(_decompressed(file), _bound(path), path)
        raw.headers = HEADERS  # of the first member, which are read when the archive is opened
        content = cast(IO[bytes], io.BufferedReader(raw, tarfile.RECORDSIZE))
        with tarfile.open(fileobj=content, mode="r|") as archive:
            while entry := _next(archive, raw):
                if not entry.isreg() or entry.issparse():
                    if entry.name in wanted:
                        _refuse_kind(path, entry.name)
                    continue
                stream = cast(IO[bytes], archive.extractfile(entry))
                if entry.name in wanted:
                    member = _bounded(_decompressed(stream), path)  # which closes the stream when nothing holds it
                    yield entry.name, member
                _drain(stream)  # so that only headers are between two members
        _drain(content)  # behind the end is the checksum of the compressed data


def _drain(stream: IO[bytes]) -> None:
    while stream.read(1 << 16):
        pass


def _next(archive: tarfile.TarFile, raw: _Bounded) -> tarfile.TarInfo | None:
    """The next member; its headers, which tarfile reads whole, are bounded."""
    raw.headers = HEADERS
    entry = archive.next()
    raw.headers = None
    archive.members = []  # type: ignore[attr-defined]  # a stream keeps them all
    return entry


def _decompressed(stream: IO[bytes]) -> IO[bytes]:
    """The same content without the compression that its first bytes show."""
    buffered = io.BufferedReader(cast(io.RawIOBase, stream), 1 << 16)
    start = buffered.peek(10)
    if start.startswith(b"\x1f\x8b"):
        return cast(IO[bytes], gzip.GzipFile(fileobj=buffered))
    if start.startswith(b"\xfd7zXZ"):
        return lzma.LZMAFile(buffered)
    if start[:3] == b"BZh" and start[4:10] == b"1AY&SY":
        return bz2.BZ2File(buffered)
    return buffered


def _bounded(stream: IO[bytes], path: Path) -> IO[bytes]:
    return io.BufferedReader(_Bounded(stream, _bound(path), path), 1 << 18)


def _bound(path: Path) -> int:
    return max(MOST_EXPANSION * path.stat().st_size, LEAST_BOUND)


def _refuse_kind(path: Path, name: str) -> NoReturn:
    raise UserError(f"{path}: {name} is a link or a device, not a file; the archive is refused.")


def _is_zip(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(4) in ZIP


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """Say so if what is read from an archive is damaged."""
    try:
        yield
    except (*DAMAGE, OSError) as error:
        if isinstance(error, OSError) and error.errno not in (None, errno.EINVAL):  # of a place before the beginning
            raise  # it is the disk
        raise UserError(f"{path} is damaged or no archive ({error}); remove it, and it is fetched again.") from error
