"""Lexically constrained beam search for translations that contain required terms.

The algorithm follows Post and Vilar (2018), "Fast lexically constrained decoding with dynamic beam allocation".
Hypotheses that lack equally many tokens of the terms form a group. Hypotheses compete only within their group. The beam
size is `beam_size` times the number of groups, but at most MAX_HYPOTHESES. In Post and Vilar, it is fixed.

In shapes, b is the number of sentences, w the number of open hypotheses per sentence, v the size of the vocabulary, and
n the number of tokens in each hypothesis (with BOS).
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice, zip_longest
from typing import NamedTuple

import torch
from torch import Tensor

from transduce.config.schema import BOS, EOS, PAD
from transduce.decoding.words import Kind
from transduce.wings.terms.glossary import Constraint, WordBoundaries

Steps = dict[int, list[tuple[int, tuple[int, ...]]]]  # token -> what `Progress.begun` has after it
MAX_HYPOTHESES = 64  # maximum open hypotheses of a sentence, so that many terms do not take minutes


class Progress(NamedTuple):
    """Which constraints a hypothesis has met, and which constraints it has begun."""

    met: frozenset[int]
    # (constraint, tokens still to write; none: its last word may go on).
    begun: frozenset[tuple[int, tuple[int, ...]]]


NOTHING = Progress(frozenset(), frozenset())


@dataclass
class SentenceConstraints:
    """The constraints of one sentence, and the progress of its open hypotheses towards them."""

    constraints: Sequence[Constraint]
    boundaries: WordBoundaries
    limit: int  # maximum length of the translation
    beam_size: int
    forbidden: Sequence[tuple[int, ...]]  # token sequences that a translation must not have

    def __post_init__(self) -> None:
        # The fewest tokens of a segmentation that may follow any token: after a space, or in a script without spaces.
        self.lengths = [
            min(
                len(tokens)
                for tokens in each.segmentations
                if tokens is each.segmentations[0]
                or self.boundaries.first[tokens[0]] in ("unspaced", "sign")
            )
            for each in self.constraints
        ]
        most = max(self.beam_size, MAX_HYPOTHESES)
        self.size = min(most, self.beam_size * (1 + sum(self.lengths)))
        # Tokens of a hypothesis -> its progress.
        self.progress: dict[tuple[int, ...], Progress] = {(BOS,): NOTHING}

    def advance(self, progress: Progress, steps: Steps, token: int) -> Progress:
        """The progress of a hypothesis after `token` (not EOS) is appended. `steps` are its possible next steps."""
        first = self.boundaries.first[token]
        ended = {
            i
            for i, rest in progress.begun
            if not rest and not _joins(self.constraints[i].last, first)
        }
        met = progress.met | ended
        return Progress(met, frozenset(each for each in steps.get(token, ()) if each[0] not in met))

    def steps(self, progress: Progress, last: int) -> Steps:
        """The tokens with which a hypothesis with the last token `last` can begin or continue constraints."""
        steps: Steps = {}
        for i, rest in (*progress.begun, *self._beginning(progress, last)):
            if rest:
                steps.setdefault(rest[0], []).append((i, rest[1:]))
        return steps

    def _beginning(self, progress: Progress, last: int) -> Iterator[tuple[int, tuple[int, ...]]]:
        """Yield (constraint index, tokens) for each segmentation of an unmet constraint that can begin after `last`."""
        opens = last == BOS or self.boundaries.opens[last]
        for i, constraint in enumerate(self.constraints):
            if i not in progress.met:
                behind_none = opens or constraint.first in ("unspaced", "sign")
                yield from (
                    (i, tokens) for tokens in constraint.segmentations[: 2 if behind_none else 1]
                )

    def missing(self, progress: Progress) -> int:
        """An upper bound on the number of tokens that a hypothesis lacks to meet all constraints; 0 if it may end."""
        complete = {i for i, rest in progress.begun if not rest}
        unmet = sum(n for i, n in enumerate(self.lengths) if i not in progress.met)
        without_complete = sum(
            n for i, n in enumerate(self.lengths) if i not in progress.met | complete
        )
        finished = (
            len(rest) + unmet - self.lengths[i] for i, rest in progress.begun if i not in complete
        )
        return min([without_complete, *finished])

    def prepare(self, hypotheses: list[list[int]], totals: Tensor) -> list[Steps]:
        """The next steps of hypotheses; gives -inf to tokens in `totals` (w, v) that complete a forbidden sequence."""
        for *before, last in self.forbidden:
            ends = [row[len(row) - len(before) :] == before for row in hypotheses]
            totals[ends, last] = -math.inf
        return [self.steps(self.progress.get(tuple(row), NOTHING), row[-1]) for row in hypotheses]

    def choose(
        self,
        hypotheses: list[list[int]],
        steps: list[Steps],
        candidates: dict[int, float],
        v: int,
    ) -> tuple[list[int], list[int]]:
        """Choose the complete and the open hypotheses, as indices in `totals`; updates the progress.

        The groups supply open hypotheses in turn. A hypothesis can end only if it is among the best `size` candidates
        that meet all constraints.
        """
        room = max(0, self.limit - len(hypotheses[0]))  # for tokens after the next one
        groups: dict[int, list[int]] = {}
        after: dict[int, Progress] = {}
        for place in sorted(
            (p for p, value in candidates.items() if value > -math.inf),
            key=lambda p: -candidates[p],
        ):
            token = place % v
            written = self.progress[tuple(hypotheses[place // v])]
            if token != EOS:
                after[place] = written = self.advance(written, steps[place // v], token)
            missing = self.missing(written)
            if missing <= room:  # an end that lacks tokens is in no queue below
                groups.setdefault(missing, []).append(place)
        ending = [place for place in groups.get(0, [])[: self.size] if place % v == EOS]
        queues = [[p for p in groups[missing] if p % v != EOS] for missing in sorted(groups)]
        turns = chain.from_iterable(zip_longest(*queues))
        going_on = list(islice((place for place in turns if place is not None), self.size))
        self.progress = {(*hypotheses[place // v], place % v): after[place] for place in going_on}
        return ending, going_on


class ConstraintSelector:
    """A `decoding.types.Selector` that chooses hypotheses by constraint progress and log-probability."""

    def __init__(
        self,
        sentences: Sequence[Sequence[Constraint]],
        boundaries: WordBoundaries,
        limits: Sequence[int],
        beam_size: int,
        forbidden: Sequence[Sequence[tuple[int, ...]]] = (),
    ):
        """`forbidden` are token sequences that a sentence's translation must not have."""
        unwanted = forbidden or [()] * len(limits)
        self.sentences = [
            SentenceConstraints(constraints, boundaries, limit, beam_size, banned)
            for constraints, limit, banned in zip(sentences, limits, unwanted, strict=True)
        ]

    @property
    def beam_size(self) -> int:
        """The largest beam size that any sentence needs."""
        return max(sentence.size for sentence in self.sentences)

    def select(self, sentences: Tensor) -> None:
        """Keep only the sentences with the indices `sentences`."""
        self.sentences = [self.sentences[i] for i in sentences.tolist()]

    def __call__(self, tokens: Tensor, totals: Tensor, k: int) -> tuple[Tensor, Tensor]:
        """Choose 2k continuations of the hypotheses `tokens` (b, w, n) by the log-probabilities `totals` (b, w * v).

        Returns the chosen values of `totals` and their indices (b, 2k). The first k continuations end with EOS, the
        last k do not. Unused values are -inf.
        """
        b, w, _ = tokens.shape
        v = totals.size(1) // w
        rows = tokens.tolist()
        by_hypothesis = totals.view(b, w, v)
        steps = [
            sentence.prepare(hypotheses, its)
            for sentence, hypotheses, its in zip(self.sentences, rows, by_hypothesis, strict=True)
        ]
        count = min(2 * k, w * v)
        places = _candidates(by_hypothesis, steps, count)
        values = totals.gather(1, places).tolist()
        index = torch.zeros(b, 2 * k, dtype=torch.long)
        taken = torch.zeros(b, 2 * k, dtype=torch.bool)
        for i, (sentence, row) in enumerate(zip(self.sentences, places.tolist(), strict=True)):
            seen = len(row) - max(
                0, count - 2 * sentence.size
            )  # a smaller beam needs fewer candidates
            candidates = dict(zip(row[:seen], values[i][:seen], strict=True))
            ending, going_on = sentence.choose(rows[i], steps[i], candidates, v)
            for start, chosen in ((0, ending), (k, going_on)):
                index[i, start : start + len(chosen)] = torch.tensor(chosen, dtype=torch.long)
                taken[i, start : start + len(chosen)] = True
        index = index.to(totals.device)
        taken = taken.to(totals.device)
        return totals.gather(1, index).masked_fill(~taken, -torch.inf), index


