"""Searches for translations that begin with given characters, the prefix, in any segmentation into pieces.

While a hypothesis is inside the prefix, a piece is allowed if the rest of the prefix begins with the piece, or if the
piece begins with the rest: the prefix may end inside a piece. Texts and pieces are compared as UTF-8.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from transduce.config.schema import UNK
from transduce.decoding.types import Sentences
from transduce.system.errors import UserError
from transduce.tokens.vocabulary import SPACE, Vocabulary

if TYPE_CHECKING:  # the fast engine works without torch
    from torch import Tensor

NEVER = 1 << 30  # the number of pieces of a text that can't be spelt
SPACE_BYTE = "<0x20>"  # which no text is encoded to, and which stays at the beginning of a text
BEHIND_ALL = b"\xff"  # sorts a text behind all texts that begin with it


class Pieces:
    """The pieces of a vocabulary by their bytes, in which a space stands for U+2581."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.tokens: dict[bytes, list[int]] = {}
        for token, spelt in _spelt(vocabulary):
            self.tokens.setdefault(spelt, []).append(token)
        self.sorted = sorted(self.tokens)
        self.max_bytes = max(map(len, self.sorted))

    def beginning_with(self, rest: bytes) -> list[int]:
        """The tokens of the pieces that begin with `rest`."""
        begin = bisect_left(self.sorted, rest)
        end = bisect_left(self.sorted, rest + BEHIND_ALL, begin)
        return [token for spelt in self.sorted[begin:end] for token in self.tokens[spelt]]


@lru_cache(maxsize=2)  # small, because it keeps the vocabularies of dropped models in memory
def pieces_of(vocabulary: Vocabulary) -> Pieces:
    """The pieces of a vocabulary, sorted."""
    return Pieces(vocabulary)


def _spelt(vocabulary: Vocabulary) -> Iterator[tuple[int, bytes]]:
    """Yield the tokens that spell text, with their bytes."""
    processor = vocabulary.processor
    tags = {*vocabulary.tags.values()}
    for token, piece in enumerate(vocabulary.all_pieces()):
        own = processor.piece_to_id(piece)
        if token <= UNK or token in tags or processor.is_control(own):
            continue
        if not processor.is_byte(own):
            yield token, piece.replace(SPACE, " ").encode()
        elif piece != SPACE_BYTE:
            yield token, bytes([int(piece[3:-1], 16)])


class Steps(NamedTuple):
    """The tokens that may follow at a place of a prefix."""

    inside: dict[int, int]  # the tokens that end inside the prefix, with the places behind them
    beyond: NDArray[np.int64]  # the tokens that reach its end


