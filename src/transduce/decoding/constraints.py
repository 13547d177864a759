"""Beam search for translations that hold certain terms.

After Post and Vilar (2018), "Fast lexically constrained decoding with dynamic beam allocation": the hypotheses of a
sentence compete only with those that have as much of its terms still to write; otherwise those that have written
nothing of them, which no term has cost anything yet, would push out all others. Theirs is a beam of fixed size that is
divided; here each of these groups adds a beam, and what one does not need the others have.

b = sentences, w = open hypotheses per sentence, v = vocabulary, n = tokens so far, BOS counted.
"""

import math
from collections.abc import Iterator, Sequence
from itertools import islice, zip_longest
from typing import NamedTuple

import torch
from torch import Tensor

from transduce.config.schema import BOS, EOS, PAD, DecodeConfig
from transduce.decoding.engines.engine import Edges, Request, Wanted
from transduce.decoding.words import joins


class Progress(NamedTuple):
    """What a hypothesis has written of its sentence's terms, by their numbers."""

    met: frozenset[int]
    begun: frozenset[tuple[int, int, int]]  # (term, way, tokens) that the last tokens are; all of them: may yet go on


class SentenceTerms:
    """The terms of one sentence."""

    def __init__(self, wanted: Sequence[Wanted], edges: Edges):
        self.wanted, self.edges = wanted, edges
        self.lengths = [min(map(len, self._anywhere(each))) for each in wanted]

    def _anywhere(self, wanted: Wanted) -> Iterator[tuple[int, ...]]:
        """The ways that may follow on anything, and end the word before: behind a space, and where none is needed."""
        for way in wanted.ways:
            if way is wanted.ways[0] or self.edges.first[way[0]] in ("unspaced", "sign"):
                yield way

    def advance(self, progress: Progress, before: int, token: int) -> Progress:
        """What a hypothesis with the last token `before` has written when a token, not EOS, follows."""
        met, begun = set(progress.met), set()
        for term, way, count in progress.begun:
            tokens = self.wanted[term].ways[way]
            if count < len(tokens):
                if tokens[count] == token:
                    begun.add((term, way, count + 1))
            elif not joins(self.wanted[term].last, self.edges.first[token]):
                met.add(term)
        for term, way in self._beginning(progress, before):
            if self.wanted[term].ways[way][0] == token:
                begun.add((term, way, 1))
        return Progress(frozenset(met), frozenset(each for each in begun if each[0] not in met))

    def _beginning(self, progress: Progress, before: int) -> Iterator[tuple[int, int]]:
        """(term, way) that may begin now."""
        opens = before == BOS or self.edges.opens[before]
        for term, each in enumerate(self.wanted):
            if term not in progress.met:
                yield term, 0
                if len(each.ways) > 1 and (opens or each.first in ("unspaced", "sign")):
                    yield term, 1

    def missing(self, progress: Progress) -> int:
        """Tokens that certainly write all that is not written; 0: it may end here.

        Either a term that is begun is finished first, whatever becomes of the others, or all others begin anew.
        Where there is more to write than nothing, there is always a token that leaves one less.
        """
        whole = {term for term, way, count in progress.begun if count == len(self.wanted[term].ways[way])}
        rest = sum(n for term, n in enumerate(self.lengths) if term not in progress.met and term not in whole)
        open_ = sum(n for term, n in enumerate(self.lengths) if term not in progress.met)
        finished = (
            len(self.wanted[term].ways[way]) - count + open_ - self.lengths[term]
            for term, way, count in progress.begun
            if term not in whole
        )
        return min([rest, *finished])

    def next_tokens(self, progress: Progress, before: int) -> set[int]:
        """The tokens that write more of a term."""
        begun = (self.wanted[term].ways[way][count:] for term, way, count in progress.begun)
        starts = (self.wanted[term].ways[way] for term, way in self._beginning(progress, before))
        return {tokens[0] for tokens in (*begun, *starts) if tokens}


