"""Types shared by the translator, the search and the engines. Importing this module needs neither torch nor numpy.

b = sentences, w = open hypotheses (those without EOS) per sentence, v = vocabulary, n = tokens so far, BOS counted.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

from transduce.config.schema import DecodeConfig, RunConfig
from transduce.system.errors import Hint, UserError
from transduce.text.plain import BYTE_ORDER_MARK
from transduce.tokens.spans import Span

if TYPE_CHECKING:  # --help imports this file, and must not wait for torch and numpy
    import numpy as np
    import torch
    from numpy.typing import NDArray
    from torch import Tensor

    from transduce.decoding.stepper import ModelStepper
    from transduce.model.seq2seq import Seq2Seq
    from transduce.model_folder import Description
    from transduce.tokens.tokenizer import Tokenizer

    Weights = NDArray[np.float32]  # (target tokens, source tokens): attention, EOS left out

# Flags of translations that need checking; decoding/plan.py has others.
CUT = "cut"  # the translation was forced to end at the length limit
LOOP = "loop"  # the translation repeats itself, or did so before a second search
DETACHED = "detached"  # the translation has hardly anything to do with its source
EMPTY = "empty"  # the translation of a text that is not blank is blank
UNTRANSLATED = "untranslated"  # the translation is a copy of its source
TERM = "term"  # the translation lacks a term of the glossary

# Search options of the plain search of the paper, as in other programs.
PLAIN_SEARCH: dict[str, Any] = {"capitals": False, "retry_loops": False, "mbr": "none"}

# Features that only some engines support. attention: return a model's attention to the source. constraints: use the
# selector of a request. positions: accept every length that the model supports. prefixes: use the token filter of a
# request. steppers: use the stepper of a request.
Feature = Literal["attention", "constraints", "positions", "prefixes", "steppers"]
FEATURE_PURPOSES: dict[Feature, str] = {
    "attention": "align words",
    "constraints": "obey a glossary",
    "prefixes": "continue a prefix",
}


class Term(NamedTuple):
    """An entry of a glossary."""

    source: str  # one or more words; matches any case unless it has capitals
    # Appears in the translation in the right form, or as written here; in capitals if the whole text is.
    target: str


class MemoryMatch(NamedTuple):
    """A unit of a translation memory that is similar to a text."""

    source: str
    target: str
    score: float  # 1 - token edit distance / length of the longer text; 1 only for the same text
    origin: str  # where the unit comes from, such as memory.tmx:12


class Match(NamedTuple):
    """A term in a text."""

    span: Span  # span of the term in the text
    target: str


class UsedTerm(NamedTuple):
    """A term of the glossary in a text, and what became of it in the translation."""

    source: str  # as the text writes it
    target: str
    state: Literal["kept", "inflected", "missed"]


class Guide(NamedTuple):
    """What is known about the translation of a text before its search."""

    similar: tuple[MemoryMatch, ...] = ()  # units of the translation memory, best first
    terms: tuple[Match, ...] = ()  # terms whose translations the model reads inside the text
    prefix: str = ""  # the characters that the translation begins with
    suffix: str = ""  # the characters that it ends with

    @property
    def is_typed(self) -> bool:
        """Whether some characters of the translation are given."""
        return bool(self.prefix or self.suffix)

    def fits(self, text: str) -> bool:
        """Whether a text begins and ends with the given characters."""
        is_long = len(text) >= len(self.prefix) + len(self.suffix)
        return is_long and text.startswith(self.prefix) and text.endswith(self.suffix)


Guides = Sequence[Guide] | None  # one for each text; None: no text has one


class TypedTexts(Protocol):
    """Texts to translate, some of which have a prefix or a suffix."""

    @property
    def texts(self) -> Sequence[str]:
        """What remains to be translated of each text."""

    @property
    def guides(self) -> Guides:
        """What the search reads for each of `texts`."""

    def finished(self, translations: "Sequence[Translation]") -> "list[Translation]":
        """The translations of the whole texts, from those of `texts`."""


class TranslationMemory(Protocol):
    """Finds texts that people have translated before."""

    def matches(self, texts: Sequence[str], direction: str) -> list[tuple[MemoryMatch, ...]]:
        """The units that are most similar to each text, best first. A direction is a text such as en-de."""


class TranslationOptions(NamedTuple):
    """Options for translating texts, in addition to the search options (decode.*)."""

    n_best: int = 1
    align: bool = False  # link the words of a translation to the words of its source
    glossary: tuple[Term, ...] = ()
    sentences: bool = False  # split each text into sentences; otherwise it is one sentence
    translation_memory: TranslationMemory | None = None
    glossary_exact: bool = False  # terms are never inflected

    def check(self, beam_size: int) -> None:
        """Raise UserError if the beam is smaller than n_best."""
        if not 1 <= self.n_best <= beam_size:
            raise UserError(
                f"n_best must be from 1 to decode.beam_size ({beam_size}), not {self.n_best}."
            )


PLAIN = TranslationOptions()


class TermFinder(Protocol):
    """Finds the terms of a glossary."""

    def matches(self, text: str) -> list[Match]:
        """The terms in a text, in the text's order; of overlapping terms, only the longest counts."""


