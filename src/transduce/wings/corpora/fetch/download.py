"""Downloads a file, resumes interrupted downloads, and verifies the checksum.

www.example.org_a_corpus.tgz              the complete file, with the right checksum
www.example.org_a_corpus.tgz.3f9c….part   the bytes received so far (3f9c… is a digest of the file's version)
"""

import hashlib
import os
import re
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import FileIO
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlsplit

import httpx2

from transduce.system.console import Display, duration, log
from transduce.system.errors import UserError
from transduce.system.files import digest
from transduce.system.write_errors import write_error
from transduce.wings.corpora.fetch.table import Download

TIMEOUT_SECONDS = 30.0  # maximum time without receiving a byte
MAX_FAILURES = 6  # consecutive attempts without progress
FIRST_WAIT_SECONDS, MAX_WAIT_SECONDS = 1.0, 60.0  # between attempts, doubled each time
QUIET_SECONDS = 1.0  # a shorter download shows no progress
TRANSIENT_STATUSES = {408, 425, 429, 500, 502, 503, 504}
LOGIN_STATUSES = {401, 407, 511}
PARTIAL_CONTENT, RANGE_NOT_SATISFIABLE = 206, 416
MAX_NAME_LENGTH = 200  # characters without the suffix; most file systems allow 255 in all
UNKNOWN_VERSION = ".unknown.part"  # suffix of a partial file that can't be resumed
STARTS_OVER = "the server sends another part or version of the file; the download starts over"
PARTIAL_NAME = re.compile(r"\.([0-9a-f]{16}|unknown)\.part")
MAX_PROLOG_BYTES = 1 << 14  # maximum size of a web page's text before its first tag
WEB_PAGE = re.compile(
    rb"(\xef\xbb\xbf)?(?>\s+|<\?xml.*?\?>|<!--.*?-->)*+<(!doctype\s+html|html)[\s>]",
    re.DOTALL | re.IGNORECASE,
)
MAX_ANSWER_BYTES = 1 << 24  # maximum size of a catalogue
HEADERS = {"User-Agent": "transduce", "Accept-Encoding": "identity"}

PERMANENT_ERRORS = (httpx2.InvalidURL, httpx2.UnsupportedProtocol, httpx2.TooManyRedirects)

Result = TypeVar("Result")


def download(wanted: Download, folder: Path) -> Path:
    """Download a file to `folder`, or resume an interrupted download.

    Raises UserError if the download fails or the checksum is wrong. A file with a wrong checksum is removed.
    """
    path = folder / file_name(wanted.url)
    if path.exists():
        _check(wanted, path)
        return path
    with Display() as display:
        part = _retry(
            lambda: _attempt(wanted, path, display), wanted.url, lambda: _size(_partial(path))
        )
    _check(wanted, part)
    return part.rename(path)


def read_address(url: str) -> bytes:
    """The first MAX_ANSWER_BYTES bytes at `url`. Raises UserError if the request fails."""

    def attempt() -> bytes:
        with _open(url) as answer:
            answer.raise_for_status()
            return next(answer.iter_raw(MAX_ANSWER_BYTES), b"")

    return _retry(attempt, url, lambda: 0)


def remove_download(path: Path) -> None:
    """Remove a downloaded file and its partial file."""
    for file in (path, _partial(path)):
        file.unlink(missing_ok=True)


def file_name(url: str) -> str:
    """The file name for a download from `url`, valid on every file system."""
    address = urlsplit(url)
    name = f"{address.netloc}{address.path}" + (f"?{address.query}" if address.query else "")
    return re.sub(r"[^A-Za-z0-9.-]+", "_", name)[-MAX_NAME_LENGTH:].lstrip(".")


