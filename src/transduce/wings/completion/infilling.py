"""Fills the gap between the given beginning and the given end of a translation.

Each hypothesis of a search with the beginning is cut behind each of its tokens, and continued by the given end. Forced
decoding tells which of these texts is the best translation.
"""

from collections.abc import Iterator

from transduce.decoding.searcher import Searcher
from transduce.decoding.types import Hypothesis, NBestLists, Sentences, length_penalty
from transduce.system.errors import UserError
from transduce.tokens.tokenizer import Tokenizer


def infilled(searcher: Searcher, sentences: Sentences, n_best_lists: NBestLists) -> NBestLists:
    """Replace the hypotheses of sentences with a suffix by texts that end with it, best first.

    Raises UserError if no translation that ends with the suffix is short enough, or can be spelt.
    """
    tokenizer = searcher.tokenizer
    places: list[int] = []
    targets: list[list[int]] = []
    for i, guide in enumerate(sentences.guides or ()):
        if not guide.suffix:
            continue
        texts = list(dict.fromkeys(_texts(tokenizer, n_best_lists[i], guide.prefix, guide.suffix)))
        rows = tokenizer.encode_target(texts)
        limit = searcher.limit(sentences.sources[i])
        fitting = [
            row
            for row, decoded in zip(rows, tokenizer.decode(rows), strict=True)
            if len(row) <= limit and guide.fits(decoded)
        ]
        if not fitting:
            raise UserError(
                f"Text {sentences.numbers[i]}: no translation of at most {limit} tokens ends with the suffix "
                f"{guide.suffix!r}.",
                "Shorten the suffix or raise decode.max_extra_tokens.",
            )
        places += [i] * len(fitting)
        targets += fitting
    inputs = sentences.sources
    if sentences.guides:
        inputs = list(map(searcher.guided, inputs, sentences.guides, sentences.texts))
    sources = [inputs[i] for i in places]
    engine = searcher.engine
    log_probs = searcher.forced(engine, engine.log_probs, sources, targets)
    found: dict[int, list[Hypothesis]] = {i: [] for i in places}
    for i, row, each in zip(places, targets, log_probs, strict=True):
        divisor = length_penalty(len(row) + 1, searcher.config.length_penalty)
        found[i].append(Hypothesis(sum(each) / divisor, row))
    for best in found.values():
        best.sort(key=lambda hypothesis: -hypothesis.score)
    return [found.get(i, best) for i, best in enumerate(n_best_lists)]


def _texts(
    tokenizer: Tokenizer, hypotheses: list[Hypothesis], prefix: str, suffix: str
) -> Iterator[str]:
    """Yield the prefix and each longer beginning of a hypothesis, followed by the suffix with and without a blank."""
    for hypothesis in hypotheses:
        rows = [hypothesis.tokens[:size] for size in range(len(hypothesis.tokens) + 1)]
        begun = [text for text in tokenizer.decode(rows) if text.startswith(prefix)]
        for text in (prefix, *begun):
            yield text + suffix
            if text[-1:].strip() and suffix[0].strip():
                yield f"{text} {suffix}"
            if text[-1:].isspace() and suffix[0].isspace() and len(text) > len(prefix):
                yield text.rstrip() + suffix
