"""What can only be decided about a whole corpus, between the two rounds of its shards, by one process.

    settled/   tokenizer.model             the vocabulary, learnt from all shards or given
               parts-00003-of-00016-0      of each pair of a shard's part of a corpus: trained on, held out, …
               valid.jsonl  settled.json   what is held out; counts, and what was left out so far

It reads hashes, and text only where it learns the vocabulary or takes what is held out.
"""

import copy
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from transduce.config import size_table
from transduce.config.schema import DataConfig
from transduce.preparation import prepare as preparation
from transduce.system.errors import UserError
from transduce.text.clean import LINES_KEPT, Cleaning
from transduce.text.hashes import Bits64, alike
from transduce.text.pairs import Origin
from transduce.text.rules import DUPLICATE, NEAR_DUPLICATE
from transduce.text.staging import CHUNK, Spool, Texts
from transduce.tokens.tokenizer import Tokenizer
from transduce.wings.cluster.preparing import (
    READ,
    SETTLED,
    Found,
    is_done,
    is_whole,
    open_found,
    parts_name,
    planned_data,
    write_once,
)
from transduce.wings.cluster.shards import Plan, complain_of_missing

REPEATED = 3  # a part beside those of a hold-out: what an earlier pair repeats
SETTLED_FILE = "settled.json"


class Settled(NamedTuple):
    """What was decided, beside the parts."""

    files: list[list[str]]  # of each corpus, as stores number them
    held_out: int
    dropped: int
    cleaning: Cleaning


class _Event(NamedTuple):
    """Pairs that a rule left out of a shard's part of a corpus."""

    first: tuple[int, int, int]  # corpus, number of the first pair, and 0 for what stood before that pair
    rule: str
    number: int
    lines: list[Origin]


def settle(folder: Path, plan: Plan) -> bool:
    """Decide on all pairs that the first round has left, unless that is done; whether it was done now.

    Raises UserError if shards are missing, or if nothing is left to train on.
    """
    if is_whole(folder / SETTLED, plan):
        return False
    complain_of_missing(
        folder, [shard for shard in plan.all() if not is_done(folder, plan, READ, shard)], " of the first round"
    )
    return write_once(folder / SETTLED, plan, lambda aside: _settle(folder, plan, aside))


def read_settled(folder: Path) -> Settled:
    """What was decided."""
    found = json.loads((folder / SETTLED / SETTLED_FILE).read_bytes())
    lines = {rule: [Origin(*each) for each in origins] for rule, origins in found["lines"].items()}
    cleaning = Cleaning(Counter(found["left_out"]), lines, found["read"])
    return Settled(found["files"], found["held_out"], found["dropped"], cleaning)


def _settle(folder: Path, plan: Plan, aside: Path) -> None:
    data = planned_data(plan)
    corpora = [[open_found(folder, shard, number) for shard in plan.all()] for number in range(len(data.corpora))]
    events: list[_Event] = []
    for number, corpus in enumerate(corpora):
        events += _left_out(number, corpus)
        events += _of_all(number, corpus, data)
    cleaning = _together(events)
    cleaning.read = sum(found.read for corpus in corpora for found in corpus)
    names = [_names(corpus) for corpus in corpora]
    spools = [found.spool for corpus in corpora for found in corpus]
    held_out, dropped = preparation.split_off(data, spools, cleaning)
    kept = sum(spool.count() for spool in spools)
    if not kept:
        raise UserError(preparation.nothing_left(data, cleaning))
    _vocabulary(data, plan, corpora, kept).save(aside)
    for number, corpus in enumerate(corpora):
        for shard, found in zip(plan.all(), corpus, strict=True):
            found.spool.parts.tofile(aside / parts_name(shard, number))
    preparation.write_valid(aside, held_out)
    settled = {
        "files": names,
        "held_out": len(held_out),
        "dropped": dropped,
        "left_out": cleaning.counts,
        "lines": cleaning.lines,
        "read": cleaning.read,
    }
    (aside / SETTLED_FILE).write_text(json.dumps(settled, ensure_ascii=False), encoding="utf-8")


