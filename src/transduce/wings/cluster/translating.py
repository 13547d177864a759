"""Translates a file in shards, and merges the translations of all shards.

    folder/   00003-of-00016.txt    translations of the shard's lines (.jsonl instead of .txt for JSON output)
              00003-of-00016.json   line count, size, digest and flagged lines of the file above

A shard is complete if its file of translations has the recorded size.
"""

import dataclasses
import hashlib
import itertools
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from transduce import model_folder
from transduce.commands.translate import Flags, LineFormat, written
from transduce.decoding.directions import (
    choose_direction,
    directions_of,
    find_pivot,
    with_known_codes,
)
from transduce.decoding.loading import decode_config, load
from transduce.decoding.registry import EngineName
from transduce.decoding.translator import CHUNK_LINES, Translator
from transduce.system.console import count, log
from transduce.system.errors import UserError
from transduce.system.files import (
    MANIFEST,
    digest,
    remove_leftovers,
    to_json,
    write_file,
    write_text,
)
from transduce.text.plain import STANDARD_INPUT, read_lines, without_byte_order_mark, write_parts
from transduce.wings.cluster.shards import NumShards, Plan, Shard, agree, read_plan, require_all
from transduce.wings.terms.glossary import read_glossary

TRANSLATION_PLAN = "translate"  # Plan.kind of translations
COPY_BYTES = 1 << 20


@dataclass(frozen=True)
class Job:
    """The settings that affect the translation of a file."""

    models: tuple[str, ...]
    options: Mapping[str, Any]  # decode.* options
    engine: EngineName
    format: LineFormat
    glossary: str = ""  # file name
    direction: tuple[str, str] = ("", "")  # language codes, for a multilingual model

    def call(self) -> dict[str, Any]:
        """The value of `Plan.call`, with digests in place of file names. Raises UserError if a file can't be read."""
        config = model_folder.read_config(Path(self.models[0]))
        decode = decode_config(config, self.options)
        directions = directions_of(config.data)
        self.format.options(()).check(decode.beam_size)
        wanted = with_known_codes(directions, *self.direction)
        is_indirect = find_pivot(directions, wanted, {})
        direction = wanted if is_indirect else choose_direction(directions, *self.direction)
        if self.glossary:
            if self.glossary in STANDARD_INPUT or (
                Path(self.glossary).exists() and not Path(self.glossary).is_file()
            ):
                raise UserError(
                    "Each shard reads the glossary again.",
                    "Save it as a file.",
                    "glossary",
                )
            read_glossary(self.glossary, direction)
        return {
            "models": [_fingerprint(Path(model)) for model in self.models],
            "engine": self.engine,
            "direction": self.direction,
            "glossary": digest(Path(self.glossary)) if self.glossary else "",
            **dataclasses.asdict(self.format),
            **{f"decode.{name}": value for name, value in dataclasses.asdict(decode).items()},
        }


@dataclass(frozen=True)
class Record:
    """The content of a complete shard's .json file."""

    plan: str  # Plan.key
    lines: int
    size: int  # bytes
    sha256: str
    engine: str
    flags: Flags


def open_translator(job: Job, threads: int = 0) -> Translator:
    """Load the models of a job. `threads` is the number of CPU threads, or 0 for the engine's default."""
    source, target = job.direction
    return load(
        job.models, job.options, engine=job.engine, threads=threads, source=source, target=target
    )


def translate_shard(
    translator: Translator, job: Job, folder: Path, plan: Plan, shard: Shard, lines: Iterable[str]
) -> Record:
    """Translate the lines of a shard and write its two files. Returns its record."""
    terms = read_glossary(job.glossary, translator.require_direction()) if job.glossary else []
    [(begin, end)] = plan.cuts(shard)
    translations = translator.translate_lines(
        lines, job.format.options(terms), numbers=itertools.count(begin + 1)
    )
    flags = Flags()
    sha256 = hashlib.sha256()
    count = 0
    with write_file(shard_path(folder, plan, shard)) as file:
        for count, translation in enumerate(translations, 1):
            line = f"{written(translation, job.format)}\n".encode()
            sha256.update(line)
            file.write(line)
            flags.add(translation.flags, begin + count)
        if count != end - begin:
            raise UserError(
                f"Shard {shard} has {count:,} lines, not {end - begin:,}: the input was changed."
            )
        engine = translator.engine.name
        record = Record(plan.key, count, file.tell(), sha256.hexdigest(), engine, flags)
        write_text(_record_path(folder, shard), to_json(dataclasses.asdict(record)))
    return record


