"""Prepares corpora whose pairs a function rewrites, in one or several directions."""

import dataclasses
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, product
from pathlib import Path
from types import MappingProxyType

from transduce.config.schema import CorpusConfig, DataConfig
from transduce.preparation.aggregate import (
    Corpora,
    aggregate,
    drop_linked,
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
from transduce.text.holdout import sentences
from transduce.text.languages import Direction
from transduce.text.pairs import Origin, Pair
from transduce.text.plain import read_lines, without_byte_order_mark
from transduce.tokens.store import TokenStore
from transduce.tokens.tokenizer import Tokenizer

Rewrite = Callable[[Iterator[Pair], Cleaning], Iterator[Pair]]


def prepare_rewritten(
    data: DataConfig,
    folder: Path,
    rewrites: Mapping[str, Rewrite],
    *,
    vocab_size: Callable[[int], int],
    tokenizer: Tokenizer | None = None,
    texts: Mapping[str, str] = MappingProxyType({}),
    threads: int = 1,
) -> Prepared:
    """Prepare a corpus as `prepare` does, but with the pairs that functions yield for its training pairs.

    `rewrites` has a function for each of data.directions, or for "" without directions. Each direction becomes a corpus
    of its own, and its pairs are not used in the other direction. The functions see placeholders as they are. Pairs are
    masked afterwards. `texts` maps plain text files with more sources to their languages; their pairs have empty
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
        cleaning = whole.cleaning
        held_out = list(masked_pairs(whole.held_out, data, cleaning))
        hashes = sentences(() if data.valid else held_out)
        corpora = list[CorpusConfig]()
        rewritten = list[list[StagedPairs]]()
        dropped = 0
        for name, corpus, pairs in _sources(data, staged, rewrites, texts):
            own = data_of(data, corpus)
            old = with_normalised_texts(pairs, data, tokenizer)
            new = with_normalised_texts(rewrites[name](old, cleaning), data, tokenizer)
            place = aside / STAGED / f"rewritten-{len(rewritten)}"
            parts = [read_part(new, own, place, tag=corpus.tag)]
            # The same counts, but another number of pairs read.
            leave_out(parts, own, Cleaning(cleaning.counts, cleaning.lines))
            dropped += drop_linked(parts, hashes)
            corpora.append(corpus)
            rewritten.append(parts)
        data = dataclasses.replace(data, corpora=tuple(corpora))
        sizes = [sum(part.count() for part in parts) for parts in rewritten]
        if dropped and not any(sizes):
            raise UserError(
                "No training pairs are left: each new pair shares a sentence with a held-out pair.",
                "Check the translations of the teacher, or name validation files.",
                "data.valid",
            )
        check_pairs(data, sizes, cleaning)
        learnt = tokenizer or learn_vocabulary(data, rewritten, vocab_size(sum(sizes)))
        whole = whole._replace(held_out=held_out, dropped=whole.dropped + dropped)
        extend = _one_way if data.directions else None
        write_prepared(aside, data, rewritten, whole, learnt, threads, began, extend)
    return open_prepared(folder, hashes=False)


def _sources(
    data: DataConfig, staged: Corpora, names: Iterable[str], texts: Mapping[str, str]
) -> Iterator[tuple[str, CorpusConfig, Iterator[Pair]]]:
    """The direction, the options and the pairs of each new corpus: of each corpus of `data`, and of each text."""
    for corpus, parts in zip(data.corpora, staged, strict=True):
        languages = Direction(corpus.source, corpus.target)
        untagged = [dataclasses.replace(part, tag="") for part in parts]
        for name in names:
            if name in ("", str(languages), str(languages.reverse)):
                one = dataclasses.replace(data, directions=(name,) if name else ())
                pairs = chain.from_iterable(part.pairs() for part in untagged)
                yield name, _toward(name, corpus), directed(pairs, languages, one)
    for name, (file, source) in product(names, texts.items()):
        if not name or Direction.parse(name).source == source:
            lines = enumerate(without_byte_order_mark(read_lines(file)), 1)
            yield (
                name,
                _toward(name, CorpusConfig((file,))),
                (Pair(line, "", Origin(file, number)) for number, line in lines),
            )


def _toward(name: str, corpus: CorpusConfig) -> CorpusConfig:
    """The options of a corpus with the languages of a direction."""
    return dataclasses.replace(corpus, **Direction.parse(name)._asdict()) if name else corpus


def _one_way(facts: Facts, _: Sequence[TokenStore]) -> Facts:
    """Mark the corpora as read in one direction only."""
    languages = [[*codes, ONE_WAY] for codes in facts.languages]
    return dataclasses.replace(facts, languages=languages)
