"""A prepared folder of the shards of a corpus."""

import shutil
from collections.abc import Iterator
from pathlib import Path

from transduce.preparation import prepare as preparation
from transduce.preparation.prepare import VALID, Prepared, open_prepared
from transduce.system.files import write_folder
from transduce.text.clean import LINES_KEPT, Cleaning
from transduce.tokens.store import Encoded, write_store
from transduce.wings.cluster.aggregate import read_settled
from transduce.wings.cluster.preparing import (
    ENCODED,
    READ,
    SETTLED,
    encoded_blocks,
    encoded_cleaning,
    is_done,
    place,
    planned_data,
    seconds,
)
from transduce.wings.cluster.shards import Plan, complain_of_missing


def join_prepared(folder: Path, plan: Plan, out: Path) -> Prepared:
    """Write the new folder `out`, as `prepare` without shards would have written it; only its time differs.

    Raises UserError that names shards that are missing or damaged.
    """
    complain_of_missing(
        folder, [shard for shard in plan.all() if not is_done(folder, plan, ENCODED, shard)], " of the second round"
    )
    settled, data = read_settled(folder), planned_data(plan)
    rounds = [place(folder, round, shard) for round in (READ, ENCODED) for shard in plan.all()]
    with write_folder(out) as aside:
        for path in (folder / SETTLED).iterdir():
            if path.name.startswith("tokenizer") or path.name == VALID:
                shutil.copyfile(path, aside / path.name)
        for corpus in range(len(data.corpora)):
            write_store(aside / f"corpus-{corpus}", _blocks(folder, plan, corpus))
            for shard in plan.all():
                _add(settled.cleaning, encoded_cleaning(folder, shard, corpus))
        preparation.conclude(
            aside,
            data,
            files=settled.files,
            held_out=settled.held_out,
            dropped=settled.dropped,
            cleaning=settled.cleaning,
            seconds=sum(map(seconds, [*rounds, folder / SETTLED])),
        )
    return open_prepared(out)


def _blocks(folder: Path, plan: Plan, corpus: int) -> Iterator[Encoded]:
    for shard in plan.all():
        yield from encoded_blocks(folder, shard, corpus)


def _add(cleaning: Cleaning, later: Cleaning) -> None:
    """Count also what a later shard has left out."""
    for rule, number in later.counts.items():
        cleaning.counts[rule] += number
        lines = cleaning.lines.setdefault(rule, [])
        lines += later.lines[rule][: LINES_KEPT - len(lines)]
