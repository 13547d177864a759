"""Prepares a corpus in shards and stores the results of each shard in a shared folder.

    folder/   read-00003-of-00016/      first round: the clean pairs of shard 3, in a folder per corpus (corpus-0/ …)
              aggregate/                results for all shards, in tokenizer.model, valid.jsonl and decisions.json
                                        parts-00003-of-00016-0 has the `Part` of each pair of shard 3 in corpus 0
              encoded-00003-of-00016/   second round: the token ids of each kept pair, with its file and line

Sharding changes nothing in the prepared corpus except the recorded preparation time.
"""

import dataclasses
import json
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, count, islice, repeat
from pathlib import Path
from typing import Any

import numpy as np

from transduce.config import size_table
from transduce.config.parse import configure
from transduce.config.schema import DataConfig, RunConfig, flatten
from transduce.preparation import passes
from transduce.preparation.aggregate import aggregate, kept_files, learn_vocabulary
from transduce.preparation.prepared import (
    VALID_FILE,
    Prepared,
    open_prepared,
    store_path,
    write_facts,
    write_valid,
)
from transduce.preparation.staging import StagedPairs
from transduce.system.errors import UserError
from transduce.system.files import digest, remove_leftovers, verify, write_folder
from transduce.text.clean import CHUNK, Cleaning
from transduce.text.multilingual import without_labels
from transduce.text.pairs import Origin, Pair, are_line_aligned, expand_folders, read_pairs
from transduce.text.plain import display_name, read_lines, without_byte_order_mark
from transduce.text.rules import Checker, check_names
from transduce.tokens.store import Encoded, write_store
from transduce.tokens.tokenizer import FILES, Tokenizer
from transduce.tokens.vocabulary import Rows
from transduce.wings.cluster.shards import NumShards, Plan, Shard, agree, require_all

PREPARATION_PLAN = "prepare"  # Plan.kind of preparations
READ_ROUND, ENCODED_ROUND, AGGREGATE = "read", "encoded", "aggregate"
DONE, DECISIONS, CLEANING, BLOCKS = "shard.json", "decisions.json", "left-out.json", "blocks"


def plan_preparation(
    data: DataConfig,
    folder: Path,
    shards: NumShards,
    *,
    vocab_size: int = 0,
    vocabulary: Path | None = None,
    unit: int = CHUNK,
) -> Plan:
    """Read or make the plan of a sharded preparation. Raises UserError if `folder` has a plan with other settings.

    If `vocab_size` is 0, the number of pairs determines the vocabulary size. Each shard begins at a multiple of `unit`.
    """
    tokenizer = Tokenizer.load(vocabulary) if vocabulary else None
    data = passes.checked(data, tokenizer)
    passes.check_tags(data, tokenizer)
    check_names(passes.rules_of(data).others)
    data = passes.with_placeholders(data, tokenizer)
    passes.check_rereadable(
        (file for corpus in data.corpora for file in corpus.files), "split into shards"
    )
    call = flatten(RunConfig(data=data), ["data"])
    call |= {
        "data.corpora": [dataclasses.asdict(corpus) for corpus in data.corpora],
        "data.vocab_size": vocab_size,
    }
    call |= {"vocabulary": str(vocabulary or "")}
    if vocabulary:
        files = [vocabulary / name for name in FILES]
        call |= {"its content": [digest(file) for file in files if file.exists()]}
    inputs = expand_folders(
        [
            *(file for corpus in data.corpora for file in corpus.files),
            *without_labels((*data.valid, *data.test)),
        ]
    )
    return agree(
        folder,
        PREPARATION_PLAN,
        call,
        inputs,
        measure=lambda: [
            _count_pairs(corpus.files, passes.languages_in(data, corpus)) for corpus in data.corpora
        ],
        shards=shards,
        unit=lambda *_: unit,
    )


def planned_data(plan: Plan) -> DataConfig:
    """The data options in the plan of a preparation, including the corpora."""
    options = {name: value for name, value in plan.call.items() if name.startswith("data.")}
    return configure(
        {name: value for name, value in options.items() if name != "data.vocab_size"}
    ).data


