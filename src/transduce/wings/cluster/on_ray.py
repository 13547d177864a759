"""Prepares a corpus or translates a file in shards on Ray workers, then merges the shards.

Complete shards stay in the folder OUTPUT.shards until all are merged. A repeated call processes only missing shards.
"""

import functools
import shutil
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

from transduce.config.schema import DataConfig
from transduce.decoding.translator import CHUNK_LINES, Translator
from transduce.preparation.prepared import Prepared
from transduce.system.console import count, log, with_progress
from transduce.system.errors import UserError
from transduce.text.plain import read_lines, without_byte_order_mark
from transduce.wings.cluster import preparing
from transduce.wings.cluster.ray_cluster import Pool, Task, ray_pool, run_tasks
from transduce.wings.cluster.shards import Plan, Shard
from transduce.wings.cluster.translating import (
    Job,
    check_input,
    find,
    join_translations,
    open_translator,
    plan_translation,
    translate_shard,
)

# Minimum for long inputs, so that all workers finish at about the same time.
SHARDS_PER_WORKER = 4
MAX_SHARD_CHUNKS = 4  # maximum length of a text's shard, in chunks of CHUNK_LINES


def prepare_on_ray(
    data: DataConfig,
    out: Path,
    *,
    vocab_size: int = 0,
    vocabulary: Path | None = None,
    address: str = "",
    workers: int | None = None,
) -> Prepared:
    """Prepare a corpus on Ray and write the result to the new folder `out`.

    `address` is the address of a Ray cluster, or "" for this machine. Raises UserError if the preparation fails, if Ray
    is not installed, or if existing shards were made with other settings.
    """
    if out.exists():
        raise UserError(
            f"{out} exists already and is never overwritten.",
            "Choose another name, or remove it.",
        )
    folder = _shards_of(out)
    with ray_pool(address, workers, gpus=False) as pool:
        number = SHARDS_PER_WORKER * pool.size
        plan = preparing.plan_preparation(
            data, folder, lambda _: number, vocab_size=vocab_size, vocabulary=vocabulary
        )
        log(
            f"{count(sum(plan.lengths), 'pair')} in {count(plan.shards, 'shard')}, {count(pool.size, 'worker')}"
        )
        do_round(folder, plan, preparing.READ_ROUND, preparing.stage_shard, pool)
        preparing.aggregate_shards(folder, plan)
        do_round(folder, plan, preparing.ENCODED_ROUND, preparing.encode_shard, pool)
    prepared = preparing.merge_prepared(folder, plan, out)
    shutil.rmtree(folder)
    return prepared


def do_round(
    folder: Path, plan: Plan, round: str, do: Callable[[Path, Plan, Shard], bool], pool: Pool
) -> None:
    """Call `do` for every shard that lacks the results of `round`. Raises UserError if a shard can't be processed."""
    missing = preparing.missing(folder, plan, round)
    done = run_tasks(
        pool, plan, ((shard, ()) for shard in missing), functools.partial(do, folder, plan), "pairs"
    )
    for _ in with_progress(done, f"Shards {round}", len(missing)):
        pass


def translate_on_ray(
    job: Job,
    input: str,
    output: Path,
    *,
    address: str = "",
    workers: int | None = None,
    shards: int = 0,
) -> None:
    """Translate the lines of a file on Ray and write the translations to `output`.

    `address` is a Ray cluster's address, or "" for this machine. If `shards` is 0, `shards_for` computes the number.
    Raises UserError if translation fails, if Ray is missing, or if existing shards were made with other settings.
    """
    folder = _shards_of(output)
    check_input(input)
    with ray_pool(address, workers) as pool:
        plan = plan_translation(
            job, input, folder, shards or (lambda lines: shards_for(lines, pool.size))
        )
        missing = [shard for shard in plan.all() if not find(folder, plan, shard)]
        if len(missing) < plan.shards:
            log(
                f"{plan.shards - len(missing):,} of {count(plan.shards, 'shard')} are already complete."
            )
        log(
            f"{count(plan.lengths[0], 'line')} in {count(plan.shards, 'shard')}, {count(pool.size, 'worker')}"
        )
        translate = functools.partial(_translate, job, folder, plan, max(1, pool.cpus))
        done = run_tasks(pool, plan, _tasks(input, plan, missing), translate, "lines")
        for _ in with_progress(done, "Shards translated", len(missing)):
            pass
    join_translations(folder, output)
    shutil.rmtree(folder)


def shards_for(lines: int, workers: int) -> int:
    """The number of shards into which a file of `lines` lines is split for `workers` workers."""
    chunks = max(1, -(-lines // CHUNK_LINES))
    return min(chunks, max(-(-chunks // MAX_SHARD_CHUNKS), SHARDS_PER_WORKER * workers))


def _shards_of(output: Path) -> Path:
    return output.parent / f"{output.name}.shards"


def _tasks(input: str, plan: Plan, missing: list[Shard]) -> Iterator[Task]:
    """Yield each shard in `missing` with its lines, in one pass through the file."""
    lines = without_byte_order_mark(read_lines(input))
    position = 0
    for shard in missing:
        [(begin, end)] = plan.cuts(shard)
        yield shard, (list(islice(lines, begin - position, end - position)),)
        position = end


def _translate(
    job: Job, folder: Path, plan: Plan, threads: int, shard: Shard, lines: list[str]
) -> None:
    key = f"{plan.key} {folder}"
    if key not in _translators:
        _translators.clear()
        _translators[key] = open_translator(job, threads)
    translate_shard(_translators[key], job, folder, plan, shard, lines)


_translators: dict[str, Translator] = {}  # a worker loads one translator for all its shards
