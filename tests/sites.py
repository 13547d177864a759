"""A web site for the tests, whose server does on request what servers on the way to a corpus have done."""

import contextlib
import hashlib
import io
import tarfile
import threading
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple


class Asked(NamedTuple):
    """A request."""

    path: str
    range: str
    condition: str


@dataclass
class Site:
    """What is at which path, how the server speaks, and what goes wrong: a fault for each of the next requests."""

    files: dict[str, bytes] = field(default_factory=dict)
    ranges: bool = True
    checks_condition: bool = True  # as it should, If-Range
    validator: str = "ETag"  # or "Last-Modified", or ""
    faults: list[Callable[["Handler"], None]] = field(default_factory=list)
    asked: list[Asked] = field(default_factory=list)
    closing: threading.Event = field(default_factory=threading.Event)
    address: str = ""

    def version(self, path: str) -> str:
        """What the server calls this version of a file."""
        digest = hashlib.sha256(self.files[path]).hexdigest()
        return (
            f'"{digest[:8]}"'
            if self.validator == "ETag"
            else f"Mon, 01 Jan 2024 00:00:{int(digest[:4], 16) % 60:02} GMT"
        )


class Handler(BaseHTTPRequestHandler):
    """Speaks for the site of its server."""

    site: Site

    def do_GET(self) -> None:
        asked = Asked(self.path, self.headers.get("Range", ""), self.headers.get("If-Range", ""))
        self.site.asked.append(asked)
        if self.site.faults:
            self.site.faults.pop(0)(self)
        else:
            self.answer()

    def answer(self, cut: int | None = None, stall: bool = False) -> None:
        """The file, or what is asked for of it; of its body only the first `cut` bytes, and then nothing for long."""
        if self.path not in self.site.files:
            self.say(404)
            return
        content, offset = self.site.files[self.path], 0
        asked = self.site.asked[-1]
        current = (
            asked.condition in ("", self.site.version(self.path)) or not self.site.checks_condition
        )
        if asked.range and self.site.ranges and current:
            offset = int(asked.range.removeprefix("bytes=").removesuffix("-"))
            if offset >= len(content):
                self.say(416, {"Content-Range": f"bytes */{len(content)}"})
                return
        headers = {"Content-Length": str(len(content) - offset)}
        if self.site.validator:
            headers[self.site.validator] = self.site.version(self.path)
        if offset:
            headers["Content-Range"] = f"bytes {offset}-{len(content) - 1}/{len(content)}"
        self.say(206 if offset else 200, headers, content[offset:][:cut])
        if stall:
            self.wfile.flush()
            self.site.closing.wait()

    def say(self, status: int, headers: Mapping[str, str] = {}, body: bytes = b"") -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: object) -> None:
        pass


def status(code: int, **headers: str) -> Callable[[Handler], None]:
    """Answer so, whatever was asked; underscores in names of headers are hyphens."""
    return lambda handler: handler.say(
        code, {name.replace("_", "-"): value for name, value in headers.items()}
    )


def cut(size: int) -> Callable[[Handler], None]:
    """End the connection after so many bytes of the body."""
    return lambda handler: handler.answer(cut=size)


def stall(size: int) -> Callable[[Handler], None]:
    """Send so many bytes of the body, and then nothing, but stay."""
    return lambda handler: handler.answer(cut=size, stall=True)


def silent(handler: Handler) -> None:
    """Say nothing at all, but stay."""
    handler.site.closing.wait()


@contextlib.contextmanager
def serving(site: Site) -> Iterator[Site]:
    """The site, at its address."""
    handler = type("SiteHandler", (Handler,), {"site": site})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        site.address = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield site
        finally:
            site.closing.set()
            server.shutdown()
            thread.join()


def tar(
    members: Mapping[str, bytes], mode: str = "w:gz", also: tuple[tarfile.TarInfo, ...] = ()
) -> bytes:
    """An archive with these members, behind those that are no files."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode=mode) as archive:  # type: ignore[call-overload]
        for entry in also:
            archive.addfile(entry, io.BytesIO(b"x" * entry.size))
        for name, text in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text))
    return content.getvalue()


def zipped(members: Mapping[str | zipfile.ZipInfo, bytes]) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in members.items():
            archive.writestr(name, text, zipfile.ZIP_DEFLATED)
    return content.getvalue()
