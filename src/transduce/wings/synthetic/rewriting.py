"""Prepares corpora whose pairs a function rewrites, in one or several directions."""

import dataclasses
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from transduce.config.schema import CorpusConfig, DataConfig
from transduce.preparation.aggregate import (
    Aggregate,
    Corpora,
    aggregate,
    learn_vocabulary,
    leave_out,
    masked_pairs,
)
from transduce.preparation.passes import (
    check_tags,
    checked,
    data_of,
    directed,
    read_part,
    with_normalised_texts,
    with_placeholders,
)
from transduce.preparation.prepare import STAGED, stage, write_prepared
from transduce.preparation.prepared import ONE_WAY, Facts, Prepared, check_pairs, open_prepared
from transduce.preparation.staging import StagedPairs
from transduce.system.errors import UserError
from transduce.system.files import write_folder
from transduce.text.clean import Cleaning
from transduce.text.holdout import normalised
from transduce.text.languages import Direction
from transduce.text.pairs import Origin, Pair
from transduce.text.plain import read_lines, without_byte_order_mark
from transduce.tokens.store import TokenStore
from transduce.tokens.tokenizer import Tokenizer

Rewrite = Callable[[Iterator[Pair], Cleaning], Iterator[Pair]]


class Read(NamedTuple):
    """The pairs of the corpora before they are rewritten."""

    staged: Corpora
    whole: Aggregate
    tokenizer: Tokenizer | None  # None: a vocabulary will be learnt


class Sources(NamedTuple):
    """Pairs to rewrite."""

    direction: str  # "": the only one
    corpus: CorpusConfig
    pairs: Iterator[Pair]


class Rewritten(NamedTuple):
    """The rewritten corpora: their configurations, their pairs, and the number of pairs dropped."""

    configs: list[CorpusConfig]
    staged: list[list[StagedPairs]]
    dropped: int  # pairs that share a sentence with a held-out pair


def prepare_rewritten(
    data: DataConfig,
    folder: Path,
    rewrites: Mapping[str, Rewrite],
    *,
    vocab_size: Callable[[int], int],
    tokenizer: Tokenizer | None = None,
    texts: Mapping[str, Sequence[str]] = MappingProxyType({}),
    threads: int = 1,
) -> Prepared:
    """Prepare a corpus as `prepare` does, but with the pairs that functions yield for its training pairs.

    `rewrites` has a function for each of data.directions, or for "" without directions. Each direction becomes a corpus
    of its own, and its pairs are not used in the other direction. The functions see placeholders as they are. Pairs are
    masked afterwards. For some directions, `texts` names plain text files with more sources: their pairs have empty
    targets. If `tokenizer` is None, the vocabulary is learnt from the rewritten pairs.
    """
    began = time.monotonic()
    data = checked(data, tokenizer)
    check_tags(data, tokenizer)
    data = with_placeholders(data, tokenizer)
    unmasked = dataclasses.replace(data, placeholders="kept")
    with write_folder(folder) as aside:
        staged = stage(unmasked, aside, tokenizer)
        whole = aggregate(unmasked, staged)
        held_out = list(masked_pairs(whole.held_out, data, whole.cleaning))
        read = Read(staged, whole._replace(held_out=held_out), tokenizer)
        sources = chain(_of_corpora(data, staged, rewrites), _of_texts(texts))
        rewritten = _rewritten(data, read, rewrites, sources, aside / STAGED)
        data = dataclasses.replace(data, corpora=tuple(rewritten.configs))
        sizes = [sum(part.count() for part in parts) for parts in rewritten.staged]
        if rewritten.dropped and not any(sizes):
            raise UserError(
                "No training pairs are left: each new pair shares a sentence with a held-out pair.",
                "Check the translations of the teacher, or name validation files.",
                "data.valid",
            )
        check_pairs(data, sizes, whole.cleaning)
        learnt = tokenizer or learn_vocabulary(data, rewritten.staged, vocab_size(sum(sizes)))
        whole = read.whole._replace(dropped=whole.dropped + rewritten.dropped)
        extend = _one_way if data.directions else None
        write_prepared(aside, data, rewritten.staged, whole, learnt, threads, began, extend)
    return open_prepared(folder, hashes=False)


def _of_corpora(data: DataConfig, staged: Corpora, names: Iterable[str]) -> Iterator[Sources]:
    """The training pairs of the corpora in each direction, without the tags of synthetic corpora."""
    for corpus, parts in zip(data.corpora, staged, strict=True):
        languages = Direction(corpus.source, corpus.target)
        for name in names:
            if name in ("", str(languages), str(languages.reverse)):
                one = dataclasses.replace(data, directions=(name,) if name else ())
                untagged = (
                    pair._replace(source=pair.source.removeprefix(corpus.tag))
                    for part in parts
                    for pair in part.pairs()
                )
                yield Sources(name, corpus, directed(untagged, languages, one))


def _of_texts(texts: Mapping[str, Sequence[str]]) -> Iterator[Sources]:
    """The lines of plain text files as pairs with empty targets."""
    for name, files in texts.items():
        for file in files:
            lines = without_byte_order_mark(read_lines(file))
            pairs = (Pair(line, "", Origin(file, i)) for i, line in enumerate(lines, 1))
            yield Sources(name, CorpusConfig((file,)), pairs)


def _rewritten(
    data: DataConfig,
    read: Read,
    rewrites: Mapping[str, Rewrite],
    all_sources: Iterable[Sources],
    folder: Path,
) -> Rewritten:
    """Stage the rewritten pairs of each direction of each corpus."""
    texts = (
        normalised(text) for pair in read.whole.held_out for text in (pair.source, pair.target)
    )
    known = set() if data.valid else set(texts)
    cleaning = read.whole.cleaning
    configs = list[CorpusConfig]()
    staged = list[list[StagedPairs]]()
    dropped = 0

    def apart(pairs: Iterator[Pair]) -> Iterator[Pair]:
        nonlocal dropped
        for pair in pairs:
            if known.isdisjoint(map(normalised, (pair.source, pair.target))):
                yield pair
            else:
                dropped += 1

    for name, corpus, pairs in all_sources:
        codes = Direction.parse(name)._asdict() if name else {}
        config = dataclasses.replace(corpus, **codes)
        own = dataclasses.replace(data_of(data, config), holdout=0)
        old = with_normalised_texts(pairs, data, read.tokenizer)
        new = with_normalised_texts(rewrites[name](old, cleaning), data, read.tokenizer)
        place = folder / f"rewritten-{len(staged)}"
        staged.append([read_part(apart(new), own, place, tag=corpus.tag)])
        configs.append(config)
        # The same counts, but another number of pairs read.
        leave_out(staged[-1], own, Cleaning(cleaning.counts, cleaning.lines))
    return Rewritten(configs, staged, dropped)


def _one_way(facts: Facts, _: Sequence[TokenStore]) -> Facts:
    """Mark the corpora as read in one direction only."""
    languages = [[*codes, ONE_WAY] for codes in facts.languages]
    return dataclasses.replace(facts, languages=languages)
