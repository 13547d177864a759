"""Measures the time of the phases of a program, such as "forward" and "backward".

    with profiling(["forward", "backward"]) as profile:
        ...                                  # in a function called here:  with phase("forward"): …
    profile.table()

The time of a phase excludes the phases nested in it. Only phases named in the call of `profiling` are measured.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


class Profile:
    """The seconds spent in each phase, and counters such as the number of tokens."""

    def __init__(
        self, phases: Sequence[str], synchronize: Callable[[], None] = lambda: None
    ) -> None:
        """`synchronize` waits until the device has finished its work."""
        self.seconds = dict.fromkeys(phases, 0.0)
        self.counts: Counter[str] = Counter()
        self.unaccounted = 0.0
        self._synchronize = synchronize
        self.open: list[str] = []  # phases, the innermost last
        self._since = time.perf_counter()

    @property
    def total(self) -> float:
        """The total time in seconds, inside and outside the phases."""
        return sum(self.seconds.values()) + self.unaccounted

    def charge(self) -> None:
        """Add the time since the last call of this method to the innermost open phase."""
        self._synchronize()
        now = time.perf_counter()
        if self.open:
            self.seconds[self.open[-1]] += now - self._since
        else:
            self.unaccounted += now - self._since
        self._since = now

    def divide(self, parts: Sequence["Profile"]) -> None:
        """Divide the time since the last charge among the phases of `parts`, profiles of threads."""
        elapsed = time.perf_counter() - self._since
        measured = sum(part.total for part in parts)
        for part in parts:
            self.counts.update(part.counts)
            for name, seconds in part.seconds.items():
                share = elapsed * seconds / measured
                self.seconds[name] += share
                self._since += share  # the rest belongs to the innermost open phase

    def table(self) -> list[str]:
        """A table with one line for each phase that took time, one for unaccounted time and one for the total."""
        rows = {name: seconds for name, seconds in self.seconds.items() if seconds}
        rows |= {"unaccounted": self.unaccounted, "total": self.total}
        return [
            f"{name:<12} {seconds:>9.2f} s {seconds / self.total:>7.1%}"
            for name, seconds in rows.items()
        ]


_active: ContextVar[Profile | None] = ContextVar("profile", default=None)  # a new thread has none


@contextmanager
def profiling(
    phases: Sequence[str], synchronize: Callable[[], None] = lambda: None
) -> Iterator[Profile]:
    """Measure the time of the phases named in `phases` during the block, in this thread only."""
    profile = Profile(phases, synchronize)
    token = _active.set(profile)
    try:
        yield profile
    finally:
        profile.charge()
        _active.reset(token)


@contextmanager
def phase(name: str, *, whole: bool = False) -> Iterator[None]:
    """Add the time of the block to the phase `name`. If `whole` is true, phases and counts inside it are ignored."""
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


def map_in_threads(
    pool: Executor, function: Callable[[Item], Result], items: Iterable[Item]
) -> list[Result]:
    """Call `function` with each item in a pool of threads.

    The active profile divides the time that passes among its phases, in proportion to the time that the threads spend.
    """
    profile = _active.get()
    if profile is None:
        return list(pool.map(function, items))

    def measured(item: Item) -> tuple[Result, Profile]:
        with profiling(list(profile.seconds)) as part:
            result = function(item)
        return result, part

    profile.charge()
    measurements = list(pool.map(measured, items))
    profile.divide([part for _, part in measurements])
    return [result for result, _ in measurements]


def count(what: str, number: int) -> None:
    """Add `number` to the counter `what` of the active profile, if there is one."""
    if profile := _active.get():
        profile.counts[what] += number
