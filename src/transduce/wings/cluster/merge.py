"""A prepared corpus, merged from the shards of a folder."""

import shutil
from collections.abc import Iterator
from pathlib import Path

from transduce.preparation.prepared import VALID_FILE, Prepared, open_prepared, store_path, write_facts
from transduce.system.files import write_folder
from transduce.text.clean import Cleaning
from transduce.tokens.store import Encoded, write_store
from transduce.wings.cluster.preparing import (
    AGGREGATE,
    ENCODED_ROUND,
    READ_ROUND,
    encoded_cleaning,
    encoded_part,
    is_done,
    planned_data,
    read_decisions,
    seconds,
    shard_folder,
)
from transduce.wings.cluster.shards import Plan, require_all


def merge_prepared(folder: Path, plan: Plan, out: Path) -> Prepared:
    """Write the new folder `out`, as `prepare` without shards would have written it; only its time differs.

    Raises UserError that names shards that are missing or damaged.
    """
    missing = [shard for shard in plan.all() if not is_done(folder, plan, ENCODED_ROUND, shard)]
    require_all(folder, missing, " of the second round")
    decisions, data = read_decisions(folder), planned_data(plan)
    rounds = [shard_folder(folder, round, shard) for round in (READ_ROUND, ENCODED_ROUND) for shard in plan.all()]
    with write_folder(out) as aside:
        for path in (folder / AGGREGATE).iterdir():
            if path.name.startswith("tokenizer") or path.name == VALID_FILE:
                shutil.copyfile(path, aside / path.name)
        for corpus in range(len(data.corpora)):
            write_store(store_path(aside, corpus), _encoded(folder, plan, corpus))
            for shard in plan.all():
                _add(decisions.cleaning, encoded_cleaning(folder, shard, corpus))
        write_facts(aside, data, decisions, sum(map(seconds, [*rounds, folder / AGGREGATE])))
    return open_prepared(out)


def _encoded(folder: Path, plan: Plan, corpus: int) -> Iterator[Encoded]:
    for shard in plan.all():
        yield from encoded_part(folder, shard, corpus)


def _add(cleaning: Cleaning, other: Cleaning) -> None:
    """Count also what a shard has left out."""
    for rule, number in other.counts.items():
        cleaning.add(rule, number, other.lines[rule])
