"""Draws the subwords of the training text anew in every epoch, so that a model sees words in several segmentations.

BPE-dropout (Provilkov et al., 2020) leaves out merges at random. Unigram sampling (Kudo, 2018) draws a segmentation in
proportion to its probability to the power of alpha. A drawn segmentation decodes to the same text.
"""

import math
import random
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import accumulate, pairwise
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray

from transduce.tokens.vocabulary import SPACE, Rows, Vocabulary, pack

# Maximum segmentations drawn for a word per call, since each takes several microseconds.
VARIANTS = 16
MAX_LATTICES = 65_536  # maximum number of words whose unigram probabilities are cached
HASH_FACTOR = 0x9E3779B97F4A7C15  # odd, so its powers are never 0 modulo 2^64


class SubwordSampler:
    """Draws segmentations of encoded sentences, word by word."""

    def __init__(self, vocabulary: Vocabulary, strength: float) -> None:
        """`strength` is the probability of leaving out a merge for BPE, and alpha for unigram."""
        self._strength = strength
        self._draw = self._draw_bpe if vocabulary.kind == "bpe" else self._draw_unigram
        pieces = vocabulary.all_pieces()
        scores = vocabulary.scores()
        # A piece without a score, such as a byte, is never divided. It is listed under a name with NUL, which no real
        # piece contains.
        names = [
            piece if scores[token] is not None else f"\0{token}"
            for token, piece in enumerate(pieces)
        ]
        self._units = [list(name) if name[0] != "\0" else [name] for name in names]
        self._begins_word = np.array([piece.startswith(SPACE) for piece in pieces])
        self._ids = {name: token for token, name in enumerate(names)}
        self._scores = {
            piece: score for piece, score in zip(pieces, scores, strict=True) if score is not None
        }
        self._longest = max(map(len, self._scores), default=1)
        self._lattice = lru_cache(MAX_LATTICES)(self._filter)
        self._ranks = {
            (piece[:cut], piece[cut:]): -score
            for piece, score in self._scores.items()
            for cut in range(1, len(piece))
        }

    def sample(self, rows: Rows, random_numbers: np.random.Generator) -> Rows:
        """Draw a segmentation of each row of ids."""
        if not len(rows.ids):
            return rows
        begins = self._begins_word[rows.ids]
        ends = np.cumsum(rows.lengths)
        begins[(ends - rows.lengths)[rows.lengths > 0]] = True
        starts = np.flatnonzero(begins)  # where each word begins
        words = Rows(rows.ids, np.diff(starts, append=len(rows.ids)))
        _, first, kind = np.unique(_hashes(words), return_index=True, return_inverse=True)
        choices = kind * VARIANTS + random_numbers.integers(VARIANTS, size=len(kind))
        needed, place = np.unique(choices, return_inverse=True)
        uniform = random.Random(int(random_numbers.integers(1 << 62))).random
        spellings = words.take(first).lists()
        drawn = pack(
            [self._segment(spellings[number], uniform) for number in (needed // VARIANTS).tolist()]
        )
        lengths = np.concatenate(([0], np.cumsum(drawn.lengths[place])))
        # Index of the word after each row.
        word_ends = np.concatenate(([0], np.searchsorted(starts, ends)))
        return Rows(drawn.take(place).ids, np.diff(lengths[word_ends]))

    def _segment(self, word: Sequence[int], uniform: Callable[[], float]) -> Sequence[int]:
        """Draw a segmentation of a word. `uniform` returns random numbers between 0 and 1."""
        units = [unit for token in word for unit in self._units[token]]
        pieces = self._draw(units, uniform) if len(units) > 1 else units
        if not all(piece in self._ids for piece in pieces):
            return word  # an imported vocabulary may lack a character of the word
        return [self._ids[piece] for piece in pieces]

    def _draw_bpe(self, units: Sequence[str], uniform: Callable[[], float]) -> Sequence[str]:
        """Apply the most frequent merge until none is left. At each step, each possible merge is left out at random."""
        pieces = list(units)
        while True:
            best = math.inf
            at = -1
            for i, pair in enumerate(pairwise(pieces)):
                rank = self._ranks.get(pair, math.inf)
                if rank < best and uniform() >= self._strength:
                    best = rank
                    at = i
            if at < 0:
                return pieces
            pieces[at : at + 2] = [pieces[at] + pieces[at + 1]]

    def _draw_unigram(self, units: Sequence[str], uniform: Callable[[], float]) -> Sequence[str]:
        """Sample the pieces from the last to the first."""
        lattice = self._lattice(tuple(units))
        pieces = list[str]()
        end = len(units)
        while end:
            arcs = lattice[end - 1]
            end, piece, _ = arcs[
                bisect_right(arcs, uniform(), key=itemgetter(2))
            ]  # the last sum is 1
            pieces.append(piece)
        return pieces[::-1]

    def _filter(self, units: Sequence[str]) -> list[list[tuple[int, str, float]]]:
        """The pieces that end at each unit, with their start positions and cumulative probabilities."""
        totals = [0.0]  # log of the summed weights of all segmentations up to each position
        lattice = []
        for end in range(1, len(units) + 1):
            arcs = list(self._arcs(units, end))
            highest = max(totals[begin] + weight for begin, _, weight in arcs)
            sums = list(
                accumulate(math.exp(totals[begin] + weight - highest) for begin, _, weight in arcs)
            )
            totals.append(highest + math.log(sums[-1]))
            lattice.append(
                [
                    (begin, piece, at / sums[-1])
                    for (begin, piece, _), at in zip(arcs, sums, strict=True)
                ]
            )
        return lattice

    def _arcs(self, units: Sequence[str], end: int) -> Iterator[tuple[int, str, float]]:
        """The pieces that end before unit `end`, with their start positions and alpha times their log-probabilities."""
        for begin in range(max(0, end - self._longest), end):
            piece = "".join(units[begin:end])
            if piece in self._scores or end - begin == 1:
                yield begin, piece, self._strength * self._scores.get(piece, 0.0)


def _hashes(words: Rows) -> NDArray[np.uint64]:
    """A 64-bit hash of the ids of each word; the chance that two of a million words have the same hash is 3e-8."""
    starts = np.cumsum(words.lengths) - words.lengths
    places = np.arange(len(words.ids)) - np.repeat(starts, words.lengths)
    powers = np.cumprod(np.full(words.lengths.max(), HASH_FACTOR, dtype=np.uint64))
    ids = (words.ids.astype(np.uint64) + np.uint64(1)) * np.uint64(HASH_FACTOR)
    return np.add.reduceat((ids ^ (ids >> np.uint64(29))) * powers[places], starts)
