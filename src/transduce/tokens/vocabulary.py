"""Converts text to token ids and back with a SentencePiece model."""

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from typing import Literal, NamedTuple

import numpy as np
import sentencepiece
from numpy.typing import NDArray

from transduce.config.schema import BOS, EOS, PAD, PLACEHOLDER_TOKENS, UNK
from transduce.tokens.spans import Span

# The token that begins each source of a multilingual model, as in OPUS-MT's models.
LANGUAGE_TAG = ">>{}<<"
# The tag of a language in a model with model.target_tag: before each source, and before each translation.
OWN_TAG = "<<{}>>"
MATCH_MARK = "<match>"  # stands between a source and the translation of a similar one
# They stand before a term in a source, between the term and its translation, and behind the translation.
TERM_MARKS = ("<term>", "<as>", "</term>")
SPACE = "\u2581"  # SentencePiece's symbol for a space; in a text, it is an ordinary character
# Appended to a serialised model, these bytes set add_dummy_prefix = false, because concatenated protocol buffers merge.
NO_PREFIX = b"\x1a\x02\x18\x00"
WORDS_AT_ONCE = 20_000  # words encoded in one call, for which other threads wait
MAX_CACHED_CHARACTERS = 2_000_000  # in all cached words together: about 200,000 words and 30 MB


TAG_ENDS = [tag.split("{}") for tag in (LANGUAGE_TAG, OWN_TAG)]


class Rows(NamedTuple):
    """The concatenated token ids of several sentences or words, and the length of each sentence or word."""

    ids: NDArray[np.uint32]  # (tokens,)
    lengths: NDArray[np.int64]  # (sentences,)

    def where(self, chosen: NDArray[np.bool_]) -> "Rows":
        """The rows for which `chosen` (sentences,) is true."""
        return Rows(self.ids[np.repeat(chosen, self.lengths)], self.lengths[chosen])

    def take(self, places: NDArray[np.int64]) -> "Rows":
        """The rows at the indices `places`, in that order."""
        lengths = self.lengths[places]
        starts = np.cumsum(self.lengths) - self.lengths
        begun = np.cumsum(lengths) - lengths
        return Rows(
            self.ids[np.repeat(starts[places] - begun, lengths) + np.arange(lengths.sum())], lengths
        )

    def lists(self) -> list[list[int]]:
        """The rows as lists of ids."""
        ids = self.ids.tolist()
        ends = np.cumsum(self.lengths).tolist()
        return [ids[start:end] for start, end in zip([0, *ends], ends, strict=False)]


def pack(rows: Sequence[Sequence[int]]) -> Rows:
    """Concatenate lists of ids."""
    lengths = np.fromiter(map(len, rows), np.int64, len(rows))
    return Rows(np.fromiter(chain.from_iterable(rows), np.uint32, int(lengths.sum())), lengths)


class WordCache:
    """Encodes texts word by word, and caches the ids of each word."""

    def __init__(self, encode: Callable[[Sequence[str]], Rows]) -> None:
        self._encode = encode
        self._lock = threading.Lock()
        self._place: dict[str, int] = {}
        self._pieces = pack([])
        self._size = 0  # characters

    def encode(self, texts: Sequence[str]) -> Rows:
        """The ids of each text, or an empty row for an empty text."""
        spaces = np.fromiter((text.count(" ") for text in texts), np.int64, len(texts))
        words = " ".join(texts).split(" ") if texts else []
        parts = list[Rows]()
        for start in range(0, len(words), WORDS_AT_ONCE):
            with self._lock:
                parts.append(self._pieces_of(words[start : start + WORDS_AT_ONCE]))
        rows = (
            Rows(*map(np.concatenate, zip(*parts, strict=True)))
            if len(parts) > 1
            else [*parts, pack([])][0]
        )
        ends = np.cumsum(spaces + 1)
        lengths = np.diff(np.cumsum(rows.lengths)[ends - 1], prepend=0)
        is_empty = np.fromiter((not text for text in texts), bool, len(texts))
        ids = rows.ids[np.repeat(~is_empty, lengths)]
        lengths[is_empty] = 0
        return Rows(ids, lengths)

    def _pieces_of(self, words: Sequence[str]) -> Rows:
        """The ids of each word, after missing words have been added to the cache."""
        new = set(words).difference(self._place)
        self._size += sum(map(len, new))
        if self._size > MAX_CACHED_CHARACTERS:
            self._place.clear()
            self._pieces = pack([])
            new = set(words)
            self._size = sum(map(len, new))
        if new:
            cut = self._encode(list(new))
            self._place.update(
                zip(new, range(len(self._place), len(self._place) + len(new)), strict=True)
            )
            ids, lengths = self._pieces
            self._pieces = Rows(
                np.concatenate((ids, cut.ids)), np.concatenate((lengths, cut.lengths))
            )
        return self._pieces.take(
            np.fromiter(map(self._place.__getitem__, words), np.int64, len(words))
        )


