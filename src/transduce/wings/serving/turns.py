"""Runs long computations one by one in a thread, so that a short document need not wait for several long ones."""

import asyncio
import heapq
import itertools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

# After waiting for a second, a text goes before new texts with up to this many characters fewer. With ten times as
# many, several long documents could overtake a short document, which needs turns for reading, splitting and writing.
CHARACTERS_PER_SECOND = 10_000


class Turns:
    """A thread that runs one computation at a time to limit memory, the shortest waiting one first."""

    def __init__(self, name: str):
        self._threads = ThreadPoolExecutor(1, name)
        self._waiting: list[tuple[float, int, Callable[[], Any], asyncio.Future[Any]]] = []
        self._numbers = itertools.count()  # break ties, since functions can't be compared
        self._is_busy = False

    def run(self, characters: int, compute: Callable[[], Any]) -> asyncio.Future[Any]:
        """Call `compute`, which reads a number of characters, and return its future result."""
        loop = asyncio.get_running_loop()
        done = loop.create_future()
        rank = loop.time() + characters / CHARACTERS_PER_SECOND
        heapq.heappush(self._waiting, (rank, next(self._numbers), compute, done))
        if not self._is_busy:
            self._next()
        return done

    def _next(self) -> None:
        self._is_busy = False
        while self._waiting and not self._is_busy:
            _, _, compute, done = heapq.heappop(self._waiting)
            if not done.cancelled():  # the client may have disconnected
                self._is_busy = True
                computed = asyncio.get_running_loop().run_in_executor(self._threads, compute)
                computed.add_done_callback(partial(self._deliver, done))

    def _deliver(self, done: asyncio.Future[Any], computed: asyncio.Future[Any]) -> None:
        error = computed.exception()
        if not done.cancelled():
            if error:
                done.set_exception(error)
            else:
                done.set_result(computed.result())
        self._next()