class Constrained:
    """What a search goes on with, for sentences with terms (see `decoding.beam.Choice`)."""

    def __init__(self, sentences: Sequence[Sequence[Wanted]], edges: Edges, limits: Sequence[int], beam_size: int):
        """Raises ValueError for a limit, of tokens without EOS, that the terms of its sentence are too long for."""
        self.terms = [SentenceTerms(wanted, edges) for wanted in sentences]
        self.limits = list(limits)
        self.sizes = [beam_size * (1 + sum(terms.lengths)) for terms in self.terms]
        nothing = Progress(frozenset(), frozenset())
        # Of the hypotheses that may be open.
        self.progress: list[dict[tuple[int, ...], Progress]] = [{(BOS,): nothing} for _ in self.terms]
        if any(terms.missing(nothing) > limit for terms, limit in zip(self.terms, limits, strict=True)):
            raise ValueError("there is no room for the terms of a sentence")

    @property
    def beam_size(self) -> int:
        """Room for the sentence that needs most."""
        return max(self.sizes, default=1)

    def keep(self, sentences: Tensor) -> None:
        """Go on with these sentences only."""
        chosen = sentences.tolist()
        self.terms, self.limits, self.sizes, self.progress = (
            [each[i] for i in chosen] for each in (self.terms, self.limits, self.sizes, self.progress)
        )

    def __call__(self, tokens: Tensor, totals: Tensor, k: int) -> tuple[Tensor, Tensor]:
        """tokens (b, w, n), totals (b, w * v) -> of what to go on with, values and places in the totals, both (b, 2k).

        The first k end their hypotheses, the others don't; where there are fewer, the value is -inf.
        """
        b, w, _ = tokens.shape
        v = totals.size(1) // w
        rows = tokens.tolist()
        starts = torch.arange(w, device=totals.device) * v
        best = totals.topk(min(2 * k, w * v)).indices  # the first columns are those of a smaller beam
        of_rows = totals.view(b, w, v).argmax(dim=-1) + starts
        asked = self._asked(rows, v).to(totals.device)
        places = torch.cat((of_rows, (starts + EOS).expand(b, w), asked, best), dim=1)
        values = totals.gather(1, places).tolist()
        index, taken = torch.zeros(b, 2 * k, dtype=torch.long), torch.zeros(b, 2 * k, dtype=torch.bool)
        for i, row in enumerate(places.tolist()):
            seen = len(row) - max(0, best.size(1) - 2 * self.sizes[i])
            candidates = dict(zip(row[:seen], values[i][:seen], strict=True))
            ending, going_on = self._choose(i, rows[i], candidates, v)
            for start, found in ((0, ending), (k, going_on)):
                index[i, start : start + len(found)] = torch.tensor(found, dtype=torch.long)
                taken[i, start : start + len(found)] = True
        index, taken = index.to(totals.device), taken.to(totals.device)
        return totals.gather(1, index).masked_fill(~taken, -torch.inf), index

    def _asked(self, rows: list[list[list[int]]], v: int) -> Tensor:
        """(b, most): the places of what writes more of a term; PAD of the first row, which is forbidden, fills up."""
        found = [
            [
                row * v + token
                for row, hypothesis in enumerate(hypotheses)
                if (written := progress.get(tuple(hypothesis))) is not None
                for token in sorted(terms.next_tokens(written, hypothesis[-1]))
            ]
            for terms, progress, hypotheses in zip(self.terms, self.progress, rows, strict=True)
        ]
        most = max(map(len, found))
        return torch.tensor([each + [PAD] * (most - len(each)) for each in found], dtype=torch.long)

    def _choose(
        self, i: int, hypotheses: list[list[int]], candidates: dict[int, float], v: int
    ) -> tuple[list[int], list[int]]:
        """Of a sentence's candidates, by place, those that end and those that go on; remembers what these have written.

        Groups take turns, those with the least to write first; where a group has fewer, the others have its turns. An
        end counts among the best that have nothing more to write.
        """
        terms, before, size = self.terms[i], self.progress[i], self.sizes[i]
        room = self.limits[i] - len(hypotheses[0])  # behind the next token
        groups: dict[int, list[int]] = {}
        after: dict[int, Progress] = {}
        for place in sorted((p for p, value in candidates.items() if value > -math.inf), key=lambda p: -candidates[p]):
            hypothesis, token = hypotheses[place // v], place % v
            written = before[tuple(hypothesis)]
            if token != EOS:
                after[place] = written = terms.advance(written, hypothesis[-1], token)
            missing = terms.missing(written)
            if missing <= (0 if token == EOS else room):
                groups.setdefault(missing, []).append(place)
        ending = [place for place in groups.get(0, [])[:size] if place % v == EOS]
        queues = [iter([p for p in groups[missing] if p % v != EOS]) for missing in sorted(groups)]
        turns = (place for turn in zip_longest(*queues) for place in turn if place is not None)
        going_on = list(islice(turns, size))
        self.progress[i] = {(*hypotheses[place // v], place % v): after[place] for place in going_on}
        return ending, going_on


def constrained(request: Request, config: DecodeConfig) -> Constrained | None:
    """What a search for a request goes on with; None if it asks for no terms."""
    if request.terms is None:
        return None
    return Constrained(request.terms.wanted, request.terms.edges, request.limits, config.beam_size)
