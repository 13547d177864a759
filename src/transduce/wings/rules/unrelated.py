"""Finds pairs whose target has nothing to do with the source, by word translation probabilities.

IBM model 1 is learnt in both directions from the first pairs of the corpus, as small stand-ins for the two translation
models of dual conditional cross-entropy filtering (Junczys-Dowmunt, 2018). A word's score is the log of its probability
given the most likely word of the other side, minus the log of its share of the corpus. The score of a pair is the mean
over its words. Each half of the pairs is scored with the other half's models, because the scores of pairs that a model
learnt from are too high.
"""

import math
import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from transduce.text.hashes import hash_texts
from transduce.text.pair_batch import Ints
from transduce.wings import ibm_model_1
from transduce.wings.ibm_model_1 import Row, meet

Floats = NDArray[np.float64]
# Fewer pairs hold too little evidence: with 1,500 pairs of Tatoeba, 2 % are false alarms.
MIN_SAMPLE_PAIRS = 2_000
# Maximum number of pairs of a source word and a target word, for each half.
MAX_SAMPLE_MEETINGS = 3_000_000
SCORING_BLOCK_PAIRS = 500  # pairs that are scored together, in at most 100 MB
# Maximum words of a text; more words take time and add little evidence.
MAX_WORDS = 50
STEM_CHARACTERS = 5  # words are cut to this length, so that inflected forms become equal
ROUNDS_OF_LEXICON = 5
KNOWN_SHARE = 0.9  # weight of the word translation probability; the rest is for the word's share of the corpus
SMOOTHING = 1.0  # added to the count of each source word
# Shares of the unrelated pairs that are found, from a high threshold of the score to a low threshold.
SHARES_FOUND = (
    0.98,
    0.95,
    0.9,
    0.8,
)
# Minimum estimated precision for the pairs found in the sample; does not apply to the lowest threshold.
MIN_PRECISION = 0.5
WORD_OR_SIGN = re.compile(r"[\u2e80-\u9fff\uac00-\ud7af]|\w+|[^\w\s]")


class Lexicon(NamedTuple):
    """Word translation probabilities in one direction."""

    keys: Ints  # source word * number of target words + target word, ascending
    probabilities: Floats  # probability of each key
    shares: Floats  # share of each target word among the words of its side

    @classmethod
    def learn(cls, pairs: Sequence[tuple[Row, Row]], size: int) -> "Lexicon":
        """Learn from pairs of word numbers; `size` is the number of target words."""
        source, target, counts = ibm_model_1.learn(meet(pairs), ROUNDS_OF_LEXICON)
        probabilities = counts / (np.bincount(source, counts)[source] + SMOOTHING)
        words = np.bincount(np.concatenate([words for _, words in pairs]), minlength=size)
        return cls(source * size + target, probabilities, words / max(1, words.sum()))

    def scores(self, pairs: Sequence[tuple[Row, Row]]) -> Floats:
        """The score of each pair in this direction; nan for a pair without known target words."""
        sources, targets, positions = meet(pairs)
        keys = sources.astype(np.int64) * len(self.shares) + targets
        places = np.empty_like(keys)
        order = np.argsort(keys)
        places[order] = np.searchsorted(self.keys, keys[order])  # faster in ascending order
        places = places.clip(max=len(self.keys) - 1)
        met = (self.keys[places] == keys) & (sources != ibm_model_1.NULL_WORD)
        words = np.concatenate([target for _, target in pairs])
        best = np.zeros(len(words))
        shares = self.shares[words]
        np.maximum.at(best, positions, np.where(met, self.probabilities[places], 0.0))
        known = np.flatnonzero(shares)
        gains = np.log(KNOWN_SHARE * best[known] / shares[known] + 1 - KNOWN_SHARE)
        rows = np.repeat(np.arange(len(pairs)), [len(target) for _, target in pairs])[known]
        with np.errstate(invalid="ignore"):
            mean: Floats = np.bincount(rows, gains, len(pairs)) / np.bincount(
                rows, minlength=len(pairs)
            )
        return mean


