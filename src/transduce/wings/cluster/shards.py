"""Splits the input of a command into contiguous parts, called shards, and records the split in a folder.

folder/   plan.json      the settings, the input files and the number of shards
          …              the results of complete shards
"""

import dataclasses
import hashlib
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple, Self

from transduce.system.errors import UserError
from transduce.system.files import digest, make_folder, to_json, write_text

PACKAGE, PLAN = "transduce", "plan.json"
PLAN_FORMAT = 1  # plans with another format are refused
SHARD_DIGITS = 5  # digits in file names, with zeros in front so that names sort by number
MAX_SHARDS_NAMED = 10  # maximum in an error message

NumShards = int | Callable[[int], int]  # the number, or a function from the total length to it


@dataclass(frozen=True, order=True)
class Shard:
    """One of `count` contiguous parts of an input."""

    number: int  # number of the shard, from 1
    count: int

    @property
    def name(self) -> str:
        """The shard's name in file names, such as 00003-of-00016."""
        return f"{self.number:0{SHARD_DIGITS}}-of-{self.count:0{SHARD_DIGITS}}"

    def cut(self, length: int, unit: int) -> tuple[int, int]:
        """The shard's range in an input of `length` lines or pairs, as its first index and the index after its last.

        All ranges begin at multiples of `unit`, and their lengths differ by at most `unit`.
        """
        units = -(-length // unit)
        begin, end = (units * number // self.count for number in (self.number - 1, self.number))
        return min(begin * unit, length), min(end * unit, length)

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"


def read_shard(text: str) -> Shard:
    """Parse a shard such as "3/16". Raises UserError for an invalid text."""
    match = re.fullmatch(rf"(\d{{1,{SHARD_DIGITS}}})/(\d{{1,{SHARD_DIGITS}}})", text, re.ASCII)
    if not match or not 1 <= int(match[1]) <= int(match[2]):
        raise UserError(
            f"{text} is not a shard.",
            "Give its number, counted from 1, and the number of shards, such as 3/16. "
            f"There are at most {10**SHARD_DIGITS - 1:,} shards.",
        )
    return Shard(int(match[1]), int(match[2]))


class Input(NamedTuple):
    """An input file, with properties that reveal a later change of its content."""

    file: str
    size: int
    modified: int  # nanoseconds since 1970; if it differs, the hashes are compared
    sha256: str

    @classmethod
    def of(cls, file: str) -> Self:
        """Record the current size, modification time and hash of a file."""
        status = _status(file)
        return cls(file, status.st_size, status.st_mtime_ns, digest(Path(file)))

    def is_same(self, file: str) -> bool:
        """Whether `file` has the content that was recorded."""
        status = _status(file)
        if status.st_size != self.size:
            return False
        return status.st_mtime_ns == self.modified or digest(Path(file)) == self.sha256


@dataclass(frozen=True)
class Plan:
    """The division of an input into shards, and the settings with which all shards are processed."""

    kind: str  # the command
    shards: int
    call: Mapping[str, Any]  # the settings that the result depends on, named as in messages
    inputs: Sequence[Input]
    lengths: Sequence[int]  # lines of the file, or pairs of each corpus
    unit: int  # shards begin at multiples of it

    @property
    def key(self) -> str:
        """A hash of the plan, recorded with the results of each shard."""
        return hashlib.sha256(
            json.dumps([PLAN_FORMAT, dataclasses.asdict(self)], sort_keys=True).encode()
        ).hexdigest()

    def cuts(self, shard: Shard) -> list[tuple[int, int]]:
        """The shard's range in the input file, or its range in each corpus (see `Shard.cut`)."""
        return [shard.cut(length, self.unit) for length in self.lengths]

    def part(self, shard: Shard, things: str) -> str:
        """A phrase that states the shard's ranges, such as "lines 1 to 500". `things` is "lines" or "pairs"."""
        parts = [f"{things} {begin + 1:,} to {end:,}" for begin, end in self.cuts(shard)]
        return (
            parts[0]
            if len(parts) == 1
            else ", ".join(f"{part} of corpus {n}" for n, part in enumerate(parts, 1))
        )

    def all(self) -> list[Shard]:
        """All shards, in order."""
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
    """Read the plan in `folder`. If there is none, make a plan and write it.

    `measure` returns `Plan.lengths`. `unit` computes `Plan.unit` from the total length and the number of shards. Raises
    UserError if an existing plan contradicts the arguments, or if the folder has files but no plan.
    """
    call = {PACKAGE: version(PACKAGE), **call}
    names = {path.name for path in folder.iterdir()} if folder.is_dir() else set[str]()
    if PLAN not in names:  # another shard may be writing the plan now
        if (folder.exists() and not folder.is_dir()) or any(
            not name.startswith(".") for name in names
        ):
            raise UserError(
                f"{folder} is not a folder of shards.", "Name a new folder for the shards."
            )
        lengths = measure()  # raises UserError if the input can't be read
        number = shards(sum(lengths)) if callable(shards) else shards
        new = Plan(
            kind,
            number,
            call,
            [Input.of(file) for file in files],
            lengths,
            unit(sum(lengths), number),
        )
        make_folder(folder)
        if not (folder / PLAN).exists():  # otherwise, another process has just written the plan
            write_text(folder / PLAN, to_json({"format": PLAN_FORMAT} | dataclasses.asdict(new)))
    plan = read_plan(folder)
    for difference in _differences(
        plan, kind, call, files, plan.shards if callable(shards) else shards
    ):
        raise UserError(
            f"{folder} holds shards of an earlier run{difference}.",
            "Use the settings of that run or another folder, or delete this folder.",
        )
    return plan


def read_plan(folder: Path) -> Plan:
    """Read the plan in a folder of shards. Raises UserError if the plan is missing or damaged."""
    path = folder / PLAN
    try:
        plan = json.loads(path.read_bytes())
        form = plan.pop("format")
        if form == PLAN_FORMAT and plan["shards"] not in range(1, 10**SHARD_DIGITS):
            raise ValueError(plan["shards"])
        if form == PLAN_FORMAT:
            return Plan(**plan | {"inputs": [Input(*file) for file in plan["inputs"]]})
    except FileNotFoundError:
        raise UserError(
            f"{folder} holds no shards: {path} is missing.", "Name the folder of the shards."
        ) from None
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        raise UserError(f"{path} is damaged.", "Write the shards into another folder.") from None
    raise UserError(
        f"{path} has format {form}, not {PLAN_FORMAT}.",
        "Use the version of transduce that wrote it.",
    )


def check_version(plan: Plan) -> None:
    """Raise UserError unless the installed version of transduce is the version that made the plan."""
    planned = plan.call[PACKAGE]
    installed = version(PACKAGE)
    if planned != installed:
        raise UserError(
            f"A worker has {PACKAGE} {installed} instead of {planned}.",
            "Install the same version on all machines.",
        )


def require_all(folder: Path, missing: Sequence[Shard], what: str = "") -> None:
    """Raise UserError unless `missing` is empty. `what` follows the word "shards" in the message."""
    if missing:
        named = ", ".join(map(str, missing[:MAX_SHARDS_NAMED])) + (
            ", …" if len(missing) > MAX_SHARDS_NAMED else ""
        )
        raise UserError(
            f"{folder} lacks {len(missing):,} of {missing[0].count:,} shards{what}: {named}.",
            f"Run {('them' if len(missing) > 1 else 'it')}, then join again.",
        )


def _differences(
    plan: Plan, kind: str, call: Mapping[str, Any], files: Sequence[str], shards: int
) -> Iterator[str]:
    """Yield a phrase for each difference between a plan and the arguments of `agree`."""
    old = {"command": plan.kind, "number of shards": plan.shards, **plan.call}
    old |= {"number of input files": len(plan.inputs)}
    new = {"command": kind, "number of shards": shards, **json.loads(json.dumps(call))}
    new |= {"number of input files": len(files)}
    for name in dict.fromkeys((*old, *new)):
        if old.get(name) != new.get(name):
            yield f", with {name} {old.get(name)} instead of {new.get(name)}"
    for input, file in zip(plan.inputs, files, strict=False):
        if not input.is_same(file):
            yield f": {file} differs from that run's input {input.file}"


def _status(file: str) -> os.stat_result:
    try:
        return Path(file).stat()
    except OSError as error:
        raise UserError(
            f"{file} can't be read: {error.strerror}.", "Check its name and permissions."
        ) from None
