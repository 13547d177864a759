"""Access to the API: authentication, rate limits, body sizes; most checks run before a request's body is read."""

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
from transduce.wings.serving.rate_limit import RateLimit
from transduce.wings.serving.service import Service

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]

UPLOAD = "/translate_file"
QUEUED_PATHS = ("/translate", UPLOAD, "/attention")
DOWNLOADS = "/download_file/"  # needs no key: the names are secret, and LibreTranslate's clients send none
MAX_KEY_BODY_BYTES = 64 << 10  # a key is looked for in bodies up to this size
SERVER_ERROR = "Internal server error. It has been logged."
log = logging.getLogger("transduce.wings.serving")


class RefusedError(HTTPException):
    """A request that is answered with an error status."""

    def __init__(self, status: int, sentence: str, wait: int = 0, **headers: str):
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        super().__init__(status, sentence, headers | ({"Retry-After": str(wait)} if wait else {}))


class AccessControl:
    """An ASGI application that checks requests before it passes them on."""

    def __init__(self, app: App, service: Service, keys: Keys, limits: Limits, *, open_paths: set[str], local: bool):
        """open_paths: need no key. local: only this machine may use the server."""
        self._app, self._service, self._keys, self._limits = app, service, keys, limits
        self._open, self._local = open_paths, local
        self._by_key, self._by_address = RateLimit(limits.per_key), RateLimit(limits.per_address)
        self._uploads = 0

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        start, status = time.monotonic(), 500
        response_started = False

        async def watched(message: Message) -> None:
            nonlocal status, response_started
            if message["type"] == "http.response.start":
                status, response_started = message["status"], True
                message["headers"] = [*message.get("headers", []), (b"x-content-type-options", b"nosniff")]
            await send(message)

        async def answer(error: HTTPException) -> None:
            if not response_started:
                await JSONResponse({"error": error.detail}, error.status_code, error.headers)(scope, receive, watched)

        try:
            checked = await self._admit(scope, receive)
            if scope["method"] == "HEAD":  # uvicorn sends no body
                scope = {**scope, "method": "GET"}
            with self._upload() if _is_upload(scope) else contextlib.nullcontext():
                await self._app(scope, checked, watched)
        except RefusedError as error:
            await answer(error)
        except asyncio.CancelledError:  # the time to drain is over
            await answer(RefusedError(503, "The server is shutting down; send the request again later.", 5))
        except Exception as error:  # logged without its message, which may hold a user's text
            error = error.__cause__ if isinstance(error.__cause__, Exception) else error
            frame = traceback.extract_tb(error.__traceback__)[-1]
            log.error("%s in %s, line %s", type(error).__name__, PurePath(frame.filename).name, frame.lineno)
            await answer(HTTPException(500, SERVER_ERROR))
        finally:
            route = scope["path"] if scope["path"] in (*QUEUED_PATHS, *self._open, "/detect", "/languages") else "other"
            self._service.metrics.answers.labels(route, status).inc()
            self._service.metrics.seconds.labels(route).observe(time.monotonic() - start)

    async def _admit(self, scope: MutableMapping[str, Any], receive: Receive) -> Receive:
        """Check a request and return the function that receives its body; raises RefusedError."""
        headers, path = Headers(scope=scope), scope["path"]
        if self._local and not is_local(_host(headers.get("host", ""))):
            raise RefusedError(421, "This server is for its own machine only. Address it as localhost.")
        if self._local and scope["method"] == "POST" and headers.get("sec-fetch-site") == "cross-site":
            raise RefusedError(403, "Cross-site requests are not allowed.")
        if "content-length" in headers and "transfer-encoding" in headers:  # request smuggling
            raise RefusedError(400, "Send either Content-Length or Transfer-Encoding, not both.", Connection="close")
        limit = self._limits.document if path == UPLOAD else self._limits.body
        length = int(headers.get("content-length", "0"))
        receive = _limited(receive, limit)
        if path not in self._open:
            receive = await self._identify(scope, headers, receive, length)
        if length > limit:
            raise _too_long(limit)
        if path in QUEUED_PATHS and scope["method"] == "POST":
            try:
                self._service.batcher.check_place()
            except QueueFullError as full:
                raise RefusedError(503, "The server is busy. Try again later.", full.seconds) from None
        return receive

    @contextlib.contextmanager
    def _upload(self) -> Iterator[None]:
        """Count an uploaded document; raises RefusedError if too many are being translated."""
        if self._uploads >= self._limits.uploads:
            raise RefusedError(503, "The server is busy with other documents. Try again later.", 5)
        self._uploads += 1
        try:
            yield
        finally:
            self._uploads -= 1

    async def _identify(
        self, scope: MutableMapping[str, Any], headers: Headers, receive: Receive, length: int
    ) -> Receive:
        """Check the API key, if the server has any, and the rate limits; raises RefusedError."""
        address = (scope.get("client") or ("",))[0]
        if address and not _is_loopback(address):
            _check_rate(self._by_address, _network(address))
        if not self._keys or scope["path"].startswith(DOWNLOADS):
            return receive
        key = _key(headers, scope["query_string"])
        if not key and length <= MAX_KEY_BODY_BYTES:
            body, receive = await _peek(receive)
            key = _key_in(body, headers.get("content-type", ""), self._limits.depth)
        if not key:
            sentence = "This server requires an API key. Send it as a header: Authorization: Bearer KEY."
            raise RefusedError(401, sentence, WWW_Authenticate="Bearer")
        owner = self._keys.owner(key)
        if owner is None:
            raise RefusedError(403, "Unknown API key.")
        _check_rate(self._by_key, owner)
        return receive


def _check_rate(limit: RateLimit, client: str) -> None:
    if seconds := limit.wait(client):
        raise RefusedError(429, f"Too many requests. Try again in {seconds} seconds.", seconds)


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
    """Wrap `receive`: raises RefusedError as soon as the body exceeds `limit` bytes."""
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
    return RefusedError(413, f"The request body exceeds {limit:,} bytes.")


async def _peek(receive: Receive) -> tuple[bytes, Receive]:
    """The body, empty if it exceeds MAX_KEY_BODY_BYTES, and a `receive` that returns it again."""
    read: list[Message] = []
    body, more = b"", True
    while more and len(body) <= MAX_KEY_BODY_BYTES:
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
    """Whether a host name or address is a loopback address."""
    return host == "localhost" or _is_loopback(host)


def _network(address: str) -> str:
    """The client for rate limits: an IPv4 address, or the /64 network of an IPv6 address."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:  # from X-Forwarded-For
        return address
    if isinstance(parsed, ipaddress.IPv6Address):
        if parsed.ipv4_mapped is None:
            return str(ipaddress.ip_network((int(parsed) >> 64 << 64, 64)))
        parsed = parsed.ipv4_mapped
    return str(parsed)


def _host(header: str) -> str:
    """The name in a Host header, without its port."""
    if header.startswith("["):
        return header[1:].partition("]")[0]
    return header.partition(":")[0].lower()
