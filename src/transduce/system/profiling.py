"""A time profile: divides the elapsed time into phases, such as "forward" and "backward".

    with profiling(["forward", "backward"]) as profile:
        ...                                  # in a function called here:  with phase("forward"): …
    profile.table()

Without an active profile, `phase` takes almost no time. The time of a nested phase is not charged to the outer phase,
unless `profiling` was called without the name of the nested phase.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar


class Profile:
    """The seconds spent in each phase, and counts, such as the number of tokens."""

    def __init__(self, phases: Sequence[str], synchronize: Callable[[], None] = lambda: None) -> None:
        """`synchronize` waits for the device to finish, so that the device's time is charged to the right phase."""
        self.seconds = dict.fromkeys(phases, 0.0)
        self.counts: Counter[str] = Counter()
        self.unaccounted = 0.0
        self._synchronize = synchronize
        self.open: list[str] = []  # phases, the innermost last
        self._since = time.perf_counter()

    @property
    def total(self) -> float:
        """The seconds spent in all phases, plus the seconds outside any phase."""
        return sum(self.seconds.values()) + self.unaccounted

    def charge(self) -> None:
        """Add the time since the last call of `charge` to the seconds of the innermost phase."""
        self._synchronize()
        now = time.perf_counter()
        if self.open:
            self.seconds[self.open[-1]] += now - self._since
        else:
            self.unaccounted += now - self._since
        self._since = now

    def table(self) -> list[str]:
        """Lines of text: one for each phase that took time, then the unaccounted time and the total."""
        rows = {name: seconds for name, seconds in self.seconds.items() if seconds}
        rows |= {"unaccounted": self.unaccounted, "total": self.total}
        return [f"{name:<12} {seconds:>9.2f} s {seconds / self.total:>7.1%}" for name, seconds in rows.items()]


_active: ContextVar[Profile | None] = ContextVar("profile", default=None)  # a new thread has none


@contextmanager
def profiling(phases: Sequence[str], synchronize: Callable[[], None] = lambda: None) -> Iterator[Profile]:
    """Measure the time of the given phases during the block, in this thread only."""
    profile = Profile(phases, synchronize)
    token = _active.set(profile)
    try:
        yield profile
    finally:
        profile.charge()
        _active.reset(token)


@contextmanager
def phase(name: str, *, whole: bool = False) -> Iterator[None]:
    """Charge the time of a block or function to a phase; with `whole`, `phase` and `count` do nothing inside it."""
    profile = _active.get()
    if profile is None or name not in profile.seconds:
        yield
        return
    profile.charge()
    profile.open.append(name)
    token = _active.set(None if whole else profile)
    try:
        yield
    finally:
        _active.reset(token)
        profile.charge()
        profile.open.pop()


def is_profiled() -> bool:
    """Whether this thread is profiled; if so, callers start no further threads, since these would not be measured."""
    return _active.get() is not None


def count(what: str, number: int) -> None:
    """Add a number to one of the profile's counts, if this thread is profiled."""
    if profile := _active.get():
        profile.counts[what] += number
