"""Chooses the pieces of a large vocabulary that some languages need.

The SentencePiece model keeps all pieces, since its merges need them, and marks the others as unused: it then splits
every text into chosen pieces only.
"""

import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cache

from sentencepiece.sentencepiece_model_pb2 import ModelProto  # type: ignore[attr-defined]

from transduce.system.errors import UserError
from transduce.text.pairs import chunks
from transduce.tokens.imported_vocabulary import readable
from transduce.tokens.normalization import composed
from transduce.tokens.vocabulary import SPACE, open_model

Type = ModelProto.SentencePiece
TEXTS_AT_ONCE = 10_000


def trimmed(model: bytes, texts: Sequence[str], size: int) -> bytes:
    """A SentencePiece model with about `size` pieces in use.

    In use are all single characters of the scripts of `texts`, the pieces of `texts` by frequency, and then the other
    pieces of these scripts in the order of the vocabulary, which begins with the most frequent ones. Raises UserError
    if there is no text, or if the characters alone are more than `size`.
    """
    pieces = ModelProto.FromString(model).pieces
    normal = dict.fromkeys(piece.piece for piece in pieces if piece.type == Type.NORMAL)
    scripts = {script(character) for text in texts for character in text}
    known = {piece for piece in normal if {*map(script, piece)} <= {*scripts, ""}}
    characters = {piece for piece in known if len(piece.strip(SPACE)) <= 1}
    if not scripts - {""}:
        raise UserError(
            "There is no text by which to choose pieces.", "Name files with text.", "texts"
        )
    if len(characters) > size:
        raise UserError(
            f"The characters of these scripts alone are {len(characters):,} pieces.",
            f"Keep at least {len(characters)}.",
            "trim",
        )
    by_frequency = [
        piece for piece, _ in piece_counts(model, texts).most_common() if piece in normal
    ]
    order = dict.fromkeys([*sorted(characters), *by_frequency, *filter(known.__contains__, normal)])
    trimmed_model: bytes = splitting(model, [*order][:size]).SerializeToString()
    return trimmed_model


def splitting(model: bytes, used: Iterable[str]) -> ModelProto:
    """The SentencePiece model that splits all pieces except those in `used`."""
    proto = ModelProto.FromString(model)
    names = {*used}
    for piece in proto.pieces:
        if piece.type == Type.NORMAL and piece.piece not in names:
            piece.type = Type.UNUSED
    return proto


def piece_counts(model: bytes, texts: Iterable[str]) -> Counter[str]:
    """How often each piece occurs in texts."""
    processor = open_model(model)
    counts = Counter[str]()
    for some in chunks(texts, TEXTS_AT_ONCE):
        for row in processor.encode([*map(readable, composed(some))], out_type=str):
            counts.update(row)
    return counts


@cache
def script(character: str) -> str:
    """The first word of a letter's name, which names its script, such as LATIN; "" for other characters."""
    if not character.isalpha():
        return ""
    return unicodedata.name(character, "").partition(" ")[0]


def unused(model: bytes) -> Iterator[str]:
    """The pieces that a model has, but never uses."""
    processor = open_model(model)
    for token in range(processor.get_piece_size()):
        if processor.is_unused(token):
            yield processor.id_to_piece(token)
