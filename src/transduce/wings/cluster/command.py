"""`transduce join`, and `transduce prepare` in shards."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from transduce.commands.output import STANDARD_OUTPUT, check_output
from transduce.commands.prepare import say_prepared
from transduce.system.errors import UserError
from transduce.system.journal import say

if TYPE_CHECKING:
    from transduce.config.schema import DataConfig


def join(shards: Path, /, *, output: Path = STANDARD_OUTPUT) -> None:
    """Merge shards written by `transduce translate --shard` or `transduce prepare --shard`.

    If shards are missing or damaged, they are named and nothing is written.

    Args:
        shards: The folder of the shards.
        output: The file to write for translations, the folder to write for a prepared corpus.
    """
    from transduce.wings.cluster import translating
    from transduce.wings.cluster.merge import merge_prepared
    from transduce.wings.cluster.preparing import aggregate_shards
    from transduce.wings.cluster.shards import read_plan

    plan = read_plan(shards)
    if plan.kind != translating.TRANSLATION_PLAN:
        if aggregate_shards(shards, plan):
            say("The first round is complete: the hold-out and the vocabulary are decided. Start all shards again.")
        elif output == STANDARD_OUTPUT:
            raise UserError(f"Say with --output which folder to make of the shards in {shards}.")
        else:
            say_prepared(merge_prepared(shards, plan, output))
        return
    if output == STANDARD_OUTPUT:
        raise UserError(f"Say with --output where to write what the shards of {shards} are together.")
    check_output(output, [])
    joined = translating.join_translations(shards, output)
    say(f"{joined.lines:,} lines of {plan.shards:,} shards, by {' and '.join(joined.engines)}: {output}")
    joined.flags.say()


def prepare_in_shards(
    data: "DataConfig",
    out: Path,
    *,
    vocab_size: int,
    vocabulary: Path | None,
    shard: str,
    on: str,
    workers: int | None,
    threads: int,
) -> None:
    """Prepare one shard of a corpus, or all of them on Ray.

    vocab_size: 0 if the corpus decides. on: "ray", or "ray://" with an address; empty for one shard.
    """
    from transduce.wings.cluster import preparing
    from transduce.wings.cluster.ray_cluster import read_address
    from transduce.wings.cluster.ray_preparing import prepare_on_ray
    from transduce.wings.cluster.shards import read_shard

    if on:
        address = read_address(on)
        say_prepared(
            prepare_on_ray(data, out, vocab_size=vocab_size, vocabulary=vocabulary, address=address, workers=workers)
        )
        return
    part = read_shard(shard)
    plan = preparing.plan_preparation(data, out, part.count, vocab_size=vocab_size, vocabulary=vocabulary)
    if not preparing.is_aggregated(out, plan):
        is_new, done = preparing.stage_shard(out, plan, part), "read"
    else:
        is_new, done = preparing.encode_shard(out, plan, part, threads), "encoded"
    already = "" if is_new else " already"
    say(f"Shard {part} is {done}{already}: {out}; when all are, start transduce join {shlex.quote(str(out))}")
