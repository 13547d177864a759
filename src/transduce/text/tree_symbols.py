"""The symbols of linearised parse trees, which are the target language of a parser (wings/parsing).

A vocabulary and a model folder show by them that a model makes trees.
"""

from collections.abc import Iterable

OPEN, CLOSE = "(", ")"  # "(NP" opens a bracket
NUM_MARKS = 32


def mark(index: int) -> str:
    """The mark of the word with this index, and of its tag: "0)" to "31)", and again from "0)".

    No tree contains such a symbol. Without marks a model would have to count the words.
    """
    return f"{index % NUM_MARKS})"


ALL_MARKS = " ".join(map(mark, range(NUM_MARKS)))


def are_of_trees(symbols: Iterable[str]) -> bool:
    """Whether the symbols of a vocabulary are those of marked trees."""
    return {CLOSE, *ALL_MARKS.split(" ")} <= set(symbols)