class Link(NamedTuple):
    """Links the span of a source word to the span of a target word, both in code points."""

    source: Span
    target: Span
    weight: float  # the source word's share of the target word's attention, from 0 to 1


@dataclass(frozen=True)
class Translation:
    """The translation of a text."""

    text: str
    score: float  # log-probability / length penalty; 0 for a blank line
    tokens: tuple[str, ...]  # pieces of the target, for display
    alternatives: tuple["Translation", ...] = ()  # the next best, best first
    # Reasons to check the text: CUT to TERM, or a flag of decoding/plan.py.
    flags: tuple[str, ...] = ()
    links: tuple[Link, ...] = ()  # only with `align`
    # Probability that the translation is good; None: no estimate for this model.
    confidence: float | None = None
    # With a pivot: the translation into the pivot, and the pivot's translation into the target.
    hops: tuple["Translation", ...] = ()
    # The most similar units of the translation memory, best first; the target of an exact one is the translation.
    matches: tuple[MemoryMatch, ...] = ()
    terms: tuple[UsedTerm, ...] = ()  # the terms of the glossary in the text


BLANK_TRANSLATION = Translation("", 0.0, ())


class WordConfidence(NamedTuple):
    """The probability that a word of a translation is right."""

    span: Span  # in the translation, in code points
    confidence: float


class Scored(NamedTuple):
    """The probability of a translation by forced decoding."""

    log_prob: float  # ln p(target | source), EOS included
    num_tokens: int  # EOS counted
    score: float  # log_prob / length penalty, comparable with Translation.score
    confidence: float | None = None  # see Translation.confidence
    detached: bool = False
    words: tuple[WordConfidence, ...] = ()  # empty if the model has no estimate for words


class Sentences(NamedTuple):
    """Distinct sentences, none of them blank."""

    texts: list[str]
    sources: list[list[int]]  # the source ids of each text
    numbers: list[int]  # the number of each text in messages
    guides: Guides = None

    def select(self, indices: Sequence[int]) -> "Sentences":
        """The sentences at these indices."""
        return Sentences(*(column and [column[i] for i in indices] for column in self))  # type: ignore[arg-type]


class Hypothesis(NamedTuple):
    """A complete translation."""

    score: float  # log-probability / length penalty
    tokens: list[int]  # without BOS and EOS


NBestLists = list[list[Hypothesis]]  # one list per sentence, best first


class TokenFilter(Protocol):
    """Forbids tokens in a search, without renormalising the probabilities of the other tokens."""

    def __call__(self, tokens: "Tensor", log_probs: "Tensor") -> None:
        """Set log_probs (b, w, v) of forbidden next tokens to -inf. `tokens` (b, w, n) holds hypotheses, BOS first."""

    def select(self, sentences: "Tensor") -> None:
        """Keep only the sentences at these indices."""


class Selector(Protocol):
    """Chooses the hypotheses that stay in the beam."""

    @property
    def beam_size(self) -> int:
        """The number of open hypotheses that the selector needs for each sentence."""

    def __call__(self, tokens: "Tensor", totals: "Tensor", k: int) -> "tuple[Tensor, Tensor]":
        """Choose continuations of the hypotheses `tokens` (b, w, n) with the log-probabilities `totals` (b, w * v).

        Returns values and their indices in `totals`, both (b, 2k). The first k end with EOS. Padding is -inf.
        """

    def select(self, sentences: "Tensor") -> None:
        """Keep only the sentences at these indices."""


class Request(NamedTuple):
    """Sentences of similar length that an engine translates together."""

    texts: list[str]
    sources: list[list[int]]  # without EOS
    limits: list[int]  # maximum lengths of the translations, EOS not counted
    # Makes the search's selector from a beam size.
    selector: Callable[[int], Selector] | None = None
    token_filter: TokenFilter | None = None
    # Makes the stepper from the models and the padded sources; by default, a ModelStepper.
    stepper: "Callable[[Sequence[Seq2Seq], Tensor], ModelStepper] | None" = None

    def select(self, indices: Sequence[int]) -> "Request":
        """The sentences at these indices, without a selector and a token filter."""
        return Request(
            [self.texts[i] for i in indices],
            [self.sources[i] for i in indices],
            [self.limits[i] for i in indices],
        )