class Prefix:
    """The beginning of a translation. A place is a number of its bytes, `end` the place behind the last of them."""

    def __init__(self, vocabulary: Vocabulary, text: str) -> None:
        self._text = text
        self._vocabulary = vocabulary
        self._pieces = pieces_of(vocabulary)
        self._bytes = f" {text}".encode()  # each encoded text begins with a space
        self.end = len(self._bytes)
        self.last_word = self._bytes.rindex(b" ")  # the place before it
        self._steps: dict[int, Steps] = {}
        # The fewest tokens from each place to the end.
        self.fewest = [NEVER] * self.end + [0]
        for place in reversed(range(self.end)):
            steps = self.steps(place)
            behind = [self.fewest[then] for then in steps.inside.values()]
            self.fewest[place] = 1 + min([NEVER - 1, *behind, *([0] if len(steps.beyond) else [])])

    def steps(self, place: int) -> Steps:
        """The tokens that may follow at a place before the end."""
        if place not in self._steps:
            rest = self._bytes[place:]
            sizes = range(1, min(len(rest), self._pieces.max_bytes + 1))
            tokens = self._pieces.tokens
            inside = {
                token: place + size for size in sizes for token in tokens.get(rest[:size], ())
            }
            is_near = len(rest) <= self._pieces.max_bytes
            beyond = self._pieces.beginning_with(rest) if is_near else []
            self._steps[place] = Steps(inside, np.array(beyond, np.int64))
        return self._steps[place]

    def place(self, tokens: Sequence[int]) -> int:
        """The place that a hypothesis has reached. `tokens` lack BOS."""
        place = 0
        for token in tokens:
            if place == self.end:
                break
            place = self.steps(place).inside.get(token, self.end)
        return place

    def allowed(self, place: int, room: int) -> NDArray[np.int64]:
        """The tokens that may follow at a place before the end, and leave the rest at most `room` tokens."""
        inside, beyond = self.steps(place)
        fitting = [token for token, then in inside.items() if self.fewest[then] <= room]
        return np.concatenate((np.array(fitting, np.int64), beyond))

    def segmentation(self) -> list[int]:
        """The tokens that the vocabulary encodes the prefix to, if they are allowed, else the fewest tokens."""
        [tokens] = self._vocabulary.encode([self._text]).lists()
        place = self.place(tokens[:-1])
        is_allowed = place < self.end and tokens[-1] in self.steps(place).beyond
        return tokens if is_allowed else self.shortest(0)

    def shortest(self, place: int) -> list[int]:
        """The fewest tokens that lead from a place to the end."""
        tokens: list[int] = []
        while place < self.end:
            inside, beyond = self.steps(place)
            if len(beyond):
                return [*tokens, int(beyond[0])]
            tokens.append(min(inside, key=lambda token: self.fewest[inside[token]]))
            place = inside[tokens[-1]]
        return tokens

    def unspelt(self) -> str:
        """The first character that the vocabulary has no pieces for."""
        reached = {0}
        for place in range(self.end):
            if place in reached:
                reached.update(self.steps(place).inside.values())
        return self._bytes[max(reached) :].decode(errors="ignore")[:1]


class PrefixFilter:
    """A `decoding.types.TokenFilter` that keeps each sentence's hypotheses inside its prefix. None: no prefix."""

    def __init__(self, prefixes: Sequence[Prefix | None], limits: Sequence[int]) -> None:
        self.prefixes = list(prefixes)
        self.limits = list(limits)

    def select(self, sentences: "Tensor") -> None:
        """Keep only the sentences at these indices."""
        self.prefixes, self.limits = (
            [column[i] for i in sentences.tolist()] for column in (self.prefixes, self.limits)
        )

    def __call__(self, tokens: "Tensor", log_probs: "Tensor") -> None:
        """Forbid all tokens but the allowed ones of the hypotheses that are inside their prefixes."""
        size = tokens.size(-1)
        for i, prefix in enumerate(self.prefixes):
            if prefix is None:
                continue
            places = [prefix.place(row[1:]) for row in tokens[i].tolist()]
            for hypothesis, place in enumerate(places):
                if place < prefix.end:
                    allowed = prefix.allowed(place, self.limits[i] - size)
                    kept = log_probs[i, hypothesis, allowed]
                    log_probs[i, hypothesis] = -np.inf
                    log_probs[i, hypothesis, allowed] = kept
            if min(places) == prefix.end:
                self.prefixes[i] = None


def prefix_filter(
    vocabulary: Vocabulary, sentences: Sentences, limits: Sequence[int]
) -> PrefixFilter:
    """The filter for sentences with guides, and the maximum lengths of their translations.

    Raises UserError if the vocabulary can't spell a prefix, or if a prefix exceeds its limit.
    """
    prefixes: list[Prefix | None] = []
    for guide, number, limit in zip(sentences.guides or (), sentences.numbers, limits, strict=True):
        prefix = Prefix(vocabulary, guide.prefix) if guide.prefix else None
        prefixes.append(prefix)
        fewest = prefix.fewest[0] if prefix else 0
        if prefix and fewest >= NEVER:
            raise UserError(
                f"Text {number}: the model's vocabulary can't spell {prefix.unspelt()!r}.",
                "Leave it out of the prefix.",
            )
        if fewest > limit:
            raise UserError(
                f"Text {number}: the prefix has at least {fewest} tokens, but the translation of this text may "
                f"have at most {limit}.",
                "Shorten the prefix or raise decode.max_extra_tokens.",
            )
    return PrefixFilter(prefixes, limits)
