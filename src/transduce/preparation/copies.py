"""Adds copies of training pairs to a corpus. Their sources also hold similar translations or glossary terms."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

from transduce.config.commands import option
from transduce.config.schema import DataConfig
from transduce.text.languages import Direction
from transduce.tokens.store import Encoded, StoreView, TokenStore
from transduce.tokens.tokenizer import Tokenizer
from transduce.tokens.vocabulary import MATCH_MARK, TERM_MARKS

# The options for which copies are made -> the marks in the sources of the copies.
COPYING = {"data.translation_memory": [MATCH_MARK], "data.terms": [*TERM_MARKS]}


class MakeCopies(Protocol):
    """Makes copies of pairs with longer sources."""

    def __call__(
        self, pairs: StoreView, tokenizer: Tokenizer, direction: Direction
    ) -> Iterator[Encoded]:
        """The copies of some of the pairs, encoded, with the files and lines of these pairs."""


class Copies(NamedTuple):
    """Copies of the pairs of a corpus in one direction."""

    corpus: int  # its number
    direction: Direction
    pairs: Iterator[Encoded]


def marks(data: DataConfig) -> dict[str, list[str]]:
    """The options in `data` for which copies are made, and their marks."""
    return {name: its for name, its in COPYING.items() if getattr(data, name.removeprefix("data."))}


def copies(
    data: DataConfig, stores: Sequence[TokenStore], tokenizer: Tokenizer
) -> Iterator[Copies]:
    """Make the copies that the options in `data` want. `stores` are those of data.corpora, which are in order."""
    for name in marks(data):
        make: MakeCopies = option(name)
        for number, (corpus, store) in enumerate(zip(data.corpora, stores, strict=True)):
            languages = Direction(corpus.source or data.source, corpus.target or data.target)
            for direction in () if corpus.synthetic else (languages, languages.reverse):
                is_swapped = direction != languages
                if str(direction) in data.directions or not (data.directions or is_swapped):
                    pairs = make(StoreView(store, is_swapped), tokenizer, direction)
                    yield Copies(number, direction, _short(pairs, data.max_length))


def _short(pairs: Iterator[Encoded], max_length: int) -> Iterator[Encoded]:
    """The pairs whose texts have at most `max_length` tokens."""
    for block in pairs:
        source, target = (side.lengths <= max_length for side in block[:2])
        yield block.where(source & target)
