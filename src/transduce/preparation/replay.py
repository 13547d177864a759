"""Trains again on the corpus of a model to which a language is added (data.replay)."""

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from transduce.config.schema import SYNTHETIC_TAG, DataConfig
from transduce.preparation.prepared import Facts, Prepared, open_prepared, store_path
from transduce.system.console import log
from transduce.text.languages import Direction
from transduce.text.pairs import Pair
from transduce.tokens.store import Column, Encoded, TokenStore, write_store
from transduce.tokens.tokenizer import Tokenizer

ENCODED_TOGETHER = 10_000  # pairs


class Replay(NamedTuple):
    """The old corpora of data.replay that are trained on again, and the old validation pairs."""

    # Numbers of the corpora in data.replay that the new corpus does not contain.
    corpora: Sequence[int]
    prepared: Prepared
    valid: Sequence[Pair]  # validation pairs with their directions
    repeats: float  # how often the corpora are repeated, to balance the back-translations that are left out

    @classmethod
    def open(cls, data: DataConfig) -> Self:
        """Open data.replay. Raises UserError if it is missing or damaged."""
        prepared = open_prepared(Path(data.replay))
        facts = prepared.facts
        named = [(_paths(each.files), {each.source, each.target}) for each in data.corpora]
        old = zip(facts.corpora, facts.pair_languages, strict=True)
        corpora = [
            i
            for i, (files, languages) in enumerate(old)
            if (_paths(files), {*languages[:2]}) not in named
        ]
        for files in (each for i, each in enumerate(facts.corpora) if i not in corpora):
            log(f"{' + '.join(files)} is taken from the new corpus, not from {data.replay}.")
        if synthetic := [i for i in corpora if _is_synthetic(prepared, i)]:
            log(
                f"The back-translated pairs of {data.replay} are not repeated: they are for one direction only."
            )
            corpora = [i for i in corpora if i not in synthetic]
        repeats = (
            max(1.0, min((facts.weights[i] for i in corpora), default=1.0)) if synthetic else 1.0
        )
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

    def write_stores(self, folder: Path, first: int, tokenizer: Tokenizer) -> None:
        """Encode the corpora with an extended vocabulary, for the prepared corpus `folder`, numbered from `first`."""
        for number, corpus in enumerate(self.corpora, first):
            store = TokenStore(store_path(self.prepared.folder, corpus))
            old = self.prepared.tokenizer
            write_store(store_path(folder, number), _encoded_again(store, old, tokenizer))

    def extend(self, facts: Facts) -> Facts:
        """Add the corpora to the facts of a new corpus."""
        old = self.prepared.facts
        added = {
            name: getattr(facts, name) + [getattr(old, name)[corpus] for corpus in self.corpora]
            for name in ("corpora", "files")
        }
        weights = facts.weights + [old.weights[corpus] / self.repeats for corpus in self.corpora]
        languages = facts.languages + [old.pair_languages[corpus] for corpus in self.corpora]
        return dataclasses.replace(facts, **added, weights=weights, languages=languages)


def _paths(files: Iterable[str]) -> set[Path]:
    return {Path(file).resolve() for file in files}


def _is_synthetic(prepared: Prepared, corpus: int) -> bool:
    """Whether the sources of a corpus are back-translations."""
    store = TokenStore(store_path(prepared.folder, corpus))
    first = prepared.tokenizer.source.decode(_rows(store.source, np.arange(min(1, len(store)))))
    return any(text.startswith(SYNTHETIC_TAG) for text in first)


def _encoded_again(store: TokenStore, old: Tokenizer, new: Tokenizer) -> Iterator[Encoded]:
    """Decode the pairs of a store, and encode them with another vocabulary."""
    for begin in range(0, len(store), ENCODED_TOGETHER):
        places = np.arange(begin, min(begin + ENCODED_TOGETHER, len(store)))
        sources = old.source.decode(_rows(store.source, places))
        targets = old.target.decode(_rows(store.target, places))
        files, lines = np.array([store.origin(place) for place in places.tolist()]).T
        yield Encoded(
            new.source.encode(sources), new.target.encode(targets), files.astype(np.int32), lines
        )


def _rows(column: Column, places: NDArray[np.int64]) -> list[list[int]]:
    return [row.tolist() for row in column.rows(places)]
