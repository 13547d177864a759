"""Runs uvicorn as the HTTP server, with time limits for slow clients."""

import asyncio
import contextlib
import gc
import logging
import re
import select
import signal
import socket
import struct
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from types import FrameType
from typing import Any, ClassVar

import h11
import uvicorn
from h11._receivebuffer import ReceiveBuffer
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware
from uvicorn.protocols.http.flow_control import CLOSE_HEADER
from uvicorn.protocols.http.h11_impl import STATUS_PHRASES, H11Protocol

from transduce.system.console import log
from transduce.wings.serving.limits import Limits

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

OTHER_FILES = 100  # open files that are not connections: libraries, uploads
ACCEPT_SECONDS, READ_SECONDS = 1.0, 0.2  # after SIGTERM
HEADERS_END = re.compile(rb"\A\r\n|\r\n\r\n|\n[ \t]|\n(?<!\r\n)")  # or a line that is continued or ends in a bare LF
CONNECTIONS_PER_LIMIT = 3  # serve N connections, read a request of the next N to answer 503, close the rest
ABSOLUTE_FORM = re.compile(r"\Ahttps?://[^/]*", re.IGNORECASE)  # of a request target (RFC 9112)
LINGER_SECONDS = 5.0  # before a connection is closed while the client sends
TOO_MANY = JSONResponse({"error": "Too many connections. Try later."}, 503, {"Retry-After": "1", "Connection": "close"})


def run(app: Any, listening: socket.socket, limits: Limits, proxies: list[str]) -> None:
    """Serve requests until SIGINT, SIGTERM or SIGHUP. Accepted requests are answered before the function returns."""
    allowed = _connections(limits.connections)
    if allowed < limits.connections:
        log(f"Only {allowed:,} connections are possible, since `ulimit -n` limits open files.")
    limits = replace(limits, connections=allowed)
    gc.collect()
    gc.freeze()  # garbage collection in models and libraries would pause the server for 0.1 seconds
    is_main = threading.current_thread() is threading.main_thread()  # others can't handle signals
    if sys.platform != "win32" and is_main and signal.getsignal(signal.SIGHUP) is signal.SIG_DFL:
        signal.signal(signal.SIGHUP, lambda *_: signal.raise_signal(signal.SIGTERM))
    _Server(config(app, limits, proxies)).run(sockets=[listening])


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


def config(app: Any, limits: Limits, proxies: list[str]) -> uvicorn.Config:
    """Return uvicorn's configuration. X-Forwarded-* headers are removed, unless one of `proxies` has sent them."""
    logging.getLogger("python_multipart").setLevel(logging.CRITICAL)  # it logs every malformed form
    return uvicorn.Config(
        _only_from(proxies, app),
        http=type("Protocol", (_Deadlines,), {"limits": limits}),
        ws="none",
        access_log=False,
        log_level="error",  # with warnings, clients could fill the disk
        server_header=False,
        backlog=limits.connections,
        h11_max_incomplete_event_size=16384,
        timeout_graceful_shutdown=limits.drain_seconds,
        proxy_headers=False,  # `_only_from` reads them
    )


