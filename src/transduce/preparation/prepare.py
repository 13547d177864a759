"""Prepares the corpora of a training run in one process.

wings/cluster prepares the parts of a corpus in separate processes.
"""

import shutil
import time
from collections.abc import Callable
from itertools import chain
from pathlib import Path

from transduce.config.schema import DataConfig
from transduce.preparation.aggregate import (
    Aggregate,
    Corpora,
    aggregate,
    extend_vocabulary,
    kept_files,
    learn_vocabulary,
)
from transduce.preparation.passes import (
    check_tags,
    checked,
    data_of,
    encode_part,
    languages_in,
    read_corpus,
    read_part,
    with_normalised_texts,
    with_placeholders,
)
from transduce.preparation.prepared import (
    Extend,
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
from transduce.tokens.store import write_store
from transduce.tokens.tokenizer import Tokenizer

STAGED = "staged"


def prepare(
    data: DataConfig,
    folder: Path,
    *,
    vocab_size: Callable[[int], int],
    tokenizer: Tokenizer | None = None,
    threads: int = 1,
) -> Prepared:
    """Prepare the corpora of `data`, and write the result to the new folder `folder`.

    If `tokenizer` is None, learns a vocabulary of size `vocab_size(n)` for n training pairs. Uses about 20 bytes of
    memory per pair. Raises UserError for an empty corpus and for invalid files.
    """
    began = time.monotonic()
    replay = Replay.open(data) if data.replay else None
    if replay:
        _check_replay(replay, data)
    remembered = Remembered.open(data) if data.remember else None
    old = replay or remembered
    data = checked(data, tokenizer, old.prepared.facts.directions if old else ())
    if not replay:
        check_tags(data, tokenizer)
    if old and not (tokenizer and tokenizer.same_pieces(old.prepared.tokenizer)):
        raise UserError(
            f"{old.prepared.folder} has another vocabulary than the model to continue from.",
            "Name the prepared corpus of this model.",
            "data.replay" if replay else "data.remember",
        )
    data = with_placeholders(data, tokenizer)
    with write_folder(folder) as aside:
        corpora = stage(data, aside, tokenizer)
        whole = aggregate(data, corpora, old.valid if old else ())
        if tokenizer and replay:
            tokenizer = extend_vocabulary(
                data,
                corpora,
                tokenizer,
                vocab_size(whole.pairs),
                replay.languages,
                replay.texts(),
            )
        tokenizer = tokenizer or learn_vocabulary(data, corpora, vocab_size(whole.pairs))
        if replay:
            replay.write_stores(aside, len(corpora), tokenizer)
            whole = whole._replace(held_out=replay.with_valid(whole.held_out))
        if remembered:
            remembered.write_stores(aside, len(corpora), whole.pairs)
        extend = old.extend if old else None
        write_prepared(aside, data, corpora, whole, tokenizer, threads, began, extend)
    return open_prepared(folder, hashes=False)


def stage(data: DataConfig, aside: Path, tokenizer: Tokenizer | None) -> list[list[StagedPairs]]:
    """Clean the corpora of `data`, and write their pairs to folders in `aside`."""
    corpora = []
    for number, corpus in enumerate(data.corpora):
        own = data_of(data, corpus)
        pairs = with_normalised_texts(read_corpus(corpus, data), data, tokenizer)
        corpora.append([read_part(pairs, own, aside / STAGED / str(number), tag=corpus.tag)])
    return corpora


def write_prepared(
    aside: Path,
    data: DataConfig,
    corpora: Corpora,
    whole: Aggregate,
    tokenizer: Tokenizer,
    threads: int,
    began: float,
    extend: Extend | None,
) -> None:
    """Encode the staged pairs, write the files of a prepared corpus to `aside`, and remove the staged pairs.

    `began` is the time.monotonic() of the start. See `write_facts` for `extend`.
    """
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
    write_valid(aside, whole.held_out)
    write_facts(
        aside,
        data,
        files=files,
        held_out=len(whole.held_out),
        dropped=whole.dropped,
        cleaning=whole.cleaning,
        seconds=time.monotonic() - began,
        extend=extend,
    )


def _check_replay(replay: Replay, data: DataConfig) -> None:
    """Raise UserError if no language is new."""
    languages = {code for each in data.corpora for code in languages_in(data, each).as_codes}
    if languages <= replay.languages:
        raise UserError(
            "data.replay is for a corpus with a new language, and this corpus has none.",
            "Leave data.replay out.",
            "data.replay",
        )