def stage_shard(folder: Path, plan: Plan, shard: Shard) -> bool:
    """Read and clean the pairs of a shard (first round). Returns False if the results already exist."""
    data = planned_data(plan)
    vocabulary = plan.call["vocabulary"]
    tokenizer = Tokenizer.load(vocabulary) if vocabulary else None

    def write(aside: Path) -> None:
        for number, (corpus, cut) in enumerate(zip(data.corpora, plan.cuts(shard), strict=True)):
            own = passes.data_of(data, corpus)
            languages = passes.languages_in(data, corpus)
            # The rules see the texts without the tags of a synthetic corpus.
            first, pairs = (
                passes.with_normalised_texts(_part(corpus.files, languages, *part), data, tokenizer)
                for part in ((0, CHUNK), cut)
            )
            beginning = [(pair.source, pair.target) for pair in first]
            checker = Checker(passes.rules_of(own), list(zip(*beginning, strict=True)))
            passes.read_part(pairs, own, aside / _corpus(number), checker, tag=corpus.tag)

    return _write_once(shard_folder(folder, READ_ROUND, shard), plan, write)


def aggregate_shards(folder: Path, plan: Plan) -> bool:
    """Find repeated pairs, hold out the validation set and learn the vocabulary. Returns False if this was done before.

    Raises UserError if a shard lacks the results of the first round, or if no pair is left to train on.
    """
    if is_aggregated(folder, plan):
        return False
    require_all(folder, missing(folder, plan, READ_ROUND), " of the first round")
    for shard in plan.all():
        verify(shard_folder(folder, READ_ROUND, shard), hashes=True)
    return _write_once(folder / AGGREGATE, plan, lambda aside: _aggregate(folder, plan, aside))


def encode_shard(folder: Path, plan: Plan, shard: Shard, threads: int = 1) -> bool:
    """Encode the pairs of a shard (second round). Returns False if the results already exist."""
    data = planned_data(plan)

    def write(aside: Path) -> None:
        for path in (folder / AGGREGATE, shard_folder(folder, READ_ROUND, shard)):
            verify(path, hashes=True)
        tokenizer = Tokenizer.load(folder / AGGREGATE, threads)
        for number, files in enumerate(_read_json(folder / AGGREGATE / DECISIONS)["files"]):
            staged = _staged(folder, shard, number)
            staged.parts = np.fromfile(folder / AGGREGATE / _parts_name(shard, number), np.int8)
            cleaning = Cleaning()
            part = aside / _corpus(number)
            part.mkdir()
            with (part / BLOCKS).open("wb") as file:
                for block in passes.encode_part(
                    staged, files, tokenizer, data.max_length, cleaning
                ):
                    for array in (*block.source, *block.target, block.files, block.lines):
                        np.save(file, array)
            _write_json(part / CLEANING, cleaning)

    return _write_once(shard_folder(folder, ENCODED_ROUND, shard), plan, write)


def merge_prepared(folder: Path, plan: Plan, out: Path) -> Prepared:
    """Merge all shards into the new folder `out`. Raises UserError if a shard is missing or damaged."""
    require_all(folder, missing(folder, plan, READ_ROUND), " of the first round")
    require_all(folder, missing(folder, plan, ENCODED_ROUND), " of the second round")
    read, encoded = (
        [shard_folder(folder, name, each) for each in plan.all()]
        for name in (READ_ROUND, ENCODED_ROUND)
    )
    for path in (folder / AGGREGATE, *encoded):
        verify(path, hashes=True)
    decisions = _read_json(folder / AGGREGATE / DECISIONS)
    data = planned_data(plan)
    cleaning = _cleaning(decisions["cleaning"])
    remove_leftovers(folder)
    with write_folder(out) as aside:
        for path in (folder / AGGREGATE).iterdir():
            if path.name.startswith("tokenizer") or path.name == VALID_FILE:
                shutil.copyfile(path, aside / path.name)
        for number in range(len(data.corpora)):
            parts = [path / _corpus(number) for path in encoded]
            write_store(store_path(aside, number), chain.from_iterable(map(_encoded, parts)))
            for part in parts:
                left_out = _cleaning(_read_json(part / CLEANING))
                for rule, count in left_out.counts.items():
                    cleaning.add(rule, count, left_out.lines[rule])
        seconds = sum(
            _read_json(path / DONE)["seconds"] for path in (*read, *encoded, folder / AGGREGATE)
        )
        write_facts(aside, data, **decisions | {"cleaning": cleaning}, seconds=seconds)
    return open_prepared(out, hashes=False)


def missing(folder: Path, plan: Plan, round: str) -> list[Shard]:
    """The shards that lack the results of `round`. Raises UserError if a shard's folder is damaged."""
    return [shard for shard in plan.all() if not is_whole(shard_folder(folder, round, shard), plan)]


def is_aggregated(folder: Path, plan: Plan) -> bool:
    """Whether `aggregate_shards` has finished, so that the second round can begin."""
    return is_whole(folder / AGGREGATE, plan)