class Unrelated:
    """Checks whether the sides of a pair are unrelated."""

    def __init__(self, sources: Sequence[str], targets: Sequence[str]) -> None:
        """Learn from the first pairs of a corpus."""
        self._words: tuple[dict[str, int], dict[str, int]] = {}, {}
        self._lexicons: list[tuple[Lexicon, Lexicon]] = []  # both directions, for each half
        self._threshold = -math.inf
        folds = _folds(sources, targets)
        halves = [self._half(sources, targets, np.flatnonzero(folds == fold)) for fold in (0, 1)]
        if min(map(len, halves)) < MIN_SAMPLE_PAIRS // 2:
            return
        sizes = [len(words) for words in self._words]
        self._lexicons = [
            (Lexicon.learn(half, sizes[1]), Lexicon.learn([pair[::-1] for pair in half], sizes[0]))
            for half in halves
        ]
        real = []
        random = []
        for fold, half in enumerate(halves):
            real.append(self._scores(half, 1 - fold))
            mixed = [(source, half[i - len(half) // 2][1]) for i, (source, _) in enumerate(half)]
            random.append(self._scores(mixed, 1 - fold))
        self._threshold = _threshold(np.concatenate(real), np.concatenate(random))

    def find(self, sources: Sequence[str], targets: Sequence[str]) -> Row:
        """Whether each pair is unrelated. A pair without known words on both sides is not."""
        result = np.zeros(len(sources), dtype=bool)
        if not math.isfinite(self._threshold):
            return result
        folds = _folds(sources, targets)
        for fold in (0, 1):
            rows = np.flatnonzero(folds == fold)
            pairs = [self._numbers(sources[row], targets[row]) for row in rows.tolist()]
            known = [place for place, pair in enumerate(pairs) if min(map(len, pair))]
            if known:
                scores = self._scores([pairs[place] for place in known], 1 - fold)
                result[rows[known]] = scores < self._threshold
        return result

    def _half(
        self, sources: Sequence[str], targets: Sequence[str], rows: Ints
    ) -> list[tuple[Row, Row]]:
        """The word numbers of the pairs in these rows, as many as MAX_SAMPLE_MEETINGS allows.

        Unknown words get new numbers.
        """
        half = []
        meetings = 0
        for row in rows.tolist():
            source, target = (
                np.array(
                    [words.setdefault(stem, len(words)) for stem in _stems(text)], dtype=np.int64
                )
                for text, words in zip((sources[row], targets[row]), self._words, strict=True)
            )
            if len(source) and len(target):
                half.append((source, target))
                meetings += len(source) * len(target)
            if meetings > MAX_SAMPLE_MEETINGS:
                break
        return half

    def _numbers(self, *texts: str) -> tuple[Row, Row]:
        """The numbers of the known words of both sides."""
        source, target = (
            np.array([words[stem] for stem in _stems(text) if stem in words], dtype=np.int64)
            for text, words in zip(texts, self._words, strict=True)
        )
        return source, target

    def _scores(self, pairs: Sequence[tuple[Row, Row]], half: int) -> Floats:
        """The sums of both directions' scores, by the models that one half of the corpus trained."""
        forward, backward = self._lexicons[half]
        blocks = [
            pairs[start : start + SCORING_BLOCK_PAIRS]
            for start in range(0, len(pairs), SCORING_BLOCK_PAIRS)
        ]
        both = [
            forward.scores(block) + backward.scores([pair[::-1] for pair in block])
            for block in blocks
        ]
        return np.concatenate(both)


def _folds(sources: Sequence[str], targets: Sequence[str]) -> Row:
    """The half, 0 or 1, of each pair. Equal pairs are in the same half."""
    pairs = zip(sources, targets, strict=True)
    return hash_texts(f"{source}\n{target}" for source, target in pairs) % np.uint64(2)


def _stems(text: str) -> list[str]:
    """The beginnings of the first words of a text."""
    return [word[:STEM_CHARACTERS] for word in WORD_OR_SIGN.findall(text.casefold())[:MAX_WORDS]]


def _threshold(real: Floats, random: Floats) -> float:
    """The score below which a pair is unrelated, from the scores of pairs and of randomly mixed pairs.

    It is as high as the estimated precision allows. It is -inf if the scores do not tell the pairs from mixed pairs.
    """
    real, random = (scores[~np.isnan(scores)] for scores in (real, random))
    if not len(random) or np.median(real) < np.quantile(random, SHARES_FOUND[0]):
        return -math.inf
    share_unrelated = np.mean(real < np.median(random)) / 0.5
    thresholds = [float(np.quantile(random, share)) for share in SHARES_FOUND]
    for share, threshold in zip(SHARES_FOUND, thresholds, strict=True):
        if share_unrelated * share >= MIN_PRECISION * np.mean(real < threshold):
            return threshold
    return thresholds[-1]
