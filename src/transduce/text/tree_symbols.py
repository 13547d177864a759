"""The symbols of linearised parse trees (wings/parsing). A model whose target tokens are these symbols is a parser."""

from collections.abc import Iterable

OPEN, CLOSE = "(", ")"  # "(NP" opens a bracket
NUM_MARKS = 32


def mark(index: int) -> str:
    """The mark before a word in the source and before its tag in the target: "0)" to "31)", then "0)" again.

    No other symbol of a tree has this form. Without marks, a model would have to count the words.
    """
    return f"{index % NUM_MARKS})"


ALL_MARKS = " ".join(map(mark, range(NUM_MARKS)))


def are_of_trees(symbols: Iterable[str]) -> bool:
    """Whether the symbols of a vocabulary include all marks and the closing bracket of trees."""
    return {CLOSE, *ALL_MARKS.split(" ")} <= set(symbols)
