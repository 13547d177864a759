"""Checks the API key, request rate and body size of each request."""

import asyncio
import contextlib
import ipaddress
import logging
import math
import time
import traceback
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import PurePath
from urllib.parse import parse_qs

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from transduce.system.console import count
from transduce.system.errors import UnusableModelError, UserError
from transduce.wings.serving.addresses import ABSOLUTE_FORM, ORIGIN, host_of
from transduce.wings.serving.keys import Keys
from transduce.wings.serving.payload import parse
from transduce.wings.serving.protocols import LIBRETRANSLATE, Protocol, protocol_of
from transduce.wings.serving.service import Service

DOWNLOADS = "/download_file/"  # needs no key: the names are secret, and LibreTranslate's clients send no key
# Paths that need no key, as in LibreTranslate.
KEYLESS = "/languages", "/frontend/settings", "/docs", "/openapi.json"
MAX_HEADERS, MAX_BYTES_OF_HEADERS = 100, 16 << 10
# Larger bodies are not searched for a key. Weblate sends 20 texts with its key; a Cyrillic letter takes six bytes.
MAX_KEY_BODY_BYTES = 128 << 10
# Content codings in HTTP's registry, without "x-" and identity; other values, such as utf-8, are mistakes.
CODINGS = frozenset(
    ["aes128gcm", "br", "compress", "dcb", "dcz", "deflate", "exi", "gzip", "pack200-gzip", "zstd"]
)
# A repeated header is a mistake, or an attempt to make a proxy see another request.
SINGLE_HEADERS = (
    "host",
    "origin",
    "sec-fetch-site",
    "content-type",
    "content-length",
    "authorization",
    "x-api-key",
)
MAX_BUCKETS = 10_000  # maximum for a rate limit; the least recently used bucket is dropped
FRAMEWORK_ERRORS = {
    "Not Found": "Not found. See /docs.",
    "Method Not Allowed": "Method not allowed. See /docs.",
}
log = logging.getLogger("transduce.wings.serving")


def answer(error: BaseException, protocol: Protocol = LIBRETRANSLATE) -> JSONResponse:
    """Convert an exception to a JSON response with an HTTP status and an error message in a protocol's form."""
    headers = None
    match error:
        case UnusableModelError():
            log.error("%s", error)
            status = 503
            sentence = "The model can't be loaded. The server has logged the reason."
        case UserError():
            status = 400
            sentence = str(error)
        case HTTPException():
            status = error.status_code
            sentence = error.detail
            headers = error.headers
        case ClientDisconnect():
            status = 499
            sentence = "Client disconnected."
        case asyncio.CancelledError():  # limits.drain_seconds have passed
            status = 503
            headers = {"Retry-After": "5"}
            sentence = "The server is shutting down; send the request again later."
        case _:
            status = 500
            sentence = "Internal server error. The server has logged the error."
    sentence = FRAMEWORK_ERRORS.get(sentence, sentence)
    return JSONResponse(protocol.error(status, sentence, error), status, headers)


@dataclass
class RateLimit:
    """A token-bucket rate limit of `per_minute` requests for each client."""

    per_minute: int
    clock: Callable[[], float] = time.monotonic
    # Client -> the tokens left, and the time when they were counted.
    buckets: OrderedDict[str, tuple[float, float]] = field(default_factory=OrderedDict)

    def wait(self, client: str) -> int:
        """Count a request of `client`. Returns 0 if the request is allowed, otherwise the seconds to wait."""
        now = self.clock()
        tokens, then = self.buckets.pop(client, (float(self.per_minute), now))
        tokens = min(self.per_minute, tokens + (now - then) * self.per_minute / 60)
        allowed = tokens >= 1
        self.buckets[client] = (tokens - 1 if allowed else tokens, now)
        if len(self.buckets) > MAX_BUCKETS:
            self.buckets.popitem(last=False)
        return 0 if allowed else max(1, math.ceil((1 - tokens) * 60 / self.per_minute))


