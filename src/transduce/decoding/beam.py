"""Beam search with the length penalty of Wu et al. (2016), as in section 6.1 of the paper.

b = sentences still being searched, k = beam size, w = open hypotheses (those without EOS) per sentence, at most k,
m = complete hypotheses (those with EOS) per sentence, v = vocabulary, n = tokens so far, BOS counted.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from transduce.config.schema import BOS, EOS, PAD, UNK
from transduce.decoding.stepper import Stepper
from transduce.decoding.types import Hypothesis, Selector, TokenFilter
from transduce.decoding.types import length_penalty as penalty
from transduce.model.seq2seq import select
from transduce.system.profiling import phase


class Beam(NamedTuple):
    """The state of a beam search. Entries without a hypothesis have the score -inf."""

    log_probs: Tensor  # (b, w) for the open hypotheses, best first
    tokens: Tensor  # (b, w, n)
    scores: Tensor  # (b, m) for the complete hypotheses, best first
    complete: Tensor  # (b, m, n), EOS after the last token, then PAD
    limits: Tensor  # (b,) maximum length of the translation, EOS not counted


class Expansion(NamedTuple):
    """The candidates of a search step, c <= 2k for each sentence."""

    log_probs: Tensor  # (b, c) for the extended hypotheses
    parents: Tensor  # (b, c) index of the open hypothesis that each candidate extends
    tokens: Tensor  # (b, c) the token that each candidate appends
    kept: Tensor  # (b, w) indices of the candidates that stay open, best first
    ended: Tensor  # (b, k) scores of the k best candidates; -inf for open ones


# Called after each step, with candidates for the sentences not yet done.
Watcher = Callable[[Expansion], None]


@phase("search")
@torch.inference_mode()
def beam_search(
    step: Stepper,
    max_lengths: Sequence[int],
    *,
    beam_size: int = 4,
    length_penalty: float = 0.6,
    n_best: int | None = None,
    no_repeat_ngram: int = 0,
    token_filter: TokenFilter | None = None,
    on_step: Watcher | None = None,
    selector: Selector | None = None,
) -> list[list[Hypothesis]]:
    """Find n_best translations of every sentence, best first. By default, n_best is beam_size.

    `max_lengths` holds the maximum length of each translation, EOS not counted. A sentence with fewer than n_best
    possible translations gets a shorter list. If beam_size is 1, the search is greedy. If
    `no_repeat_ngram` is not 0, no translation has an n-gram of this many tokens twice. `token_filter` forbids tokens.
    `on_step` is called with the candidates of each step. `selector` chooses the hypotheses that stay in the beam, and
    its beam size replaces beam_size.
    """
    kept = min(n_best or beam_size, beam_size)
    beam_size = selector.beam_size if selector else beam_size
    results: list[list[Hypothesis]] = [[] for _ in max_lengths]
    sentences = list(range(len(max_lengths)))  # unfinished sentences, as indices of `results`
    beam = _start(max_lengths, kept, step.device)
    for length in range(1, max(max_lengths, default=-1) + 2):
        b, w = beam.log_probs.shape
        log_probs = step(beam.tokens[:, :, -1].flatten()).unflatten(0, (b, w))
        if no_repeat_ngram:
            _forbid_repeats(beam.tokens, log_probs, no_repeat_ngram)
        if token_filter is not None:
            token_filter(beam.tokens, log_probs)
        forbid(log_probs, beam.limits < length if length > min(max_lengths) else None)
        beam, expansion = _advance(
            beam, log_probs, beam_size, penalty(length, length_penalty), selector
        )
        if on_step is not None:
            on_step(expansion)
        done = _done(
            beam, length, beam_size, length_penalty
        ).tolist()  # the only wait for the device in a step
        ended = [i for i in range(b) if done[i]]
        finished = (
            zip(ended, beam.scores[ended].tolist(), beam.complete[ended].tolist(), strict=True)
            if ended
            else ()
        )
        for i, scores, complete in finished:
            results[sentences[i]] = _hypotheses(scores, complete)
        if len(ended) == b:
            break
        rows = (
            expansion.parents.gather(1, expansion.kept)
            + w * torch.arange(b, device=step.device)[:, None]
        )
        if ended:
            going_on = torch.tensor([i for i in range(b) if not done[i]], device=step.device)
            sentences = [sentences[i] for i in range(b) if not done[i]]
            beam = select(beam, going_on)
            if token_filter is not None:
                token_filter.select(going_on)
            if selector is not None:
                selector.select(going_on)
            step.reorder(rows[going_on].flatten(), going_on)
        elif beam_size > 1:  # in greedy search the rows keep their order
            step.reorder(rows.flatten())
    return results


def _start(max_lengths: Sequence[int], kept: int, device: torch.device) -> Beam:
    """The initial beam. Each sentence has one open hypothesis, and it contains only BOS."""
    b = len(max_lengths)
    return Beam(
        log_probs=torch.zeros(b, 1, device=device),
        tokens=torch.full((b, 1, 1), BOS, device=device),
        scores=torch.full((b, kept), -torch.inf, device=device),
        complete=torch.full((b, kept, 1), PAD, device=device),
        limits=torch.tensor(list(max_lengths), device=device),
    )


def forbid(log_probs: Tensor, full: Tensor | None) -> None:
    """Forbid PAD, BOS and UNK in log_probs (b, w, v). Where `full` (b,) is true, allow only EOS."""
    log_probs[..., PAD] = log_probs[..., BOS] = log_probs[..., UNK] = -torch.inf
    if full is not None:
        log_probs[..., EOS + 1 :].masked_fill_(full[:, None, None], -torch.inf)


def _advance(
    beam: Beam, log_probs: Tensor, k: int, divisor: float, selector: Selector | None
) -> tuple[Beam, Expansion]:
    """Extend the beam by one token with log_probs (b, w, v), and return the new beam and the candidates."""
    vocab_size = log_probs.size(-1)
    totals = (beam.log_probs[..., None] + log_probs).flatten(1)  # (b, w * v)
    if selector is None:
        # 2k, because k of them may be complete.
        values, index = totals.topk(min(2 * k, totals.size(1)))
    else:
        values, index = selector(beam.tokens, totals, k)
    parents = index // vocab_size
    words = index % vocab_size
    tokens = torch.cat((_pick(beam.tokens, parents), words[..., None]), dim=-1)  # (b, 2k, n + 1)
    ends = words == EOS

    # Only the k best candidates may end. The sort is stable: at equal scores the shorter hypothesis stays ahead.
    ended = values.masked_fill(~ends, -torch.inf)[:, :k] / divisor
    scores, order = torch.cat((beam.scores, ended), dim=1).sort(dim=1, descending=True, stable=True)
    longer = torch.nn.functional.pad(beam.complete, (0, 1), value=PAD)
    order = order[:, : beam.scores.size(1)]
    complete = _pick(torch.cat((longer, tokens[:, :k]), dim=1), order)

    open_values, kept = values.masked_fill(ends, -torch.inf).topk(min(k, values.size(1)))
    beam = Beam(open_values, _pick(tokens, kept), scores[:, : order.size(1)], complete, beam.limits)
    return beam, Expansion(values, parents, words, kept, ended)


def _forbid_repeats(tokens: Tensor, log_probs: Tensor, size: int) -> None:
    """Forbid tokens that would end a hypothesis (b, w, n) with an n-gram of `size` tokens that it already has."""
    forbidden = list[tuple[int, int, int]]()
    for sentence, hypotheses in enumerate(tokens.tolist()):
        for beam, hypothesis in enumerate(hypotheses):
            last = hypothesis[len(hypothesis) - size + 1 :]
            ends = range(size - 1, len(hypothesis))
            forbidden += [
                (sentence, beam, hypothesis[end])
                for end in ends
                if hypothesis[end - size + 1 : end] == last
            ]
    if forbidden:
        log_probs[tuple(torch.tensor(forbidden, device=log_probs.device).T)] = -torch.inf


def _done(beam: Beam, length: int, beam_size: int, alpha: float) -> Tensor:
    """Whether each sentence's search is done (b,), because no open hypothesis can enter the n_best translations.

    The final score of an open hypothesis is at most its log-probability divided by the penalty of the maximum length.
    """
    if beam_size == 1:  # greedy: one complete hypothesis is enough
        return beam.scores[:, 0] > -torch.inf
    attainable = beam.log_probs[:, 0] / ((beam.limits + 6) / 6) ** alpha
    return (beam.scores[:, -1] >= attainable) | (beam.limits < length)


def _pick(tokens: Tensor, index: Tensor) -> Tensor:
    """For each sentence, pick hypotheses by their index. tokens (b, w, n), index (b, c) -> (b, c, n)."""
    return tokens.gather(1, index[..., None].expand(-1, -1, tokens.size(-1)))


def _hypotheses(scores: list[float], complete: list[list[int]]) -> list[Hypothesis]:
    """Make a sentence's hypotheses from scores (m) and tokens (m, n), without those that score -inf."""
    rows = zip(scores, complete, strict=True)
    return [Hypothesis(score, row[1 : row.index(EOS)]) for score, row in rows if score > -torch.inf]
