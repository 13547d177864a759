"""Lines translated on Ray: this process reads the file, workers translate a shard at a time.

A shard is its number: whoever translates it, and however often, writes the same bytes under the same name. So nothing
is lost or written twice when a worker dies.
"""

import functools
import pickle
import shutil
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from transduce.decoding.translator import CHUNK_LINES
from transduce.system.journal import say, telling
from transduce.text.plain import read_lines, without_byte_order_mark
from transduce.wings.cluster.ray_cluster import Task, ray_pool, run_tasks
from transduce.wings.cluster.shards import Plan, Shard
from transduce.wings.cluster.translating import (
    Job,
    Joined,
    ShardTranslator,
    check_input,
    find,
    join_translations,
    plan_translation,
)

MAX_SHARD_CHUNKS = 4  # what is translated again when a worker dies
MIN_SHARDS_PER_WORKER = 4  # at least, if the text is long enough, so that all workers end at about the same time


def translate_on_ray(
    job: Job, input: str, output: Path, *, address: str = "", workers: int | None = None, shards: int = 0
) -> Joined:
    """Translate the lines of a file with several models at a time, of one thread or one GPU each.

    The shards lie in a folder beside `output` until all are there; the same call, started again, goes on with the
    missing ones. address: of a cluster, "" for the cores of this machine. shards: how many; 0: chosen. Raises
    UserError as translating does, if Ray isn't installed, and if the folder holds another call's shards.
    """
    folder = output.parent / f"{output.name}.shards"
    check_input(input)
    with ray_pool(address, workers) as pool:
        plan = plan_translation(job, input, folder, shards or (lambda lines: shards_for(lines, pool.size)))
        missing = [shard for shard in plan.all() if not find(folder, plan, shard)]
        if len(missing) < plan.shards:
            say(f"{plan.shards - len(missing):,} of {plan.shards:,} shards are there already.")
        say(f"{plan.lengths[0]:,} lines in {plan.shards:,} shards, {pool.size} workers")
        translate = functools.partial(_translate, pickle.dumps((job, folder, plan, max(1, pool.cpus))))
        done = run_tasks(pool, plan, _tasks(input, plan, missing), translate, "lines")
        for _ in telling(done, f"of {len(missing):,} shards translated"):
            pass
    joined = join_translations(folder, output)
    shutil.rmtree(folder)
    return joined


def shards_for(lines: int, workers: int) -> int:
    """How many shards to make of a file: small enough to be done again, enough for all workers."""
    chunks = max(1, -(-lines // CHUNK_LINES))
    return min(chunks, max(-(-chunks // MAX_SHARD_CHUNKS), MIN_SHARDS_PER_WORKER * workers))


def _tasks(input: str, plan: Plan, missing: list[Shard]) -> Iterator[Task]:
    """The missing shards with their lines; the file is read once, as workers become free."""
    lines, position = without_byte_order_mark(read_lines(input)), 0
    for shard in missing:
        [(begin, end)] = plan.cuts(shard)
        yield shard, (list(islice(lines, begin - position, end - position)),)
        position = end


def _translate(call: bytes, shard: Shard, lines: list[str]) -> None:
    _translator(call).translate(shard, lines)


@functools.lru_cache(maxsize=1)
def _translator(call: bytes) -> ShardTranslator:
    """The model of a worker, which loads it once."""
    return ShardTranslator(*pickle.loads(call))