def check_input(input: str) -> None:
    """Raise UserError unless the input is a regular file."""
    if input in STANDARD_INPUT:
        raise UserError(
            "Standard input can't be split into shards.",
            "Save the input to a file, and name the file.",
        )
    if not Path(input).is_file():
        next(read_lines(input), None)  # raises UserError with the reason
        raise UserError(
            f"{input} is not a regular file.",
            "Save its content to a file, and name that file.",
        )


def plan_translation(job: Job, input: str, folder: Path, shards: NumShards) -> Plan:
    """Read or make the plan of a sharded translation. Raises UserError if `folder` has a plan with other settings."""
    check_input(input)
    return agree(
        folder,
        TRANSLATION_PLAN,
        job.call(),
        [input],
        measure=lambda: [sum(1 for _ in read_lines(input))],
        shards=shards,
        unit=unit_for,
    )


def unit_for(lines: int, shards: int) -> int:
    """CHUNK_LINES if there are enough chunks of that many lines for all shards, otherwise 1."""
    return CHUNK_LINES if -(-lines // CHUNK_LINES) >= shards else 1


def shard_lines(input: str, begin: int, end: int) -> Iterator[str]:
    """The lines of a file from index `begin` up to, but not including, index `end`."""
    return islice(without_byte_order_mark(read_lines(input)), begin, end)


def shard_path(folder: Path, plan: Plan, shard: Shard) -> Path:
    """The path of the file with a shard's translations."""
    format = LineFormat(
        **{name: plan.call[name] for name in ("n_best", "sentences", "alignment", "json")}
    )
    return folder / f"{shard.name}{'.jsonl' if format.is_json else '.txt'}"


def find(folder: Path, plan: Plan, shard: Shard) -> Record | None:
    """The record of a shard, or None if the shard is incomplete or belongs to another plan."""
    try:
        values = json.loads(_record_path(folder, shard).read_bytes())
        record = Record(**values | {"flags": Flags(**values["flags"])})
        if (
            record.plan == plan.key
            and shard_path(folder, plan, shard).stat().st_size == record.size
        ):
            return record
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        pass
    return None


def join_translations(folder: Path, output: Path) -> None:
    """Merge the translations of all shards into one file. Raises UserError if a shard is missing or damaged."""
    plan = read_plan(folder)
    records = {shard: find(folder, plan, shard) for shard in plan.all()}
    require_all(folder, [shard for shard, record in records.items() if record is None])
    whole = {shard: record for shard, record in records.items() if record}
    write_parts(output, _checked(folder, plan, whole))
    remove_leftovers(folder, sole_writer=True)
    engines = " and ".join(dict.fromkeys(record.engine for record in whole.values()))
    log(
        f"{count(plan.lengths[0], 'line')} of {count(plan.shards, 'shard')}, translated by {engines}: {output}"
    )
    flags = Flags()
    for record in whole.values():
        flags.extend(record.flags)
    flags.log()


def _checked(folder: Path, plan: Plan, records: Mapping[Shard, Record]) -> Iterator[bytes]:
    """Yield the translations of the shards in blocks. Raises UserError after the last block of a damaged shard."""
    for shard, record in records.items():
        path = shard_path(folder, plan, shard)
        sha256 = hashlib.sha256()
        with path.open("rb") as lines:
            while block := lines.read(COPY_BYTES):
                sha256.update(block)
                yield block
        if sha256.hexdigest() != record.sha256:
            raise UserError(
                f"{path} is damaged: its content has changed.",
                "Remove it and run its shard again.",
            )


def _record_path(folder: Path, shard: Shard) -> Path:
    return folder / f"{shard.name}.json"


def _fingerprint(folder: Path) -> str:
    """The digest of a model's manifest, or of the model's weights if there is no manifest."""
    manifest = folder / MANIFEST
    return digest(manifest if manifest.exists() else model_folder.describe(folder).weights)
