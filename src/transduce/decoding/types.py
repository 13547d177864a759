"""What passes between the translator, the search and the engines. Nothing here needs torch or numpy.

b = sentences, w = open hypotheses per sentence, v = vocabulary, n = tokens so far, BOS counted.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

from transduce.config.schema import DecodeConfig, RunConfig
from transduce.tokens.spans import Span

if TYPE_CHECKING:  # --help needs this file, and neither torch nor numpy
    import numpy as np
    import torch
    from numpy.typing import NDArray
    from torch import Tensor

    from transduce.model_folder import Description
    from transduce.tokens.tokenizer import Tokenizer

    Weights = NDArray[np.float32]  # (target tokens, source tokens): attention, EOS left out

CUT = "cut"  # flag: the translation reached the length limit, where it was made to end

# What only some engines can do. attention: say where in the source a token looked. constraints: obey the selector of a
# request. positions: search texts of any length that the model knows.
Feature = Literal["attention", "constraints", "positions"]
FEATURE_PURPOSES: dict[Feature, str] = {"attention": "align words", "constraints": "obey a glossary"}


class Term(NamedTuple):
    """An entry of a glossary."""

    source: str  # one or more words; matches any case unless it has capitals
    target: str  # stands in the translation as it is written here


class TranslationOptions(NamedTuple):
    """How to translate texts, beyond the search's own options."""

    n_best: int = 1
    align: bool = False  # link the words of a translation to those of its source
    glossary: tuple[Term, ...] = ()
    sentences: bool = False  # split each text into sentences; otherwise it is one sentence


PLAIN = TranslationOptions()


class Link(NamedTuple):
    """A word of a source and a word of its translation; spans in code points."""

    source: Span
    target: Span
    weight: float  # the source word's share of the target word's attention, from 0 to 1


@dataclass(frozen=True)
class Translation:
    """The translation of a text."""

    text: str
    score: float  # log-probability / length penalty; 0 for a blank line
    tokens: tuple[str, ...]  # pieces of the target, to show to people
    alternatives: tuple["Translation", ...] = ()  # the next best, best first
    flags: tuple[str, ...] = ()  # what needs a look: CUT, and those of wings/inline/plan.py
    links: tuple[Link, ...] = ()  # only with `align`


BLANK_TRANSLATION = Translation("", 0.0, ())


class Group(NamedTuple):
    """Sentences of a plan that are searched in the same way."""

    options: TranslationOptions
    places: list[int]  # in Plan.sentences
    texts: list[int]  # of each sentence, the number of its text from 0


class Plan(Protocol):
    """Texts taken apart into sentences, to be translated in any way that gives a Translation for each, in order."""

    sentences: list[str]

    @property
    def groups(self) -> list[Group]:
        """The sentences by what their search must return."""
        ...

    def assemble(self, translations: Sequence[Translation]) -> list[Translation]:
        """The translations of the texts, from those of `sentences`; raises ValueError if they are more or fewer."""
        ...


class Scored(NamedTuple):
    """How probable a given translation is."""

    log_prob: float  # ln p(target | source), EOS included
    num_tokens: int  # EOS counted
    score: float  # log_prob / length penalty, comparable with Translation.score


class Sentences(NamedTuple):
    """Sentences that are not blank, each once."""

    texts: list[str]
    sources: list[list[int]]  # their ids
    numbers: list[int]  # by which messages name them

    def select(self, indices: Sequence[int]) -> "Sentences":
        """Some of them."""
        return Sentences(*([column[i] for i in indices] for column in self))  # type: ignore[arg-type]


class Hypothesis(NamedTuple):
    """A complete translation."""

    score: float  # log-probability / length penalty
    tokens: list[int]  # without BOS and EOS


NBestLists = list[list[Hypothesis]]  # one list per sentence, best first


class TokenFilter(Protocol):
    """What may follow, beyond what the model says; probabilities are not normalised again."""

    def __call__(self, tokens: "Tensor", log_probs: "Tensor") -> None:
        """tokens (b, w, n), BOS first; set log_probs (b, w, v) of the next token to -inf where it is forbidden."""
        ...

    def select(self, sentences: "Tensor") -> None:
        """Go on with these sentences only."""
        ...


class Selector(Protocol):
    """Decides which hypotheses a search keeps, where that is not the most probable ones."""

    @property
    def beam_size(self) -> int:
        """The open hypotheses that it needs for a sentence."""
        ...

    def __call__(self, tokens: "Tensor", totals: "Tensor", k: int) -> "tuple[Tensor, Tensor]":
        """tokens (b, w, n), BOS first, log-probabilities (b, w * v) of all continuations -> those to keep.

        Returns values and indices (b, 2k): first up to k that end, then up to k that don't, -inf where there are fewer.
        """
        ...

    def select(self, sentences: "Tensor") -> None:
        """Go on with these sentences only."""
        ...


class Request(NamedTuple):
    """Sentences of about the same length, to be searched together."""

    texts: list[str]
    sources: list[list[int]]  # without EOS
    limits: list[int]  # the longest translations allowed, EOS not counted
    selector: Callable[[int], Selector] | None = None  # makes the selector of a search, from its beam size


class Constraints(NamedTuple):
    """What the translations of some sentences must contain."""

    beams: Sequence[int]  # that each sentence needs: 1 without constraints
    # Makes the selector of a search: from indices of the sentences, their maximum lengths, and the beam size.
    selector: Callable[[Sequence[int], Sequence[int], int], Selector]


class Engine(Protocol):
    """A model, or an ensemble, that can be searched."""

    name: str  # for people
    max_positions: int | None  # the longest sequence, EOS counted; None: any
    supports: frozenset[Feature]

    def budget(self, config: DecodeConfig, total: int) -> int:
        """The source tokens of the fastest request, EOS and padding counted; total: the tokens of all requests."""
        ...

    def search(self, requests: Sequence[Request], config: DecodeConfig, n_best: int) -> Iterator[NBestLists]:
        """At most n_best translations of each sentence of each request, in order."""
        ...

    def log_probs(self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> list[float]:
        """ln p(target | source) of pairs of about the same length; ids without BOS and EOS, which is predicted, too."""
        ...

    def attention(self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> "list[Weights]":
        """The attention of each pair by which words are aligned; only of an engine that supports "attention"."""
        ...


class Refusal(NamedTuple):
    """Why a model can't have an engine, or a format."""

    reason: str  # ends "MODEL can't have the engine NAME: "; without a full stop


class ModelToOpen(NamedTuple):
    """A model, or an ensemble, for which an engine is to be opened."""

    folders: list[Path]
    descriptions: "list[Description]"  # of each model; none of an export
    config: RunConfig  # of the first model; decode: as it is to be searched
    tokenizer: "Tokenizer"
    device: "torch.device | str | None" = None  # None: the GPU if there is one
    threads: int = 0  # of the CPU; 0: as many as the engine chooses
    required: bool = False  # the user has named this engine


def length_penalty(length: int, alpha: float) -> float:
    """((5 + length) / 6) ^ alpha, which divides log-probabilities (Wu et al., 2016); length: tokens, EOS counted."""
    return ((5 + length) / 6) ** alpha
