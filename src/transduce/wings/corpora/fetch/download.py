"""One file from somewhere else: begun again where it was interrupted, checked, and there whole or not at all.

    www.example.org_a_corpus.tgz            the file, once it is whole and its checksum is right
    www.example.org_a_corpus.tgz.part       what there is so far
    www.example.org_a_corpus.tgz.part.json  of what: the address, and how the server tells versions apart

Proxies are those of the environment (https_proxy, no_proxy).
"""

import http.client
import json
import os
import re
import shutil
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import FileIO
from pathlib import Path
from typing import Any, NamedTuple, TypeVar
from urllib.parse import urlsplit

from transduce.system.errors import UserError
from transduce.system.files import digest, is_full, write_text
from transduce.system.journal import Display, Transfer, say
from transduce.wings.corpora.fetch.table import Download

TIMEOUT = 30.0  # seconds without a byte
ATTEMPTS = 6  # one behind the other that bring nothing new
FIRST_WAIT, LONGEST_WAIT = 1.0, 60.0  # seconds between them; doubled each time
SHORT = 1.0  # seconds; what takes no longer shows no progress
BLOCK = 1 << 18
PASSING = {408, 425, 429, 500, 502, 503, 504}  # what a server says that may say something else a little later
PARTIAL, UNSATISFIABLE = 206, 416
LARGEST_ANSWER = 1 << 24  # bytes, of an index
LONGEST_NAME = 200  # characters; with what is added to them, most file systems take 255

Answer = TypeVar("Answer")


class _PassingError(Exception):
    """An attempt that can be repeated."""


class _Known(NamedTuple):
    """What a partial file is part of; a validator is an ETag or a date, by which a server knows its versions."""

    url: str
    validator: str
    total: int  # bytes; 0: unknown


def download(wanted: Download, folder: Path) -> Path:
    """The file, in `folder`: what is there already is used, what is there in part is completed.

    Raises UserError if it can't be had, or is not what its checksum says; then it is removed.
    """
    path = folder / file_name(wanted.url)
    if path.exists():
        _check(wanted, path)
        return path
    part = path.with_name(path.name + ".part")
    with Display() as display:
        _repeat(lambda: _continue(wanted, part, display), wanted.url, lambda: _size(part))
    _check(wanted, part)
    part.rename(path)
    _note_of(part).unlink(missing_ok=True)
    return path


def read_address(url: str) -> bytes:
    """The answer to a short question; raises UserError if there is none."""

    def ask() -> bytes:
        with _open(urllib.request.Request(url, headers=_headers())) as answer:
            return bytes(answer.read(LARGEST_ANSWER))

    return _repeat(ask, url, lambda: 0)


def file_name(url: str) -> str:
    """What a download is called: its address, as one name that any file system can hold."""
    address = urlsplit(url)
    name = f"{address.netloc}{address.path}" + (f"?{address.query}" if address.query else "")
    return re.sub(r"[^A-Za-z0-9.-]+", "_", name)[-LONGEST_NAME:].lstrip(".")


def _repeat(attempt: Callable[[], Answer], url: str, progress: Callable[[], int]) -> Answer:
    """Try until it succeeds or nothing new comes; raises UserError if the server says no, or too often nothing."""
    failures = 0
    while True:
        before = progress()
        try:
            return attempt()
        except _PassingError as error:
            failures = 0 if progress() > before else failures + 1
            reason, wait = str(error), 0.0
        except urllib.error.HTTPError as error:
            reason, wait = " ".join(f"it answers {error.code} {error.reason}".split()), _asked_to_wait(error)
            error.close()
            if error.code not in PASSING:
                raise UserError(f"{url} can't be fetched: {reason}; is the table out of date?") from None
            failures += 1
        except (ValueError, http.client.InvalidURL) as error:  # of this address, or of one that it leads to
            raise UserError(f"{url} can't be fetched: {' '.join(str(error).split())}; is the address right?") from None
        except (OSError, http.client.HTTPException) as error:
            cause = error.reason if isinstance(error, urllib.error.URLError) else error
            if isinstance(cause, ssl.SSLCertVerificationError):
                raise UserError(
                    f"{url} can't be fetched: its certificate is refused ({cause.verify_message})."
                ) from None
            failures = 0 if progress() > before else failures + 1
            reason, wait = _reason(cause), 0.0
        if failures >= ATTEMPTS:
            raise UserError(f"{url} can't be fetched: {reason}, {failures} times; try again later, it will go on.")
        wait = min(max(wait, FIRST_WAIT * 2 ** max(failures - 1, 0)), LONGEST_WAIT)
        say(f"{url}: {reason}; again in {wait:,.0f} s")
        time.sleep(wait)


def _continue(wanted: Download, part: Path, display: Display) -> None:
    """One attempt: ask for what is missing, or for everything if that can't be told apart from another version."""
    known = _read_note(part)
    size = _size(part)
    goes_on = size > 0 and known is not None and known.url == wanted.url and bool(known.validator or wanted.checksum)
    headers = _headers()
    if goes_on and known:
        headers["Range"] = f"bytes={size}-"
        if known.validator:
            headers["If-Range"] = known.validator
    try:
        answer = _open(urllib.request.Request(wanted.url, headers=headers))
    except urllib.error.HTTPError as error:
        if error.code != UNSATISFIABLE or not goes_on:
            raise
        error.close()
        if error.headers.get("Content-Range", "") == f"bytes */{size}":
            return  # all of it was there
        part.unlink()
        raise _PassingError("what is there is not part of it, it is begun anew") from None
    with answer:
        offset, total = _place(answer)
        now = _Known(wanted.url, _validator(answer.headers), total)
        if offset and (offset != size or not known or not _same(known, now)):
            part.unlink()
            raise _PassingError("the file has changed, it is begun anew")
        _check_room(part, total - size)
        with _writing(part):
            if not offset:
                part.unlink(missing_ok=True)  # first: a kill between the two must not put a new note to an old part
            write_text(_note_of(part), json.dumps(now))
            file = part.open("ab", buffering=0)  # what has come shall not come again
        with file:
            _receive(answer, file, part, offset, total, display)


