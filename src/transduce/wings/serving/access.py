"""What stands between the network and the API: who may come, how often, with how much. Most of it is decided before the
body of a request is read.
"""

import asyncio
import contextlib
import ipaddress
import logging
import time
import traceback
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from pathlib import PurePath
from typing import Any
from urllib.parse import parse_qs

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse

from transduce.system.errors import UserError
from transduce.wings.serving.batching import QueueFullError
from transduce.wings.serving.keys import Keys
from transduce.wings.serving.limits import Limits
from transduce.wings.serving.payload import parse
from transduce.wings.serving.rate_limit import Rates
from transduce.wings.serving.service import Service

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]

UPLOAD = "/translate_file"
WORK = ("/translate", UPLOAD, "/attention")  # what the queue is for
DOWNLOADS = "/download_file/"  # by names that are secrets: LibreTranslate's clients send no key for them
SEARCHED = 64 << 10  # bytes of a body in which a key is looked for
BROKEN = "Something is wrong here, not with what you sent; it has been noted."
log = logging.getLogger("transduce.wings.serving")


class RefusedError(HTTPException):
    """An answer instead of what was asked for."""

    def __init__(self, status: int, sentence: str, wait: int = 0, **headers: str):
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        super().__init__(status, sentence, headers | ({"Retry-After": str(wait)} if wait else {}))


class Guard:
    """An ASGI application around another one."""

    def __init__(self, app: App, service: Service, keys: Keys, limits: Limits, *, open_paths: set[str], local: bool):
        """open_paths: for which no key is needed. local: it is meant for this machine alone."""
        self._app, self._service, self._keys, self._limits = app, service, keys, limits
        self._open, self._local = open_paths, local
        self._by_key, self._by_address = Rates(limits.per_key), Rates(limits.per_address)
        self._uploads = 0

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, status = time.monotonic(), 500
        begun = False

        async def watched(message: Message) -> None:
            nonlocal status, begun
            if message["type"] == "http.response.start":
                status, begun = message["status"], True
                message["headers"] = [*message.get("headers", []), (b"x-content-type-options", b"nosniff")]
            await send(message)

        async def answer(error: HTTPException) -> None:
            if not begun:
                await JSONResponse({"error": error.detail}, error.status_code, error.headers)(scope, receive, watched)

        try:
            received = await self._admit(scope, receive)
            asked = {**scope, "method": "GET"} if scope["method"] == "HEAD" else scope  # without a body, by the server
            with self._upload() if _is_upload(scope) else contextlib.nullcontext():
                await self._app(asked, received, watched)
        except RefusedError as error:
            await answer(error)
        except asyncio.CancelledError:  # the server ends, and gives up what is not done yet
            await answer(RefusedError(503, "The server is ending; send this again later.", 5))
        except Exception as error:  # which is noted without its message: that may hold what somebody wrote
            error = error.__cause__ if isinstance(error.__cause__, Exception) else error
            place = traceback.extract_tb(error.__traceback__)[-1]
            log.error("%s in %s, line %s", type(error).__name__, PurePath(place.filename).name, place.lineno)
            await answer(HTTPException(500, BROKEN))
        finally:
            route = scope["path"] if scope["path"] in (*WORK, *self._open, "/detect", "/languages") else "other"
            self._service.metrics.answers.labels(route, status).inc()
            self._service.metrics.seconds.labels(route).observe(time.monotonic() - began)

    async def _admit(self, scope: MutableMapping[str, Any], receive: Receive) -> Receive:
        """What gives the body, of what may come in; raises RefusedError for others."""
        headers, path = Headers(scope=scope), scope["path"]
        if self._local and not is_local(_host(headers.get("host", ""))):
            raise RefusedError(421, "This server is for its own machine: address it as localhost.")
        if self._local and scope["method"] == "POST" and headers.get("sec-fetch-site") == "cross-site":
            raise RefusedError(403, "Pages of other sites can't have this server work for them.")
        if "content-length" in headers and "transfer-encoding" in headers:  # proxies could see another end than we do
            raise RefusedError(400, "A body has either a length or chunks, not both.", Connection="close")
        limit = self._limits.document if path == UPLOAD else self._limits.body
        length = int(headers.get("content-length", "0"))
        receive = _limited(receive, limit)
        if path not in self._open:
            receive = await self._identify(scope, headers, receive, length)
        if length > limit:
            raise _too_long(limit)
        if path in WORK and scope["method"] == "POST":
            try:
                self._service.batcher.check_place()
            except QueueFullError as full:
                raise RefusedError(503, "The server is busy; try again later.", full.seconds) from None
        return receive

    @contextlib.contextmanager
    def _upload(self) -> Iterator[None]:
        """One of the documents that there is room for; raises RefusedError if there is none."""
        if self._uploads >= self._limits.uploads:
            raise RefusedError(503, "The server is busy with other documents; try again later.", 5)
        self._uploads += 1
        try:
            yield
        finally:
            self._uploads -= 1

    async def _identify(
        self, scope: MutableMapping[str, Any], headers: Headers, receive: Receive, length: int
    ) -> Receive:
        """Whoever asks has a key, if there are any, and does not come too often."""
        address = (scope.get("client") or ("",))[0]
        if address and not _is_loopback(address):
            _take(self._by_address, _network(address))
        if not self._keys or scope["path"].startswith(DOWNLOADS):
            return receive
        key = _key(headers, scope["query_string"])
        if not key and length <= SEARCHED:
            body, receive = await _beginning(receive)
            key = _key_in(body, headers.get("content-type", ""), self._limits.depth)
        if not key:
            sentence = "This server needs an API key: send it as a header, Authorization: Bearer KEY."
            raise RefusedError(401, sentence, WWW_Authenticate="Bearer")
        owner = self._keys.owner(key)
        if owner is None:
            raise RefusedError(403, "This API key is not known here.")
        _take(self._by_key, owner)
        return receive