def _only_from(proxies: Sequence[str], app: ASGIApp) -> ASGIApp:
    """The application, with X-Forwarded-* headers from `proxies` only. Elsewhere, any web page could set them."""
    behind: Any = ProxyHeadersMiddleware(app, [*proxies])  # type: ignore[arg-type]

    async def checked(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["client"][0] not in behind.trusted_hosts:
            headers = [(name, value) for name, value in scope["headers"] if not name.startswith(b"x-forwarded-")]
            scope = {**scope, "headers": headers}
        if scope["type"] == "http" and b"://" in scope["raw_path"][:8]:
            scope = {**scope, "path": ABSOLUTE_FORM.sub("", scope["path"]) or "/"}
        await behind(scope, receive, send)

    return checked


class _Headers(ReceiveBuffer):
    """Checks the lines of headers and trailers. A proxy may understand what h11 accepts in another way."""

    def maybe_extract_lines(self) -> list[bytearray] | None:
        found = HEADERS_END.search(self._data, max(0, self._multiple_lines_search - 1))
        if found and not found[0].endswith(b"\r\n"):
            raise h11.LocalProtocolError("each line of the headers must end in CR LF and can't be continued")
        return super().maybe_extract_lines()


class _Lingering:
    """A transport that discards what a client still sends, before it closes. Otherwise the client may lose the answer.

    The same as nginx's lingering_close.
    """

    def __init__(self, transport: asyncio.Transport, protocol: "_Deadlines"):
        self._transport, self._protocol = transport, protocol

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def is_closing(self) -> bool:
        return self._protocol.lingers or self._transport.is_closing()

    def close(self) -> None:
        answered = self._protocol.is_refused or (self._protocol.cycle and self._protocol.cycle.response_complete)
        if self.is_closing() or not answered or self._protocol.conn.their_state is not h11.SEND_BODY:
            self._transport.close()
            return
        self._protocol.lingers = True
        self._protocol.flow.resume_reading()
        with contextlib.suppress(OSError):  # the client has gone
            self._transport.write_eof()
        self._protocol.loop.call_later(LINGER_SECONDS, self._transport.close)


class _Deadlines(H11Protocol):
    """A connection with time limits for receiving the headers and the body, and for sending the response."""

    limits: ClassVar[Limits]
    is_last: ClassVar[bool] = False  # true after SIGTERM: connections are closed after the current request
    lingers = False  # what arrives is discarded
    is_refused = False  # by an answer before the request has arrived
    _client_state: Any = None
    _timer: asyncio.TimerHandle | None = None
    _sending: asyncio.TimerHandle | None = None  # runs while the client does not read

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(_Lingering(transport, self))  # type: ignore[arg-type]
        self.conn._receive_buffer = _Headers()
        transport.set_write_buffer_limits(0)  # pause_writing is called as soon as the client does not read
        if len(self.connections) > self.limits.connections:
            self.app = TOO_MANY
        if len(self.connections) > 2 * self.limits.connections:  # too many to read their requests
            self._refuse(TOO_MANY)
        self._watch()

    def data_received(self, data: bytes) -> None:
        if self.lingers:
            return
        super().data_received(data)
        if self.is_last and self.cycle:  # uvicorn then closes the connection after the response, and says so in it
            self.cycle.scope["headers"] = [*self.cycle.scope["headers"], CLOSE_HEADER]
        self._watch()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._watch()

    def pause_writing(self) -> None:
        super().pause_writing()
        if self._sending is None:
            self._sending = self.loop.call_later(self.limits.answer_seconds, self._reset)

    def resume_writing(self) -> None:
        if self._sending is not None:
            self._sending.cancel()
            self._sending = None
        super().resume_writing()

    def _reset(self) -> None:
        """Close the connection, without megabytes of unread answers in the system's memory for minutes."""
        connection: socket.socket = self.transport.get_extra_info("socket")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop()
        super().connection_lost(exc)  # calls resume_writing

    def send_400_response(self, msg: str) -> None:
        """Answer a malformed request with status 400, unless a response has begun. Closes the connection."""
        if self.cycle is None or self.cycle.response_complete or not self.cycle.response_started:
            self._refuse(JSONResponse({"error": f"{msg[:-1]}: {sys.exc_info()[1]}."}, 400, {"Connection": "close"}))
        self.transport.close()

    def _refuse(self, response: JSONResponse) -> None:
        """Send a response without a request, and close the connection."""
        status = b"%d %s" % (response.status_code, STATUS_PHRASES[response.status_code])
        headers = b"".join(b"%s: %s\r\n" % header for header in response.raw_headers)
        self.transport.write(b"HTTP/1.1 %s\r\n%s\r\n%s" % (status, headers, response.body))
        self.is_refused = True
        self.transport.close()

    def _watch(self) -> None:
        """Set a new timeout when the client's HTTP state changes."""
        state = self.conn.their_state
        if state is not self._client_state:
            self._stop()
            self._client_state = state
            if state in (h11.IDLE, h11.SEND_BODY):
                seconds = self.limits.header_seconds if state is h11.IDLE else self.limits.body_seconds
                self._timer = self.loop.call_later(seconds, self._expire)

    def _expire(self) -> None:
        """Close the connection, with status 408 if a part of a request's body has arrived."""
        if self._client_state is h11.SEND_BODY and self.cycle and not self.cycle.response_started:
            error = f"The request did not arrive within {self.limits.body_seconds} seconds. Send a shorter one."
            self.cycle.disconnected = True  # else the application could answer, too
            self.cycle.message_event.set()
            self._refuse(JSONResponse({"error": error}, 408, {"Connection": "close"}))
        else:
            self.transport.close()

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class _Server(uvicorn.Server):
    """A server that answers all requests that have arrived before SIGINT or SIGTERM, and exits with status 0."""

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept the waiting connections and read their requests. Then close the connections that have none."""
        protocol: type[_Deadlines] = self.config.http_protocol_class  # type: ignore[assignment]
        protocol.is_last = True
        end = time.monotonic() + ACCEPT_SECONDS
        while select.select(sockets or [], [], [], 0)[0] and time.monotonic() < end:
            await asyncio.sleep(0.01)
        for server in self.servers:
            server.close()
        await asyncio.sleep(READ_SECONDS)
        await super().shutdown(sockets)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        super().handle_exit(sig, frame)
        self._captured_signals.clear()  # otherwise uvicorn raises them again on exit
