"""`transduce prepare`."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from transduce.commands.options import Assignments
from transduce.commands.recipes import Files, FromCode, ToCode, gather, with_languages
from transduce.config.commands import option
from transduce.config.parse import configure
from transduce.config.schema import flatten
from transduce.system.console import count, log
from transduce.system.errors import UserError
from transduce.system.machine import cores

if TYPE_CHECKING:
    from transduce.preparation.prepared import Prepared


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
    """Prepare a corpus for `transduce train --train OUT`: clean the text, learn a vocabulary and encode the text.

    Args:
        recipe: A TOML file of options, or the name of a built-in recipe.
        out: The folder to write.
        train: The corpus: two line-aligned text files, two subtitle files or two HTML pages; or bilingual files (.tsv,
            .jsonl, .tmx, .xlf, .po, .mrg …) or folders of such files. Text and bilingual files may be compressed. For
            several languages: train.en train.de train.fr, or en,de=a.tsv en,fr=b.tsv.
        valid: Validation files; by default, held-out pairs of the corpus that share no sentence with training pairs.
        source: Language code of the source, or several codes such as en,fr; by default, read from the file names.
        target: Language code of the target, or several codes such as de,cs; by default, read from the file names.
        vocabulary: Use the vocabulary of this model folder or prepared corpus instead of learning one.
        shard: Prepare one shard, such as 3/16 for the third of 16 shards; OUT is the folder of all shards. First
            prepare every shard and run `transduce join`; then do both again.
        on: Prepare on the Ray cluster ray://HOST:PORT. `ray` means the cluster at RAY_ADDRESS; if unset, this machine.
        workers: With --on, the number of shards prepared at the same time; by default one per core.
    """
    settings = gather(
        recipe,
        train=train,
        valid=valid,
        languages=(source, target),
        assignments=assignments,
    )
    settings = with_languages(settings, train)
    from transduce.config import size_table
    from transduce.preparation.prepare import prepare as run  # imports numpy: too slow for --help
    from transduce.tokens.tokenizer import Tokenizer

    learned = vocabulary_options(vocabulary, settings) if vocabulary else {}
    if workers is not None and not on:
        raise UserError("--workers can only be used with --on.")
    if shard and on:
        raise UserError("--on runs all shards.", "Leave out --shard.")
    size = settings.get("data.vocab_size", 0)
    threads = settings.get("train.threads") or cores()
    data = configure(settings, learned).data
    if shard or on:
        cluster = {"shard": shard, "on": on, "workers": workers}
        option("prepare --shard")(
            data, out, vocab_size=size, vocabulary=vocabulary, **cluster, threads=threads
        )
        return
    log("Reading the corpus …" if vocabulary else "Reading the corpus, learning the vocabulary …")
    prepared = run(
        data,
        out,
        vocab_size=lambda pairs: size or size_table.sizes_for(pairs).vocab_size,
        tokenizer=Tokenizer.load(vocabulary) if vocabulary else None,
        threads=threads,
    )
    print_prepared(prepared)


def print_prepared(prepared: "Prepared") -> None:
    """Print the sizes of a prepared corpus, and the number of pairs left out by each rule."""
    from transduce.preparation.prepared import LEFT_OUT_FILE

    facts = prepared.facts
    both = " in all directions" if facts.options["data.directions"] else ""
    read = facts.pairs + facts.held_out + facts.dropped + sum(facts.left_out.values())
    print(
        f"{count(facts.pairs, 'pair')} to train on, {facts.held_out:,} held out{both}, "
        f"{facts.source_tokens:,} source and {facts.target_tokens:,} target tokens, "
        f"{prepared.tokenizer.target.size:,} pieces in the vocabulary, {facts.seconds:.1f} s "
        f"({read / facts.seconds:,.0f} pairs/s): {prepared.folder}"
    )
    if facts.dropped:
        print(
            f"pairs left out because they share a sentence with a held-out pair: {facts.dropped:,}"
        )
    for rule, number in facts.left_out.items():
        print(
            f"pairs left out by the rule {rule}: {number:,} (listed in {prepared.folder / LEFT_OUT_FILE})"
        )


def vocabulary_options(folder: Path, chosen: Mapping[str, Any]) -> dict[str, Any]:
    """Read the vocabulary options of a folder; raises UserError if the options `chosen` contradict them."""
    from transduce import model_folder
    from transduce.preparation.passes import check_vocabulary
    from transduce.preparation.prepared import is_prepared, read_facts
    from transduce.tokens.tokenizer import Tokenizer

    prepared = is_prepared([str(folder)])
    options = read_facts(folder).options if prepared else flatten(model_folder.read_config(folder))
    learned = {name: options[name] for name in ("data.tokenizer", "data.joint", "data.symbols")}
    for name, value in learned.items():
        if chosen.get(name, value) != value:
            raise UserError(f"The vocabulary of {folder} is already learned.", f"Leave {name} out.")
    if not chosen.get("data.replay"):  # data.replay adds tokens
        check_vocabulary(chosen, Tokenizer.load(folder).source.size, folder)
    return learned