def _take(rates: Rates, who: str) -> None:
    if seconds := rates.wait(who):
        raise RefusedError(429, f"Too many requests; try again in {seconds} seconds.", seconds)


def _key(headers: Headers, query: bytes) -> str:
    kind, _, key = headers.get("authorization", "").partition(" ")
    if kind.lower() == "bearer" and key.strip():
        return key.strip()
    if "x-api-key" in headers:
        return headers["x-api-key"]
    return next(iter(parse_qs(query.decode("latin-1")).get("api_key", [])), "")


def _key_in(body: bytes, content_type: str, depth: int) -> str:
    try:
        key = parse(body, content_type, b"", depth).get("api_key", "")
    except UserError:
        return ""
    return key if isinstance(key, str) else ""


def _limited(receive: Receive, limit: int) -> Receive:
    """The same, but RefusedError is raised for a body that turns out to be longer."""
    seen = 0

    async def counted() -> Message:
        nonlocal seen
        message = await receive()
        seen += len(message.get("body", b""))
        if seen > limit:
            raise _too_long(limit)
        return message

    return counted


def _too_long(limit: int) -> RefusedError:
    return RefusedError(413, f"A body has at most {limit:,} bytes here.")


async def _beginning(receive: Receive) -> tuple[bytes, Receive]:
    """The body if it is short enough for a key to be looked for, and what gives it once more, and the rest."""
    read: list[Message] = []
    body, more = b"", True
    while more and len(body) <= SEARCHED:
        message = await receive()
        read.append(message)
        body += message.get("body", b"")
        more = message.get("more_body", False)

    async def again() -> Message:
        return read.pop(0) if read else await receive()

    return (b"" if more else body), again


def _is_upload(scope: MutableMapping[str, Any]) -> bool:
    return scope["path"] == UPLOAD and scope["method"] == "POST"


def _is_loopback(address: str) -> bool:
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False


def is_local(host: str) -> bool:
    """Whether a name or an address is that of this machine alone."""
    return host == "localhost" or _is_loopback(host)


def _network(address: str) -> str:
    """The address; of IPv6 its first half, as somebody who has one has all that begin like it."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:  # what a proxy has said
        return address
    if isinstance(found, ipaddress.IPv6Address):
        if found.ipv4_mapped is None:
            return str(ipaddress.ip_network((int(found) >> 64 << 64, 64)))
        found = found.ipv4_mapped
    return str(found)


def _host(header: str) -> str:
    """The name in a Host header, without its port."""
    if header.startswith("["):
        return header[1:].partition("]")[0]
    return header.partition(":")[0].lower()
