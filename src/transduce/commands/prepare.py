"""`transduce prepare`."""

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from transduce.commands.options import Assignments
from transduce.commands.recipes import Files, FromCode, ToCode, gather, with_languages
from transduce.config.parse import configure
from transduce.config.schema import flatten
from transduce.system.errors import UserError
from transduce.system.journal import say
from transduce.system.machine import cores

if TYPE_CHECKING:
    from transduce.preparation.prepare import Prepared


def prepare(
    recipe: str | None = None,
    /,
    *,
    out: Path,
    train: Files = (),
    valid: Files = (),
    source: FromCode = "",
    target: ToCode = "",
    vocabulary: Path | None = None,
    shard: str = "",
    on: str = "",
    workers: int | None = None,
    assignments: Assignments = (),
) -> None:
    """Clean a corpus, learn its vocabulary and encode it, once for many trainings.

    Train with it by `transduce train --train DATA`.

    Args:
        recipe: A TOML file of options, or the name of one that comes with transduce.
        out: The folder to write.
        train: The corpus: two line-aligned text files, or bilingual files (.tsv, .jsonl, .tmx, .xlf, .po, .mrg) or a
            folder of them, each possibly compressed; or two subtitle files or pages.
        valid: Held-out files; without them a leak-free part of the corpus is split off.
        source: Language code of the source, such as en; without it, from names such as train.en and train.de.
        target: Language code of the target, such as de; without it, as for the source.
        vocabulary: A model folder, or one that prepare wrote, whose vocabulary is used instead of a new one.
        shard: Prepare a part of the corpus, such as 3/16, the third of sixteen; `out` is a folder for them all. There
            are two rounds, with a `transduce join` behind each.
        on: Prepare on Ray: "ray" uses the cores of this machine, or the cluster that RAY_ADDRESS names;
            ray://HOST:PORT a cluster.
        workers: On Ray, shards that are prepared at the same time; by default one for each core.
    """
    given = gather(recipe, train=train, valid=valid, test=(), languages=(source, target), assignments=assignments)
    given = with_languages(given, train)
    from transduce.config import size_table
    from transduce.preparation import prepare as preparation  # numpy: too slow for --help
    from transduce.tokens.tokenizer import Tokenizer

    learnt = vocabulary_options(vocabulary, given) if vocabulary else {}
    if workers is not None and not on:
        raise UserError("--workers is for --on ray.")
    if shard or on:
        _scaled(given, learnt, vocabulary, out, shard, on, workers)
        return
    say("Reading the corpus …" if vocabulary else "Reading the corpus, learning the vocabulary …")
    size = given.get("data.vocab_size")
    prepared = preparation.prepare(
        configure(given, learnt).data,
        out,
        vocab_size=lambda pairs: size or size_table.sizes_for(pairs).vocab_size,
        tokenizer=Tokenizer.load(vocabulary) if vocabulary else None,
        threads=given.get("train.threads") or cores(),
    )
    say_prepared(prepared)


def _scaled(
    given: Mapping[str, Any],
    learnt: Mapping[str, Any],
    vocabulary: Path | None,
    out: Path,
    shard: str,
    on: str,
    workers: int | None,
) -> None:
    """One shard, or all of them on Ray."""
    from transduce.wings.cluster import preparing
    from transduce.wings.cluster.ray_cluster import read_address
    from transduce.wings.cluster.ray_preparing import prepare_on_ray
    from transduce.wings.cluster.shards import read_shard

    if shard and on:
        raise UserError("--on ray makes shards by itself: leave out --shard.")
    data, size = configure(given, learnt).data, given.get("data.vocab_size", 0)
    if on:
        address = read_address(on)
        say_prepared(
            prepare_on_ray(data, out, vocab_size=size, vocabulary=vocabulary, address=address, workers=workers)
        )
        return
    part = read_shard(shard)
    plan = preparing.plan_preparation(data, out, part.count, vocab_size=size, vocabulary=vocabulary)
    if not preparing.is_settled(out, plan):
        new, done = preparing.read_shard_of_corpus(out, plan, part), "read"
    else:
        new, done = preparing.encode_shard(out, plan, part, given.get("train.threads") or cores()), "encoded"
    join = f"transduce join {shlex.quote(str(out))}"
    say(f"Shard {part} is {done}{'' if new else ' already'}: {out}; when all are, start {join}")


def say_prepared(prepared: "Prepared") -> None:
    """What there is to train on, and what was left out."""
    from transduce.preparation.prepare import LEFT_OUT

    facts = prepared.facts
    read = facts.pairs + facts.held_out + facts.dropped + sum(facts.left_out.values())
    print(
        f"{facts.pairs:,} pairs to train on, {facts.held_out:,} held out, {facts.source_tokens:,} source and ", end=""
    )
    print(f"{facts.target_tokens:,} target tokens, {prepared.tokenizer.target_size:,} pieces", end="")
    print(f" in {facts.seconds:.1f} s ({read / facts.seconds:,.0f} pairs/s): {prepared.folder}")
    if facts.dropped:
        print(f"left out, with a sentence that is held out: {facts.dropped:,}")
    for rule, count in facts.left_out.items():
        print(f"left out, {rule}: {count:,} (lines in {prepared.folder / LEFT_OUT})")


def vocabulary_options(folder: Path, given: Mapping[str, Any]) -> dict[str, Any]:
    """The options that a vocabulary was learnt with; raises UserError if others are asked for."""
    from transduce import model_folder
    from transduce.preparation import prepare as preparation

    if preparation.is_prepared([str(folder)]):
        options = preparation.read_facts(folder).options
    else:
        options = flatten(model_folder.read_config(folder))
    learnt = {name: options[name] for name in ("data.tokenizer", "data.joint", "data.symbols")}
    for name in ("data.vocab_size", *learnt):
        if name in given and given[name] != learnt.get(name):
            raise UserError(f"The vocabulary of {folder} is learnt already: leave {name} out.")
    return learnt
