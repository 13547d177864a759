"""Learns the translations of words from a corpus, by word alignment in both directions."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from transduce.tokens.spans import Span
from transduce.wings import ibm_model_1
from transduce.wings.ibm_model_1 import NULL_WORD, Row, meet
from transduce.wings.terms.glossary import spans_of
from transduce.wings.terms.lemmas import Lemmas

MIN_CHARACTERS = 3  # of a word with a translation
NUM_FUNCTION_WORDS = 50  # the most frequent words of a side are no terms
MAX_MEETINGS = 20_000_000  # of a source word and a target word; needs 1.5 GB of memory
ROUNDS = 5
MIN_AGREEMENT = 0.1  # minimum product of the translation probabilities of both directions


class Word(NamedTuple):
    """A word of a text that may be a term."""

    lemma: str
    span: Span


Words = list[Word]


class Lexicon:
    """Translations of lemmas by lemmas, with the products of the translation probabilities of both directions."""

    def __init__(self, words: Iterable[tuple[Words, Words]]) -> None:
        """Learn from the words of pairs."""
        pairs = [[[word.lemma for word in side] for side in pair] for pair in words]
        counts = [Counter(word for pair in pairs for word in pair[side]) for side in (0, 1)]
        content = [
            {word: i for i, (word, _) in enumerate(its.most_common()[NUM_FUNCTION_WORDS:])}
            for its in counts
        ]
        numbers = list[tuple[Row, Row]]()
        for pair in pairs:
            source, target = (
                np.array([known[word] for word in words if word in known], dtype=np.int32)
                for words, known in zip(pair, content, strict=True)
            )
            if len(source) and len(target):
                numbers.append((source, target))
        self.translations: dict[str, dict[str, float]] = {}
        if numbers:
            meetings = sum(len(source) * len(target) for source, target in numbers)
            some = numbers[:: meetings // MAX_MEETINGS + 1]
            self._learn(some, list(content[0]), list(content[1]))

    def _learn(
        self, pairs: Sequence[tuple[Row, Row]], sources: Sequence[str], targets: Sequence[str]
    ) -> None:
        forward = _probabilities(pairs)
        backward = _probabilities([pair[::-1] for pair in pairs])
        for (source, target), probability in forward.items():
            agreement = probability * backward.get((target, source), 0.0)
            if agreement >= MIN_AGREEMENT:
                its = self.translations.setdefault(sources[source], {})
                its[targets[target]] = agreement

    def align(self, sources: Words, targets: Words) -> list[tuple[int, int]]:
        """The indices of words that translate each other: each is the other's most probable translation."""
        best = dict[int, tuple[float, int]]()
        back = dict[int, tuple[float, int]]()
        for i, (source, _) in enumerate(sources):
            its = self.translations.get(source, {})
            for j, (target, _) in enumerate(targets if its else ()):
                agreement = its.get(target, 0.0)
                if agreement > best.get(i, (0.0, 0))[0]:
                    best[i] = agreement, j
                if agreement > back.get(j, (0.0, 0))[0]:
                    back[j] = agreement, i
        return [(i, j) for i, (_, j) in best.items() if back[j][1] == i]


def _probabilities(pairs: Sequence[tuple[Row, Row]]) -> dict[tuple[int, int], float]:
    """The probabilities of target words given source words, if they are high enough for MIN_AGREEMENT."""
    source, target, counts = ibm_model_1.learn(meet(pairs), ROUNDS)
    probability = counts / np.bincount(source, counts)[source]
    kept = (probability >= MIN_AGREEMENT) & (source != NULL_WORD)
    keys = zip((source[kept] - 1).tolist(), target[kept].tolist(), strict=True)
    return dict(zip(keys, probability[kept].tolist(), strict=True))


def words_in(text: str, lemmas: Lemmas) -> Words:
    """The words of a text that may be terms."""
    spans = [(text[begin:end], (begin, end)) for begin, end in spans_of(text)]
    return [
        Word(lemmas.of(word), span)
        for word, span in spans
        if len(word) >= MIN_CHARACTERS and word.isalpha()
    ]
