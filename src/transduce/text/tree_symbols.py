"""The symbols of linearised parse trees. A model that translates text into these symbols is a parser."""

from collections.abc import Iterable

# "(NP" opens a bracket; ")" closes one; ")2" closes brackets until 2 are open.
OPEN, CLOSE = (
    "(",
    ")",
)
NUM_MARKS = 32


def mark(index: int) -> str:
    """The mark of word number `index`, from "0)" to "31)" and then from "0)" again.

    The mark stands before the word in the source, and before its part-of-speech tag in the target.
    """
    return f"{index % NUM_MARKS})"


ALL_MARKS = " ".join(map(mark, range(NUM_MARKS)))


def are_of_trees(symbols: Iterable[str]) -> bool:
    """Whether the symbols of a vocabulary include all marks and the closing bracket of trees."""
    return {CLOSE, *ALL_MARKS.split(" ")} <= set(symbols)
