"""Tests of transduce/wings/serving/turns.py."""

import asyncio
import threading

import pytest

from waiting import PATIENCE

pytest.importorskip("fastapi", reason="pip install 'transduce[serve]'")
from transduce.wings.serving.turns import Turns


def test_the_shortest_computation_goes_first_and_errors_and_cancellations_end_no_others() -> None:
    order = list[int]()
    may_end = threading.Event()

    def compute(size: int) -> int:
        may_end.wait(PATIENCE)
        order.append(size)
        if size == 3:
            raise ValueError(size)
        return size

    async def body() -> list[object]:
        turns = Turns("test")
        sizes = [9, 5, 3, 7, 1]
        begun = [turns.run(size * 10_000, lambda s=size: compute(s)) for size in sizes]  # type: ignore[misc]
        begun[3].cancel()
        may_end.set()
        return await asyncio.gather(*begun, return_exceptions=True)

    found = asyncio.run(asyncio.wait_for(body(), PATIENCE))
    assert order == [9, 1, 3, 5]  # the first one had begun
    assert [found[i] for i in (0, 1, 4)] == [9, 5, 1]
    assert isinstance(found[2], ValueError) and isinstance(found[3], asyncio.CancelledError)


def test_a_long_computation_is_not_overtaken_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    order = list[int]()

    async def body() -> None:
        loop = asyncio.get_running_loop()
        turns = Turns("test")
        gate = threading.Event()
        first = turns.run(0, lambda: gate.wait(PATIENCE))
        now = loop.time()
        waiting = []
        for second, size in enumerate((3, 1, 1, 1, 1)):
            monkeypatch.setattr(loop, "time", lambda second=second: now + second)
            characters = size * 10_000
            waiting.append(turns.run(characters, lambda number=second: order.append(number)))  # type: ignore[misc]
        monkeypatch.undo()
        gate.set()
        await asyncio.gather(first, *waiting)

    asyncio.run(asyncio.wait_for(body(), PATIENCE))
    assert order == [1, 0, 2, 3, 4]


@pytest.mark.parametrize("fails", [False, True])
def test_the_next_computation_begins_when_a_cancelled_one_has_ended(fails: bool) -> None:
    may_end = threading.Event()
    running: list[str] = []

    def first() -> None:
        running.append("first")
        may_end.wait(PATIENCE)
        running.append("ended")
        if fails:
            raise ValueError

    async def body() -> None:
        turns = Turns("test")
        cancelled = turns.run(1, first)
        second = turns.run(1, lambda: running.append("second"))
        cancelled.cancel()
        await asyncio.sleep(0)
        may_end.set()
        await asyncio.wait([second], timeout=PATIENCE / 60)
        assert second.done()

    asyncio.run(body())
    assert running == ["first", "ended", "second"]
