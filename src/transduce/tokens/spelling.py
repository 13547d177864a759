"""Sources that are not text: paths of files, such as pictures and sounds, which a registered reader spells.

A reader turns a file into values from 0 to 255, and each value becomes one of 256 characters. So corpora, stores and
searches handle such sources like texts, and a model with a front end reads each run of values as a vector.
"""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from transduce.config.families import TEXT_SOURCES, SourceKind, kind_of
from transduce.config.schema import UNK
from transduce.system.registry import load
from transduce.tokens.normalization import Normalizer, Tracked

FIRST_SPELLING = 0x2800  # the Braille patterns, which no source of this kind has otherwise
SPELLINGS = "".join(chr(FIRST_SPELLING + value) for value in range(256))
FIRST_VALUE = UNK + 1  # the id of the value 0 in the vocabulary of such sources


def normalizer_of(name: str, usual: Normalizer) -> Normalizer:
    """The normalizer of sources of a kind."""
    return usual if name == TEXT_SOURCES else Speller(kind_of(name))


class Speller(Normalizer):
    """Replaces the path of each file by the characters that spell its values. Spelled sources stay as they are."""

    def __init__(self, kind: SourceKind) -> None:
        super().__init__()
        self._read: Callable[[str], NDArray[np.uint8]] = load(kind.read)

    def __call__(self, texts: Sequence[str]) -> list[str]:
        """The spelled sources. Raises UserError if a file can't be read."""
        return list(map(self._spelled, texts))

    def tracked(self, text: str) -> Tracked:
        """A spelled source. All its characters come from the whole path."""
        spelled = self._spelled(text)
        return Tracked(spelled, [(0, len(text))] * len(spelled))

    def _spelled(self, text: str) -> str:
        if not text.strip() or FIRST_SPELLING <= ord(text[0]) < FIRST_SPELLING + len(SPELLINGS):
            return text
        values = self._read(text).astype("<u4") + FIRST_SPELLING
        return values.tobytes().decode("utf-32-le")
