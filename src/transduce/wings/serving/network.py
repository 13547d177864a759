"""Runs uvicorn as the HTTP server, and limits how long the server waits for the body of a request."""

import asyncio
import contextlib
import gc
import logging
import select
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import h11
import uvicorn
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from transduce.system.console import count, log
from transduce.wings.serving.access import MAX_BYTES_OF_HEADERS
from transduce.wings.serving.addresses import ABSOLUTE_FORM, as_forwarded
from transduce.wings.serving.limits import Limits

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

OTHER_FILES = 100  # open files that are not connections: libraries, uploads
ACCEPT_SECONDS, READ_SECONDS = 1.0, 0.2  # times after SIGTERM
CONNECTIONS_PER_LIMIT = 3  # serve N connections, and answer requests on twice as many with 503
MAX_C_INT = 2**31 - 1
CLOSE_HEADER = (b"connection", b"close")


def run(app: ASGIApp, listening: socket.socket, limits: Limits, proxies: list[str]) -> None:
    """Serve requests until SIGINT, SIGTERM or SIGHUP. Accepted requests are answered before the function returns."""
    allowed = _connections(limits.connections)
    if allowed < limits.connections:
        log(f"Only {allowed:,} connections are possible, since `ulimit -n` limits open files.")
    limits = replace(limits, connections=allowed)
    # Ends connections whose client does not read; accepted connections inherit the option.
    if sys.platform == "linux":
        milliseconds = min(1000 * limits.answer_seconds, MAX_C_INT)
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, milliseconds)
    gc.collect()
    gc.freeze()  # garbage collection in models and libraries would pause the server for 0.1 seconds
    # Other threads can't handle signals.
    is_main = threading.current_thread() is threading.main_thread()
    if is_main:
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        if sys.platform != "win32" and signal.getsignal(signal.SIGHUP) is signal.SIG_DFL:
            signal.signal(signal.SIGHUP, lambda *_: signal.raise_signal(signal.SIGTERM))
    with contextlib.suppress(KeyboardInterrupt):  # uvicorn raises the signals again on exit
        server(app, limits, proxies).run(sockets=[listening])


def _connections(wanted: int) -> int:
    """Raise the limit on open files, and return the possible number of connections (at most `wanted`)."""
    if resource is None:
        return wanted
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return wanted
    needed = CONNECTIONS_PER_LIMIT * wanted + OTHER_FILES
    files = max(soft, needed if hard == resource.RLIM_INFINITY else min(needed, hard))
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, hard))
    return max(1, min(wanted, (files - OTHER_FILES) // CONNECTIONS_PER_LIMIT))


def server(app: ASGIApp, limits: Limits, proxies: Sequence[str]) -> uvicorn.Server:
    """Return a uvicorn server. Headers of proxies are removed, unless one of `proxies` has sent them."""
    # It would log every malformed form.
    logging.getLogger("python_multipart").setLevel(logging.CRITICAL)
    bodies = _Bodies(app, limits.body_seconds, lambda: made.should_exit)
    config = uvicorn.Config(
        _only_from(proxies, bodies),
        http="h11",
        ws="none",
        access_log=False,
        log_level="error",  # with warnings, clients could fill the disk
        server_header=False,
        backlog=limits.connections,
        # uvicorn refuses the connection that reaches the limit.
        limit_concurrency=limits.connections + 1,
        h11_max_incomplete_event_size=MAX_BYTES_OF_HEADERS,
        timeout_graceful_shutdown=limits.drain_seconds,
        proxy_headers=False,  # `_only_from` reads them
    )
    made = _Server(config)
    return made


def _only_from(proxies: Sequence[str], app: ASGIApp) -> ASGIApp:
    """The application, with forwarding headers of `proxies` only.

    If other senders could set these headers, any web page could.
    """
    behind: Any = ProxyHeadersMiddleware(app, [*proxies])  # type: ignore[arg-type]

    async def checked(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            scope = as_forwarded(scope, behind.trusted_hosts)
            if absolute := ABSOLUTE_FORM.match(scope["raw_path"].decode("latin-1")):
                scope["path"] = scope["path"][absolute.end() :] or "/"
        await behind(scope, receive, send)

    return checked


@dataclass
class _Bodies:
    """ASGI middleware that limits the time to receive a body.

    If an answer comes before the end of the body, the middleware discards the rest of the body before it ends the
    answer. Otherwise a client that sends everything before it reads may lose the answer (as nginx's lingering_close).
    """

    app: ASGIApp
    seconds: int
    # If it returns True, answers tell the client that the connection ends.
    is_closing: Callable[[], bool]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        is_complete = "content-length" not in headers and "transfer-encoding" not in headers
        deadline = asyncio.get_running_loop().time() + self.seconds

        async def in_time() -> Message:
            nonlocal is_complete
            if is_complete:  # the next message says that the client has disconnected
                return await receive()
            try:
                async with asyncio.timeout_at(deadline):
                    message = await receive()
            except TimeoutError:
                sentence = f"The request did not arrive within {count(self.seconds, 'second')}. Send a shorter one."
                raise HTTPException(408, sentence, {"Connection": "close"}) from None
            is_complete = not message.get("more_body", False)
            return message

        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start" and self.is_closing():
                message["headers"] = [*message.get("headers", []), CLOSE_HEADER]
            is_last = message["type"] == "http.response.body" and not message.get(
                "more_body", False
            )
            if not is_last or is_complete:
                await send(message)
                return
            await send({**message, "more_body": True})
            # The body is late, or the server ends.
            with contextlib.suppress(HTTPException, asyncio.CancelledError):
                while not is_complete:
                    await in_time()
            await send({"type": "http.response.body"})

        await self.app(scope, in_time, answer)


class _Server(uvicorn.Server):
    """A server that answers all requests that have arrived before SIGINT or SIGTERM."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        asyncio.get_running_loop().set_exception_handler(_log_unless_client)
        await super().startup(sockets)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept the waiting connections and read their requests. Then close the connections without a request."""
        end = time.monotonic() + ACCEPT_SECONDS
        while select.select(sockets or [], [], [], 0)[0] and time.monotonic() < end:
            await asyncio.sleep(0.01)
        for each in self.servers:
            each.close()
        await asyncio.sleep(READ_SECONDS)
        await super().shutdown(sockets)


def _log_unless_client(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log an error of the event loop, but not a client's malformed body whose answer has begun."""
    if not isinstance(context.get("exception"), h11.ProtocolError):
        loop.default_exception_handler(context)
