"""Shards: contiguous parts of the input of one call, and the folder of their results.

    folder/   plan.json      the call, the number of shards and the input files; written by the first shard
              …              the result of each shard, whole or not at all

The results in the order of their names are the result of the whole call.
"""

import dataclasses
import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple, Self

from transduce.system.errors import UserError
from transduce.system.files import digest, to_json, write_text

PACKAGE, PLAN = "transduce", "plan.json"
PLAN_FORMAT = 1  # another one is refused
SHARD_DIGITS = 5  # in names, so that they are in order
MAX_SHARDS_NAMED = 10  # in a message

NumShards = int | Callable[[int], int]  # or a function that chooses it for a new plan, from the total length


@dataclass(frozen=True, order=True)
class Shard:
    """One part of a call."""

    number: int  # from 1
    count: int

    @property
    def name(self) -> str:
        """Its name in file names, which are in the order of the shards."""
        return f"{self.number:0{SHARD_DIGITS}}-of-{self.count:0{SHARD_DIGITS}}"

    def cut(self, length: int, unit: int) -> tuple[int, int]:
        """Begin and end of its part of `length` lines or pairs, counted from 0.

        The parts tile the whole and begin at multiples of `unit`; their sizes differ by one unit at most.
        """
        units = -(-length // unit)
        begin, end = (units * number // self.count for number in (self.number - 1, self.number))
        return min(begin * unit, length), min(end * unit, length)

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"


def read_shard(text: str) -> Shard:
    """Parse a shard such as 3/16; raises UserError for anything else."""
    number, slash, count = text.partition("/")
    if not slash or not (number.isdecimal() and count.isdecimal()):
        raise UserError(f"{text} is not a shard: give its number and how many there are, such as 3/16.")
    if not 1 <= int(number) <= int(count) < 10**SHARD_DIGITS:
        raise UserError(f"{text} is not a shard: they are counted from 1, so there are 1/{count} to {count}/{count}.")
    return Shard(int(number), int(count))


class Input(NamedTuple):
    """An input file, and what shows whether it has changed."""

    file: str
    size: int
    modified: int  # nanoseconds since 1970; if it differs, the content decides
    sha256: str

    @classmethod
    def of(cls, file: str) -> Self:
        """The file as it is now."""
        status = _status(file)
        return cls(file, status.st_size, status.st_mtime_ns, digest(Path(file)))

    def is_same(self, file: str) -> bool:
        """Whether another file, or this file by now, has the same content."""
        status = _status(file)
        if status.st_size != self.size:
            return False
        return status.st_mtime_ns == self.modified or digest(Path(file)) == self.sha256


@dataclass(frozen=True)
class Plan:
    """The call that the shards of a folder belong to."""

    kind: str  # the command
    shards: int
    call: Mapping[str, Any]  # what the result depends on, by names for messages
    inputs: Sequence[Input]
    lengths: Sequence[int]  # lines of the file, or pairs of each corpus
    unit: int  # parts begin at multiples of it

    @property
    def key(self) -> str:
        """A hash that shards record, to know the plan that they belong to."""
        return hashlib.sha256(json.dumps([PLAN_FORMAT, dataclasses.asdict(self)], sort_keys=True).encode()).hexdigest()

    def cuts(self, shard: Shard) -> list[tuple[int, int]]:
        """Begin and end of the shard's part of each length."""
        return [shard.cut(length, self.unit) for length in self.lengths]

    def part(self, shard: Shard, things: str) -> str:
        """A shard's part in words; things: "lines" or "pairs"."""
        parts = [f"{things} {begin + 1:,} to {end:,}" for begin, end in self.cuts(shard)]
        return parts[0] if len(parts) == 1 else ", ".join(f"{part} of corpus {n}" for n, part in enumerate(parts, 1))

    def all(self) -> list[Shard]:
        """The shards, in order."""
        return [Shard(number, self.shards) for number in range(1, self.shards + 1)]


def agree(
    folder: Path,
    kind: str,
    call: Mapping[str, Any],
    files: Sequence[str],
    *,
    measure: Callable[[], Sequence[int]],
    shards: NumShards,
    unit: Callable[[int, int], int],
) -> Plan:
    """The plan of the folder; a new folder gets one, with the lengths that `measure` returns.

    unit: total length and number of shards -> the unit that parts begin at multiples of. Raises UserError if the folder
    has the plan of another call, or holds something else.
    """
    call = {PACKAGE: version(PACKAGE), **call}
    names = {path.name for path in folder.iterdir()} if folder.is_dir() else set[str]()
    if PLAN not in names:  # another shard may be writing it now
        if (folder.exists() and not folder.is_dir()) or any(not name.startswith(".") for name in names):
            raise UserError(f"{folder} holds something else than shards; name a new folder for them.")
        lengths = measure()  # raises UserError as the readers do
        number = shards(sum(lengths)) if callable(shards) else shards
        new = Plan(kind, number, call, [Input.of(file) for file in files], lengths, unit(sum(lengths), number))
        folder.mkdir(parents=True, exist_ok=True)
        if not (folder / PLAN).exists():  # else another shard has written one, of this call or another
            write_text(folder / PLAN, to_json({"format": PLAN_FORMAT} | dataclasses.asdict(new)))
    plan = read_plan(folder)
    for difference in _differences(plan, kind, call, files, plan.shards if callable(shards) else shards):
        raise UserError(
            f"{folder} holds the shards of another call{difference}; repeat that call, or name another folder."
        )
    return plan


def read_plan(folder: Path) -> Plan:
    """Read the plan of a folder of shards; raises UserError if there is none or it is damaged."""
    path = folder / PLAN
    try:
        plan = json.loads(path.read_bytes())
        form = plan.pop("format")
        if form == PLAN_FORMAT:
            return Plan(**plan | {"inputs": [Input(*file) for file in plan["inputs"]]})
    except FileNotFoundError:
        raise UserError(
            f"{folder} holds no shards: {path} is missing; name the folder that they were written to."
        ) from None
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        raise UserError(f"{path} is damaged; write the shards into another folder.") from None
    raise UserError(f"{path} has format {form}, this transduce reads format {PLAN_FORMAT}; use the one that wrote it.")


def check_version(plan: Plan) -> None:
    """Raise UserError if this is another version of transduce than the one that made the plan."""
    planned, installed = plan.call[PACKAGE], version(PACKAGE)
    if planned != installed:
        raise UserError(
            f"A worker has {PACKAGE} {installed}, the call was started with {planned}; install the same everywhere."
        )


def require_all(folder: Path, missing: Sequence[Shard], what: str = "") -> None:
    """Raise UserError that names the missing shards, if there are any; what: words behind "shards"."""
    if missing:
        named = ", ".join(map(str, missing[:MAX_SHARDS_NAMED])) + (", …" if len(missing) > MAX_SHARDS_NAMED else "")
        raise UserError(
            f"{folder} lacks {len(missing):,} of {missing[0].count:,} shards{what}: {named}; start "
            f"{'them' if len(missing) > 1 else 'it'} again."
        )


def _differences(plan: Plan, kind: str, call: Mapping[str, Any], files: Sequence[str], shards: int) -> Iterator[str]:
    """How the call of a plan differs from another call, as ends of a sentence."""
    if plan.kind != kind:
        yield f", of transduce {plan.kind}"
    if plan.shards != shards:
        yield f", with {plan.shards:,} shards instead of {shards:,}"
    new = json.loads(json.dumps(call))
    for name in dict.fromkeys((*plan.call, *new)):
        if plan.call.get(name) != new.get(name):
            yield f", with {name} {plan.call.get(name)} instead of {new.get(name)}"
    if len(plan.inputs) != len(files):
        yield f", that reads {len(plan.inputs)} files instead of {len(files)}"
    for input, file in zip(plan.inputs, files, strict=False):
        if not input.is_same(file):
            yield f": {file} is another file than {input.file} was then"


def _status(file: str) -> os.stat_result:
    try:
        return Path(file).stat()
    except OSError as error:
        raise UserError(
            f"{file} can't be read: {error.strerror}. Name the file that the shards are cut from."
        ) from None
