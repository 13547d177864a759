"""Implements `transduce join`, and the options `--shard` and `--on` of `prepare` and `translate`."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from transduce.commands.prepare import print_prepared
from transduce.system.console import log, with_progress
from transduce.system.errors import UserError
from transduce.text.plain import STANDARD_OUTPUT, check_output

if TYPE_CHECKING:
    from transduce.commands.translate import Call
    from transduce.config.schema import DataConfig


def join(shards: Path, /, *, output: Path | None = None) -> None:
    """Merge the shards written by `transduce translate --shard` or `transduce prepare --shard`.

    If shards are missing or damaged, the command lists these shards and writes no output.

    Args:
        shards: The folder of the shards.
        output: The file to write translations to, or the folder to write a prepared corpus to. Not needed after the
            first round of `prepare`.
    """
    output = output or STANDARD_OUTPUT
    from transduce.wings.cluster.preparing import (
        ENCODED_ROUND,
        aggregate_shards,
        merge_prepared,
        missing,
    )
    from transduce.wings.cluster.shards import read_plan
    from transduce.wings.cluster.translating import TRANSLATION_PLAN, join_translations

    plan = read_plan(shards)
    is_text = plan.kind == TRANSLATION_PLAN
    is_new = not is_text and aggregate_shards(shards, plan)
    if output == STANDARD_OUTPUT and not is_text:
        is_new = is_new or bool(missing(shards, plan, ENCODED_ROUND))
    if is_new:
        log(
            "The first of two rounds is complete. For the second round, run transduce prepare again for every shard."
        )
    elif output == STANDARD_OUTPUT:
        raise UserError(
            f"The merged shards of {shards} can't be written to standard output.",
            f"Name a {'file' if is_text else 'folder'} with --output.",
        )
    elif is_text:
        check_output(output, [each.file for each in plan.inputs])
        join_translations(shards, output)
    else:
        print_prepared(merge_prepared(shards, plan, output))


def prepare_in_shards(
    data: "DataConfig",
    out: Path,
    *,
    vocab_size: int,
    vocabulary: Path | None,
    shard: str,
    on: str,
    workers: int | None,
    threads: int,
) -> None:
    """Prepare one shard of a corpus in this process, or all shards on Ray."""
    from transduce.wings.cluster import preparing
    from transduce.wings.cluster.on_ray import prepare_on_ray
    from transduce.wings.cluster.ray_cluster import read_address
    from transduce.wings.cluster.shards import read_shard

    if data.replay:
        raise UserError(
            "data.replay can't be used with shards.", "Prepare without --shard and --on."
        )
    if on:
        address = read_address(on)
        print_prepared(
            prepare_on_ray(
                data,
                out,
                vocab_size=vocab_size,
                vocabulary=vocabulary,
                address=address,
                workers=workers,
            )
        )
        return
    part = read_shard(shard)
    plan = preparing.plan_preparation(
        data, out, part.count, vocab_size=vocab_size, vocabulary=vocabulary
    )
    if not preparing.is_aggregated(out, plan):
        is_new = preparing.stage_shard(out, plan, part)
        done = "first"
    else:
        is_new = preparing.encode_shard(out, plan, part, threads)
        done = "second"
    already = "" if is_new else "already "
    output = " --output FOLDER" if done == "second" else ""
    log(
        f"The {done} round of shard {part} is {already}complete. "
        f"When the {done} round of all shards is complete, run transduce join {shlex.quote(str(out))}{output}"
    )


def translate_in_shards(call: "Call") -> None:
    """Translate one shard of a file in this process, or all shards on Ray."""
    from transduce.wings.cluster import translating
    from transduce.wings.cluster.on_ray import translate_on_ray
    from transduce.wings.cluster.ray_cluster import read_address
    from transduce.wings.cluster.shards import read_shard

    flag, kind = ("--on", "file") if call.on else ("--shard", "folder")
    if call.output == STANDARD_OUTPUT:
        raise UserError(f"{flag} can't write to standard output.", f"Name a {kind} with --output.")
    if call.shard and call.on:
        raise UserError("--on runs all shards.", "Leave out --shard.")
    if call.profile:
        raise UserError(
            "--profile measures one process.",
            f"Leave out {flag}.",
        )
    models = tuple(map(str, call.models))
    glossary = str(call.glossary or "")
    job = translating.Job(models, call.options, call.engine, call.format, glossary, call.direction)
    if call.on:
        call.check_output()
        address = read_address(call.on)
        translate_on_ray(job, call.input, call.output, address=address, workers=call.workers)
        return
    shard = read_shard(call.shard)
    plan = translating.plan_translation(job, call.input, call.output, shard.count)
    record = translating.find(call.output, plan, shard)
    if not record:
        translator = translating.open_translator(job)
        [(begin, end)] = plan.cuts(shard)
        log(f"Shard {shard}: {end - begin:,} of {plan.lengths[0]:,} lines, from line {begin + 1:,}")
        log(f"Engine: {translator.engine.name}")
        lines = with_progress(translating.shard_lines(call.input, begin, end), "Lines read")
        record = translating.translate_shard(translator, job, call.output, plan, shard, lines)
        record.flags.log()
    log(f"Shard {shard} is complete: {translating.shard_path(call.output, plan, shard)}")
