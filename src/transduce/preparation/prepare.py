"""Prepares the corpora of a training run in one process.

wings/cluster prepares the parts of a corpus in separate processes.
"""

import dataclasses
import shutil
import time
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path

from transduce.config.schema import DataConfig
from transduce.preparation.aggregate import (
    aggregate,
    extend_vocabulary,
    kept_files,
    learn_vocabulary,
    leave_out,
)
from transduce.preparation.passes import (
    check_tags,
    checked,
    data_of,
    encode_part,
    languages_in,
    read_corpus,
    read_part,
    rules_of,
    with_normalised_texts,
    with_placeholders,
)
from transduce.preparation.prepared import (
    Prepared,
    open_prepared,
    store_path,
    write_facts,
    write_valid,
)
from transduce.preparation.replay import Remembered, Replay
from transduce.preparation.staging import StagedPairs
from transduce.system.errors import UserError
from transduce.system.files import write_folder
from transduce.text.clean import Cleaning
from transduce.text.holdout import normalised
from transduce.text.pairs import Pair
from transduce.text.rules import CHARACTERS
from transduce.tokens.store import write_store
from transduce.tokens.tokenizer import Tokenizer

STAGED = "staged"

Rewrite = Callable[[Iterator[Pair], Cleaning], Iterator[Pair]]


def prepare(
    data: DataConfig,
    folder: Path,
    *,
    vocab_size: Callable[[int], int],
    tokenizer: Tokenizer | None = None,
    threads: int = 1,
    rewrite: Rewrite | None = None,
) -> Prepared:
    """Prepare the corpora of `data`, and write the result to the new folder `folder`.

    If `tokenizer` is None, learns a vocabulary of size `vocab_size(n)` for n training pairs. If `rewrite` is not None,
    the pairs that it yields replace the training pairs of each corpus. Uses about 20 bytes of memory per pair. Raises
    UserError for an empty corpus and for invalid files.
    """
    began = time.monotonic()
    replay = Replay.open(data) if data.replay else None
    if replay:
        _check_replay(replay, data, tokenizer)
    data = checked(data, tokenizer, replay.prepared.facts.directions if replay else ())
    if not replay:
        check_tags(data, tokenizer)
    remembered = Remembered.open(data, tokenizer) if data.remember else None
    old = replay or remembered
    data = with_placeholders(data, tokenizer)
    with write_folder(folder) as aside:
        corpora = []
        for number, corpus in enumerate(data.corpora):
            own = data_of(data, corpus)
            pairs = with_normalised_texts(read_corpus(corpus, data), data, tokenizer)
            corpora.append([read_part(pairs, own, aside / STAGED / str(number), tag=corpus.tag)])
        whole = aggregate(data, corpora, old.valid if old else ())
        dropped = whole.dropped
        if rewrite:
            dropped += _rewrite(
                data, corpora, whole.held_out, whole.cleaning, rewrite, aside, tokenizer
            )
        if tokenizer and replay:
            tokenizer = extend_vocabulary(
                data, corpora, tokenizer, vocab_size(whole.pairs), replay.languages
            )
        tokenizer = tokenizer or learn_vocabulary(data, corpora, vocab_size(whole.pairs))
        tokenizer.save(aside)
        tokenizer = Tokenizer.load(aside, threads)
        files = [kept_files(parts) for parts in corpora]
        for number, parts in enumerate(corpora):
            encoded = (
                encode_part(part, files[number], tokenizer, data.max_length, whole.cleaning)
                for part in parts
            )
            write_store(store_path(aside, number), chain.from_iterable(encoded))
        shutil.rmtree(aside / STAGED)
        held_out = whole.held_out
        if replay:
            replay.write_stores(aside, len(corpora), tokenizer)
            held_out = replay.with_valid(held_out)
        if remembered:
            remembered.write_stores(aside, len(corpora), whole.pairs)
        write_valid(aside, held_out)
        write_facts(
            aside,
            data,
            files=files,
            held_out=len(held_out),
            dropped=dropped,
            cleaning=whole.cleaning,
            seconds=time.monotonic() - began,
            extend=old.extend if old else None,
        )
    return open_prepared(folder, hashes=False)


def _check_replay(replay: Replay, data: DataConfig, tokenizer: Tokenizer | None) -> None:
    """Raise UserError if no language is new, or if the vocabularies of the old corpus and the model differ."""
    languages = {code for each in data.corpora for code in languages_in(data, each).as_codes}
    if languages <= replay.languages:
        raise UserError(
            "data.replay is for a corpus with a new language, and this corpus has none.",
            "Leave data.replay out.",
            "data.replay",
        )
    if not (tokenizer and tokenizer.same_pieces(replay.prepared.tokenizer)):
        raise UserError(
            f"{data.replay} has another vocabulary than the model to continue from.",
            "Name the prepared corpus of this model.",
            "data.replay",
        )


def _rewrite(
    data: DataConfig,
    corpora: list[list[StagedPairs]],
    held_out: list[Pair],
    cleaning: Cleaning,
    rewrite: Rewrite,
    aside: Path,
    tokenizer: Tokenizer | None,
) -> int:
    """Stage the rewritten pairs instead of the training pairs.

    Returns how many were left out because they share a sentence with a pair that was held out.
    """
    # The rules would take the pairs' placeholder tokens for damaged text.
    rules = tuple(
        rule for rule in rules_of(data).others if data.placeholders == "kept" or rule != CHARACTERS
    )
    clean_again = dataclasses.replace(data, placeholders="kept", holdout=0, rules=rules)
    texts = (normalised(text) for pair in held_out for text in (pair.source, pair.target))
    known = set() if data.valid else set(texts)
    dropped = 0

    def apart(pairs: Iterator[Pair], tag: str) -> Iterator[Pair]:
        nonlocal dropped
        for pair in pairs:
            if known.isdisjoint(map(normalised, (pair.source, pair.target))):
                yield pair._replace(source=pair.source.removeprefix(tag))
            else:
                dropped += 1

    for number, parts in enumerate(corpora):
        tag = data.corpora[number].tag
        rewritten = rewrite(chain.from_iterable(part.pairs() for part in parts), cleaning)
        pairs = apart(with_normalised_texts(rewritten, data, tokenizer), tag)
        folder = aside / STAGED / f"rewritten-{number}"
        corpora[number] = [read_part(pairs, clean_again, folder, tag=tag)]
        # The same counts, but another number of pairs read.
        report = Cleaning(cleaning.counts, cleaning.lines)
        leave_out(corpora[number], clean_again, report)
    return dropped