def _candidates(totals: Tensor, steps: Sequence[Sequence[Steps]], count: int) -> Tensor:
    """Indices (b, c) of the continuations in `totals` (b, w, v) to choose from.

    For each hypothesis: the best continuation, EOS, and all continuations that begin or continue a constraint. For each
    sentence, last: the `count` best continuations.
    """
    b, w, v = totals.shape
    starts = torch.arange(w, device=totals.device) * v
    best_of_rows = totals.argmax(dim=-1) + starts
    ends = (starts + EOS).expand(b, w)
    required = _required(steps, v).to(totals.device)
    best = totals.view(b, w * v).topk(count).indices
    return torch.cat((best_of_rows, ends, required, best), dim=1)


def _required(steps: Sequence[Sequence[Steps]], v: int) -> Tensor:
    """Indices (b, c) in `totals` of tokens that begin or continue a constraint, padded with PAD to equal length."""
    required = [
        [row * v + token for row, its in enumerate(each) for token in sorted(its)] for each in steps
    ]
    longest = max(map(len, required))
    return torch.tensor(
        [places + [PAD] * (longest - len(places)) for places in required], dtype=torch.long
    )


def _joins(before: Kind, after: Kind) -> bool:
    """Whether two neighbouring characters of these kinds belong to one word."""
    return before != "space" and (
        after == "mark" or (after == "letter" and before in ("letter", "mark"))
    )
