"""Repeats the corpus of an older model: to add a language (data.replay), or to fine-tune it (data.remember)."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np

from transduce.config.schema import SYNTHETIC_TAG, DataConfig
from transduce.preparation.prepared import (
    GENERAL_FILE,
    Facts,
    Prepared,
    open_prepared,
    read_general,
    store_path,
    write_valid,
)
from transduce.system.console import log
from transduce.text.languages import Direction
from transduce.text.pairs import Pair, spread
from transduce.tokens.store import BLOCK, Encoded, StoreView, TokenStore, write_store
from transduce.tokens.tokenizer import Tokenizer

# A fine-tuning stores so many old pairs, or so many for each new pair if that is more. Each epoch draws other ones.
# With 10,000 of 100,000, each was seen six times, and the model forgot the others.
MIN_REMEMBERED = 100_000
REMEMBERED_PER_PAIR = 20
OLD_TOKENS = (
    2.0  # an epoch repeats so many target tokens of old pairs for each one of the new pairs
)
GENERAL_PAIRS = 500  # old validation pairs on which a fine-tuned model is measured


@dataclass(frozen=True)
class Old:
    """Old corpora that are trained on again, and old validation pairs."""

    corpora: Sequence[int]  # their numbers in `prepared`
    prepared: Prepared
    valid: Sequence[Pair]

    def stores(self) -> list[TokenStore]:
        return [TokenStore(store_path(self.prepared.folder, corpus)) for corpus in self.corpora]

    def extended(self, facts: Facts, factor: float) -> Facts:
        """The facts of a new corpus with those of the old corpora, whose weights are multiplied by `factor`."""
        return facts.extended(self.prepared.facts, self.corpora, factor=factor)


@dataclass(frozen=True)
class Replay(Old):
    """The old corpora of data.replay that the new corpus does not contain, and pairs with their directions."""

    repeats: float  # how often the corpora are repeated, to balance the back-translations that are left out

    @classmethod
    def open(cls, data: DataConfig) -> Self:
        """Open data.replay. Raises UserError if it is missing or damaged."""
        prepared = open_prepared(Path(data.replay))
        facts = prepared.facts
        named = [(_paths(each.files), {each.source, each.target}) for each in data.corpora]
        corpora = list[int]()
        has_synthetic = False
        old = zip(facts.corpora, facts.pair_languages, strict=True)
        for number, (files, languages) in enumerate(old):
            if (_paths(files), {*languages[:2]}) in named:
                log(f"{' + '.join(files)} is taken from the new corpus, not from {data.replay}.")
            elif _is_synthetic(prepared, number):
                has_synthetic = True
            else:
                corpora.append(number)
        repeats = 1.0
        if has_synthetic:
            log(
                f"The back-translated pairs of {data.replay} are not repeated: they are for one direction only."
            )
            repeats = max(1.0, min((facts.weights[number] for number in corpora), default=1.0))
        valid = [
            pair._replace(direction=pair.direction or facts.directions[0])
            for pair in prepared.valid()
        ]
        return cls(corpora, prepared, valid, repeats)

    @property
    def languages(self) -> set[str]:
        """The languages that the model knows."""
        return {
            code
            for direction in self.prepared.facts.directions
            for code in Direction.parse(direction)
        }

    def with_valid(self, pairs: Sequence[Pair]) -> list[Pair]:
        """The old validation pairs, and the pairs of `pairs` in other directions."""
        known = {pair.direction for pair in self.valid}
        new = [pair for pair in pairs if pair.direction not in known]
        if ignored := len(pairs) - len(new):
            log(
                f"{ignored} validation pairs are not used: "
                f"old directions keep the validation pairs of {self.prepared.folder}."
            )
        return [*self.valid, *new]

    def texts(self) -> Iterator[str]:
        """Both sides of the pairs of the corpora, as the vocabulary decodes them."""
        old = self.prepared.tokenizer
        for store in self.stores():
            for block in StoreView(store).blocks():
                yield from old.source.decode(block.source.lists())
                yield from old.target.decode(block.target.lists())

    def write_stores(self, folder: Path, first: int, tokenizer: Tokenizer) -> None:
        """Encode the corpora with an extended vocabulary, for the prepared corpus `folder`, numbered from `first`."""
        for number, store in enumerate(self.stores(), first):
            if tokenizer.is_imported:  # most ids of old texts stay, and decoding would lose text
                pairs = StoreView(store).blocks()
            else:
                pairs = _encoded_again(store, self.prepared.tokenizer, tokenizer)
            write_store(store_path(folder, number), pairs)

    def extend(self, facts: Facts, _: Sequence[TokenStore]) -> Facts:
        """Add the corpora to the facts of a new corpus."""
        return self.extended(facts, 1 / self.repeats)


@dataclass(frozen=True)
class Remembered(Old):
    """The old corpora of data.remember, and pairs on which the fine-tuned model is measured."""

    @classmethod
    def open(cls, data: DataConfig) -> Self:
        """Open data.remember. Raises UserError if it is missing or damaged."""
        prepared = open_prepared(Path(data.remember))
        corpora = []
        for number, (source, target, *one_way) in enumerate(prepared.facts.pair_languages):
            directions = {f"{source}-{target}", *(() if one_way else (f"{target}-{source}",))}
            is_tuned = not directions.isdisjoint(data.directions) or not data.directions
            if is_tuned and not _is_synthetic(prepared, number):
                corpora.append(number)
        valid = [*prepared.valid(), *read_general(prepared.folder)]
        if data.directions:
            valid = [pair for pair in valid if pair.direction in data.directions]
        return cls(corpora, prepared, spread(valid, GENERAL_PAIRS))

    def write_stores(self, folder: Path, first: int, pairs: int) -> None:
        """Write the validation pairs, and some pairs of each corpus, to the prepared corpus `folder`.

        The stores are numbered from `first`. `pairs` is the number of new pairs.
        """
        write_valid(folder, self.valid, GENERAL_FILE)
        stores = self.stores()
        wanted = max(MIN_REMEMBERED, REMEMBERED_PER_PAIR * pairs)
        share = min(1.0, wanted / max(1, sum(map(len, stores))))
        for number, store in enumerate(stores, first):
            count = math.ceil(share * len(store))
            places = np.arange(count) * len(store) // max(1, count)  # at equal distances
            parts = np.split(places, range(BLOCK, count, BLOCK)) if count else ()
            write_store(store_path(folder, number), map(store.encoded, parts))

    def extend(self, facts: Facts, stores: Sequence[TokenStore]) -> Facts:
        """Add the corpora to the facts of a new corpus with these `stores`. See OLD_TOKENS."""
        weights = self.extended(facts, 1.0).weights
        tokens = [
            weight * int(store.target.lengths.sum())
            for weight, store in zip(weights, stores, strict=True)
        ]
        own = len(facts.weights)
        return self.extended(facts, OLD_TOKENS * sum(tokens[:own]) / max(1, sum(tokens[own:])))


def _paths(files: Iterable[str]) -> set[Path]:
    return {Path(file).resolve() for file in files}


def _is_synthetic(prepared: Prepared, corpus: int) -> bool:
    """Whether the sources of a corpus are back-translations."""
    store = TokenStore(store_path(prepared.folder, corpus))
    first = store.source.rows(np.arange(min(1, len(store))))
    texts = prepared.tokenizer.source.decode([ids.tolist() for ids in first])
    return any(text.startswith(SYNTHETIC_TAG) for text in texts)


def _encoded_again(store: TokenStore, old: Tokenizer, new: Tokenizer) -> Iterator[Encoded]:
    """The pairs of a store, decoded and encoded with another vocabulary."""
    for block in StoreView(store).blocks():
        sources = old.source.decode(block.source.lists())
        targets = old.target.decode(block.target.lists())
        yield block._replace(source=new.source.encode(sources), target=new.target.encode(targets))
