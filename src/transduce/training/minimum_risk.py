"""Minimum-risk training (Shen et al., 2016): lowers the expected risk of sampled translations.

The risk of a translation is 1 - GLEU, where GLEU is the sentence score of Wu et al. (2016) on subwords.

b = sentences, k = samples per sentence, r = b * k, s = source positions, t = target positions.
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence

import torch
from torch import Tensor

from transduce.config.schema import BOS, EOS, PAD, UNK
from transduce.model.recording import recording
from transduce.model.seq2seq import Batch, Seq2Seq, pad, target_log_probs

# A sample has at most this many tokens more than the longest target of its batch.
MAX_EXTRA_SAMPLE_TOKENS = 5
MAX_NGRAM = 4  # tokens


def expected_risk(
    model: Seq2Seq, batch: Batch, samples: int, sharpness: float
) -> tuple[Tensor, Tensor]:
    """The expected risk (b,) of distinct samples, with a gradient, and the logits (b, t, v) of the targets.

    The probability of a sample is proportional to its model probability to the power of `sharpness`. Sampling uses the
    random state of torch and no dropout.
    """
    limit = batch.tgt_out.size(1) + MAX_EXTRA_SAMPLE_TOKENS
    # The load of the experts in samples does not count for the balance loss.
    with recording(attention=False):
        sampled = sample(
            model, batch.src, samples, min(limit, (model.max_positions or math.inf) - 1)
        )
    references = without_padding(batch.tgt_out)
    risks = [1 - gleu(tokens, references[row // samples]) for row, tokens in enumerate(sampled)]
    is_repeated = [
        tokens in sampled[row - row % samples : row] for row, tokens in enumerate(sampled)
    ]
    risk, repeated = (
        torch.tensor(each, device=batch.src.device).view(-1, samples)
        for each in (risks, is_repeated)
    )
    tgt_in, tgt_out = (
        side.to(batch.src.device)
        for side in (pad(sampled, before=[BOS]), pad(sampled, after=[EOS]))
    )
    memory = model.encode(batch.src)
    logits, _ = model.decode(tgt_in, memory)
    log_probs = (
        target_log_probs(logits, tgt_out)
        .masked_fill(tgt_out == PAD, 0.0)
        .sum(dim=1)
        .view(-1, samples)
    )
    weights = (sharpness * log_probs).masked_fill(repeated, -torch.inf).softmax(dim=1)
    return (weights * risk).sum(dim=1), model.decode(batch.tgt_in, memory)[0]


@torch.no_grad()
def sample(model: Seq2Seq, src: Tensor, samples: int, max_length: float) -> list[list[int]]:
    """Draw translations of src (b, s), as r lists of up to `max_length` tokens without EOS.

    The model stays in training mode or eval mode.
    """
    was_training = model.training
    model.eval()
    memory = model.encode(src)
    state = None
    tokens = src.new_full((len(src) * samples, 1), BOS)
    while tokens.size(1) <= max_length:
        logits, state = model.decode(tokens[:, -1:], memory, state)
        logits = logits[:, -1].float()
        logits[:, [PAD, BOS, UNK]] = -torch.inf
        # Ten times as fast as torch.multinomial on a CPU.
        cumulative = logits.softmax(dim=-1).cumsum(dim=-1)
        chance = torch.rand(len(logits), 1, device=logits.device) * cumulative[:, -1:]
        drawn = torch.searchsorted(cumulative, chance, right=True).clamp(max=logits.size(-1) - 1)
        tokens = torch.cat((tokens, drawn), dim=1)
        if bool((tokens == EOS).any(dim=1).all()):
            break
    model.train(was_training)
    return without_padding(tokens[:, 1:])


def without_padding(tokens: Tensor) -> list[list[int]]:
    """The tokens of each row before EOS."""
    return [row[: row.index(EOS)] if EOS in row else row for row in tokens.tolist()]


def gleu(tokens: Sequence[int], reference: Sequence[int]) -> float:
    """GLEU: common n-grams of up to MAX_NGRAM tokens, divided by those of the longer text; 1 if both are empty."""
    counts = [Counter(ngrams(each)) for each in (tokens, reference)]
    longer = max(counts[0].total(), counts[1].total())
    return (counts[0] & counts[1]).total() / longer if longer else 1.0


def ngrams(tokens: Sequence[int]) -> Iterable[tuple[int, ...]]:
    """All n-grams of up to MAX_NGRAM tokens."""
    for size in range(1, MAX_NGRAM + 1):
        for start in range(len(tokens) - size + 1):
            yield tuple(tokens[start : start + size])
