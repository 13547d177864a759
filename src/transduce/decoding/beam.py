"""Beam search with the length penalty of Wu et al. (2016), as the paper decodes (section 6.1).

b = sentences not yet done, w = open hypotheses per sentence (1 at first, then up to k, the beam size),
m = complete hypotheses kept per sentence, v = vocabulary, n = tokens so far, BOS counted.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from transduce.config.schema import BOS, EOS, PAD, UNK
from transduce.decoding.engines.engine import Hypothesis, penalty
from transduce.decoding.stepper import Stepper
from transduce.model.seq2seq import select
from transduce.system.profiling import phase


class Beam(NamedTuple):
    """Where the search stands; places that nothing has taken yet score -inf."""

    log_probs: Tensor  # (b, w) of the open hypotheses, best first
    tokens: Tensor  # (b, w, n)
    scores: Tensor  # (b, m) of the complete hypotheses, best first
    complete: Tensor  # (b, m, n), EOS after the last token, then PAD
    limits: Tensor  # (b,) longest translation allowed


class Expansion(NamedTuple):
    """The continuations that a step chose from: up to 2k, best first, c in number."""

    log_probs: Tensor  # (b, c) of the hypotheses that they make
    parents: Tensor  # (b, c) the open hypothesis that each continues, by its place
    tokens: Tensor  # (b, c)
    kept: Tensor  # (b, w) those that stay open, by number, best first
    ended: Tensor  # (b, k) scores of those among the k best that are complete; -inf of others


Watcher = Callable[[Expansion], None]  # is told of every step, of the sentences not yet done at its start


class Filter(Protocol):
    """What may follow, beyond what the model says; nothing is normalised anew."""

    def __call__(self, tokens: Tensor, log_probs: Tensor) -> None:
        """tokens (b, w, n), BOS first; overwrite log_probs (b, w, v) of the next with -inf where it may not stand."""
        ...

    def keep(self, sentences: Tensor) -> None:
        """Go on with these sentences only."""
        ...


class Choice(Protocol):
    """What a search goes on with, where that is not what is most probable."""

    @property
    def beam_size(self) -> int:
        """The open hypotheses that it needs for a sentence."""
        ...

    def __call__(self, tokens: Tensor, totals: Tensor, k: int) -> tuple[Tensor, Tensor]:
        """tokens (b, w, n), BOS first, log-probabilities (b, w * v) of all continuations -> those to go on with.

        Their values and places (b, 2k): first up to k that end, then up to k that don't, -inf where there are fewer.
        """
        ...

    def keep(self, sentences: Tensor) -> None:
        """Go on with these sentences only."""
        ...


@phase("search")
@torch.inference_mode()
def beam_search(
    step: Stepper,
    max_lengths: Sequence[int],
    *,
    beam_size: int = 4,
    length_penalty: float = 0.6,
    n_best: int | None = None,
    only: Filter | None = None,
    watch: Watcher | None = None,
    choose: Choice | None = None,
) -> list[list[Hypothesis]]:
    """The n_best (by default beam_size) best translations that the beam finds of every sentence, best first.

    max_lengths: the longest translation allowed for each sentence, EOS not counted; there a hypothesis is made to
    end. A sentence is done when nothing open can become one of its n_best, so a smaller n_best finds the same
    hypotheses sooner. A list is shorter where fewer translations exist. beam_size 1 is greedy search. only: a filter on
    what may follow. watch: who wants to see what every step chose from. choose: what decides, instead of
    probability alone, which hypotheses are kept; it needs a beam of its own size.
    """
    wanted = min(n_best or beam_size, beam_size)
    beam_size = choose.beam_size if choose else beam_size
    results: list[list[Hypothesis]] = [[] for _ in max_lengths]
    sentences = list(range(len(max_lengths)))  # those not yet done, by their place in the results
    beam = _start(max_lengths, wanted, step.device)
    for length in range(1, max(max_lengths, default=-1) + 2):
        b, w = beam.log_probs.shape
        log_probs = step(beam.tokens[:, :, -1].flatten()).unflatten(0, (b, w))
        if only is not None:
            only(beam.tokens, log_probs)
        _forbid(log_probs, beam.limits < length if length > min(max_lengths) else None)
        beam, expansion = _advance(beam, log_probs, beam_size, penalty(length, length_penalty), choose)
        if watch is not None:
            watch(expansion)
        done = _done(beam, length, beam_size, length_penalty).tolist()  # a step's only wait for the device
        for i in range(b):
            if done[i]:
                results[sentences[i]] = _hypotheses(beam.scores[i], beam.complete[i])
        if all(done):
            break
        going_on = torch.tensor([i for i in range(b) if not done[i]], device=step.device)
        parents = expansion.parents.gather(1, expansion.kept)
        rows = (going_on[:, None] * w + parents[going_on]).flatten()
        if any(done):
            sentences = [sentences[i] for i in range(b) if not done[i]]
            beam = select(beam, going_on)
            if only is not None:
                only.keep(going_on)
            if choose is not None:
                choose.keep(going_on)
            step.keep(rows, going_on)
        elif beam_size > 1:  # a greedy search's rows stay where they are
            step.keep(rows)
    return results


def _start(max_lengths: Sequence[int], wanted: int, device: torch.device) -> Beam:
    """One open hypothesis per sentence, BOS, and no complete one."""
    b = len(max_lengths)
    return Beam(
        log_probs=torch.zeros(b, 1, device=device),
        tokens=torch.full((b, 1, 1), BOS, device=device),
        scores=torch.full((b, wanted), -torch.inf, device=device),
        complete=torch.full((b, wanted, 1), PAD, device=device),
        limits=torch.tensor(list(max_lengths), device=device),
    )


def _forbid(log_probs: Tensor, full: Tensor | None) -> None:
    """Overwrite (b, w, v): never PAD, BOS or UNK, and nothing but EOS where `full` (b,)."""
    log_probs[..., PAD] = log_probs[..., BOS] = log_probs[..., UNK] = -torch.inf
    if full is not None:
        log_probs[..., EOS + 1 :].masked_fill_(full[:, None, None], -torch.inf)


def _advance(beam: Beam, log_probs: Tensor, k: int, divisor: float, choose: Choice | None) -> tuple[Beam, Expansion]:
    """log_probs (b, w, v) of the next token -> the beam a token later, and what it was chosen from."""
    vocab_size = log_probs.size(-1)
    totals = (beam.log_probs[..., None] + log_probs).flatten(1)  # (b, w * v)
    if choose is None:
        values, index = totals.topk(min(2 * k, totals.size(1)))  # 2k, for k of them may be complete
    else:
        values, index = choose(beam.tokens, totals, k)
    parents, words = index // vocab_size, index % vocab_size
    tokens = torch.cat((_pick(beam.tokens, parents), words[..., None]), dim=-1)  # (b, 2k, n + 1)
    ends = words == EOS

    # An end counts only among the k best. The sort is stable: at equal scores the shorter one stays ahead.
    ended = values.masked_fill(~ends, -torch.inf)[:, :k] / divisor
    scores, order = torch.cat((beam.scores, ended), dim=1).sort(dim=1, descending=True, stable=True)
    longer = torch.nn.functional.pad(beam.complete, (0, 1), value=PAD)
    order = order[:, : beam.scores.size(1)]
    complete = _pick(torch.cat((longer, tokens[:, :k]), dim=1), order)

    open_values, kept = values.masked_fill(ends, -torch.inf).topk(min(k, values.size(1)))
    beam = Beam(open_values, _pick(tokens, kept), scores[:, : order.size(1)], complete, beam.limits)
    return beam, Expansion(values, parents, words, kept, ended)


def _done(beam: Beam, length: int, beam_size: int, alpha: float) -> Tensor:
    """(b,): nothing open can still become one of the complete hypotheses that are kept.

    Log-probabilities only fall, so an open hypothesis scores at most what it has over the largest divisor to come:
    that of the longest translation, or of the next token for alpha < 0.
    """
    if beam_size == 1:  # greedy: the first end is the end
        return beam.scores[:, 0] > -torch.inf
    longest = ((beam.limits + 6) / 6) ** alpha
    attainable = beam.log_probs[:, 0] / longest.clamp(min=penalty(length + 1, alpha))
    return (beam.scores[:, -1] >= attainable) | (beam.limits < length)


def _pick(tokens: Tensor, index: Tensor) -> Tensor:
    """tokens (b, w, n), index (b, c) -> (b, c, n): for every sentence the rows that its index names."""
    return tokens.gather(1, index[..., None].expand(-1, -1, tokens.size(-1)))


def _hypotheses(scores: Tensor, complete: Tensor) -> list[Hypothesis]:
    """scores (m,), complete (m, n) of one sentence, without the places that nothing has taken."""
    rows = zip(scores.tolist(), complete.tolist(), strict=True)
    return [Hypothesis(score, row[1 : row.index(EOS)]) for score, row in rows if score > -torch.inf]
