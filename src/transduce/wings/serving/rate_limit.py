"""How often somebody may come: a bucket of permissions for each, which fills up evenly."""

import math
import time
from collections import OrderedDict
from collections.abc import Callable

MOST = 10_000  # buckets; the ones unused longest are forgotten


class Rates:
    """So many requests a minute for everybody, and as many at once after a minute's rest."""

    def __init__(self, per_minute: int, clock: Callable[[], float] = time.monotonic):
        self._most, self._clock = per_minute, clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()  # permissions, and when there were so many

    def wait(self, who: str) -> int:
        """Take a permission: 0, or the seconds after which there is one."""
        now = self._clock()
        left, then = self._buckets.pop(who, (float(self._most), now))
        left = min(self._most, left + (now - then) * self._most / 60)
        allowed = left >= 1
        self._buckets[who] = (left - allowed, now)
        if len(self._buckets) > MOST:
            self._buckets.popitem(last=False)
        return 0 if allowed else max(1, math.ceil((1 - left) * 60 / self._most))
