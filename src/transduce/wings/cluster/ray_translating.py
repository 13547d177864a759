"""Lines translated on Ray: one task reads the file, models in actors translate shards of it, a shard at a time.

The identity of a shard is its number. Whoever translates it, and however often, writes the same bytes under the same
name, so that nothing is lost or there twice when a worker dies and Ray gives its shard to another one.
"""

import functools
import shutil
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from transduce.decoding.translator import CHUNK_LINES
from transduce.system.errors import UserError
from transduce.system.journal import say, telling
from transduce.text.plain import read_lines, without_byte_order_mark
from transduce.wings.cluster.ray_cluster import (
    COMPLAINT,
    GIVEN_UP,
    Pool,
    Row,
    conduct,
    do_shard,
    forget_tries,
    raise_complaints,
    working_in,
)
from transduce.wings.cluster.shards import Plan
from transduce.wings.cluster.translating import (
    Job,
    Joined,
    ShardTranslator,
    check_input,
    find,
    join_translations,
    plan_translation,
)

CHUNKS = 4  # of a shard, at most: what is translated again when a worker dies
EACH = 4  # shards a worker at least, if the text is enough for that, so that all end at about the same time


def read_shards(_: Row, input: str, folder: Path, plan: Plan, home: Path) -> Iterator[Row]:
    """The lines of every shard that isn't there yet; the file is read once, no further ahead than Ray lets it."""
    try:
        with working_in(home):
            lines = without_byte_order_mark(read_lines(input))
            for shard in plan.all():
                [(begin, end)] = plan.cuts(shard)
                some = list(islice(lines, end - begin))
                if not find(folder, plan, shard):
                    text = "\n".join(some).encode()
                    yield {"number": [shard.number], "lines": [len(some)], "text": [text], COMPLAINT: [""]}
    except UserError as error:
        yield {"number": [0], "lines": [0], "text": [b""], COMPLAINT: [str(error)]}


class Actor:
    """A model in a process of its own."""

    def __init__(self, job: Job, folder: Path, plan: Plan, threads: int, home: Path) -> None:
        self._place = folder, plan, home
        self._load = functools.partial(ShardTranslator, job, folder, plan, threads)

    @functools.cached_property
    def _translator(self) -> ShardTranslator:
        return self._load()

    def __call__(self, row: Mapping[str, Any]) -> Row:
        if row[COMPLAINT][0]:
            return {"number": row["number"], COMPLAINT: list(row[COMPLAINT]), GIVEN_UP: [False]}
        lines = bytes(row["text"][0]).decode().split("\n") if row["lines"][0] else []
        return do_shard(row, *self._place, lambda shard: self._translator.translate(shard, lines))


def translate_on_ray(
    job: Job, input: str, output: Path, *, address: str = "", workers: int | None = None, shards: int = 0
) -> Joined:
    """Translate the lines of a file with several models at a time, of one thread or one GPU each.

    The shards lie in a folder beside `output` until all are there; the same call, started again, goes on with those
    that are missing. address: of a cluster, "" for the cores of this machine. shards: how many; 0: chosen. Raises
    UserError as translating does, if Ray isn't installed, and if the folder holds another call's shards.
    """
    folder = output.parent / f"{output.name}.shards"
    check_input(input)
    conduct(address, workers, functools.partial(_translate, job, input, folder, shards))
    joined = join_translations(folder, output)
    shutil.rmtree(folder)
    return joined


def _translate(job: Job, input: str, folder: Path, shards: int, pool: Pool) -> None:
    """Translate the shards that aren't there yet."""
    plan = plan_translation(job, input, folder, shards or (lambda lines: shards_for(lines, pool.size)))
    there = sum(find(folder, plan, shard) is not None for shard in plan.all())
    if there:
        say(f"{there:,} of {plan.shards:,} shards are there already.")
    say(f"{plan.lengths[0]:,} lines in {plan.shards:,} shards, {pool.size} workers")
    forget_tries(folder)
    rows = _run(job, input, folder, plan, pool)
    raise_complaints(telling(rows, f"of {plan.shards - there:,} shards translated"), plan, "lines")


def shards_for(lines: int, workers: int) -> int:
    """How many shards to make of a file: small enough to be done again, enough for all workers."""
    chunks = max(1, -(-lines // CHUNK_LINES))
    return min(chunks, max(-(-chunks // CHUNKS), EACH * workers))


def _run(job: Job, input: str, folder: Path, plan: Plan, pool: Pool) -> Iterator[Any]:
    """A row for every shard that is translated, as it is done."""
    import ray.data

    read = functools.partial(read_shards, input=input, folder=folder, plan=plan, home=Path.cwd())
    translated = (
        ray.data.from_items([0])
        .map_batches(read, batch_size=1, num_cpus=0)
        .map_batches(
            Actor,
            batch_size=None,
            compute=ray.data.ActorPoolStrategy(size=pool.size),
            num_cpus=pool.cpus,
            num_gpus=pool.gpus,
            fn_constructor_args=(job, folder, plan, max(1, pool.cpus), Path.cwd()),
        )
    )
    yield from translated.iter_rows()