def _retry(attempt: Callable[[], Result], url: str, progress: Callable[[], int]) -> Result:
    """Call `attempt` until it succeeds. Raises UserError after a permanent error or MAX_FAILURES failures in a row."""
    failures = 0
    reached = progress()
    while True:
        wait = 0.0
        try:
            return attempt()
        except httpx2.HTTPStatusError as error:
            answer = error.response
            reason = _one_line(f"the server answers {answer.status_code} {answer.reason_phrase}")
            if answer.status_code not in TRANSIENT_STATUSES:
                remedy = (
                    "Check whether the server or a proxy asks for a login."
                    if answer.status_code in LOGIN_STATUSES
                    else "Check whether the table of corpora is out of date."
                )
                raise UserError(f"{url} can't be fetched: {reason}.", remedy) from None
            seconds = answer.headers.get("Retry-After", "")
            wait = float(seconds) if seconds.isdecimal() else 0.0
        except (
            PERMANENT_ERRORS
        ) as error:  # an error of this address, or of an address that it redirects to
            raise UserError(
                f"{url} can't be fetched: {_one_line(str(error)).rstrip('.')}.",
                "Check whether the address is right.",
            ) from None
        except httpx2.TimeoutException:
            reason = f"no data arrived for {TIMEOUT_SECONDS:.0f} s"
        except httpx2.TransportError as error:
            reason = _one_line(str(error)) or type(error).__name__
            if "CERTIFICATE_VERIFY_FAILED" in reason:
                raise UserError(f"{url} can't be fetched: {reason}.") from None
        failures = 0 if progress() > reached else failures + 1
        # A file that starts over makes no progress until it is larger than before.
        reached = max(reached, progress())
        if failures >= MAX_FAILURES:
            raise UserError(
                f"{url} can't be fetched: {reason} ({failures} tries).",
                "Repeat the command later to resume.",
            )
        wait = min(max(wait, FIRST_WAIT_SECONDS * 2 ** max(failures - 1, 0)), MAX_WAIT_SECONDS)
        log(f"{url}: {reason}; trying again in {wait:,.0f} s")
        time.sleep(wait)


def _one_line(text: str) -> str:
    """The text of a server as one line of printable characters."""
    return " ".join(
        "".join(character if character.isprintable() else " " for character in text).split()
    )


def _attempt(wanted: Download, path: Path, display: Display) -> Path:
    """Request the missing bytes and append them to the partial file. Returns the path of that file."""
    part = _partial(path)
    size = 0 if part.name.endswith(UNKNOWN_VERSION) else _size(part)
    with _open(wanted.url, {"Range": f"bytes={size}-"} if size else {}) as answer:
        if (
            size and answer.status_code == RANGE_NOT_SATISFIABLE
        ):  # the file is not longer than `part`
            part.unlink()
            raise httpx2.RemoteProtocolError(STARTS_OVER)
        offset, total = _range(answer.raise_for_status())
        version = path.with_name(path.name + _suffix(wanted, answer, total))
        if offset and (offset, version) != (size, part):
            part.unlink(missing_ok=True)
            raise httpx2.RemoteProtocolError(STARTS_OVER)
        needed = total - _size(part)
        free = shutil.disk_usage(path.parent).free
        if needed > free:
            raise UserError(
                f"There is no room for {path}: it needs {needed:,} bytes, {free:,} are free.",
                "Make room.",
            )
        with _disk(version):
            if not offset:
                part.unlink(missing_ok=True)
            file = version.open("ab", buffering=0)  # unbuffered: a killed process loses no block
        with file:
            _receive(answer, file, version, offset, total, display)
    return version


def _receive(
    answer: httpx2.Response, file: FileIO, path: Path, offset: int, total: int, display: Display
) -> None:
    """Append the server's answer to `file`. Raises TransportError if its size is then not `total` (0 if unknown)."""
    began = time.monotonic()
    done = offset
    for block in answer.iter_raw():
        with _disk(path):
            written = file.write(block)
            while written < len(block):  # a nearly full disk may take only part of a block
                written += file.write(block[written:])
        done += len(block)
        if (seconds := time.monotonic() - began) > QUIET_SECONDS:
            display.show(
                done, total, transfer_line(path.stem, done, total, (done - offset) / seconds)
            )
    with _disk(path):
        os.fsync(file.fileno())
    if total and done != total:  # a server may send a smaller part than the one that was asked for
        raise httpx2.RemoteProtocolError(f"the server sent {done:,} of {total:,} bytes")


