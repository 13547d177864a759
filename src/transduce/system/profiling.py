"""Where the time goes: seconds by phase, which add up to the time between start and end.

    with profiling(["forward", "backward"]) as profile:
        ...                                  # somewhere below:  with phase("forward"): …
    profile.table()

Outside such a block a phase costs nothing. A phase inside another one is not counted twice; phases that were not asked
for belong to the one around them.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager


class Profile:
    """What a profile has seen: seconds of each phase, and how much of what was counted."""

    def __init__(self, phases: Sequence[str], synchronize: Callable[[], None] = lambda: None) -> None:
        """synchronize: waits for a device to finish what it was given, so that the time goes to the right phase."""
        self.seconds = dict.fromkeys(phases, 0.0)
        self.counts: Counter[str] = Counter()
        self.unaccounted = 0.0
        self._synchronize = synchronize
        self._open: list[str] = []
        self._since = time.perf_counter()

    @property
    def total(self) -> float:
        """Seconds in all."""
        return sum(self.seconds.values()) + self.unaccounted

    def enter(self, phase: str) -> None:
        """The phase begins."""
        self.charge()
        self._open.append(phase)

    def leave(self) -> None:
        """The phase that began last ends."""
        self.charge()
        self._open.pop()

    def charge(self) -> None:
        """The time that has passed goes to the innermost phase."""
        self._synchronize()
        now = time.perf_counter()
        if self._open:
            self.seconds[self._open[-1]] += now - self._since
        else:
            self.unaccounted += now - self._since
        self._since = now

    def table(self) -> list[str]:
        """A line for each phase that took time, the rest, and the sum."""
        rows = {name: seconds for name, seconds in self.seconds.items() if seconds}
        rows |= {"unaccounted": self.unaccounted, "in all": self.total}
        return [f"{name:<12} {seconds:>9.2f} s {seconds / self.total:>7.1%}" for name, seconds in rows.items()]


_active: Profile | None = None


@contextmanager
def profiling(phases: Sequence[str], synchronize: Callable[[], None] = lambda: None) -> Iterator[Profile]:
    """Measure the given phases inside the block."""
    global _active
    before, _active = _active, Profile(phases, synchronize)
    try:
        yield _active
    finally:
        _active.charge()
        _active = before


@contextmanager
def phase(name: str, *, whole: bool = False) -> Iterator[None]:
    """What happens inside the block, or in the function that this decorates, belongs to the phase.

    whole: with the phases inside it, and nothing is counted there.
    """
    global _active
    profile = _active
    if profile is None or name not in profile.seconds:
        yield
        return
    profile.enter(name)
    _active = None if whole else profile
    try:
        yield
    finally:
        _active = profile
        profile.leave()


def is_profiled() -> bool:
    """Whether phases are measured now, which is done for one thread only."""
    return _active is not None


def count(what: str, number: int) -> None:
    """Add to what is counted beside the time."""
    if _active is not None:
        _active.counts[what] += number
