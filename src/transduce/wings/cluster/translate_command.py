"""The jobs of `transduce translate` on shards of a file: one shard, or all of them on Ray."""

from transduce.commands.output import STANDARD_OUTPUT
from transduce.commands.translate import Call
from transduce.system.errors import UserError
from transduce.system.journal import say, telling
from transduce.wings.cluster import translating
from transduce.wings.cluster.ray_cluster import read_address
from transduce.wings.cluster.ray_translating import translate_on_ray
from transduce.wings.cluster.shards import read_shard


def run(call: Call) -> None:
    """Translate one shard, or all of them on Ray."""
    if call.output == STANDARD_OUTPUT:
        raise UserError("Say with --output where the translations go: with --shard a folder, with --on a file.")
    if call.shard and call.on:
        raise UserError("--on ray makes shards by itself: leave out --shard.")
    if call.profile:
        raise UserError("--profile measures one process: leave out --shard and --on.")
    job = translating.Job(
        tuple(map(str, call.models)), call.options, call.engine, call.format, str(call.glossary or "")
    )
    if call.on:
        call.check_output()
        joined = translate_on_ray(job, call.input, call.output, address=read_address(call.on), workers=call.workers)
        say(f"{joined.lines:,} lines translated, by {' and '.join(joined.engines)}: {call.output}")
        joined.flags.say()
        return
    shard = read_shard(call.shard)
    plan = translating.plan_translation(job, call.input, call.output, shard.count)
    path = translating.shard_path(call.output, plan, shard)
    if translating.find(call.output, plan, shard):
        say(f"Shard {shard} is complete: {path}")
        return
    translator = translating.ShardTranslator(job, call.output, plan)
    [(begin, end)] = plan.cuts(shard)
    say(f"Shard {shard}: {end - begin:,} of {plan.lengths[0]:,} lines, from line {begin + 1:,}")
    say(f"Engine: {translator.engine}")
    lines = telling(translating.shard_lines(call.input, begin, end), "lines read")
    record = translator.translate(shard, lines)
    say(f"Shard {shard} is complete: {path}")
    record.flags.say()
