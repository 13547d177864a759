"""The probability of given translations, by forced decoding."""

from collections.abc import Callable, Iterable, Sequence

from transduce.decoding.types import Engine, Scored, length_penalty
from transduce.tokens.tokenizer import Tokenizer


def score_pairs(
    engine: Engine,
    tokenizer: Tokenizer,
    sources: Sequence[str],
    targets: Sequence[str],
    alpha: float,
    batched: Callable[[Engine, list[int]], Iterable[list[int]]],
    check_lengths: Callable[[str, list[list[int]], Sequence[int]], None],
) -> list[Scored]:
    """One score per pair of sentences; a blank pair has probability 1.

    alpha: of the length penalty. batched: the indices of pairs with these lengths, in batches for an engine.
    check_lengths: raises UserError for ids that are too long, of the side and with the numbers that it names.
    """
    places = [i for i in range(len(sources)) if sources[i].strip() or targets[i].strip()]
    source_ids = tokenizer.encode_source([sources[i] for i in places])
    target_ids = tokenizer.encode_target([targets[i] for i in places])
    check_lengths("Source", source_ids, [i + 1 for i in places])
    check_lengths("Target", target_ids, [i + 1 for i in places])
    scored = [Scored(0.0, 0, 0.0)] * len(sources)
    lengths = [max(len(source), len(target)) + 1 for source, target in zip(source_ids, target_ids, strict=True)]
    for batch in batched(engine, lengths):
        log_probs = engine.log_probs([source_ids[i] for i in batch], [target_ids[i] for i in batch])
        for i, log_prob in zip(batch, log_probs, strict=True):
            length = len(target_ids[i]) + 1
            scored[places[i]] = Scored(log_prob, length, log_prob / length_penalty(length, alpha))
    return scored