def transfer_line(name: str, done: int, total: int, rate: float) -> str:
    """The progress line of a download of `total` bytes (0 if unknown), with `rate` in bytes per second."""
    left = duration((total - done) / rate) if rate else "?"
    of_all = f" of {total / 1e6:,.1f} MB  {left} left" if total else " MB"
    return f"{done / 1e6:,.1f}{of_all}  {rate / 1e6:,.1f} MB/s  {name}"


@contextmanager
def _disk(path: Path) -> Iterator[None]:
    """Raise UserError if writing to the disk fails inside the `with` block."""
    try:
        yield
    except OSError as error:
        raise write_error(path, 0, error) from error


def _partial(path: Path) -> Path:
    """The path of an existing or new partial file for the download `path`."""
    parts = (
        each
        for each in path.parent.iterdir()
        if PARTIAL_NAME.fullmatch(each.name.removeprefix(path.name))
    )
    return next(parts, path.with_name(path.name + UNKNOWN_VERSION))


def _suffix(wanted: Download, answer: httpx2.Response, total: int) -> str:
    """The suffix of the partial file, derived from the file's version or, without one, from its size."""
    mark = _mark(answer)
    if not mark and not wanted.checksum:
        return UNKNOWN_VERSION
    return f".{hashlib.sha256(f'{wanted.url} {mark or total}'.encode()).hexdigest()[:16]}.part"


def _mark(answer: httpx2.Response) -> str:
    """The version of the file: the ETag, the date, or "" if the server sent neither."""
    tag = answer.headers.get("ETag", "")
    return tag if tag.startswith('"') else answer.headers.get("Last-Modified", "")


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _range(answer: httpx2.Response) -> tuple[int, int]:
    """The offset of the answer's first byte (-1 if not stated) and the file size (0 if unknown), in bytes."""
    if answer.status_code != PARTIAL_CONTENT:
        length = answer.headers.get("Content-Length", "")
        return 0, int(length) if length.isdecimal() else 0
    match = re.fullmatch(r"bytes (\d+)-\d+/(\d+)", answer.headers.get("Content-Range", ""))
    return (int(match[1]), int(match[2])) if match else (-1, 0)


def _check(wanted: Download, path: Path) -> None:
    """If the file is a web page or empty, or its checksum is wrong, remove the file and raise UserError."""
    algorithm, _, expected = wanted.checksum.partition(":")
    actual = digest(path, algorithm) if expected else ""
    if expected and actual == expected:
        return
    with path.open("rb") as file:
        content = file.read(MAX_PROLOG_BYTES)
    if WEB_PAGE.match(content):
        reason = "it is a web page"
        remedy = "Check whether a proxy asks for a login."
    elif expected or not content:
        reason = f"its {algorithm} is {actual} instead of {expected}" if expected else "it is empty"
        remedy = "Fetch it again, or correct the table."
    else:
        return
    size = path.stat().st_size
    path.unlink()
    raise UserError(
        f"{wanted.url} is not the file that the table describes: {reason} ({size:,} bytes, removed).",
        remedy,
    )


@contextmanager
def _open(url: str, headers: dict[str, str] | None = None) -> Iterator[httpx2.Response]:
    """Request a file, and follow redirects."""
    hooks = {"response": [_refuse_insecure_redirect]}
    client = httpx2.Client(follow_redirects=True, timeout=TIMEOUT_SECONDS, event_hooks=hooks)
    with client, client.stream("GET", url, headers=HEADERS | (headers or {})) as answer:
        yield answer


def _refuse_insecure_redirect(answer: httpx2.Response) -> None:
    """Raise UnsupportedProtocol if an answer redirects from https to http."""
    if answer.has_redirect_location and answer.url.scheme == "https":
        target = answer.url.join(answer.headers["Location"])
        if target.scheme != "https":
            raise httpx2.UnsupportedProtocol(f"the server redirects to {target}")