def is_whole(path: Path, plan: Plan) -> bool:
    """Whether the folder `path` exists. Raises UserError if it is damaged or belongs to another plan."""
    if not path.exists():
        return False
    verify(path)
    verify(path, hashes=True, only=DONE)
    if _read_json(path / DONE)["plan"] != plan.key:
        raise UserError(
            f"{path} does not belong to the plan in {path.parent}.", "Remove this folder."
        )
    return True


def shard_folder(folder: Path, round: str, shard: Shard) -> Path:
    """The folder that holds a shard's results of one round, such as read-00003-of-00016."""
    return folder / f"{round}-{shard.name}"


def _write_once(path: Path, plan: Plan, write: Callable[[Path], None]) -> bool:
    """Create the folder `path` by calling `write`. Returns False if the folder existed before."""
    if is_whole(path, plan):
        return False
    began = time.monotonic()
    try:
        with write_folder(path) as aside:
            write(aside)
            _write_json(
                aside / DONE, {"plan": plan.key, "seconds": round(time.monotonic() - began, 3)}
            )
    except UserError:
        if not is_whole(path, plan):
            raise
        return False
    return True


def _aggregate(folder: Path, plan: Plan, aside: Path) -> None:
    data = planned_data(plan)
    corpora = [
        [_staged(folder, shard, number) for shard in plan.all()]
        for number in range(len(data.corpora))
    ]
    whole = aggregate(data, corpora)
    if plan.call["vocabulary"]:
        tokenizer = Tokenizer.load(plan.call["vocabulary"])
    else:
        size = plan.call["data.vocab_size"] or size_table.sizes_for(whole.pairs).vocab_size
        tokenizer = learn_vocabulary(data, corpora, size)
    tokenizer.save(aside)
    for number, parts in enumerate(corpora):
        for shard, staged in zip(plan.all(), parts, strict=True):
            staged.parts.tofile(aside / _parts_name(shard, number))
    write_valid(aside, whole.held_out)
    decisions = {
        "files": [kept_files(parts) for parts in corpora],
        "held_out": len(whole.held_out),
        "dropped": whole.dropped,
        "cleaning": whole.cleaning,
    }
    _write_json(aside / DECISIONS, decisions)


def _staged(folder: Path, shard: Shard, corpus: int) -> StagedPairs:
    return StagedPairs.open(shard_folder(folder, READ_ROUND, shard) / _corpus(corpus))


def _encoded(part: Path) -> Iterator[Encoded]:
    """Read the blocks that `encode_shard` wrote for one corpus."""
    path = part / BLOCKS
    with path.open("rb") as file:
        while file.tell() < path.stat().st_size:
            source, target = (Rows(np.load(file), np.load(file)) for _ in range(2))
            yield Encoded(source, target, np.load(file), np.load(file))


def _write_json(path: Path, value: object) -> None:
    path.write_text(json.dumps(value, default=vars, ensure_ascii=False), encoding="utf-8")


def _read_json(path: Path) -> dict[str, Any]:
    values: dict[str, Any] = json.loads(path.read_bytes())
    return values


def _cleaning(values: dict[str, Any]) -> Cleaning:
    lines = {
        rule: [Origin(*origin) for origin in origins] for rule, origins in values["lines"].items()
    }
    return Cleaning(Counter(values["counts"]), lines, values["read"])


def _corpus(number: int) -> str:
    return f"corpus-{number}"


def _parts_name(shard: Shard, corpus: int) -> str:
    return f"parts-{shard.name}-{corpus}"


def _part(files: Sequence[str], languages: tuple[str, str], begin: int, end: int) -> Iterator[Pair]:
    """The pairs of a corpus from index `begin` up to, but not including, index `end`."""
    if are_line_aligned(files):  # skipping lines is faster than skipping pairs
        texts = [islice(without_byte_order_mark(read_lines(file)), begin, end) for file in files]
        origins = map(Origin, repeat(display_name(files[0])), count(begin + 1))
        return (
            Pair(source, target, origin)
            for source, target, origin in zip(*texts, origins, strict=False)
        )
    return islice(read_pairs(files, languages), begin, end)


def _count_pairs(files: Sequence[str], languages: tuple[str, str]) -> int:
    """The number of pairs of a corpus; raises UserError if the corpus can't be read."""
    next(read_pairs(files, languages), None)
    if are_line_aligned(files):
        lines = [sum(1 for _ in read_lines(file)) for file in files]
        if lines[0] == lines[1]:
            return lines[0]
    # Also raises UserError if two files have unequal lengths.
    return sum(1 for _ in read_pairs(files, languages))
