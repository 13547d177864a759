"""Where in a text each of its pieces stands."""

from collections.abc import Sequence
from itertools import accumulate, pairwise

Span = tuple[int, int]  # begin and end in a text, in code points
MAX_CHARACTER_BYTES = 4


def piece_spans(pieces: Sequence[str | int]) -> list[Span]:
    """The spans of pieces, which tile the text; a piece is its characters or, if it spells a byte, that byte.

    A character that is spelled in bytes stands at its last byte, and the others have empty spans; a byte that belongs
    to no character is U+FFFD.
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
    """How many bytes from `begin` on spell a character; 1 if none do."""
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
