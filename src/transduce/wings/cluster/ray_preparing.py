"""A corpus prepared on Ray: both rounds of its shards by tasks, what is between by the process that was started."""

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
    ENCODED,
    READ,
    aggregate_shards,
    encode_shard,
    is_done,
    plan_preparation,
    read_shard,
)
from transduce.wings.cluster.ray_cluster import Pool, Row, conduct, do_shard, forget_tries, raise_complaints
from transduce.wings.cluster.shards import Plan, Shard, read_plan

EACH = 4  # shards a worker, so that all end at about the same time


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
    """Prepare a corpus in the new folder `out`, to the same bytes as `preparation.prepare`; only its time differs.

    The shards lie in a folder beside `out` until all are there; the same call, started again, goes on with those that
    are missing. address: of a cluster, "" for the cores of this machine. shards: how many; 0: chosen. Raises UserError
    as preparing does, if Ray isn't installed, and if the folder holds another call's shards.
    """
    if out.exists():
        raise UserError(f"{out} exists already and is never overwritten; choose another name, or remove it.")
    folder = out.parent / f"{out.name}.shards"
    plan = functools.partial(plan_preparation, data, folder, vocab_size=vocab_size, vocabulary=vocabulary)
    conduct(address, workers, functools.partial(_prepare, plan, folder, shards), gpus=False)
    prepared = merge_prepared(folder, read_plan(folder), out)
    shutil.rmtree(folder)
    return prepared


def _prepare(make_plan: Callable[..., Plan], folder: Path, shards: int, pool: Pool) -> None:
    """Both rounds of the shards that aren't there yet, and what is between."""
    plan = make_plan(shards=shards or (lambda _: EACH * pool.size))
    say(f"{sum(plan.lengths):,} pairs in {plan.shards:,} shards, {pool.size} workers")
    do_all(folder, plan, READ, read_shard, pool)
    aggregate_shards(folder, plan)
    do_all(folder, plan, ENCODED, encode_shard, pool)


def do_all(folder: Path, plan: Plan, round: str, do: Callable[[Path, Plan, Shard], bool], pool: Pool) -> None:
    """A round of all shards that aren't there yet; raises UserError as it does, and for shards that were given up."""
    import ray.data

    forget_tries(folder)
    missing = [shard.number for shard in plan.all() if not is_done(folder, plan, round, shard)]
    if not missing:
        return
    done = ray.data.from_items(
        [{"number": number} for number in missing], override_num_blocks=len(missing)
    ).map_batches(
        functools.partial(_do, folder=folder, plan=plan, do=do, home=Path.cwd()),
        batch_size=1,
        compute=ray.data.TaskPoolStrategy(size=pool.size),
        num_cpus=pool.cpus,
    )
    raise_complaints(telling(done.iter_rows(), f"of {len(missing):,} shards {round}"), plan, "pairs")


def _do(row: Row, folder: Path, plan: Plan, do: Callable[[Path, Plan, Shard], bool], home: Path) -> Row:
    return do_shard(row, folder, plan, home, functools.partial(do, folder, plan))
