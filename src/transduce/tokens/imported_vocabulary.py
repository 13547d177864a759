"""The vocabulary of an imported model.

A SentencePiece model splits text into pieces, and a list of pieces defines their ids. Encoding can lose text, so
decode(encode(text)) may differ from the text.
"""

from collections.abc import Iterable, Sequence
from itertools import accumulate, pairwise

from transduce.config.schema import PLACEHOLDER_TOKENS, UNK
from transduce.tokens.spans import Span
from transduce.tokens.vocabulary import (
    NO_PREFIX,
    OWN_TAG,
    SPACE,
    Rows,
    Vocabulary,
    is_tag,
    open_model,
    pack,
)

MAX_CHARACTER_BYTES = 4


class ImportedVocabulary(Vocabulary):
    """A vocabulary that begins with PAD, BOS, EOS and UNK; raises ValueError for a damaged model or list of pieces."""

    listed: Sequence[str]

    def __init__(self, model: bytes, pieces: Sequence[str], threads: int = 1) -> None:
        self.model = model
        self.threads = threads
        self.listed = pieces
        self.processor = open_model(model)
        self.size = len(pieces)
        self._ids = {piece: token for token, piece in enumerate(pieces)}
        self.tags = {piece: token for piece, token in self._ids.items() if is_tag(piece)}
        if self.size <= UNK or len(self._ids) < self.size:
            raise ValueError("the list of pieces is too short or has a piece twice")
        self.has_placeholder_tokens = self._ids.keys() >= {*PLACEHOLDER_TOKENS}

    def encode(self, texts: Sequence[str]) -> Rows:
        """The ids of texts, with UNK for unknown pieces."""
        rows = self.processor.encode(
            [*map(readable, texts)], out_type=str, num_threads=self.threads
        )
        return pack([[self._ids.get(piece, UNK) for piece in row] for row in rows])

    def known(self, characters: Iterable[str]) -> set[str]:
        """The characters that are not encoded as UNK."""
        characters = [*characters]
        rows = self.encode(characters).lists()
        return {each for each, row in zip(characters, rows, strict=True) if UNK not in row}

    def encode_behind(self, text: str) -> list[int]:
        """The ids of one text, as `encode` returns them."""
        return self.encode([text]).lists()[0]

    def spell(self, pieces: Sequence[str]) -> list[list[int]]:
        """The ids of the pieces that spell each of other pieces."""
        continuing = open_model(self.model + NO_PREFIX)
        spelt = self.encode([piece.removeprefix(SPACE) for piece in pieces]).lists()
        for place, piece in enumerate(pieces):
            if not piece.startswith(SPACE):
                names = continuing.encode(piece, out_type=str)
                spelt[place] = [self._ids.get(name, UNK) for name in names]
        return spelt

    def decode(self, rows: Sequence[Sequence[int]]) -> list[str]:
        """The text of each row of ids, as a single line without outer spaces."""
        silent = {token for tag, token in self.tags.items() if tag.startswith(OWN_TAG[:2])}
        plain = [
            [self.listed[token] for token in row if token > UNK and token not in silent]
            for row in rows
        ]
        texts: list[str] = self.processor.decode(plain) if plain else []
        return [text.replace(SPACE, " ").replace("\n", " ").strip() for text in texts]

    def spans(self, ids: Sequence[int]) -> list[Span]:
        """Each id's span in the text that the pieces form."""
        surfaces: list[str | int] = [
            "" if token <= UNK else self._surface(self.listed[token]) for token in ids
        ]
        for place, surface in enumerate(surfaces):
            if surface != "":
                if isinstance(surface, str):
                    surfaces[place] = surface.removeprefix(SPACE)
                break
        return piece_spans(surfaces)

    def _surface(self, piece: str) -> str | int:
        """A piece as a part of a text: a string or a byte."""
        return (
            int(piece[3:-1], 16)
            if self.processor.is_byte(self.processor.piece_to_id(piece))
            else piece
        )

    def spans_in(self, text: str, ids: Sequence[int]) -> list[Span]:  # noqa: ARG002
        """The span in `text` of each of the `ids` that encode `text`. Normalisation may leave gaps."""
        spans: list[Span] = self.processor.encode(readable(text), out_type="offset_mapping")[
            "offsets"
        ]
        return spans

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """The pieces with these ids."""
        return [self.listed[int(token)] for token in ids]


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


def readable(text: str) -> str:
    """The text with a question mark for each half of a surrogate pair."""
    return text.encode("utf-8", "replace").decode("utf-8")


def language_of(piece: str) -> str:
    """The language of a tag such as >>de<<."""
    return piece.strip("<>")
