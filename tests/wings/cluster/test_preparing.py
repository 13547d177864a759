"""Tests of transduce/wings/cluster/preparing.py."""

import os
import signal
from pathlib import Path

import pytest

from sharded import corpus_files
from transduce.config.schema import CorpusConfig, DataConfig
from transduce.system.errors import UserError
from transduce.wings.cluster.on_ray import do_round
from transduce.wings.cluster.preparing import (
    READ_ROUND,
    missing,
    plan_preparation,
    stage_shard,
)
from transduce.wings.cluster.ray_cluster import SHARD_ATTEMPTS, ray_pool
from transduce.wings.cluster.shards import Plan, Shard


def test_a_vocabulary_without_the_tags_is_refused_before_a_shard_is_read(vocabulary, tmp_path):
    file = str(vocabulary.parent / "t.tsv")
    corpora = (CorpusConfig((file,), source="en", target="de"),)
    with pytest.raises(UserError, match="The vocabulary has no tag for de"):
        plan_preparation(
            DataConfig(corpora=corpora, directions=("en-de", "de-en")),
            tmp_path,
            1,
            vocabulary=vocabulary,
        )


@pytest.mark.slow
def test_shard_whose_workers_always_die_is_given_up(tmp_path):
    """As if something in its text crashed the process, until that is mended."""
    data = corpus_files(tmp_path)
    plan = plan_preparation(data, tmp_path / "shards", 3, unit=100)
    tried, mended = tmp_path / "tried", tmp_path / "mended"

    def crash_at_second(folder: Path, plan: Plan, shard: Shard) -> bool:
        with tried.open("a") as file:
            file.write(f"{shard.number}")
        if shard.number == 2 and not mended.exists():
            os.kill(os.getpid(), signal.SIGKILL)
        return stage_shard(folder, plan, shard)

    with ray_pool("", 1, gpus=False) as pool:
        with pytest.raises(
            UserError, match=rf"all {SHARD_ATTEMPTS} attempts at shard 2/3 \(pairs 201 to 500 of"
        ):
            do_round(tmp_path / "shards", plan, READ_ROUND, crash_at_second, pool)
        assert missing(tmp_path / "shards", plan, READ_ROUND) == [Shard(2, 3)]
        assert sorted(tried.read_text()) == sorted("13" + "2" * SHARD_ATTEMPTS)
        mended.touch()
        do_round(tmp_path / "shards", plan, READ_ROUND, crash_at_second, pool)
        assert sorted(tried.read_text()) == sorted("132" + "2" * SHARD_ATTEMPTS)
    assert not missing(tmp_path / "shards", plan, READ_ROUND)
