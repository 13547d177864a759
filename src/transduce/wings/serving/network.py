"""HTTP by uvicorn, with deadlines for slow clients and an end in which everything accepted is answered."""

import asyncio
import contextlib
import gc
import json
import logging
import signal
import socket
from collections.abc import Generator
from dataclasses import replace
from typing import Any, ClassVar

import h11
import uvicorn
from starlette.responses import JSONResponse
from uvicorn.protocols.http.h11_impl import H11Protocol

from transduce.system.journal import say
from transduce.wings.serving.limits import Limits

try:
    import resource
except ImportError:  # Windows, which has no limit of this kind
    resource = None  # type: ignore[assignment]

FILES = 100  # open ones beside connections: libraries, uploads
EACH = 3  # allowed connections, as many that are told that they are too many, and as many that are not even told


def run(app: Any, listening: socket.socket, limits: Limits, proxies: list[str]) -> None:
    """Serve until SIGINT or SIGTERM; then nothing new is accepted, and what was accepted is answered."""
    allowed = _connections(limits.connections)
    if allowed < limits.connections:
        say(f"Only {allowed:,} connections are possible at the same time: `ulimit -n` allows no more files to be open.")
    limits = replace(limits, connections=allowed)
    gc.collect()
    gc.freeze()  # models and libraries stay: to look through them for garbage stops everything for 0.1 seconds
    _Server(config(app, limits, proxies)).run(sockets=[listening])


def _connections(wanted: int) -> int:
    """As many as are wanted, or as the system lets us have open; without a file to open, nobody could be refused."""
    if resource is None:
        return wanted
    now, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if now == resource.RLIM_INFINITY:
        return wanted
    needed = EACH * wanted + FILES
    files = max(now, needed if most == resource.RLIM_INFINITY else min(needed, most))
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, most))
    return max(1, min(wanted, (files - FILES) // EACH))


def config(app: Any, limits: Limits, proxies: list[str]) -> uvicorn.Config:
    """Uvicorn's own; nothing that a user sent is logged. proxies: whose X-Forwarded-For is believed."""
    logging.getLogger("python_multipart").setLevel(logging.CRITICAL)  # it says of every broken form where it breaks

    class Protocol(_Deadlines):
        seconds: ClassVar[dict[Any, int]] = {h11.IDLE: limits.header_seconds, h11.SEND_BODY: limits.body_seconds}
        answer_seconds: ClassVar[int] = limits.answer_seconds
        connections_allowed: ClassVar[int] = limits.connections

    return uvicorn.Config(
        app,
        http=Protocol,
        ws="none",
        access_log=False,
        log_level="error",  # what anybody can send is no reason to fill the disk
        server_header=False,
        backlog=limits.connections,
        h11_max_incomplete_event_size=16384,
        timeout_graceful_shutdown=limits.drain_seconds,
        proxy_headers=bool(proxies),
        forwarded_allow_ips=proxies,
    )


class _Deadlines(H11Protocol):
    """A connection that is closed when a request's headers, or its body, take too long to come, or its answer to go."""

    seconds: ClassVar[dict[Any, int]]  # by what the client is doing
    answer_seconds: ClassVar[int]
    connections_allowed: ClassVar[int]
    _doing: Any = None
    _timer: asyncio.TimerHandle | None = None
    _sending: asyncio.TimerHandle | None = None  # while there is something that the client doesn't take

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        transport.set_write_buffer_limits(0)  # we are told of all that the client doesn't take
        if len(self.connections) > self.connections_allowed:
            self.app = _full
        if len(self.connections) > 2 * self.connections_allowed:  # no place even for being told so
            transport.abort()
        self._watch()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._watch()

    def pause_writing(self) -> None:
        super().pause_writing()
        if self._sending is None:
            self._sending = self.loop.call_later(self.answer_seconds, self.transport.abort)

    def resume_writing(self) -> None:
        if self._sending is not None:
            self._sending.cancel()
            self._sending = None
        super().resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop()
        super().connection_lost(exc)  # which resumes writing

    def send_400_response(self, msg: str) -> None:
        """For what is no HTTP; also where an answer has begun, which is then not ended."""
        if self.cycle is None or self.cycle.response_complete or not self.cycle.response_started:
            body = json.dumps({"error": msg}).encode()
            head = f"HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
            self.transport.write(f"{head}Connection: close\r\n\r\n".encode() + body)
        self.transport.close()

    def _watch(self) -> None:
        """Begin to count when the client begins with something else."""
        doing = self.conn.their_state
        if doing is not self._doing:
            self._stop()
            self._doing = doing
            if doing in self.seconds:
                self._timer = self.loop.call_later(self.seconds[doing], self.transport.close)

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


async def _full(scope: Any, receive: Any, send: Any) -> None:
    """Instead of the application where too many are connected."""
    headers = {"Retry-After": "1", "Connection": "close"}
    await JSONResponse({"error": "Too many are connected; try again later."}, 503, headers)(scope, receive, send)


class _Server(uvicorn.Server):
    """Ends with exit status 0 when it is told to end."""

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        signals = (signal.SIGINT, signal.SIGTERM)
        before = {each: signal.signal(each, self.handle_exit) for each in signals}
        try:
            yield
        finally:
            for each, handler in before.items():
                signal.signal(each, handler)
