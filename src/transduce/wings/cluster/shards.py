"""Parts of one call that are done by themselves, and the folder in which their results wait to be joined.

    folder/   plan.json      the call, how many shards it has, and the files that are read: made by the first shard
              …              what each shard leaves, whole or not at all

Shards are contiguous parts, so that their results in the order of their names are the whole.
"""

import dataclasses
import hashlib
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

from transduce.system.errors import UserError
from transduce.system.files import digest, to_json, write_text

PROGRAM, PLAN = "transduce", "plan.json"
FORMAT = 1  # of plans; another one is refused
DIGITS = 5  # of a shard's number, so that names are in order
SHOWN = 10  # missing shards named


@dataclass(frozen=True, order=True)
class Shard:
    """One of the parts that a call is done in."""

    number: int  # from 1
    count: int

    @property
    def name(self) -> str:
        """By which the shards of a folder are in order."""
        return f"{self.number:0{DIGITS}}-of-{self.count:0{DIGITS}}"

    def cut(self, length: int, unit: int) -> tuple[int, int]:
        """Where its part of `length` things begins and ends, counted from 0.

        The shards tile them, as evenly as it can be with parts that begin at multiples of `unit`.
        """
        units = -(-length // unit)
        begin, end = (units * number // self.count for number in (self.number - 1, self.number))
        return min(begin * unit, length), min(end * unit, length)

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"


def read_shard(text: str) -> Shard:
    """A shard as a person writes it: 3/16; raises UserError for anything else."""
    number, slash, count = text.partition("/")
    if not slash or not (number.isdecimal() and count.isdecimal()):
        raise UserError(f"{text} is not a shard: give its number and how many there are, such as 3/16.")
    if not 1 <= int(number) <= int(count) < 10**DIGITS:
        raise UserError(f"{text} is not a shard: they are counted from 1, so there are 1/{count} to {count}/{count}.")
    return Shard(int(number), int(count))


class Input(NamedTuple):
    """A file that is read, and what tells whether it is still the same."""

    file: str
    size: int
    modified: int  # nanoseconds since 1970; where it is another one, the content decides
    sha256: str


@dataclass(frozen=True)
class Plan:
    """What the shards of a folder agree on."""

    kind: str  # the command
    shards: int
    call: Mapping[str, Any]  # what the result depends on, as a person would name it
    inputs: Sequence[Input]
    lengths: Sequence[int]  # things to share out: of a file its lines, of each corpus its pairs
    unit: int  # parts begin at multiples of it

    @property
    def key(self) -> str:
        """By which a shard knows that it belongs to this plan."""
        return hashlib.sha256(json.dumps([FORMAT, dataclasses.asdict(self)], sort_keys=True).encode()).hexdigest()

    def cuts(self, shard: Shard) -> list[tuple[int, int]]:
        """Where the shard's part of each length begins and ends."""
        return [shard.cut(length, self.unit) for length in self.lengths]

    def part(self, shard: Shard, things: str) -> str:
        """What a shard is of, as a person would say it; things: what there are lengths of."""
        parts = [f"{things} {begin + 1:,} to {end:,}" for begin, end in self.cuts(shard)]
        return parts[0] if len(parts) == 1 else ", ".join(f"{each} of corpus {n}" for n, each in enumerate(parts, 1))

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
    shards: int | Callable[[Sequence[int]], int],
    unit: Callable[[int, int], int],
) -> Plan:
    """The plan of the folder: the one that lies there, else one made now, of what `measure` finds in the files.

    shards: how many there are, or what chooses that from the lengths for a new plan. unit: of all things and the number
    of shards, what parts begin at multiples of. Raises UserError if the plan there is another call's, or the folder
    holds something else.
    """
    call = {PROGRAM: version(PROGRAM), **call}
    there = {path.name for path in folder.iterdir()} if folder.is_dir() else set[str]()  # at one time: another shard
    if PLAN not in there:  # may be writing it now
        if (folder.exists() and not folder.is_dir()) or any(not name.startswith(".") for name in there):
            raise UserError(f"{folder} holds something else than shards; name a new folder for them.")
        lengths = measure()  # which complains of what can't be read as its readers do
        inputs = [_look(file) for file in files]
        number = shards(lengths) if callable(shards) else shards
        made = Plan(kind, number, call, inputs, lengths, unit(sum(lengths), number))
        folder.mkdir(parents=True, exist_ok=True)
        if not (folder / PLAN).exists():  # another shard's, of the same call or not
            write_text(folder / PLAN, to_json({"format": FORMAT} | dataclasses.asdict(made)))
    plan = read_plan(folder)
    _compare(plan, folder, kind, call, files, plan.shards if callable(shards) else shards)
    return plan


def read_plan(folder: Path) -> Plan:
    """The plan of a folder of shards; raises UserError if there is none that can be read."""
    path = folder / PLAN
    try:
        found = json.loads(path.read_bytes())
        form = found.pop("format")
        if form == FORMAT:
            return Plan(**found | {"inputs": [Input(*each) for each in found["inputs"]]})
    except FileNotFoundError:
        raise UserError(
            f"{folder} holds no shards: {path} is missing; name the folder that they were written to."
        ) from None
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        raise UserError(f"{path} is damaged; write the shards into another folder.") from None
    raise UserError(f"{path} has format {form}, this transduce reads format {FORMAT}; use the one that wrote it.")


def check_version(plan: Plan) -> None:
    """Raise UserError where another version of this program is at work than the plan was made with."""
    there, here = plan.call[PROGRAM], version(PROGRAM)
    if there != here:
        raise UserError(
            f"A worker has {PROGRAM} {here}, the call was started with {there}; install the same everywhere."
        )


def require_all(folder: Path, missing: Sequence[Shard], what: str = "") -> None:
    """Raise UserError if any shards are missing, with what to do."""
    if missing:
        named = ", ".join(map(str, missing[:SHOWN])) + (", …" if len(missing) > SHOWN else "")
        raise UserError(
            f"{folder} lacks {len(missing):,} of {missing[0].count:,} shards{what}: {named}; start "
            f"{'them' if len(missing) > 1 else 'it'} again."
        )


def _compare(plan: Plan, folder: Path, kind: str, call: Mapping[str, Any], files: Sequence[str], shards: int) -> None:
    """Raise UserError that says in what a call differs from the one that the folder is for."""
    another = f"{folder} holds the shards of another call"
    end = "repeat that call, or name another folder."
    if plan.kind != kind:
        raise UserError(f"{another}, of transduce {plan.kind}; {end}")
    if plan.shards != shards:
        raise UserError(f"{another}, with {plan.shards:,} shards instead of {shards:,}; {end}")
    asked = json.loads(json.dumps(call))
    for name in dict.fromkeys((*plan.call, *asked)):
        if plan.call.get(name) != asked.get(name):
            raise UserError(f"{another}, with {name} {plan.call.get(name)} instead of {asked.get(name)}; {end}")
    if len(plan.inputs) != len(files):
        raise UserError(f"{another}, that reads {len(plan.inputs)} files instead of {len(files)}; {end}")
    for there, file in zip(plan.inputs, files, strict=True):
        if not _is_same(there, file):
            raise UserError(f"{another}: {file} is another file than {there.file} was then; {end}")


def _is_same(there: Input, file: str) -> bool:
    status = _status(file)
    if status.st_size != there.size:
        return False
    return status.st_mtime_ns == there.modified or digest(Path(file)) == there.sha256


def _status(file: str) -> os.stat_result:
    try:
        return Path(file).stat()
    except OSError as error:
        raise UserError(
            f"{file} can't be read: {error.strerror}; name the file that the shards are cut from."
        ) from None


def _look(file: str) -> Input:
    status = _status(file)
    return Input(file, status.st_size, status.st_mtime_ns, digest(Path(file)))
