"""Changes the texts of a random share of the training pairs (data.augment)."""

from collections.abc import Sequence
from random import Random

import numpy as np

from transduce.config.schema import SYNTHETIC_TAG
from transduce.text.augment import SHARE, augment
from transduce.tokens.mixture import choose
from transduce.tokens.tokenizer import Tokenizer
from transduce.tokens.vocabulary import Rows


class Augmentation:
    """Decodes some pairs, changes their texts, and encodes them again."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._vocabularies = tokenizer.source, tokenizer.target

    def __call__(self, sides: Sequence[Rows], random: np.random.Generator) -> list[Rows]:
        """Change a random SHARE of the pairs. `sides` holds the ids of the sources and of the targets."""
        kept = random.random(len(sides[0].lengths)) >= SHARE
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
    """Put the rows where `places` is true, and empty rows elsewhere."""
    lengths = np.zeros(len(places), dtype=np.int64)
    lengths[places] = rows.lengths
    return Rows(rows.ids, lengths)