class Vocabulary:
    """A SentencePiece vocabulary for one side or both sides. Raises ValueError for an unusable model."""

    # The pieces by id, if they differ from those of `model` (imported models).
    listed: Sequence[str] | None = None
    tags: Mapping[str, int]  # pieces that no text contains, and their ids
    # Other pieces that no text contains, and their ids: MATCH_MARK or TERM_MARKS if the model learnt to read them.
    marks: Mapping[str, int] = {}

    def __init__(self, model: bytes, threads: int = 1) -> None:
        self.model = model
        self.threads = threads
        self.processor = open_model(model)
        special = [
            each() for each in (self.processor.pad_id, self.processor.bos_id, self.processor.eos_id)
        ]
        if [*special, self.processor.unk_id()] != [
            PAD,
            BOS,
            EOS,
            UNK,
        ] or self.processor.piece_to_id("<0xFF>") == UNK:
            raise ValueError(
                "the file is a SentencePiece model with unexpected special pieces or without byte pieces"
            )
        self.continuing = open_model(model + NO_PREFIX)
        self.size: int = self.processor.get_piece_size()
        controls = filter(self.processor.is_control, range(UNK + 1, self.size))
        pieces = {self.processor.id_to_piece(token): token for token in controls}
        self.tags = {piece: token for piece, token in pieces.items() if is_tag(piece)}
        self.marks = {piece: token for piece, token in pieces.items() if not is_tag(piece)}
        self.literal_space = [
            self.processor.piece_to_id(f"<0x{byte:02X}>") for byte in SPACE.encode()
        ]
        self.has_placeholder_tokens = all(
            self.processor.piece_to_id(each) != UNK for each in PLACEHOLDER_TOKENS
        )
        # No piece crosses a space, so BPE, whose scores are ranks, splits a word in the same way in every text. Unigram
        # adds up the scores of a whole text, so rounding may change how a word is split.
        self._words = WordCache(self._encode_words) if self.kind == "bpe" else None

    @property
    def kind(self) -> Literal["bpe", "unigram", "char"]:
        """The type of the model. BPE's scores are the ranks of merges, the others are log-probabilities."""
        tokens = range(self.processor.get_piece_size())  # special pieces and bytes have the score 0
        if all(self.processor.get_score(token).is_integer() for token in tokens):
            return "bpe"
        names = (
            self.processor.id_to_piece(token) for token in tokens if self.processor.get_score(token)
        )
        return "char" if all(len(name) == 1 for name in names) else "unigram"

    def known(self, characters: Iterable[str]) -> set[str]:
        """The characters that have a piece of their own, so that they are not spelled in bytes."""
        return {
            each
            for each in characters
            if self.processor.piece_to_id(each) != self.processor.unk_id()
        }

    def scores(self) -> list[float | None]:
        """The score of each piece: minus its rank, or its log-probability. None for bytes and special pieces."""
        ids = [self.processor.piece_to_id(piece) for piece in self.all_pieces()]
        return [
            None
            if token <= UNK or self.processor.is_control(token) or self.processor.is_byte(token)
            else self.processor.get_score(token)
            for token in ids
        ]

    def encode(self, texts: Sequence[str]) -> Rows:
        """The ids of each text, or an empty row for an empty text."""
        return self._words.encode(texts) if self._words else self._encode_texts(texts)

    @property
    def match_mark(self) -> int:
        """The id of MATCH_MARK; 0 if the model did not learn to read it."""
        return self.marks.get(MATCH_MARK, 0)

    @property
    def term_marks(self) -> list[int]:
        """The ids of TERM_MARKS; empty if the model did not learn to read them."""
        return [self.marks[mark] for mark in TERM_MARKS if mark in self.marks]

    def _encode_words(self, words: Sequence[str]) -> Rows:
        # SentencePiece would encode a space before an empty word.
        return self._encode_texts(words, empty=self.continuing.encode(b" "))

    def _encode_texts(self, texts: Sequence[str], empty: Sequence[int] = ()) -> Rows:
        # Given bytes, SentencePiece replaces half of a surrogate pair by U+FFFD; given a string, it would fail.
        lines = [text.encode("utf-8", "surrogatepass") for text in texts]
        # A batch would wait for a thread: for milliseconds, on a busy machine.
        encode = self.processor.encode
        rows = (
            encode(lines, num_threads=self.threads) if self.threads > 1 else [*map(encode, lines)]
        )
        for i, text in enumerate(texts):
            if SPACE in text:
                rows[i] = self.encode_behind(f" {text}")
            elif not text:
                rows[i] = empty
        return pack(rows)

    def encode_behind(self, text: str) -> list[int]:
        """Encode a text without adding a space before it. A U+2581 in the text is encoded as its UTF-8 bytes."""
        first, *rest = text.encode("utf-8", "surrogatepass").split(SPACE.encode())
        row: list[int] = self.continuing.encode(first)
        for part in rest:
            row += self.literal_space
            row += self.continuing.encode(part)
        return row

    def spell(self, pieces: Sequence[str]) -> list[list[int]]:
        """The ids of the pieces that spell each of other pieces."""
        return [self.encode_behind(piece.replace(SPACE, " ")) for piece in pieces]

    def decode(self, rows: Sequence[Sequence[int]]) -> list[str]:
        """Decode rows of ids to texts, by the rules of `Tokenizer.decode`."""
        return [
            self.processor.decode([int(token) for token in row if token > UNK]).replace("\n", " ")
            for row in rows
        ]

    def spans(self, ids: Sequence[int]) -> list[Span]:
        """The span of each id in the decoded text, or an empty span for PAD, BOS, EOS, UNK and tags.

        If several byte pieces spell a character, the last piece has the character's span.
        """
        plain = [int(token) for token in ids if token > UNK]
        plain_spans = iter(self.processor.decode(plain, return_type="offset_mapping")["offsets"])
        spans = list[Span]()
        end = 0
        for token in ids:
            spans.append(next(plain_spans) if token > UNK else (end, end))
            end = spans[-1][1]
        return spans

    def spans_in(self, text: str, ids: Sequence[int]) -> list[Span]:
        """The span in `text` of each of the `ids` that encode `text`, without gaps or overlaps."""
        spans = self.spans(ids)
        if len(text) == (spans[-1][1] if spans else 0):
            return spans
        # Half of a surrogate pair was encoded as three U+FFFD; the last of the three gets its span.
        ends = [0]
        for character in text:
            ends += [ends[-1]] * 2 if "\ud800" <= character <= "\udfff" else []
            ends.append(ends[-1] + 1)
        # A space was encoded before the first word, unless the word is a parser's symbol.
        ends.append(ends[-1])
        return [(ends[begin], ends[end]) for begin, end in spans]

    def symbols(self) -> dict[int, str]:
        """A map from ids to the symbols that `learn_symbols` turned into pieces."""
        symbols = dict[int, str]()
        for token in range(UNK + 1, self.size):
            if self.processor.is_byte(token):
                break
            symbols[token] = self.processor.id_to_piece(token).removeprefix(SPACE)
        return symbols

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """The pieces of ids, with U+2581 in place of each space."""
        return self.processor.id_to_piece([int(token) for token in ids])

    def all_pieces(self) -> list[str]:
        """The pieces of all ids."""
        return self.pieces(range(self.size))


def is_tag(piece: str) -> bool:
    """Whether a piece is the tag of a language, such as >>de<< or <<de>>."""
    return any(piece.startswith(start) and piece.endswith(end) for start, end in TAG_ENDS)


def open_model(model: bytes) -> sentencepiece.SentencePieceProcessor:
    """Open a serialised SentencePiece model. Raises ValueError if the model is damaged."""
    if not model:
        raise ValueError("the file is empty")
    try:
        return sentencepiece.SentencePieceProcessor(model_proto=model)
    except RuntimeError:
        raise ValueError("the file is not a complete SentencePiece model") from None