def _vocabulary(data: DataConfig, plan: Plan, corpora: Sequence[Sequence[Found]], trained_on: int) -> Tokenizer:
    if plan.call["vocabulary"]:
        return Tokenizer.load(plan.call["vocabulary"])
    size = plan.call["data.vocab_size"] or size_table.sizes_for(trained_on).vocab_size
    spools = [[found.spool for found in corpus] for corpus in corpora]
    kept = sum(int(np.count_nonzero(spool.parts != REPEATED)) for corpus in spools for spool in corpus)
    some = [spool for corpus in spools for spool in thinned(corpus, preparation.read_to_learn(kept))]
    targets = Texts([spool for corpus in spools for spool in corpus] if data.symbols else some, 1)
    return preparation.learn_vocabulary(data, Texts(some, 0), targets, size)


def thinned(shards: Sequence[Spool], every: int) -> list[Spool]:
    """The shards of a corpus with as many of their pairs as one spool of it gives with one block of so many."""
    copies, before = [], 0
    for spool in shards:
        kept = spool.parts != REPEATED
        blocks = (before + np.cumsum(kept) - 1) // CHUNK
        copies.append(copy.copy(spool))
        copies[-1].parts = np.where(blocks % every == 0, spool.parts, REPEATED).astype(np.int8)
        before += int(np.count_nonzero(kept))
    return copies


def _left_out(corpus: int, shards: Sequence[Found]) -> Iterator[_Event]:
    """What the shards of a corpus have left out by rules that need no more than the pair."""
    before = 0
    for found in shards:
        for rule, left in found.left.items():
            yield _Event((corpus, before + left.first, 0), rule, left.number, left.lines)
        before += len(found.lines)


def _of_all(corpus: int, shards: Sequence[Found], data: DataConfig) -> Iterator[_Event]:
    """What is left out by rules that come after those: what repeats an earlier pair, and the parts say so, first."""
    ends = np.cumsum([0, *(len(found.lines) for found in shards)]).tolist()
    parts = [slice(begin, end) for begin, end in pairwise(ends)]
    repeats, nearly = np.zeros((2, ends[-1]), dtype=bool)
    if data.deduplicate:
        repeats = later(lambda: (found.hashes for found in shards))
    if NEAR_DUPLICATE in data.rules:
        nearly[~repeats] = later(lambda: (found.near[~repeats[its]] for found, its in zip(shards, parts, strict=True)))
    for found, its in zip(shards, parts, strict=True):
        repeated = repeats[its] | nearly[its]
        found.spool.parts[repeated[found.spooled]] = REPEATED
        numbered = {DUPLICATE: np.flatnonzero(repeats[its]), NEAR_DUPLICATE: np.flatnonzero(nearly[its])}
        for rule, numbers in (numbered | _others(found, repeated)).items():
            if len(numbers):
                lines = [found.origin(number) for number in numbers[:LINES_KEPT].tolist()]
                yield _Event((corpus, its.start + int(numbers[0]), 1), rule, len(numbers), lines)


def _others(found: Found, repeated: NDArray[np.bool_]) -> dict[str, NDArray[np.int64]]:
    """Pairs that were left out when a shard was written and are no repetitions, by rule."""
    numbers = {rule: np.array(each, np.int64) for rule, each in found.later.items()}
    return {rule: each[~repeated[each]] for rule, each in numbers.items()}


def later(blocks: Callable[[], Iterable[Bits64]]) -> NDArray[np.bool_]:
    """Whether an equal hash stands before; blocks: gives all hashes, whenever it is called."""
    repeats = np.ones(sum(map(len, blocks())), dtype=bool)
    for places, hashes in alike(blocks):
        repeats[places[np.unique(hashes, return_index=True)[1]]] = False
    return repeats


def _together(events: Sequence[_Event]) -> Cleaning:
    """As one process would have counted: a rule stands where it was first broken."""
    cleaning = Cleaning()
    first: dict[str, tuple[int, int, int]] = {}
    for event in events:
        first[event.rule] = min(event.first, first.get(event.rule, event.first))
    for rule in sorted(first, key=lambda rule: first[rule]):
        for event in events:
            if event.rule == rule:
                cleaning.counts[rule] += event.number
                lines = cleaning.lines.setdefault(rule, [])
                lines += event.lines[: LINES_KEPT - len(lines)]
    return cleaning


def _names(shards: Sequence[Found]) -> list[str]:
    """The files of what isn't repeated of a corpus, in the order in which they occur."""
    names: dict[str, None] = {}
    for found in shards:
        kept = found.spooled[found.spool.parts != REPEATED]
        numbers, first = np.unique(found.files[kept], return_index=True)
        names |= dict.fromkeys(found.names[number] for number in numbers[np.argsort(first)].tolist())
    return list(names)
