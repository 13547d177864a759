"""`transduce join`."""

from pathlib import Path

from transduce.commands.output import STANDARD_OUTPUT, check_output
from transduce.commands.prepare import say_prepared
from transduce.system.errors import UserError
from transduce.system.journal import say


def join(shards: Path, /, *, output: Path = STANDARD_OUTPUT) -> None:
    """Make one of the shards that `transduce translate --shard` or `transduce prepare --shard` wrote.

    Shards that are missing or damaged are named, and nothing is written then.

    Args:
        shards: The folder that they were written to.
        output: Of translations the file to write, of a prepared corpus the folder.
    """
    from transduce.wings.cluster import translating
    from transduce.wings.cluster.aggregate import settle
    from transduce.wings.cluster.merge import join_prepared
    from transduce.wings.cluster.shards import read_plan

    plan = read_plan(shards)
    if plan.kind != translating.KIND:
        if settle(shards, plan):
            say("Between the rounds: what repeats, is held out and the vocabulary are decided. Start all shards again.")
        elif output == STANDARD_OUTPUT:
            raise UserError(f"Say with --output which folder to make of the shards in {shards}.")
        else:
            say_prepared(join_prepared(shards, plan, output))
        return
    if output == STANDARD_OUTPUT:
        raise UserError(f"Say with --output where to write what the shards of {shards} are together.")
    check_output(output, [])
    joined = translating.join_translations(shards, output)
    say(f"{joined.lines:,} lines of {plan.shards:,} shards, by {' and '.join(joined.engines)}: {output}")
    joined.flags.say()
