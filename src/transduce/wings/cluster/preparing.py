"""A corpus prepared in shards, in two rounds, to the same bytes as by one process.

What repeats, what is held out and the vocabulary are properties of a whole corpus. So each shard first reads its part
and leaves the clean text with hashes; then `settling.py` decides on all of them together; then each shard encodes what
is trained on of its part; and `joining.py` makes one prepared folder.

    folder/   read-00003-of-00016/      what the first round leaves of a shard: corpus-0/, corpus-1/, …, each with
                                        spool/ (the texts), files, lines, hashes (of every clean pair), found.json
              settled/                  what was decided (settling.py)
              encoded-00003-of-00016/   what the second round leaves: ids, lengths, files and lines of each corpus
"""

import dataclasses
import hashlib
import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count, islice, repeat
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from transduce.config.schema import DataConfig, RunConfig, configure, flatten
from transduce.preparation import prepare as preparation
from transduce.system.errors import UserError
from transduce.system.files import verify, write_folder
from transduce.text.clean import CHUNK, Cleaning, clean
from transduce.text.hashes import Bits64
from transduce.text.pairs import Origin, Pair, are_line_aligned, expand_folders, read_lines, read_pairs
from transduce.text.plain import STANDARD_INPUT, display_name, without_byte_order_mark
from transduce.text.rules import Checker
from transduce.text.staging import Spool
from transduce.tokens.packed import map_file
from transduce.tokens.store import Encoded
from transduce.tokens.tokenizer import Tokenizer
from transduce.tokens.word_cache import Rows
from transduce.wings.cluster.shards import Plan, Shard, agree

KIND = "prepare"
READ, ENCODED, SETTLED = "read", "encoded", "settled"
DONE, FOUND, BLOCKS = "shard.json", "found.json", "blocks"
SPOOL = "spool"


@dataclass(frozen=True)
class Left:
    """Pairs that a rule left out of a shard's part of a corpus."""

    number: int
    lines: list[Origin]  # of the first of them
    first: int  # clean pairs before the first of them


@dataclass(frozen=True)
class Found:
    """What a shard has read of a corpus; pairs that break no rule by themselves are counted from 0.

    What there is of every pair is mapped into memory whenever it is asked for: of all shards at once it might be too
    much, and too many files.
    """

    folder: Path
    names: list[str]  # of files
    left: dict[str, Left]  # by rule
    later: dict[str, list[int]]  # by rule, pairs that were left out when the clean ones were written
    read: int  # pairs in all
    spool: Spool  # the pairs that were written, with their numbers as lines

    @property
    def files(self) -> NDArray[np.int32]:
        """Numbers of the names (pairs,)."""
        return map_file(self.folder / "files", "i4")

    @property
    def lines(self) -> NDArray[np.int64]:
        """In these files (pairs,)."""
        return map_file(self.folder / "lines", "i8")

    @property
    def hashes(self) -> Bits64:
        """Of source and target (pairs,), to find repetitions by; none if nothing is deduplicated."""
        return map_file(self.folder / "hashes", "<u8")

    @property
    def near(self) -> Bits64:
        """The same for what is nearly repeated."""
        return map_file(self.folder / "near", "<u8")

    @property
    def spooled(self) -> NDArray[np.int64]:
        """The numbers of the pairs that were written."""
        return map_file(self.folder / SPOOL / "lines", "i8")

    def origin(self, number: int) -> Origin:
        """Where a pair comes from."""
        return Origin(self.names[self.files[number]], int(self.lines[number]))


@dataclass
class _Noting(Cleaning):
    """Counts what is left out, and remembers how many pairs had passed then."""

    passed: int = 0
    first: dict[str, int] = dataclasses.field(default_factory=dict)

    def count(self, rule: str, origin: Origin) -> None:
        super().count(rule, origin)
        self.first.setdefault(rule, self.passed)


