"""Finds the position of each subword piece in a text."""

from collections.abc import Sequence
from itertools import accumulate, pairwise

Span = tuple[int, int]  # begin and end in a text, in code points
MAX_CHARACTER_BYTES = 4


def piece_spans(pieces: Sequence[str | int]) -> list[Span]:
    """Return the span of each piece in the text. A piece is a string, or an integer for one byte.

    If several byte pieces spell a character, the last piece has the character's span, and the others have empty spans.
    A byte that belongs to no character is decoded as U+FFFD and has a span of one character.
    """
    lengths: list[int] = []
    while len(lengths) < len(pieces):
        piece = pieces[len(lengths)]
        if isinstance(piece, str):
            lengths.append(len(piece))
        else:
            lengths += [0] * (_bytes_of_character(pieces, len(lengths)) - 1) + [1]
    return list(pairwise(accumulate(lengths, initial=0)))


def _bytes_of_character(pieces: Sequence[str | int], begin: int) -> int:
    """The number of byte pieces that spell the character at index `begin`, or 1 if no character begins there."""
    spelled = bytearray()
    for piece in pieces[begin : begin + MAX_CHARACTER_BYTES]:
        if isinstance(piece, str):
            break
        spelled.append(piece)
        try:
            spelled.decode()
        except UnicodeDecodeError:
            continue
        return len(spelled)
    return 1
