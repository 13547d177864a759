"""Sample sentence pairs, and split them by combinations of words.

Some verb-noun and verb-adverb combinations are withheld from training: a held-out sentence combines known words in
a new way.
"""

import functools
import hashlib
from collections.abc import Iterator

from phrasebook.draw_phrases import Dice
from phrasebook.draw_sentences import draw_sentence
from phrasebook.lexicon import NOUNS, VERBS, members, uses
from phrasebook.pairs import Example, build, tokens

WITHHELD_SHARE = 0.07  # of all combinations
# Nouns of a verb, verbs of a noun; a word with fewer keeps all of them in training.
MIN_PARTNERS = 6
MAX_SENTENCE_TOKENS = 16  # on either side


def stream(seed: int) -> Iterator[Example]:
    """An endless stream of distinct examples, a function of the seed."""
    dice = Dice(seed)
    seen = set()
    while True:
        example = build(draw_sentence(dice))
        words = max(len(tokens(example.english)), len(tokens(example.german)))
        if words <= MAX_SENTENCE_TOKENS and example.english not in seen:
            seen.add(example.english)
            yield example


def split(train: int, held_out: int, seed: int) -> tuple[list[Example], list[Example]]:
    """Training examples without withheld combinations, and held-out examples that each have one."""
    known: list[Example] = []
    new: list[Example] = []
    examples = stream(seed)
    while len(known) < train or len(new) < held_out:
        example = next(examples)
        (new if any(map(withheld, example.combinations)) else known).append(example)
    return known[:train], new[:held_out]


@functools.cache
def withheld(combination: tuple[str, str]) -> bool:
    """Whether a combination is withheld from training, decided by its SHA-256.

    Words with few partners keep all combinations, so that every single word occurs in training.
    """
    digest = hashlib.sha256("\t".join(combination).encode()).digest()
    return int.from_bytes(digest[:8], "big") < WITHHELD_SHARE * 2**64 and _is_dispensable(
        *combination
    )


def _is_dispensable(verb: str, other: str) -> bool:
    if other not in NOUNS or verb not in VERBS:
        return True
    kinds = [kinds for kinds in VERBS[verb].classes.values() if kinds & NOUNS[other].tags]
    return uses(other) >= MIN_PARTNERS and all(len(members(each)) >= MIN_PARTNERS for each in kinds)
