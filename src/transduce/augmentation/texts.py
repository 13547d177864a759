"""Changes pairs so that a model learns from input that does not look like its corpus.

Lower case and typing errors change only the source, so that the model still learns correct translations. A list marker
begins both sides. decoding/capitals.py takes care of capitals and title case. Placeholders, addresses and markup are
not changed.
"""

import re
from collections.abc import Callable
from random import Random

WORD = re.compile(r"(?<!\S)[^\W\d_]+(?:['’-][^\W\d_]+)*(?=[.,;:!?…]*(?!\S))")
MIN_TYPO_LETTERS = 4  # a typing error could turn a shorter word into another word
MAX_TYPOS = 3  # maximum number of errors in a sentence
KEYBOARD = ("qwertyuiop", "asdfghjkl", "zxcvbnm")
NEIGHBOURS = {
    row[i]: row[i - 1 : i] + row[i + 1 : i + 2] for row in KEYBOARD for i in range(len(row))
}
MARKERS = ("- ", "* ", "• ", "– ", "# ", "## ", "{}. ", "{}) ", "({}) ")


def lower_case(text: str) -> str:
    """Write each word in lower case."""
    return WORD.sub(lambda word: word[0].lower(), text)


def misspell(text: str, random: Random) -> str:
    """Make one to MAX_TYPOS typing errors: two letters swapped, one left out, doubled, or replaced by its neighbour."""
    for _ in range(random.randint(1, MAX_TYPOS)):
        words = [
            word
            for word in WORD.finditer(text)
            if len(word[0]) >= MIN_TYPO_LETTERS and word[0].lower() != word[0].upper()
        ]
        if not words:
            break
        at = random.randrange(*random.choice(words).span())
        letter = text[at]
        behind = text[at + 1 :]
        swapped = behind[:1] + letter + behind[1:] if behind[:1].isalpha() else letter + behind
        replaced = random.choice(NEIGHBOURS.get(letter, letter)) + behind
        changed = random.choice((swapped, behind, letter + letter + behind, replaced))
        text = text[:at] + changed
    return text


def mark(source: str, target: str, random: Random) -> tuple[str, str]:
    """Begin both sides with the same list marker or heading sign."""
    marker = random.choice(MARKERS).format(random.randint(1, 20))
    return marker + source, marker + target


CHANGES: tuple[
    tuple[float, Callable[[str, str, Random], tuple[str, str]]], ...
] = (  # (share of the pairs, change)
    (0.03, lambda source, target, _: (lower_case(source), target)),
    (0.1, lambda source, target, random: (misspell(source, random), target)),
    (0.01, mark),
)
SHARE = sum(share for share, _ in CHANGES)


def augment(source: str, target: str, random: Random) -> tuple[str, str]:
    """Apply one of CHANGES to a pair, drawn in proportion to the shares in CHANGES."""
    shares, changes = zip(*CHANGES, strict=True)
    (change,) = random.choices(changes, shares)
    return change(source, target, random)
