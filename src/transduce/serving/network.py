"""HTTP by uvicorn, with deadlines for slow clients and an end in which everything accepted is answered."""

import asyncio
import contextlib
import signal
import socket
from collections.abc import Generator
from typing import Any, ClassVar

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from transduce.serving.limits import Limits


def run(app: Any, listening: socket.socket, limits: Limits, proxies: list[str]) -> None:
    """Serve until SIGINT or SIGTERM; then nothing new is accepted, and what was accepted is answered."""
    _Server(config(app, limits, proxies)).run(sockets=[listening])


def config(app: Any, limits: Limits, proxies: list[str]) -> uvicorn.Config:
    """Uvicorn's own; nothing that a user sent is logged. proxies: whose X-Forwarded-For is believed."""

    class Protocol(_Deadlines):
        seconds: ClassVar[dict[Any, int]] = {h11.IDLE: limits.header_seconds, h11.SEND_BODY: limits.body_seconds}

    return uvicorn.Config(
        app,
        http=Protocol,
        ws="none",
        access_log=False,
        log_level="warning",
        server_header=False,
        limit_concurrency=limits.connections,
        backlog=limits.connections,
        h11_max_incomplete_event_size=16384,
        timeout_graceful_shutdown=limits.drain_seconds,
        proxy_headers=bool(proxies),
        forwarded_allow_ips=proxies,
    )


class _Deadlines(H11Protocol):
    """A connection that is closed when a request's headers, or its body, take too long to come."""

    seconds: ClassVar[dict[Any, int]]  # by what the client is doing
    _doing: Any = None
    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop()
        super().connection_lost(exc)

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
