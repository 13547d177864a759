"""Tests of transduce/wings/cluster/shards.py."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from threading import Barrier

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharded import attempt, corpus_files
from transduce.system.errors import Hint, UserError
from transduce.wings.cluster.preparing import (
    plan_preparation,
)
from transduce.wings.cluster.ray_cluster import ray_pool, run_tasks
from transduce.wings.cluster.shards import Plan, Shard, agree, read_shard


@given(st.integers(0, 500), st.integers(1, 40), st.integers(1, 20))
def test_shards_cover_every_line_once(length, count, unit):
    cuts = [Shard(number, count).cut(length, unit) for number in range(1, count + 1)]
    assert cuts[0][0] == 0 and cuts[-1][1] == length
    assert all(before[1] == after[0] for before, after in pairwise(cuts))
    assert all(begin % unit == 0 or begin == length for begin, _ in cuts)
    units = [-(-end // unit) - -(-begin // unit) for begin, end in cuts]
    assert max(units) - min(units) <= 1


@given(st.integers(1, 99_999), st.data())
def test_a_shard_is_read_as_it_is_written_and_names_are_in_order(count, data):
    numbers = data.draw(st.lists(st.integers(1, count), min_size=1, max_size=9))
    shards = [Shard(number, count) for number in numbers]
    assert [read_shard(str(shard)) for shard in shards] == shards
    assert sorted(shards) == sorted(shards, key=lambda shard: shard.name)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "3",
        "-1/4",
        "a/b",
        "²/4",
        "0/4",
        "5/4",
        "1/2/3",
        "1/0",
        "1/100000",
        "1234567890/4",
    ],
)
def test_invalid_shard_names_are_refused(text):
    with pytest.raises(UserError, match="is not a shard") as error:
        read_shard(text)
    assert "such as 3/16. There are at most 99,999 shards" in error.value.hint.text


def test_shards_that_start_at_the_same_moment_agree(tmp_path):
    (tmp_path / "text").write_text("ka\n")

    def start(folder: Path) -> str:
        barrier.wait()
        length = {"measure": lambda: [1], "shards": 4, "unit": lambda *_: 1}
        return attempt(agree, folder, "translate", {}, [str(tmp_path / "text")], **length)

    barrier = Barrier(4)
    with ThreadPoolExecutor(4) as threads:
        for turn in range(30):
            assert list(threads.map(start, 4 * [tmp_path / str(turn)])) == [""] * 4


def test_concurrent_calls_with_other_shards_are_refused(tmp_path):
    def start(shards: int, measure: Callable[[], list[int]]) -> Plan:
        return agree(
            tmp_path / "parts",
            "translate",
            {},
            [],
            measure=measure,
            shards=shards,
            unit=lambda *_: 1,
        )

    with pytest.raises(UserError, match="with number of shards 2 instead of 4"):
        start(4, lambda: [*start(2, lambda: [8]).lengths])
    assert start(2, list).shards == 2


@pytest.mark.slow
def test_the_error_of_a_worker_keeps_its_hint(tmp_path):
    plan = plan_preparation(corpus_files(tmp_path), tmp_path / "shards", 1, unit=100)

    def refuse(shard: Shard) -> None:
        raise UserError(f"Shard {shard} is refused.", Hint.about("Name another.", "data.valid"))

    with ray_pool("", 1, gpus=False) as pool, pytest.raises(UserError) as error:
        list(run_tasks(pool, plan, [(Shard(1, 1), ())], refuse, "pairs"))
    assert error.value.cause == "Shard 1/1 is refused."
    assert error.value.hint == Hint("Name another.", ("data.valid",))
