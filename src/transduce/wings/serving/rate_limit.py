"""Token-bucket rate limit per client."""

import math
import time
from collections import OrderedDict
from collections.abc import Callable

MAX_BUCKETS = 10_000  # the least recently used are dropped


class RateLimit:
    """A bucket per client that holds a minute's requests and refills evenly."""

    def __init__(self, per_minute: int, clock: Callable[[], float] = time.monotonic):
        self._size, self._clock = per_minute, clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()  # tokens left, and at what time

    def wait(self, client: str) -> int:
        """Take a token: 0, or the seconds until one is available."""
        now = self._clock()
        tokens, then = self._buckets.pop(client, (float(self._size), now))
        tokens = min(self._size, tokens + (now - then) * self._size / 60)
        allowed = tokens >= 1
        self._buckets[client] = (tokens - 1 if allowed else tokens, now)
        if len(self._buckets) > MAX_BUCKETS:
            self._buckets.popitem(last=False)
        return 0 if allowed else max(1, math.ceil((1 - tokens) * 60 / self._size))