@dataclass
class AccessControl:
    """ASGI middleware that checks requests before they reach the application."""

    app: ASGIApp
    service: Service
    keys: Keys
    open_paths: set[str]  # paths that need no key and have no rate limit
    local: bool  # only requests to localhost succeed, or those that a proxy has forwarded
    proxied: bool  # whether a proxy forwards the requests
    origins: Sequence[str] = ()  # other sites whose web pages may send requests, or "*" for all
    protocols: Sequence[Protocol] = ()  # beside LibreTranslate's

    def __post_init__(self) -> None:
        self.limits = self.service.limits
        self.uploads = asyncio.Semaphore(self.limits.uploads)
        self.by_key = RateLimit(self.limits.per_key)
        self.by_address = RateLimit(self.limits.per_address)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        start = time.monotonic()
        path = scope["path"]
        protocol = protocol_of(path, self.protocols)
        status = 0

        async def watched(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [
                    *message.get("headers", []),
                    (b"x-content-type-options", b"nosniff"),
                ]
            await send(message)

        try:
            checked = await self._admit(scope, receive, protocol)
            upload = (
                self._upload()
                if path in protocol.uploads and scope["method"] == "POST"
                else contextlib.nullcontext()
            )
            if scope["method"] == "HEAD":  # uvicorn sends no body
                scope = {**scope, "method": "GET"}
            async with upload:
                await self.app(scope, checked, watched)
        except (Exception, asyncio.CancelledError) as error:
            if not isinstance(error, HTTPException | asyncio.CancelledError):
                log_error(error)
            if not status:
                await answer(error, protocol)(scope, receive, watched)
        finally:
            route = (
                path
                if path in (*protocol.queued, *self.open_paths, "/detect", "/languages")
                else "other"
            )
            self.service.metrics.answers.labels(route, status or 500).inc()
            self.service.metrics.seconds.labels(route).observe(time.monotonic() - start)

    async def _admit(self, scope: Scope, receive: Receive, protocol: Protocol) -> Receive:
        """Check a request and return a function that receives its body. Raises HTTPException to refuse the request."""
        headers = Headers(scope=scope)
        path = scope["path"]
        post = scope["method"] == "POST"
        if (
            len(headers) > MAX_HEADERS
            or sum(map(len, chain.from_iterable(headers.raw))) > MAX_BYTES_OF_HEADERS
        ):
            raise HTTPException(
                431,
                f"The request has over {MAX_HEADERS} headers or {MAX_BYTES_OF_HEADERS:,} bytes of them.",
            )
        host = _requested_host(scope, headers)
        forwarded = self.proxied and "x-forwarded-for" in headers  # the proxy sets this header
        if self.local and not forwarded and not is_local(host):
            raise HTTPException(
                421, "This server accepts only requests to localhost. Use localhost in the URL."
            )
        method = scope["method"]
        is_work = method not in ("GET", "HEAD", "OPTIONS")
        is_work |= path in protocol.queued and method != "OPTIONS"
        if self.local and is_work and self._is_foreign(headers, forwarded):
            advice = (
                "If a proxy forwards the requests, start the server with the address of the proxy."
            )
            raise HTTPException(403, f"This server refuses pages of other websites. {advice}")
        codings = ",".join(headers.getlist("content-encoding")).lower().split(",")
        if not CODINGS.isdisjoint(coding.strip().removeprefix("x-") for coding in codings):
            raise HTTPException(
                415, "Compressed bodies are not supported. Send the body without Content-Encoding."
            )
        if "content-length" in headers and "transfer-encoding" in headers:  # request smuggling
            raise HTTPException(
                400, "Send Content-Length or Transfer-Encoding, not both.", {"Connection": "close"}
            )
        limit = self.limits.document if path in protocol.uploads else self.limits.body
        length = int(headers.get("content-length", "0"))
        receive = _limited(receive, limit)
        if path not in self.open_paths:
            receive = await self._identify(scope, headers, receive, length, protocol)
        if length > limit:
            raise _too_long(limit)
        if path in protocol.queued and post:
            self.service.batcher.check_place()
        return receive

    def _is_foreign(self, headers: Headers, forwarded: bool) -> bool:
        """Whether a page of another website has sent a request, and its origin may not send requests."""
        if {"*", headers.get("origin")} & {*self.origins}:
            return False
        is_cross_site = headers.get("sec-fetch-site", "").lower() == "cross-site"
        return is_cross_site or (not forwarded and _has_foreign_origin(headers))

    def _upload(self) -> asyncio.Semaphore:
        """The semaphore that counts uploads. Raises HTTPException if too many uploads are in progress."""
        if self.uploads.locked():
            sentence = "The server is busy with other documents. Try again later."
            raise HTTPException(503, sentence, {"Retry-After": "5"})
        return self.uploads

    async def _identify(
        self,
        scope: Scope,
        headers: Headers,
        receive: Receive,
        length: int,
        protocol: Protocol,
    ) -> Receive:
        """Check a request's rate limits and API key. Raises HTTPException to refuse the request."""
        address = (scope.get("client") or ("",))[0]
        if address and not _is_loopback(address):
            _check_rate(self.by_address, _network(address))
        if not self.keys or scope["path"].startswith(DOWNLOADS):
            return receive
        key: object = _key(headers, scope["query_string"], protocol)
        if not key and length <= MAX_KEY_BODY_BYTES:
            body, receive = await _peek(receive)
            with contextlib.suppress(UserError):
                fields = parse(body, headers.get("content-type", ""), b"", self.limits.depth)
                key = fields.get(protocol.key_field)
        if not key and scope["path"] in KEYLESS:
            return receive
        if not key or not isinstance(key, str):
            raise HTTPException(
                protocol.status_without_key,
                f"This server requires an API key. Send it as a header: Authorization: {protocol.scheme} KEY.",
                {"WWW-Authenticate": protocol.scheme},
            )
        owner = self.keys.owner(key)
        if owner is None:
            raise HTTPException(protocol.status_of_unknown_key, "Unknown API key.")
        _check_rate(self.by_key, owner)
        scope.setdefault("state", {})["owner"] = owner
        return receive


def log_error(error: BaseException) -> None:
    """Log an error without its message, because the message may hold a user's text."""
    error = error.__cause__ if isinstance(error.__cause__, Exception) else error
    frame = traceback.extract_tb(error.__traceback__)[-1]
    log.error(
        "%s in %s, line %s", type(error).__name__, PurePath(frame.filename).name, frame.lineno
    )


def _check_rate(limit: RateLimit, client: str) -> None:
    if seconds := limit.wait(client):
        sentence = f"Too many requests. Try again in {count(seconds, 'second')}."
        raise HTTPException(429, sentence, {"Retry-After": str(seconds)})


def _key(headers: Headers, query: bytes, protocol: Protocol) -> str:
    kind, _, key = headers.get("authorization", "").partition(" ")
    if kind.lower() in ("bearer", protocol.scheme.lower()) and key.strip():
        return key.strip()
    if "x-api-key" in headers:
        return headers["x-api-key"]
    return next(iter(parse_qs(query.decode("latin-1")).get(protocol.key_field, [])), "")


def _limited(receive: Receive, limit: int) -> Receive:
    """Wrap `receive` so that it raises HTTPException when the body exceeds `limit` bytes."""
    seen = 0

    async def counted() -> Message:
        nonlocal seen
        message = await receive()
        seen += len(message.get("body", b""))
        if seen > limit:
            raise _too_long(limit)
        return message

    return counted


def _too_long(limit: int) -> HTTPException:
    return HTTPException(413, f"The request body exceeds {limit:,} bytes.")


async def _peek(receive: Receive) -> tuple[bytes, Receive]:
    """Read a body. Returns the body (b"" above MAX_KEY_BODY_BYTES) and a function that receives the body again."""
    read: list[Message] = []
    body = b""
    more = True
    while more and len(body) <= MAX_KEY_BODY_BYTES:
        read.append(await receive())
        body += read[-1].get("body", b"")
        more = read[-1].get("more_body", False)

    async def again() -> Message:
        return read.pop(0) if read else await receive()

    return (body if len(body) <= MAX_KEY_BODY_BYTES else b""), again


def _is_loopback(address: str) -> bool:
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False


def _requested_host(scope: Scope, headers: Headers) -> str:
    """The host that a request names, or "". Raises HTTPException if it is malformed or ambiguous."""
    for name in SINGLE_HEADERS:
        if len(headers.getlist(name)) > 1:
            raise HTTPException(400, f"The request has several headers {name.title()}. Send one.")
    authority = headers.get("host", "")
    host = host_of(authority) if authority else ""
    if host is None:
        raise HTTPException(400, "The header Host is neither a name nor an address with a port.")
    absolute = ABSOLUTE_FORM.match(scope.get("raw_path", b"").decode("latin-1"))
    if absolute and host_of(absolute[1]) != host:
        raise HTTPException(400, "The URL and the header Host name different hosts.")
    return host


def _has_foreign_origin(headers: Headers) -> bool:
    """Whether a web page that is not on this machine has sent a request."""
    if "origin" not in headers:
        return False
    origin = ORIGIN.fullmatch(headers["origin"])
    return origin is None or not is_local(host_of(origin[1]) or "")


def is_local(host: str) -> bool:
    """Whether a host is localhost or a loopback address."""
    return host == "localhost" or _is_loopback(host)


def _network(address: str) -> str:
    """Convert an IPv6 address to its /64 network, and an IPv4-mapped address to IPv4."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:  # X-Forwarded-For holds any text
        return address
    if isinstance(parsed, ipaddress.IPv4Address):
        return address
    return str(parsed.ipv4_mapped or ipaddress.IPv6Network((int(parsed), 64), strict=False))
