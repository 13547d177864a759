"""Continues byte-pair encoding: learns longer pieces from the words of a language that a vocabulary has split."""

import heapq
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise
from unicodedata import category

from transduce.tokens.vocabulary import SPACE

MAX_PIECE_CHARACTERS = 16  # as SentencePiece's trainer
MIN_OCCURRENCES = 10  # the embedding of a rarer piece would hardly be trained
# The weights know how words of the old languages were split. A piece whose share of the old texts is larger than this
# part of its share of the new texts isn't learnt. So less than this part of the old tokens changes.
MAX_OLD_PART = 0.01

Split = Sequence[str]


class SplitWords:
    """Words, split into pieces, and the occurrences of candidates for new pieces.

    A candidate is two neighbouring pieces, joined, or a piece that is not in use.
    """

    def __init__(self, words: Mapping[Split, int], used: Collection[str]) -> None:
        """`words`: how often the text has each word. `used`: the pieces in use."""
        self.counts = Counter[str]()
        self.tokens = sum(len(word) * number for word, number in words.items())
        self._words = [*words]
        self._numbers = [*words.values()]
        self._used = {*used}
        self._places = defaultdict[str, set[int]](set)  # the words that have or had a candidate
        for place in range(len(self._words)):
            self._count(place, 1)

    def use(self, piece: str, earlier: Collection[str]) -> set[str]:
        """Join neighbours to a new piece, and then to `earlier` pieces. Returns the candidates of changed words."""
        self._used.add(piece)
        changed = set[str]()
        waiting = [piece]
        while waiting:
            piece = waiting.pop()
            joined = self._join(piece)
            changed |= {piece, *joined}
            waiting += [each for each in joined if each in earlier]
        return changed

    def _join(self, piece: str) -> set[str]:
        """Join neighbours to `piece` in all words; returns the joined neighbours of the words that have changed."""
        changed = set[str]()
        for place in [*self._places[piece]]:
            self._count(place, -1)
            word = _joined(self._words[place], piece)
            if len(word) < len(self._words[place]):
                changed |= {*map("".join, pairwise(word))}
            self._words[place] = word
            self._count(place, 1)
        return changed

    def _count(self, place: int, sign: int) -> None:
        word = self._words[place]
        unused = [piece for piece in word if piece not in self._used]
        for candidate in [*map("".join, pairwise(word)), *unused]:
            self.counts[candidate] += sign * self._numbers[place]
            self._places[candidate].add(place)


def _joined(word: Split, piece: str) -> Split:
    """The word with `piece` in the place of neighbours that form it, from left to right."""
    row = [*word[:1]]
    for each in word[1:]:
        if row[-1] + each == piece:
            row[-1] = piece
        else:
            row.append(each)
    return row


def longer_pieces(
    new: SplitWords, old: SplitWords, used: Collection[str], earlier: Collection[str], limit: int
) -> list[str]:
    """At most `limit` pieces for the words `new`: in each step, the most frequent candidate.

    No piece occurs in the words `old` more than rarely. `used`: the pieces in use. `earlier`: pieces that the
    vocabulary joins before it joins new ones.
    """
    found = dict[str, None]()
    agenda = list[tuple[int, str]]()  # minus occurrences, candidate
    changed = {*new.counts}
    part = MAX_OLD_PART * old.tokens / max(1, new.tokens)
    while len(found) < limit:
        for piece in changed:
            if new.counts[piece] >= MIN_OCCURRENCES and _is_learnable(piece):
                heapq.heappush(agenda, (-new.counts[piece], piece))
        if not agenda:
            break
        number, piece = heapq.heappop(agenda)
        count = new.counts[piece]
        changed = {piece} if count < -number else set()  # it stands too high on the agenda
        is_old = old.counts[piece] > part * count
        if count == -number and not is_old and piece not in used and piece not in found:
            found[piece] = None
            changed = new.use(piece, earlier)
    return [*found]


def _is_learnable(piece: str) -> bool:
    """Whether a piece consists of letters of one word."""
    letters = piece.removeprefix(SPACE)
    return (
        len(piece) > 1
        and 0 < len(letters) <= MAX_PIECE_CHARACTERS
        and all(category(each)[0] in "LM" for each in letters)
    )
