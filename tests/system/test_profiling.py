"""The phases of a profile add up to the time that has passed, whatever is inside what."""

import time
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transduce.system.profiling import Profile, count, phase, profiling

NAMES = ["a", "b", "other"]  # the last is not asked for
Tree = tuple[str, bool, int, list["Tree"]]  # name, whole, time before each phase inside and at the end, these phases
trees = st.recursive(
    st.tuples(st.sampled_from(NAMES), st.booleans(), st.integers(0, 9), st.just([])),
    lambda inner: st.tuples(st.sampled_from(NAMES), st.booleans(), st.integers(0, 9), st.lists(inner, max_size=3)),
    max_leaves=12,
)


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def live(tree: Tree, clock: Clock) -> None:
    name, whole, ticks, inside = tree
    with phase(name, whole=whole):
        count("phases", 1)
        for each in inside:
            clock.now += ticks
            live(each, clock)
        clock.now += ticks


def expected(tree: Tree, owner: str, closed: bool, sums: dict[str, float]) -> int:
    """The ticks go to the innermost phase that was asked for and is not inside a whole one; what was counted."""
    name, whole, ticks, inside = tree
    counted = not closed
    if not closed and name != "other":
        owner, closed = name, whole
        counted = not whole
    sums[owner] += ticks * (len(inside) + 1)
    return counted + sum(expected(each, owner, closed, sums) for each in inside)


@given(st.lists(trees, max_size=4))
def test_every_moment_belongs_to_one_phase(found):
    clock = Clock()
    with patch.object(time, "perf_counter", clock), profiling(NAMES[:2]) as profile:
        for tree in found:
            live(tree, clock)
            clock.now += 1
    sums = {"a": 0.0, "b": 0.0, "unaccounted": float(len(found))}
    counted = sum(expected(tree, "unaccounted", False, sums) for tree in found)
    assert {**profile.seconds, "unaccounted": profile.unaccounted} == sums
    assert profile.total == clock.now
    assert profile.counts["phases"] == counted


def test_a_function_is_a_phase_even_if_it_raises():
    @phase("a")
    def fail() -> None:
        raise RuntimeError

    with profiling(["a"]) as profile:
        for _ in range(2):
            with pytest.raises(RuntimeError):
                fail()
        with phase("a"):
            time.sleep(0.01)
    assert profile.seconds["a"] >= 0.01


def test_the_table_by_hand():
    profile = Profile(["forward", "never", "backward"])
    profile.seconds |= {"forward": 1.0, "backward": 2.0}
    profile.unaccounted = 1.0
    assert profile.table() == [
        "forward           1.00 s   25.0%",
        "backward          2.00 s   50.0%",
        "unaccounted       1.00 s   25.0%",
        "total             4.00 s  100.0%",
    ]