def _check_room(part: Path, needed: int) -> None:
    free = shutil.disk_usage(part.parent).free
    if needed > free:
        raise UserError(f"There is no room for {part}: {needed:,} bytes are to come, {free:,} are free; make room.")


def _receive(answer: Any, file: FileIO, part: Path, offset: int, total: int, display: Display) -> None:
    """Write what comes behind `offset`; raises _PassingError if it ends before `total`."""
    began, done = time.monotonic(), offset
    while block := answer.read1(BLOCK):
        with _writing(part):
            written = file.write(block)
            while written < len(block):  # as on a disk that is nearly full
                written += file.write(block[written:])
        done += len(block)
        if (seconds := time.monotonic() - began) > SHORT:
            display.show(Transfer(part.stem, done, total, (done - offset) / seconds))
    with _writing(part):
        os.fsync(file.fileno())
    if total and done < total:
        raise _PassingError(f"the connection ended after {done:,} of {total:,} bytes")
    if total and done > total:
        raise _PassingError("more came than was announced")


@contextmanager
def _writing(part: Path) -> Iterator[None]:
    """Tell what is wrong with the disk apart from what is wrong with the network."""
    try:
        yield
    except OSError as error:
        if is_full(error):
            raise UserError(f"There is no room for {part} ({error}); make room, and it goes on from there.") from error
        raise UserError(f"{part} can't be written: {error.strerror}; choose another place.") from error


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _place(answer: Any) -> tuple[int, int]:
    """Where in the file the answer begins, and how long the file is (0: unknown)."""
    if answer.status != PARTIAL:
        length = answer.headers.get("Content-Length", "")
        return 0, int(length) if length.isdecimal() else 0
    match = re.fullmatch(r"bytes (\d+)-(\d+)/(\d+|\*)", answer.headers.get("Content-Range", ""))
    if not match:
        raise _PassingError("it doesn't say which part of the file it sends")
    return int(match[1]), int(match[2]) + 1 if match[3] == "*" else int(match[3])


def _validator(headers: Any) -> str:
    """What If-Range takes: a strong ETag, else a date."""
    tag = headers.get("ETag", "")
    return tag if tag.startswith('"') else headers.get("Last-Modified", "")


def _check(wanted: Download, path: Path) -> None:
    """Raise UserError, and remove the file, if it is not what the table says."""
    if not wanted.checksum:
        return
    algorithm, _, expected = wanted.checksum.partition(":")
    if (found := digest(path, algorithm)) == expected:
        return
    with path.open("rb") as file:
        page = file.read(256).lstrip().lower().startswith((b"<!doctype html", b"<html"))
    size = path.stat().st_size
    path.unlink()
    _note_of(path).unlink(missing_ok=True)
    hint = (
        "it is a web page: does a proxy want to be asked first?"
        if page
        else "fetch it again, or look for what changed."
    )
    raise UserError(
        f"{wanted.url} is not what the table expects: its {algorithm} is {found}, not {expected} "
        f"({size:,} bytes, removed); {hint}"
    )


def _same(before: _Known, now: _Known) -> bool:
    """Whether two answers are about the same version, whatever the server makes of If-Range."""
    sizes, validators = {before.total, now.total} - {0}, {before.validator, now.validator} - {""}
    return len(sizes) <= 1 and len(validators) <= 1


def _note_of(part: Path) -> Path:
    return part.with_name(part.name + ".json")


def _read_note(part: Path) -> _Known | None:
    try:
        return _Known(*json.loads(_note_of(part).read_bytes()))
    except (OSError, ValueError, TypeError):
        return None


def _headers() -> dict[str, str]:
    return {"User-Agent": "transduce", "Accept-Encoding": "identity"}


def _reason(error: object) -> str:
    if isinstance(error, TimeoutError):
        return f"nothing came for {TIMEOUT:.0f} s"
    return str(getattr(error, "strerror", None) or error) or type(error).__name__


def _asked_to_wait(error: urllib.error.HTTPError) -> float:
    asked = error.headers.get("Retry-After", "") if error.headers else ""
    return float(asked) if asked.isdecimal() else 0.0


class _Redirects(urllib.request.HTTPRedirectHandler):
    """To another host, yes; not to files, FTP, or from an encrypted to an open connection."""

    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        allowed = ("https",) if urlsplit(req.full_url).scheme == "https" else ("https", "http")
        if urlsplit(newurl).scheme not in allowed:
            raise urllib.error.HTTPError(req.full_url, code, f"a redirect to {newurl}", headers, fp)
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _open(request: urllib.request.Request) -> Any:
    """The answer of a server; only the protocols that are named here are spoken."""
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler,
        urllib.request.HTTPHandler,
        urllib.request.HTTPSHandler,
        urllib.request.HTTPDefaultErrorHandler,
        urllib.request.HTTPErrorProcessor,
        urllib.request.UnknownHandler,
        _Redirects,
    ):
        opener.add_handler(handler())
    return opener.open(request, timeout=TIMEOUT)
