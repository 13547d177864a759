"""Generates any number of pairs that imitate a web crawl from the phrasebook's sentences, as text or as ids."""

import itertools
import random
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from transduce.tokens.store import Encoded
from transduce.tokens.tokenizer import Tokenizer
from transduce.tokens.vocabulary import Rows
from transduce.wings.phrasebook.examples import examples

SENTENCES, NUMBERS, NAMES = 20_000, 100_000, 400
SHARES = (0.55, 0.33, 0.12)  # the shares of pairs with one, two and three sentences
PAIRS_PER_CHUNK = 200_000
SEED = 7


class Crawl:
    """A generator of pairs, determined by a seed; each pair joins sentences, numbers and names (`parts`)."""

    def __init__(self) -> None:
        self.sentences = [(each.english, each.german) for each in examples("train", SENTENCES)]
        numbers = [(f"No. {number}:", f"Nr. {number}:") for number in range(NUMBERS)]
        draw = random.Random(1)
        sounds = [a + b for a in "bdfgklmnprst" for b in ("a", "e", "i", "o", "u", "an", "el")]
        names = list(
            itertools.islice(
                dict.fromkeys(made(draw, sounds) for _ in range(10 * NAMES)), 2 * NAMES
            )
        )
        first = [(name, name) for name in names[:NAMES]]
        last = [(f"{name}:",) * 2 for name in names[NAMES:]]
        self.parts = [*self.sentences, *numbers, *first, *last]

    def chunks(
        self, pairs: int, seed: int
    ) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """Indices of `parts` for all pairs in order, and the number of parts of each pair."""
        draw = np.random.default_rng(seed)
        for start in range(0, pairs, PAIRS_PER_CHUNK):
            size = min(PAIRS_PER_CHUNK, pairs - start)
            count = 1 + np.searchsorted(np.cumsum(SHARES), draw.random(size)).clip(
                max=len(SHARES) - 1
            )
            # Prefix: none (if there are several sentences), number or name.
            label = draw.integers(0, 3, size)
            label[(count == 1) & (label == 0)] = 1
            places = np.full((size, 2 + len(SHARES)), -1)
            sentences = draw.integers(0, len(self.sentences), (size, len(SHARES)))
            places[:, 2:] = np.where(np.arange(len(SHARES)) < count[:, None], sentences, -1)
            base = len(self.sentences)
            places[:, 1] = np.choose(
                label,
                (
                    -1,
                    base + draw.integers(0, NUMBERS, size),
                    base + NUMBERS + NAMES + draw.integers(0, NAMES, size),
                ),
            )
            places[:, 0] = np.where(label == 2, base + NUMBERS + draw.integers(0, NAMES, size), -1)
            used = places >= 0
            yield places[used], used.sum(1)

    def texts(self, pairs: int, seed: int) -> Iterator[tuple[list[str], list[str]]]:
        """Generate chunks of source and target texts."""
        for places, counts in self.chunks(pairs, seed):
            ends = np.cumsum(counts).tolist()
            parts = [self.parts[place] for place in places.tolist()]
            spans = list(zip([0, *ends], ends, strict=False))
            sides = ([part[side] for part in parts] for side in (0, 1))
            source, target = ([" ".join(side[start:end]) for start, end in spans] for side in sides)
            yield source, target

    def encoded(self, pairs: int, seed: int, tokenizer: Tokenizer) -> Iterator[Encoded]:
        """Generate the same pairs as ids; a part always has the same ids, since all parts begin after a space."""
        known = [pack([part[side] for part in self.parts]) for side, pack in
                 enumerate((tokenizer.source.encode, tokenizer.target.encode))]  # fmt: skip
        done = 0
        for places, counts in self.chunks(pairs, seed):
            source, target = (joined(rows, places, counts) for rows in known)
            lines = np.arange(done + 1, done + 1 + len(counts))
            yield Encoded(source, target, np.zeros(len(counts), np.int32), lines)
            done += len(counts)


def made(draw: random.Random, sounds: Sequence[str]) -> str:
    """Make a name from random syllables."""
    return "".join(draw.choices(sounds, k=draw.randint(2, 3))).title()


def joined(rows: Rows, places: NDArray[np.int64], counts: NDArray[np.int64]) -> Rows:
    """Take the rows at `places`, and join consecutive groups of `counts` rows to one row each."""
    ids, lengths = rows.take(places)
    return Rows(ids, np.add.reduceat(lengths, np.cumsum(counts) - counts))


def write_texts(crawl: Crawl, pairs: int, folder: Path) -> list[str]:
    """Write the pairs to two text files, and return the file names."""
    files = [folder / "crawl.en", folder / "crawl.de"]
    with (
        files[0].open("w", encoding="utf-8") as sources,
        files[1].open("w", encoding="utf-8") as targets,
    ):
        for source, target in crawl.texts(pairs, SEED):
            sources.write("\n".join(source) + "\n")
            targets.write("\n".join(target) + "\n")
    return [str(file) for file in files]
