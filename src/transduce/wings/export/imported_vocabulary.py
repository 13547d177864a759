"""A vocabulary of another system: a SentencePiece model makes the pieces, a list of pieces gives their ids.

Marian numbers the pieces of two SentencePiece models together: pieces that are not in the list are unknown (UNK).
Text may be lost (SentencePiece's normalisation, unknown pieces, spaces at the ends), so decode(encode(text)) need not
be the text.
"""

from collections.abc import Container, Sequence

from transduce.config.schema import UNK
from transduce.tokens.spans import Span, piece_spans
from transduce.tokens.vocabulary import SPACE, Rows, Vocabulary, open_model, pack

# Around the target language, at the start of a source of a multilingual model.
LANGUAGE_CODE_START, LANGUAGE_CODE_END = ">>", "<<"


class ImportedVocabulary(Vocabulary):
    """pieces: by id; the first four stand for PAD, BOS, EOS and UNK. Raises ValueError if either is damaged."""

    listed: Sequence[str]
    has_placeholder_tokens = False

    def __init__(self, model: bytes, pieces: Sequence[str], threads: int = 1) -> None:
        self.model, self.threads, self.listed = model, threads, pieces
        self.processor = open_model(model)
        self.size = len(pieces)
        self._ids = {piece: token for token, piece in enumerate(pieces)}
        if self.size <= UNK or len(self._ids) < self.size:
            raise ValueError("its list of pieces is too short, or names one twice")

    def encode(self, texts: Sequence[str]) -> Rows:
        """Ids of texts: unknown pieces are UNK, a language code is a piece, half of a surrogate pair becomes "?"."""
        parted = [without_code(text.encode("utf-8", "replace").decode("utf-8"), self._ids) for text in texts]
        rows = self.processor.encode([text for _, text in parted], out_type=str, num_threads=self.threads)
        cut = [code + row for (code, _), row in zip(parted, rows, strict=True)]
        return pack([[self._ids.get(piece, UNK) for piece in row] for row in cut])

    def encode_behind(self, text: str) -> list[int]:
        """Ids of a text as after a space: these models have no other way."""
        return self.encode([text]).lists()[0]

    def decode(self, rows: Sequence[Sequence[int]]) -> list[str]:
        """The texts of rows of ids, a line each, without spaces at the ends."""
        plain = [[self.listed[token] for token in row if token > UNK] for row in rows]
        texts: list[str] = self.processor.decode(plain) if plain else []
        return [text.replace(SPACE, " ").replace("\n", " ").strip() for text in texts]

    def spans(self, ids: Sequence[int]) -> list[Span]:
        """Where pieces stand in the text that they spell, which lacks what was lost in encoding."""
        surfaces = ["" if token <= UNK else piece for token, piece in zip(ids, self.pieces(ids), strict=True)]
        first = next((place for place, surface in enumerate(surfaces) if surface), 0)
        return piece_spans([s.removeprefix(SPACE) if place == first else s for place, s in enumerate(surfaces)])

    def spans_in(self, text: str, ids: Sequence[int]) -> list[Span]:
        """The same within a text, as far as nothing was lost."""
        return [(min(begin, len(text)), min(end, len(text))) for begin, end in self.spans(ids)]

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """The pieces of ids."""
        return [self.listed[int(token)] for token in ids]


def is_code(piece: str) -> bool:
    """Whether a piece names the target language."""
    return piece.startswith(LANGUAGE_CODE_START) and piece.endswith(LANGUAGE_CODE_END)


def without_code(text: str, pieces: Container[str]) -> tuple[list[str], str]:
    """The language code at the start of a text, if it is one of the pieces, and the rest."""
    end = text.find(LANGUAGE_CODE_END) + len(LANGUAGE_CODE_END)
    return ([text[:end]], text[end:]) if text.startswith(LANGUAGE_CODE_START) and text[:end] in pieces else ([], text)