class _Kept:
    """Writes hashes down, to be compared when those of all shards are there."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def add(self, hashes: Sequence[bytes]) -> list[bool]:
        """Nothing is known of any."""
        self._file.write(b"".join(hashes))
        return [True] * len(hashes)


@dataclass
class _Later(Cleaning):
    """Remembers the numbers of all pairs that are left out: some may turn out to be repetitions."""

    numbers: dict[str, list[int]] = dataclasses.field(default_factory=dict)

    def count(self, rule: str, origin: Origin) -> None:
        self.numbers.setdefault(rule, []).append(origin.line)


def plan_preparation(
    data: DataConfig,
    folder: Path,
    shards: int | Callable[[Sequence[int]], int],
    *,
    vocab_size: int = 0,
    vocabulary: Path | None = None,
    unit: int = CHUNK,
) -> Plan:
    """The plan of a folder for shards of a corpus (see `agree`).

    vocab_size: 0 if the corpus decides. unit: pairs that stay together, as rules may look at that many at a time.
    """
    preparation.check_corpora(data)
    data = preparation.with_placeholders(data, Tokenizer.load(vocabulary) if vocabulary else None)
    for file in (file for corpus in data.corpora for file in corpus.files):
        if file in STANDARD_INPUT:
            raise UserError("Shards can't share the standard input; write what it holds into a file.")
    call = flatten(RunConfig(data=data), ["data"])
    call |= {"data.corpora": [dataclasses.asdict(corpus) for corpus in data.corpora], "data.vocab_size": vocab_size}
    call |= {"vocabulary": str(vocabulary or ""), "its content": _fingerprint(vocabulary) if vocabulary else ""}
    files = expand_folders([*(file for corpus in data.corpora for file in corpus.files), *data.valid, *data.test])
    languages = data.source, data.target
    return agree(
        folder,
        KIND,
        call,
        files,
        measure=lambda: [_length(corpus.files, languages) for corpus in data.corpora],
        shards=shards,
        unit=lambda *_: unit,
    )


def planned_data(plan: Plan) -> DataConfig:
    """The corpus and its options."""
    given = {name: value for name, value in plan.call.items() if name.startswith("data.")}
    return configure({name: value for name, value in given.items() if name != "data.vocab_size"}).data


def read_shard_of_corpus(folder: Path, plan: Plan, shard: Shard) -> bool:
    """The first round of a shard, unless it is there; whether it was done now."""
    data = planned_data(plan)

    def write(aside: Path) -> None:
        for number, (corpus, cut) in enumerate(zip(data.corpora, plan.cuts(shard), strict=True)):
            languages = data.source, data.target
            first = [(pair.source, pair.target) for pair in _part(corpus.files, languages, 0, CHUNK)]
            checker = Checker(preparation.rules_of(data), list(zip(*first, strict=True)))
            _read(_part(corpus.files, languages, *cut), data, checker, aside / f"corpus-{number}")

    return write_once(place(folder, READ, shard), plan, write)


def open_found(folder: Path, shard: Shard, corpus: int) -> Found:
    """What the first round has left of a corpus."""
    inner = place(folder, READ, shard) / f"corpus-{corpus}"
    found = json.loads((inner / FOUND).read_bytes())
    left = {
        rule: Left(each["number"], [Origin(*origin) for origin in each["lines"]], each["first"])
        for rule, each in found["left"].items()
    }
    return Found(inner, found["names"], left, found["later"], found["read"], Spool.open(inner / SPOOL))


def encode_shard(folder: Path, plan: Plan, shard: Shard, threads: int = 1) -> bool:
    """The second round of a shard, unless it is there; whether it was done now."""
    data = planned_data(plan)

    def write(aside: Path) -> None:
        settled = json.loads((folder / SETTLED / "settled.json").read_bytes())
        tokenizer = Tokenizer.load(folder / SETTLED, threads)
        for number, names in enumerate(settled["files"]):
            found = open_found(folder, shard, number)
            found.spool.parts[:] = np.fromfile(folder / SETTLED / parts_name(shard, number), np.int8)
            _encode(found, names, tokenizer, data.max_length, aside / f"corpus-{number}")

    return write_once(place(folder, ENCODED, shard), plan, write)


def encoded_blocks(folder: Path, shard: Shard, corpus: int) -> Iterator[Encoded]:
    """What the second round has left of a corpus."""
    path = place(folder, ENCODED, shard) / f"corpus-{corpus}" / BLOCKS
    with path.open("rb") as file:
        while file.tell() < path.stat().st_size:
            source, target = (Rows(np.load(file), np.load(file)) for _ in range(2))
            yield Encoded(source, target, np.load(file), np.load(file))


def encoded_cleaning(folder: Path, shard: Shard, corpus: int) -> Cleaning:
    """What the second round has left out of a corpus."""
    inner = place(folder, ENCODED, shard) / f"corpus-{corpus}"
    found = json.loads((inner / FOUND).read_bytes())
    lines = {rule: [Origin(*each) for each in origins] for rule, origins in found["lines"].items()}
    return Cleaning(Counter(found["counts"]), lines)


def is_done(folder: Path, plan: Plan, round: str, shard: Shard) -> bool:
    """Whether a round of a shard is there, of this plan; raises UserError if it is damaged."""
    return is_whole(place(folder, round, shard), plan)


def is_settled(folder: Path, plan: Plan) -> bool:
    """Whether what lies between the rounds is done, so that shards are in the second one."""
    return is_whole(folder / SETTLED, plan)


def is_whole(path: Path, plan: Plan) -> bool:
    """Whether a folder is there and of this plan; raises UserError if it is damaged."""
    if not path.exists():
        return False
    verify(path)
    if json.loads((path / DONE).read_bytes())["plan"] != plan.key:
        raise UserError(f"{path} belongs to another plan than {path.parent} has; remove it.")
    return True


def write_once(path: Path, plan: Plan, write: Callable[[Path], None]) -> bool:
    """Have a folder written unless it is there; whether it was done now. Others may be doing the same."""
    if is_whole(path, plan):
        return False
    began = time.monotonic()
    try:
        with write_folder(path) as aside:
            write(aside)
            done = {"plan": plan.key, "seconds": round(time.monotonic() - began, 3)}
            (aside / DONE).write_text(json.dumps(done), encoding="utf-8")
    except UserError:
        if not is_whole(path, plan):
            raise
        return False
    return True


def seconds(path: Path) -> float:
    """How long a round, or what is between, took."""
    return float(json.loads((path / DONE).read_bytes())["seconds"])


def place(folder: Path, round: str, shard: Shard) -> Path:
    """The folder that a round leaves of a shard."""
    return folder / f"{round}-{shard.name}"


def parts_name(shard: Shard, corpus: int) -> str:
    """The file of what was decided about a shard's pairs of a corpus."""
    return f"parts-{shard.name}-{corpus}"


