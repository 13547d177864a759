"""The symbols of linearised parse trees (wings/parsing); a model is a parser if its target vocabulary has them."""

from collections.abc import Iterable

OPEN, CLOSE = "(", ")"  # "(NP" opens a bracket
NUM_MARKS = 32


def mark(index: int) -> str:
    """The mark that precedes the word with this index, and also the word's tag: "0)" to "31)", then "0)" again.

    Unmarked trees contain no such symbols. Without marks a model would have to count the words.
    """
    return f"{index % NUM_MARKS})"


ALL_MARKS = " ".join(map(mark, range(NUM_MARKS)))


def are_of_trees(symbols: Iterable[str]) -> bool:
    """Whether the symbols of a vocabulary include all marks and the closing bracket of trees."""
    return {CLOSE, *ALL_MARKS.split(" ")} <= set(symbols)
