"""Vocabularies of whole words, and of word pieces (Schuster and Nakajima, 2012), for models of Table 2.

A word is a run of letters and digits, or another character. A word behind a space begins with the symbol SPACE.

* word: the most frequent words. Other words are UNKNOWN_WORD in translations (see `comparing/unknown_words.py`).
* wordpiece: the WordPiece model of the package tokenizers. Every character of the training text is a piece. A word
  with other characters is spelled in bytes, so no text is lost.
"""

import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import accumulate, chain, pairwise
from typing import Any

from transduce.config.schema import UNK
from transduce.system.errors import Hint, UserError
from transduce.tokens.imported_vocabulary import piece_spans, readable
from transduce.tokens.learning import BYTES
from transduce.tokens.spans import Span
from transduce.tokens.vocabulary import SPACE, Rows, Vocabulary, WordCache, pack

FIRST_PIECES = ["<pad>", "<s>", "</s>", "<unk>"]  # with the ids PAD, BOS, EOS and UNK
UNKNOWN_WORD = "\u2047"
CONTINUING = "##"  # begins word pieces inside a word
MAX_CHARACTERS_IN_PIECES = 1000  # longer words are spelled in bytes
BYTE_PIECES = {f"<0x{byte:02X}>": byte for byte in range(BYTES)}
WORD_FORM = re.compile(r"\w+|\W")


def learn(sides: Sequence[Collection[str]], vocab_size: int, kind: str) -> bytes:
    """Learn a vocabulary from texts, and return the content of its file. Raises UserError if there is no text."""
    if not any(map(str.strip, chain.from_iterable(sides))):
        raise UserError(
            "There is no text to learn a vocabulary from.", "Check that the corpus is not empty."
        )
    if kind == "word":
        known = [*FIRST_PIECES, SPACE, UNKNOWN_WORD, SPACE + UNKNOWN_WORD]
        counts = Counter(word for text in chain.from_iterable(sides) for word in split(text))
        learnt = [word for word, _ in counts.most_common(max(0, vocab_size - len(known)))]
    else:
        known = [*FIRST_PIECES, SPACE, *BYTE_PIECES]
        words = (" ".join(split(text)) for text in chain.from_iterable(sides))
        learnt = learn_pieces(words, vocab_size - len(known))
    pieces = list(dict.fromkeys([*known, *learnt]))
    return json.dumps({"kind": kind, "pieces": pieces}, ensure_ascii=False).encode()


def learn_pieces(words: Iterator[str], size: int) -> list[str]:
    """Learn word pieces from words between spaces; more than `size` if the text has more different characters."""
    tokenizers = import_tokenizers()
    learning = tokenizers.Tokenizer(tokenizers.models.WordPiece(unk_token=FIRST_PIECES[UNK]))
    learning.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    trainer = tokenizers.trainers.WordPieceTrainer(
        vocab_size=max(1, size), continuing_subword_prefix=CONTINUING, show_progress=False
    )
    learning.train_from_iterator(words, trainer)
    ids: dict[str, int] = learning.get_vocab()
    return sorted(ids, key=ids.__getitem__)


def import_tokenizers() -> Any:
    """The package tokenizers. Raises UserError if it is not installed."""
    try:
        import tokenizers
    except ImportError:
        raise UserError("Word pieces need the package tokenizers.", Hint.install("lab")) from None
    return tokenizers


def split(text: str) -> list[str]:
    """The words of a text."""
    return [word for part in text.split(" ") for word in split_part(part)] if text else []


def split_part(part: str) -> list[str]:
    """The words between two spaces, of which the first begins with SPACE."""
    first, *others = WORD_FORM.findall(readable(part)) or [""]
    return [SPACE + first, *others]


