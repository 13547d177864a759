"""What every engine does: from ids to the best ids. Nothing here, nor in `translator.py`, needs torch."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

from transduce.config.schema import DecodeConfig
from transduce.decoding.words import Kind

if TYPE_CHECKING:  # every --help needs this file, and none needs numpy
    from transduce.decoding.alignment import Weights

Choice = Literal["auto", "torch", "int8", "ctranslate2"]


class Hypothesis(NamedTuple):
    """A complete translation."""

    score: float  # log-probability / length penalty
    tokens: list[int]  # without BOS and EOS


Found = list[list[Hypothesis]]  # of each sentence of a request the best translations, best first


class Edges(NamedTuple):
    """What the pieces of the target begin and end with."""

    first: tuple[Kind, ...]
    last: tuple[Kind, ...]
    opens: tuple[bool, ...]  # whether a word may follow without a space: behind a bracket, a quotation mark, a hyphen


class Wanted(NamedTuple):
    """What a translation must hold, in whole words."""

    text: str
    ways: tuple[tuple[int, ...], ...]  # to write it: behind a space, and if that is another way behind none
    first: Kind  # of its first character
    last: Kind


class Terms(NamedTuple):
    """What the translations of a request must hold."""

    wanted: list[list[Wanted]]  # of each sentence
    edges: Edges


class Request(NamedTuple):
    """Sentences of about the same length, to be searched together."""

    texts: list[str]
    sources: list[list[int]]  # without EOS
    limits: list[int]  # the longest translations allowed, EOS not counted; there they are made to end
    terms: Terms | None = None


class Engine(Protocol):
    """A model, or an ensemble, that can be searched."""

    name: str  # for people
    max_positions: int | None  # the longest sequence, EOS counted; None: any
    takes_terms: bool  # whether its search obeys those of a request

    def budget(self, config: DecodeConfig, total: int) -> int:
        """The source tokens, EOS and padding counted, of a request that it is fast with, of so many in all."""
        ...

    def search(self, requests: Sequence[Request], config: DecodeConfig, n_best: int) -> Iterator[Found]:
        """What is found for every request, in order, at most n_best translations a sentence."""
        ...

    def log_probs(self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> list[float]:
        """ln p(target | source) of pairs of about the same length; ids without BOS and EOS, which is predicted, too."""
        ...

    def attention(self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> "list[Weights]":
        """What words can be aligned by, of each pair; zeros where the model attends to nothing. Arguments as above."""
        ...


def penalty(length: int, alpha: float) -> float:
    """((5 + length) / 6) ^ alpha, what log-probabilities are divided by; length in tokens, EOS counted."""
    return ((5 + length) / 6) ** alpha