def _read(pairs: Iterator[Pair], data: DataConfig, checker: Checker, folder: Path) -> None:
    """Write what is clean of a part of a corpus, and what is to be known of it, into a new folder."""
    rules = preparation.rules_of(data)
    folder.mkdir()
    noting, later, names = _Noting(), _Later(), dict[str, int]()
    with (
        (folder / "files").open("wb") as files,
        (folder / "lines").open("wb") as lines,
        (folder / "hashes").open("wb") as hashes,
        (folder / "near").open("wb") as near,
    ):

        def numbered() -> Iterator[Pair]:
            """The pairs with their numbers as lines; where they come from is written beside."""
            # What repeats is found when all shards are read.
            for pair in clean(pairs, rules, noting, seen=_Kept(hashes), nearly_seen=_Kept(near), checker=checker):
                file, line = pair.origin
                files.write(names.setdefault(file, len(names)).to_bytes(4, sys.byteorder))
                lines.write(line.to_bytes(8, sys.byteorder))
                yield pair._replace(origin=Origin(file, noting.passed))
                noting.passed += 1

        preparation.spool(folder / SPOOL, numbered(), data, later)
    left = {
        rule: dataclasses.asdict(Left(number, noting.lines[rule], noting.first[rule]))
        for rule, number in noting.counts.items()
    }
    found = {"names": list(names), "left": left, "later": later.numbers, "read": noting.read}
    (folder / FOUND).write_text(json.dumps(found, ensure_ascii=False), encoding="utf-8")


def _encode(found: Found, names: Sequence[str], tokenizer: Tokenizer, max_length: int, folder: Path) -> None:
    """Write what is trained on of a part of a corpus into a new folder; names: of the whole corpus' files."""
    folder.mkdir()
    noted, cleaning = Cleaning(), Cleaning()
    place_of = np.array([names.index(name) if name in names else 0 for name in found.names], np.int32)
    with (folder / BLOCKS).open("wb") as file:
        for block in preparation.encoded(found.spool, tokenizer, max_length, noted):
            files, lines = place_of[found.files[block.lines]], found.lines[block.lines]
            for each in (*block.source, *block.target, files, lines):
                np.save(file, each)
    for rule, numbers in noted.lines.items():
        cleaning.lines[rule] = [found.origin(number) for _, number in numbers]
    (folder / FOUND).write_text(
        json.dumps({"counts": noted.counts, "lines": cleaning.lines}, ensure_ascii=False), encoding="utf-8"
    )


def _part(files: Sequence[str], languages: tuple[str, str], begin: int, end: int) -> Iterator[Pair]:
    """The pairs of a part of a corpus, counted from 0."""
    if are_line_aligned(files):  # lines are passed over faster than pairs
        texts = [islice(without_byte_order_mark(read_lines(file)), begin, end) for file in files]
        origins = map(Origin, repeat(display_name(files[0])), count(begin + 1))
        return (Pair(source, target, origin) for source, target, origin in zip(*texts, origins, strict=False))
    return islice(read_pairs(files, languages), begin, end)


def _length(files: Sequence[str], languages: tuple[str, str]) -> int:
    """The pairs of a corpus; raises UserError as reading them does."""
    next(read_pairs(files, languages), None)
    if are_line_aligned(files):
        lines = [sum(1 for _ in read_lines(file)) for file in files]
        if lines[0] == lines[1]:
            return lines[0]
    return sum(1 for _ in read_pairs(files, languages))  # which also says what is wrong with two files


def _fingerprint(folder: Path) -> str:
    """Of the vocabulary of a model folder or a prepared corpus."""
    contents = [part or b"" for part in Tokenizer.load(folder).models]
    return hashlib.sha256(b"".join(contents)).hexdigest()
