"""The phases of a profile add up to the time that has passed, whatever is inside what."""

import time
from concurrent.futures import ThreadPoolExecutor
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transduce.system.profiling import Profile, count, map_in_threads, phase, profiling

NAMES = ["a", "b", "other"]  # the last is not asked for
# Name, whole, time before each phase inside and at the end, these phases.
Tree = tuple[str, bool, int, list["Tree"]]
trees = st.recursive(
    st.tuples(st.sampled_from(NAMES), st.booleans(), st.integers(0, 9), st.just([])),
    lambda inner: st.tuples(
        st.sampled_from(NAMES), st.booleans(), st.integers(0, 9), st.lists(inner, max_size=3)
    ),
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


def work(number: int) -> int:
    with phase("a"):
        count("calls", number)
        time.sleep(0.001)
    return number


def test_the_time_of_threads_is_divided_as_they_spend_it():
    clock = Clock()
    with (
        patch.object(time, "perf_counter", clock),
        profiling(["a", "b", "caller"]) as profile,
        phase("caller"),
    ):
        parts = [Profile(profile.seconds), Profile(profile.seconds)]
        parts[0].seconds |= {"a": 5.0, "b": 1.0}
        parts[1].seconds |= {"a": 1.0}
        parts[1].unaccounted = 1.0
        clock.now = 4.0  # in which the threads spent 8 seconds
        profile.divide(parts)
        clock.now = 6.0
    assert profile.seconds == {"a": 3.0, "b": 0.5, "caller": 0.5 + 2.0}
    assert profile.total == 6.0


def test_the_phases_and_counts_of_threads_are_in_the_profile():
    with profiling(["a"]) as profile, ThreadPoolExecutor(2) as pool:
        began = time.perf_counter()
        assert map_in_threads(pool, work, [1, 2, 3]) == [1, 2, 3]
        passed = time.perf_counter() - began
    assert profile.counts["calls"] == 6
    assert 0 < profile.seconds["a"] <= passed


def test_threads_without_a_profile_only_work():
    with ThreadPoolExecutor(2) as pool:
        assert map_in_threads(pool, work, [1, 2]) == [1, 2]


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
