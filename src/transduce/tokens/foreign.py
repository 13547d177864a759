"""A vocabulary of another system: a SentencePiece model cuts, and a list of its own numbers the pieces.

Marian numbers the pieces of two SentencePiece models together. Some that a model makes are not in the list, and are
unknown (UNK); some in the list are made by the other model alone. What a text loses in being cut (SentencePiece's
normalisation, unknown pieces, spaces at its ends) is lost there, too: here decode(encode(text)) need not be the text.
"""

from collections.abc import Sequence

import sentencepiece

from transduce.config import UNK
from transduce.tokens.words import Rows, pack

SPACE = "\u2581"
CODE, CODE_END = ">>", "<<"  # around the language to translate to, before a source of a multilingual model


class Foreign:
    """`pieces` by id, the first four of which stand for PAD, BOS, EOS and UNK; raises ValueError as a damaged model."""

    def __init__(self, model: bytes, pieces: Sequence[str], threads: int = 1) -> None:
        self.model, self.threads, self._pieces = model, threads, list(pieces)
        self.size = len(self._pieces)
        self._ids = {piece: token for token, piece in enumerate(self._pieces)}
        if self.size <= UNK or len(self._ids) < self.size:
            raise ValueError("its list of pieces is too short, or names one twice")
        try:
            self._processor = sentencepiece.SentencePieceProcessor(model_proto=model)
        except RuntimeError:
            raise ValueError("it is not a whole SentencePiece model") from None

    def encode(self, texts: Sequence[str]) -> Rows:
        """What is unknown is UNK; a code of a language is a piece."""
        codes, lines = zip(*map(_without_code, texts), strict=True) if texts else ((), ())
        rows = self._processor.encode(list(lines), out_type=str, num_threads=self.threads)
        return pack(
            [[self._ids.get(piece, UNK) for piece in code + row] for code, row in zip(codes, rows, strict=True)]
        )

    def decode(self, rows: Sequence[Sequence[int]]) -> list[str]:
        """As one line each, without spaces at the ends."""
        plain = [[self._pieces[token] for token in row if token > UNK] for row in rows]
        texts: list[str] = self._processor.decode(plain) if plain else []
        return [text.replace(SPACE, " ").replace("\n", " ").strip() for text in texts]

    def pieces(self, ids: Sequence[int]) -> list[str]:
        return [self._pieces[int(token)] for token in ids]


def _without_code(text: str) -> tuple[list[str], str]:
    """The code at the beginning of a text, if there is one, and the rest; half of a surrogate pair becomes "?"."""
    text = text.encode("utf-8", "replace").decode("utf-8")
    end = text.find(CODE_END) + len(CODE_END)
    return ([text[:end]], text[end:]) if text.startswith(CODE) and end >= len(CODE_END) else ([], text)