class WordVocabulary(Vocabulary):
    """A vocabulary of words or of word pieces. Raises ValueError for a damaged file."""

    def __init__(self, model: bytes, threads: int = 1) -> None:
        content = json.loads(model)
        self.model = model
        self.threads = threads
        self.has_unknown = content.get("kind") == "word"
        self._pieces: list[str] = content.get("pieces", [])
        if self._pieces[: UNK + 1] != FIRST_PIECES:
            raise ValueError("the list of pieces does not begin with the special pieces")
        self._ids = {piece: token for token, piece in enumerate(self._pieces)}
        self.size = len(self._pieces)
        self.tags = {}
        self.has_placeholder_tokens = False
        self._words = WordCache(self._encode_parts)

    @property
    def processor(self) -> Any:  # type: ignore[override]
        """No SentencePiece model."""
        raise UserError(
            f"A model with data.tokenizer={self.kind} can only be trained, evaluated and used to translate.",
            "Train a model with another tokenizer.",
        )

    @property
    def kind(self) -> Any:
        """The kind of the vocabulary."""
        return "word" if self.has_unknown else "wordpiece"

    @cached_property
    def _model(self) -> Any:
        return import_tokenizers().models.WordPiece(
            self._ids,
            unk_token=FIRST_PIECES[UNK],
            max_input_chars_per_word=MAX_CHARACTERS_IN_PIECES,
            continuing_subword_prefix=CONTINUING,
        )

    def known(self, characters: Iterable[str]) -> set[str]:
        """The characters that are not spelled in bytes. A vocabulary of words can read all, as UNKNOWN_WORD."""
        return {
            each
            for each in characters
            if self.has_unknown or each in self._ids or CONTINUING + each in self._ids
        }

    def symbols(self) -> dict[int, str]:
        """No tree symbols."""
        return {}

    def _encode_parts(self, parts: Sequence[str]) -> Rows:
        rows = ([self._encode_word(word) for word in split_part(part)] for part in parts)
        return pack([[*chain.from_iterable(row)] for row in rows])

    def _encode_word(self, word: str) -> list[int]:
        space = SPACE if word.startswith(SPACE) else ""
        text = word.removeprefix(SPACE)
        if self.has_unknown:
            return [self._ids.get(word, self._ids[space + UNKNOWN_WORD])]
        if SPACE not in text:
            tokens = [token.id for token in self._model.tokenize(word)]
            if UNK not in tokens:
                return tokens
        spelled = list(BYTE_PIECES)
        pieces = [*space, *(spelled[byte] for byte in text.encode())]
        return [self._ids[piece] for piece in pieces]

    def encode_behind(self, text: str) -> list[int]:
        """The ids of one text, as `encode` returns them."""
        return self.encode([text]).lists()[0]

    def decode(self, rows: Sequence[Sequence[int]]) -> list[str]:
        """Decode rows of ids to texts, by the rules of `Tokenizer.decode`."""
        texts = []
        for row in rows:
            parts = [
                bytes([part]) if isinstance(part, int) else part.encode()
                for part in self._surfaces(row)
            ]
            texts.append(b"".join(parts).decode(errors="replace").replace("\n", " "))
        return texts

    def _surfaces(self, ids: Sequence[int]) -> list[str | int]:
        """What each id adds to a text: a string, or an integer for one byte."""
        surfaces = list[str | int]()
        is_empty = True
        for piece in self.pieces(ids):
            surface = self._surface(piece)
            if is_empty and isinstance(surface, str):
                surface = surface.removeprefix(" ")
            # A space before the first word was added by `split`.
            is_empty = is_empty and piece in FIRST_PIECES
            surfaces.append(surface)
        return surfaces

    def _surface(self, piece: str) -> str | int:
        if piece in FIRST_PIECES:
            return ""
        if not self.has_unknown and piece in BYTE_PIECES:
            return BYTE_PIECES[piece]
        inner = "" if self.has_unknown or len(piece) == len(CONTINUING) else CONTINUING
        return piece.removeprefix(inner).replace(SPACE, " ")

    def spans(self, ids: Sequence[int]) -> list[Span]:
        """The span of each id in the decoded text."""
        return piece_spans(self._surfaces(ids))

    def spans_in(self, text: str, ids: Sequence[int]) -> list[Span]:
        """The span in `text` of each of the `ids` that encode `text`."""
        if not self.has_unknown:
            return self.spans(ids)
        ends = [max(0, end - len(SPACE)) for end in accumulate(map(len, split(text)), initial=0)]
        return list(pairwise(ends))

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """The pieces with these ids."""
        return [self._pieces[int(token)] for token in ids]