class Constraints(NamedTuple):
    """The words that each sentence's translation must contain."""

    beams: Sequence[int]  # the beam size that each sentence needs; 1 without constraints
    # Makes a search's selector from the indices of its sentences, their maximum lengths, and the beam size.
    selector: Callable[[Sequence[int], Sequence[int], int], Selector]


class Engine(Protocol):
    """The interface of an engine that runs a model or an ensemble."""

    name: str  # for messages
    max_positions: int | None  # maximum length of a sequence, EOS counted; None: no limit
    supports: frozenset[Feature]

    @property
    def weight_bytes(self) -> int:
        """The memory for the weights."""

    def budget(self, config: DecodeConfig, total: int) -> int:
        """The fastest size of a request, in source tokens with padding, if the sentences have `total` tokens in all."""

    def search(
        self, requests: Sequence[Request], config: DecodeConfig, n_best: int
    ) -> Iterator[NBestLists]:
        """For each request, yield lists of at most n_best translations, one list per sentence."""

    def log_probs(
        self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]
    ) -> list[list[float]]:
        """The log-probability of each token of each target, and of EOS, given its source.

        The pairs have similar lengths. `sources` and `targets` lack BOS and EOS.
        """

    def attention(
        self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]
    ) -> "list[Weights]":
        """The attention of each target to its source. Needs an engine that supports "attention"."""


class Refusal(NamedTuple):
    """The reason why an engine or an export format does not support a model."""

    reason: str  # follows "The engine NAME can't run MODEL: "; without a full stop
    hint: Hint | None = None


class ModelToOpen(NamedTuple):
    """A model, an ensemble or an export, with the settings for opening its engine."""

    folders: list[Path]
    descriptions: "list[Description]"  # one for each model; empty for an export
    config: RunConfig  # options of the first model, with the search options to use
    tokenizer: "Tokenizer"
    device: "torch.device | str | None" = None  # None: the GPU if there is one
    threads: int = 0  # CPU threads; 0: the engine chooses
    required: bool = False  # the user asked for this engine by name


def length_penalty(length: int, alpha: float) -> float:
    """The length penalty ((5 + length) / 6) ^ alpha of Wu et al. (2016). `length` counts EOS."""
    return ((5 + length) / 6) ** alpha


def as_texts(texts: Iterable[str]) -> Iterator[str]:
    """Yield texts without byte order marks. Raises TypeError for an item that is not a text."""
    for i, text in enumerate(texts):
        if not isinstance(text, str):
            raise TypeError(f"Give a list of texts; item {i} is not a text but {text!r}.")
        yield text.removeprefix(BYTE_ORDER_MARK)


def as_list(texts: Iterable[str], numbers: Iterable[int] = ()) -> list[str]:
    """Make a list of texts without byte order marks. With `numbers`, raises UserError for a text with a line break."""
    if isinstance(texts, str):
        raise TypeError("Give a list of texts, not a single string.")
    texts = list(as_texts(texts))  # an iterator can be read only once
    for number, text in zip(numbers, texts, strict=False):
        if "\n" in text:
            raise UserError(f"Text {number} contains a line break.", "Give one sentence per text.")
    return texts


def as_guides(count: int, prefixes: Sequence[str], suffixes: Sequence[str]) -> Guides:
    """The guides of `count` texts. Raises UserError unless each text, or none, has a prefix, and likewise a suffix."""
    for name, given in (("prefixes", prefixes), ("suffixes", suffixes)):
        if given and len(as_list(given)) != count:
            raise UserError(
                f"There are {count:,} texts but {len(given):,} {name}.",
                "Give one per text; it may be empty.",
            )
    if not any(prefixes) and not any(suffixes):
        return None
    pairs = zip(prefixes or [""] * count, suffixes or [""] * count, strict=True)
    return [Guide(prefix=prefix, suffix=suffix) for prefix, suffix in pairs]


def as_terms(glossary: Mapping[str, str] | Sequence[Term]) -> tuple[Term, ...]:
    """The terms of a glossary. Raises TypeError if a term is not a pair of texts."""
    terms = tuple(glossary.items() if isinstance(glossary, Mapping) else glossary)
    for term in terms:
        if (
            isinstance(term, str)
            or len(term) != 2
            or not all(isinstance(each, str) for each in term)
        ):
            raise TypeError(
                f"A term of a glossary is a pair of texts, source and target, and not {term!r}."
            )
    return tuple(Term(*term) for term in terms)
