"""A corpus prepared on Ray: both passes over its shards by workers, the aggregation by this process."""

import functools
import shutil
from collections.abc import Callable
from pathlib import Path

from transduce.config.schema import DataConfig
from transduce.preparation.prepared import Prepared
from transduce.system.errors import UserError
from transduce.system.journal import say, telling
from transduce.wings.cluster.merge import merge_prepared
from transduce.wings.cluster.preparing import (
    ENCODED_ROUND,
    READ_ROUND,
    aggregate_shards,
    encode_shard,
    is_done,
    plan_preparation,
    stage_shard,
)
from transduce.wings.cluster.ray_cluster import Pool, ray_pool, run_tasks
from transduce.wings.cluster.shards import Plan, Shard

SHARDS_PER_WORKER = 4  # so that all workers end at about the same time


def prepare_on_ray(
    data: DataConfig,
    out: Path,
    *,
    vocab_size: int = 0,
    vocabulary: Path | None = None,
    address: str = "",
    workers: int | None = None,
    shards: int = 0,
) -> Prepared:
    """Prepare a corpus in the new folder `out`, to the same bytes as `prepare`; only its time differs.

    The shards lie in a folder beside `out` until all are there; the same call, started again, goes on with the missing
    ones. address: of a cluster, "" for the cores of this machine. shards: how many; 0: chosen. Raises UserError
    as preparing does, if Ray isn't installed, and if the folder holds another call's shards.
    """
    if out.exists():
        raise UserError(f"{out} exists already and is never overwritten; choose another name, or remove it.")
    folder = out.parent / f"{out.name}.shards"
    with ray_pool(address, workers, gpus=False) as pool:
        chosen = SHARDS_PER_WORKER * pool.size
        plan = plan_preparation(
            data, folder, shards or (lambda _: chosen), vocab_size=vocab_size, vocabulary=vocabulary
        )
        say(f"{sum(plan.lengths):,} pairs in {plan.shards:,} shards, {pool.size} workers")
        do_round(folder, plan, READ_ROUND, stage_shard, pool)
        aggregate_shards(folder, plan)
        do_round(folder, plan, ENCODED_ROUND, encode_shard, pool)
    prepared = merge_prepared(folder, plan, out)
    shutil.rmtree(folder)
    return prepared


def do_round(folder: Path, plan: Plan, round: str, do: Callable[[Path, Plan, Shard], bool], pool: Pool) -> None:
    """A round of all shards that lack it; raises UserError as it does, and for shards that were given up."""
    missing = [shard for shard in plan.all() if not is_done(folder, plan, round, shard)]
    done = run_tasks(pool, plan, ((shard, ()) for shard in missing), functools.partial(do, folder, plan), "pairs")
    for _ in telling(done, f"of {len(missing):,} shards {round}"):
        pass
