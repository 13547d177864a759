"""Sampling the language: endless distinct sentences, and a split by combinations of words.

Part of the verb-noun and verb-adverb combinations are withheld from training: a held-out sentence has words that are
all known, in a combination that is new.
"""

import functools
import hashlib
import itertools
from collections.abc import Iterator

from transduce.wings.demo.phrasebook.draw_phrases import Dice
from transduce.wings.demo.phrasebook.draw_sentences import draw_sentence
from transduce.wings.demo.phrasebook.lexicon import NOUNS, VERBS, members, uses
from transduce.wings.demo.phrasebook.pairs import Example, build, tokens

WITHHELD = 0.07  # of all combinations
FEW = 6  # nouns of a verb, or verbs of a noun: these are all needed in training
LONGEST = 16  # tokens on either side


def stream(seed: int) -> Iterator[Example]:
    """Endless distinct examples, the same for the same seed."""
    dice, seen = Dice(seed), set()
    while True:
        example = build(draw_sentence(dice))
        words = max(len(tokens(example.english)), len(tokens(example.german)))
        if words <= LONGEST and example.english not in seen:
            seen.add(example.english)
            yield example


def sentences(count: int, seed: int) -> list[Example]:
    """`count` distinct examples, the same for the same seed."""
    return list(itertools.islice(stream(seed), count))


def split(train: int, held_out: int, seed: int) -> tuple[list[Example], list[Example]]:
    """Training and held-out examples: each held-out one has a withheld combination, none in training has."""
    known: list[Example] = []
    new: list[Example] = []
    examples = stream(seed)
    while len(known) < train or len(new) < held_out:
        example = next(examples)
        (new if any(map(withheld, example.combinations)) else known).append(example)
    return known[:train], new[:held_out]


@functools.cache
def withheld(combination: tuple[str, str]) -> bool:
    """Whether a combination is kept out of training: by its SHA-256, so the same everywhere.

    A verb with few nouns, or a noun with few verbs, keeps all of them: each word alone must be known.
    """
    digest = hashlib.sha256("\t".join(combination).encode()).digest()
    return int.from_bytes(digest[:8], "big") < WITHHELD * 2**64 and _is_dispensable(*combination)


def _is_dispensable(verb: str, other: str) -> bool:
    if other not in NOUNS or verb not in VERBS:
        return True
    kinds = [kinds for kinds in VERBS[verb].classes.values() if kinds & NOUNS[other].tags]
    return uses(other) >= FEW and all(len(members(each)) >= FEW for each in kinds)
