"""From corpus files to a prepared corpus, in two passes with the decisions about the whole corpus between them.

Shards (wings/cluster) are several parts of a corpus that go through the same passes, in processes of their own.
"""

import shutil
import time
from collections.abc import Callable, Iterator
from itertools import chain, islice
from pathlib import Path

import numpy as np

from transduce.config.schema import DataConfig
from transduce.preparation.aggregate import aggregate, kept_files, learn_vocabulary
from transduce.preparation.first_pass import check_corpora, read_part, rules_of, with_placeholders
from transduce.preparation.prepared import Prepared, open_prepared, store_path, write_facts, write_valid
from transduce.preparation.second_pass import encode_part
from transduce.preparation.staging import StagedPairs, StagingWriter
from transduce.system.files import write_folder
from transduce.text.clean import CHUNK, Cleaning, clean
from transduce.text.holdout import Part
from transduce.text.pairs import Pair, read_pairs
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
    """Write a prepared corpus into the new `folder`.

    vocab_size: pairs -> the size of the vocabulary to learn, if there is no `tokenizer`. rewrite: replaces the pairs to
    train on of each corpus by others. The text is staged in files in the folder that is being written; memory is
    needed for its hashes, about 20 bytes a pair.
    Raises UserError for an empty corpus and for what the readers refuse.
    """
    began = time.monotonic()
    check_corpora(data)
    data = with_placeholders(data, tokenizer)
    with write_folder(folder) as aside:
        corpora = []
        for number, corpus in enumerate(data.corpora):
            pairs = read_pairs(corpus.files, (data.source, data.target))
            corpora.append([read_part(pairs, data, aside / STAGED / str(number))])
        whole = aggregate(data, corpora)
        if rewrite:
            for number, parts in enumerate(corpora):
                pairs = chain.from_iterable(part.pairs() for part in parts)
                rewritten = aside / STAGED / f"rewritten-{number}"
                corpora[number] = [_rewrite(pairs, rewrite, data, rewritten, whole.cleaning)]
        tokenizer = tokenizer or learn_vocabulary(data, corpora, vocab_size(whole.pairs))
        tokenizer.save(aside)
        tokenizer = Tokenizer.load(aside, threads)
        files = [kept_files(parts) for parts in corpora]
        for number, parts in enumerate(corpora):
            encoded = (encode_part(part, files[number], tokenizer, data.max_length, whole.cleaning) for part in parts)
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
        )
    return open_prepared(folder)


def _rewrite(
    pairs: Iterator[Pair], rewrite: Rewrite, data: DataConfig, folder: Path, cleaning: Cleaning
) -> StagedPairs:
    """Stage what becomes of the pairs to train on, cleaned again."""
    report = Cleaning(cleaning.counts, cleaning.lines)  # with a count of its own of pairs read
    stream = clean(rewrite(pairs, cleaning), rules_of(data), report)
    with StagingWriter(folder, with_sentences=False) as writer:
        while chunk := list(islice(stream, CHUNK)):
            writer.append(chunk, np.full(len(chunk), Part.TRAIN, dtype=np.int8), {})
    return writer.finish()
