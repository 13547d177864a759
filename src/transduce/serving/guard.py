"""What stands between the network and the API: who may come, how often, with how much. Most of it is decided before the
body of a request is read.
"""

import hmac
import ipaddress
import json
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import parse_qs

from starlette.datastructures import Headers

from transduce.errors import UserError
from transduce.serving.batching import QueueFullError
from transduce.serving.keys import Keys
from transduce.serving.limits import Limits
from transduce.serving.payload import parse
from transduce.serving.rates import Rates
from transduce.serving.service import Service

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]

UPLOAD = "/translate_file"
WORK = ("/translate", UPLOAD, "/attention")  # what the queue is for
SEARCHED = 64 << 10  # bytes of a body in which a key is looked for
LOCAL = ("localhost", "127.0.0.1", "::1", "testserver")


class RefusedError(Exception):
    """An answer instead of what was asked for."""

    def __init__(self, status: int, sentence: str, wait: int = 0):
        super().__init__(sentence)
        self.status, self.sentence, self.wait = status, sentence, wait


class Guard:
    """An ASGI application around another one."""

    def __init__(self, app: App, service: Service, keys: Keys, limits: Limits, *, open_paths: set[str], local: bool):
        """open_paths: for which no key is needed. local: it is meant for this machine alone."""
        self._app, self._service, self._keys, self._limits = app, service, keys, limits
        self._open, self._local = open_paths, local
        self._by_key, self._by_address = Rates(limits.per_key), Rates(limits.per_address)

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
            await send(message)

        try:
            received = await self._admit(scope, receive)
            await self._app(scope, received, watched)
        except RefusedError as error:
            if not begun:
                await _answer(watched, error)
        finally:
            route = scope["path"] if scope["path"] in (*WORK, *self._open, "/detect", "/languages") else "other"
            self._service.metrics.answers.labels(route, status).inc()
            self._service.metrics.seconds.labels(route).observe(time.monotonic() - began)

    async def _admit(self, scope: MutableMapping[str, Any], receive: Receive) -> Receive:
        """What gives the body, of what may come in; raises RefusedError for others."""
        headers, path = Headers(scope=scope), scope["path"]
        if self._local and _host(headers.get("host", "")) not in LOCAL:
            raise RefusedError(421, "This server is for its own machine: address it as localhost.")
        limit = self._limits.document if path == UPLOAD else self._limits.body
        length = headers.get("content-length", "0")
        if not length.isascii() or not length.isdigit() or int(length) > limit:
            raise RefusedError(413, f"A body has at most {limit:,} bytes here.")
        receive = _limited(receive, limit)
        if path not in self._open:
            receive = await self._identify(scope, headers, receive)
        if path in WORK and scope["method"] == "POST":
            try:
                self._service.batcher.check_room()
            except QueueFullError as full:
                raise RefusedError(503, "The server is busy; try again later.", full.seconds) from None
        return receive

    async def _identify(self, scope: MutableMapping[str, Any], headers: Headers, receive: Receive) -> Receive:
        """Whoever asks has a key, if there are any, and does not come too often."""
        address = (scope.get("client") or ("",))[0]
        if not _is_loopback(address):
            _take(self._by_address, address)
        if not self._keys:
            return receive
        key = _key(headers, scope["query_string"])
        if not key:
            body, receive = await _beginning(receive)
            key = _key_in(body, headers.get("content-type", ""), self._limits.depth)
        if not key:
            raise RefusedError(401, "This server needs an API key: send it as a header, Authorization: Bearer KEY.")
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
    if hmac.compare_digest(kind.lower().encode(), b"bearer") and key:
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
            raise RefusedError(413, f"A body has at most {limit:,} bytes here.")
        return message

    return counted


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


def _is_loopback(address: str) -> bool:
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return True  # a socket of this machine


def _host(header: str) -> str:
    """The name in a Host header, without its port."""
    if header.startswith("["):
        return header[1:].partition("]")[0]
    return header.partition(":")[0].lower()


async def _answer(send: Send, error: RefusedError) -> None:
    body = json.dumps({"error": error.sentence}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    headers += [(b"retry-after", str(error.wait).encode())] if error.wait else []
    headers += [(b"www-authenticate", b"Bearer")] if error.status == 401 else []
    await send({"type": "http.response.start", "status": error.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
