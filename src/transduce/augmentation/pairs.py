"""Changes the texts of encoded pairs (data.augment), and draws their subwords (train.sample_source and the like)."""

from collections.abc import Sequence
from random import Random

import numpy as np

from transduce.augmentation.subwords import SubwordSampler
from transduce.augmentation.texts import SHARE, augment
from transduce.config.schema import SYNTHETIC_TAG, RunConfig
from transduce.tokens.mixture import Change, choose
from transduce.tokens.tokenizer import Tokenizer
from transduce.tokens.vocabulary import Rows


def changes(config: RunConfig, tokenizer: Tokenizer) -> Change | None:
    """A function that changes pairs as the options say, or None if the options change no pairs."""
    train = config.train
    sides = (tokenizer.source, train.sample_source), (tokenizer.target, train.sample_target)
    samplers = [SubwordSampler(side, strength) if strength else None for side, strength in sides]
    # A prepared corpus may hold trees.
    augments = config.data.augment != "none" and not config.data.symbols
    augmentation = Augmentation(tokenizer) if augments else None
    if not augmentation and not any(samplers):
        return None

    def change(pairs: Sequence[Rows], random: np.random.Generator) -> list[Rows]:
        drawn = augmentation(pairs, random) if augmentation else pairs
        both = zip(drawn, samplers, strict=True)
        return [sampler.sample(rows, random) if sampler else rows for rows, sampler in both]

    return change


class Augmentation:
    """Decodes some pairs, changes their texts, and encodes them again."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._vocabularies = tokenizer.source, tokenizer.target

    def __call__(self, sides: Sequence[Rows], random: np.random.Generator) -> list[Rows]:
        """Change a random SHARE of the pairs. `sides` holds the ids of the sources and of the targets."""
        kept = random.random(len(sides[0].lengths)) >= SHARE
        if ids := self._vocabularies[0].marks.values():  # decoding would lose the marks
            marks = np.isin(sides[0].ids, list(ids))
            kept[np.repeat(np.arange(len(kept)), sides[0].lengths)[marks]] = True
        both = list(zip(self._vocabularies, sides, strict=True))
        texts = [vocabulary.decode(side.where(~kept).lists()) for vocabulary, side in both]
        words = Random(int(random.integers(1 << 62)))
        changed = [_augment(source, target, words) for source, target in zip(*texts, strict=True)]
        return [
            choose(kept, side, _spread(vocabulary.encode([pair[i] for pair in changed]), ~kept))
            for i, (vocabulary, side) in enumerate(both)
        ]


def _augment(source: str, target: str, random: Random) -> tuple[str, str]:
    """Change a pair, but keep the tag of a back-translated source at its beginning."""
    tag = SYNTHETIC_TAG if source.startswith(SYNTHETIC_TAG) else ""
    changed, target = augment(source.removeprefix(tag), target, random)
    return tag + changed, target


def _spread(rows: Rows, places: np.ndarray) -> Rows:
    """Spread the rows over the indices where `places` is true; the other rows are empty."""
    lengths = np.zeros(len(places), dtype=np.int64)
    lengths[places] = rows.lengths
    return Rows(rows.ids, lengths)
