"""First pass over a part of a corpus: check every pair by itself, and stage the clean ones.

What concerns other parts (their repetitions, the hold-out, the vocabulary) is decided by `aggregate`.
"""

import dataclasses
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal

import numpy as np

from transduce.config.schema import DataConfig
from transduce.preparation.prepared import is_prepared
from transduce.preparation.staging import Parts, StagedPairs, StagingWriter
from transduce.system.errors import UserError
from transduce.text.clean import CheckedChunk, check_pairs
from transduce.text.formats import TREES
from transduce.text.hashes import SeenHashes
from transduce.text.holdout import Part
from transduce.text.pairs import Pair, are_documents
from transduce.text.placeholder_tokens import with_shared_tokens
from transduce.text.plain import suffixes
from transduce.text.rules import DUPLICATE, NEAR_DUPLICATE, Checker, Rules
from transduce.tokens.tokenizer import Tokenizer


def check_corpora(data: DataConfig) -> None:
    """Raise UserError for corpora that can't be prepared, before anything is read."""
    if not data.corpora:
        raise UserError("There is nothing to train on: name two text files or one bilingual file.")
    for corpus in data.corpora:
        if is_prepared(corpus.files):
            raise UserError(f"{corpus.files[0]} is prepared already: give it to `transduce train`, as the only corpus.")
        if suffixes(corpus.files[0])[0] == TREES and not data.symbols:
            raise UserError(
                f"{corpus.files[0]} holds trees: train with a recipe for parsers, such as craft-parsing, or with "
                "data.symbols=true data.joint=false."
            )


def with_placeholders(data: DataConfig, tokenizer: Tokenizer | None) -> DataConfig:
    """The options with `data.placeholders` decided: by the vocabulary if there is one, else by the corpus."""
    learnt: Literal["masked", "kept"] | None = None
    if tokenizer:
        learnt = "masked" if tokenizer.has_placeholder_tokens else "kept"
    if data.placeholders == "auto":
        documents = not data.symbols and any(are_documents(corpus.files) for corpus in data.corpora)
        return dataclasses.replace(data, placeholders=learnt or ("masked" if documents else "kept"))
    if data.placeholders != (learnt or data.placeholders):
        raise UserError(f"The vocabulary was learnt with data.placeholders={learnt}; leave the option out.")
    if data.placeholders == "masked" and data.symbols:
        raise UserError("data.symbols is for trees, which have no placeholders: leave data.placeholders out.")
    return data


def rules_of(data: DataConfig) -> Rules:
    """The rules of cleaning."""
    return Rules(data.max_ratio, data.deduplicate, data.rules, (data.source, data.target), data.test)


def read_part(pairs: Iterable[Pair], data: DataConfig, folder: Path, checker: Checker | None = None) -> StagedPairs:
    """Stage the clean pairs of a part of a corpus in a new folder.

    Pairs that repeat an earlier one of the part are left out. checker: made from the beginning of the whole corpus, if
    the part is not the first.
    """
    seen, read = SeenHashes(), 0
    with StagingWriter(folder, with_sentences=not data.valid and data.holdout > 0) as writer:
        for chunk in check_pairs(pairs, rules_of(data), checker):
            read += len(chunk.pairs)
            _stage(chunk, data, seen, writer)
    return writer.finish(read)


def _stage(chunk: CheckedChunk, data: DataConfig, seen: SeenHashes, writer: StagingWriter) -> None:
    """Write the clean pairs of a chunk, and count the others."""
    rows, hashes = np.array(chunk.rows_kept(), dtype=np.int64), {}
    if data.deduplicate:
        exact = chunk.batch.exact_hashes(rows.tolist())
        is_new = seen.add(exact)
        for row in rows[~is_new].tolist():
            chunk.broken[row] = DUPLICATE
        rows, hashes["exact"] = rows[is_new], exact[is_new]
    if NEAR_DUPLICATE in data.rules:
        hashes["near"] = chunk.batch.near_hashes(rows.tolist())
    for row, rule in enumerate(chunk.broken):
        if rule:
            writer.leave_out(rule, writer.length + int(np.searchsorted(rows, row)), chunk.pairs[row].origin)
    writer.append(*_as_seen([chunk.pairs[row] for row in rows.tolist()], data), hashes)


def _as_seen(pairs: Sequence[Pair], data: DataConfig) -> tuple[Sequence[Pair], Parts]:
    """The pairs as the model sees them, and those whose placeholders differ."""
    parts = np.full(len(pairs), Part.TRAIN, dtype=np.int8)
    if data.placeholders != "masked":
        return pairs, parts
    texts = [with_shared_tokens(pair.source, pair.target) for pair in pairs]
    parts[[number for number, text in enumerate(texts) if text is None]] = Part.PLACEHOLDERS_DIFFER
    return [Pair(*(text or ("", "")), pair.origin) for pair, text in zip(pairs, texts, strict=True)], parts
