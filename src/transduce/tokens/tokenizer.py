"""Text to ids and back, without loss: decode(encode(text)) == text for every line of text.

SentencePiece (BPE or unigram), with one vocabulary for both sides or one for each. What the
vocabulary lacks is spelled in bytes, so that the unknown piece never occurs. Ids never hold PAD,
BOS or EOS: whoever makes batches adds them.
"""

import io
import json
import re
from collections.abc import Collection, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
import sentencepiece

from transduce.config.schema import BOS, EOS, PAD, PLACEHOLDER_TOKENS, UNK
from transduce.system.errors import UserError
from transduce.tokens.imported_vocabulary import Foreign
from transduce.tokens.spans import Span, piece_spans
from transduce.tokens.word_cache import Rows, Words, pack

JOINT, SOURCE, TARGET = "tokenizer.model", "tokenizer.source.model", "tokenizer.target.model"
PIECES = "tokenizer.pieces.json"  # of an imported vocabulary: its pieces by id
SPACE = "\u2581"  # SentencePiece's sign for a space; in a text it is a character like others
RESERVED = "\0\t\n\r\u2581\u2585"  # SentencePiece leaves out lines with some of these when it learns
COVERAGE = 0.9999  # of the characters of the corpus get a piece of their own; the others are spelled in bytes
SENTENCES = 2_000_000  # more don't change a vocabulary, and need memory
CHARACTERS = 4000  # longer lines are learnt from in parts, for SentencePiece leaves out or breaks on longer ones
BYTES = 256
# Unigram's sums depend on the number of threads, so it may not depend on the machine.
TRAINING_THREADS = 16
# A protocol buffer that is continued with a second normalizer_spec merges both: this one says add_dummy_prefix = false.
NO_PREFIX = b"\x1a\x02\x18\x00"


class Tokenizer:
    """The vocabularies of both sides, from serialised SentencePiece models; `source` is None if one serves both.

    `threads` is how many encode at once. `pieces` is for imported models (see foreign.py): the pieces by id of the
    target side, and of the source side if its ids are others. Raises ValueError if a model isn't one that `train` could
    have made.
    """

    def __init__(
        self,
        target: bytes,
        source: bytes | None = None,
        threads: int = 1,
        pieces: Sequence[Sequence[str]] = (),
    ) -> None:
        self._target: _Vocabulary | Foreign
        self._source: _Vocabulary | Foreign
        self._foreign = pieces
        if pieces:
            self.joint = len(pieces) == 1
            self._target = Foreign(target, pieces[0], threads)
            self._source = Foreign(target if source is None else source, pieces[-1], threads)
            return
        self.joint = source is None
        self._target = _Vocabulary(target, threads)
        self._source = self._target if source is None else _Vocabulary(source, threads)

    @classmethod
    def train(
        cls,
        sources: Collection[str],
        targets: Collection[str],
        *,
        vocab_size: int,
        kind: Literal["bpe", "unigram"] = "bpe",
        joint: bool = True,
        symbols: bool = False,
        placeholder_tokens: str = "",
    ) -> Self:
        """Learn vocabularies of `vocab_size` pieces, or of as many as the texts support (see `source_size`).

        symbols: every word of the targets is a piece, and there is nothing else to learn (linearised trees).
        placeholder_tokens: characters that are pieces by themselves, whatever they stand beside.
        The texts are gone through several times, and the same ones give the same bytes. Raises UserError if there is
        no text, or if the vocabulary has no room for the 256 bytes.
        """
        if symbols:
            return cls(_learn_symbols(targets), _learn([sources], vocab_size, kind, placeholder_tokens))
        if joint:
            return cls(_learn([sources, targets], vocab_size, kind, placeholder_tokens))
        return cls(
            _learn([targets], vocab_size, kind, placeholder_tokens),
            _learn([sources], vocab_size, kind, placeholder_tokens),
        )

    @classmethod
    def load(cls, folder: Path | str, threads: int = 1) -> Self:
        """What `save` has written into `folder`; raises UserError that names a missing or damaged file."""
        folder = Path(folder)
        pieces = _read_pieces(folder / PIECES)
        joint = (folder / JOINT).exists() or not any((folder / name).exists() for name in (SOURCE, TARGET))
        models = []
        for name in [JOINT] if joint else [TARGET, SOURCE]:
            try:
                models.append((folder / name).read_bytes())
                _open(models[-1], foreign=bool(pieces))
            except FileNotFoundError:
                raise UserError(f"{folder / name} is missing; take it from another copy of this folder.") from None
            except (OSError, ValueError) as error:
                raise UserError(f"{folder / name} can't be read: {error}; take it from another copy.") from None
        try:
            return cls(models[0], None if joint else models[1], threads, pieces)
        except ValueError as error:
            raise UserError(f"The vocabulary in {folder} is damaged: {error}; take it from another copy.") from None

    def save(self, folder: Path | str) -> list[str]:
        """Write the vocabularies into an existing folder and return the names of the files."""
        source, target = self.models
        one = self.joint or self.is_foreign  # two vocabularies of the same texts are still two
        files = {JOINT: target} if one and source == target else {SOURCE: source, TARGET: target}
        if self._foreign:
            files[PIECES] = json.dumps(self._foreign, ensure_ascii=False, indent=0).encode()
        for name, content in files.items():
            (Path(folder) / name).write_bytes(content)
        return list(files)

    def encode_source(self, texts: Sequence[str]) -> list[list[int]]:
        """Ids of source texts; an empty text has none."""
        return self._source.encode(texts).lists()

    def encode_target(self, texts: Sequence[str]) -> list[list[int]]:
        """Ids of target texts; an empty text has none."""
        return self._target.encode(texts).lists()

    def encode_target_behind(self, text: str) -> list[int]:
        """Ids of a target text that stands behind another one without a space between them."""
        return self._target.encode_behind(text)

    def pack_source(self, texts: Sequence[str]) -> Rows:
        """The same as `encode_source`, as arrays."""
        return self._source.encode(texts)

    def pack_target(self, texts: Sequence[str]) -> Rows:
        """The same as `encode_target`, as arrays."""
        return self._target.encode(texts)

    def decode(self, rows: Sequence[Sequence[int]]) -> list[str]:
        """The texts of rows of target ids, whatever a model put there.

        PAD, BOS and EOS are silent, bytes that aren't UTF-8 become U+FFFD and a line break becomes a space. Raises
        IndexError for an id beyond the vocabulary.
        """
        return self._target.decode(rows)

    def source_pieces(self, ids: Sequence[int]) -> list[str]:
        """The pieces of source ids, to show to people; U+2581 is a space."""
        return self._source.pieces(ids)

    def target_pieces(self, ids: Sequence[int]) -> list[str]:
        """The pieces of target ids, to show to people; U+2581 is a space."""
        return self._target.pieces(ids)

    def source_spans(self, text: str, ids: Sequence[int]) -> list[Span]:
        """Where in a source text its pieces stand; the spans tile the text, and a piece may have none of it."""
        found = self._source.spans(ids)
        if isinstance(self._source, Foreign):  # what was lost in cutting is not told: about there
            return [(min(begin, len(text)), min(end, len(text))) for begin, end in found]
        if len(text) == (found[-1][1] if found else 0):
            return found
        # Half of a surrogate pair has become three U+FFFD: it stands at the last of them.
        ends = [0]
        for character in text:
            ends += [ends[-1]] * 2 if "\ud800" <= character <= "\udfff" else []
            ends.append(ends[-1] + 1)
        return [(ends[begin], ends[end]) for begin, end in found]

    def target_spans(self, ids: Sequence[int]) -> list[Span]:
        """Where in what `decode` makes of target ids their pieces stand; the spans tile it."""
        return self._target.spans(ids)

    def same_pieces(self, other: "Tokenizer") -> bool:
        """Whether ids mean the same in both, so that models with one and the other can work together."""
        return all(
            mine.pieces(range(mine.size)) == theirs.pieces(range(theirs.size))
            for mine, theirs in ((self._source, other._source), (self._target, other._target))
        )

    def target_symbols(self) -> dict[int, str]:
        """The words that are pieces of the target vocabulary by design, by id; none, unless it was made of symbols."""
        if isinstance(self._target, Foreign):
            return {}
        processor, found = self._target.processor, dict[int, str]()
        for token in range(UNK + 1, processor.get_piece_size()):
            if processor.is_byte(token):
                break
            found[token] = processor.id_to_piece(token).removeprefix(SPACE)
        return {} if self.has_placeholder_tokens else found

    @property
    def has_placeholder_tokens(self) -> bool:
        """Whether what stands for placeholders is known on both sides, each as a piece."""
        return all(side.has_placeholder_tokens for side in (self._source, self._target))

    @property
    def models(self) -> tuple[bytes, bytes]:
        """The serialised SentencePiece models of source and target, which may be the same."""
        return self._source.model, self._target.model

    @property
    def is_foreign(self) -> bool:
        """Whether the ids are not those of the SentencePiece models."""
        return bool(self._foreign)

    @property
    def source_size(self) -> int:
        """Pieces in the source vocabulary."""
        return self._source.size

    @property
    def target_size(self) -> int:
        """Pieces in the target vocabulary."""
        return self._target.size


class _Vocabulary:
    """One SentencePiece model; raises ValueError if it is damaged or its ids aren't ours."""

    def __init__(self, model: bytes, threads: int = 1) -> None:
        self.model, self.threads = model, threads
        self.processor = _open(model)
        self.continuing = _open(model + NO_PREFIX)
        self.size: int = self.processor.get_piece_size()
        self.literal_space = [self.processor.piece_to_id(f"<0x{byte:02X}>") for byte in SPACE.encode()]
        self.has_placeholder_tokens = all(self.processor.piece_to_id(each) != UNK for each in PLACEHOLDER_TOKENS)
        # No piece goes beyond a word, so BPE cuts a word alike wherever it stands. Unigram adds up the scores of a
        # whole text, and rounding may decide between two ways to cut its last word. BPE's scores are ranks.
        by_rank = all(self.processor.get_score(token).is_integer() for token in range(self.size))
        self.encode = Words(self._encode_words).encode if by_rank else self._encode_texts

    def _encode_words(self, words: Sequence[str]) -> Rows:
        return self._encode_texts(words, empty=self.continuing.encode(b" "))  # the space before an empty word

    def _encode_texts(self, texts: Sequence[str], empty: Sequence[int] = ()) -> Rows:
        # Half of a surrogate pair is no character and becomes U+FFFD, instead of an exception.
        lines = [text.encode("utf-8", "surrogatepass") for text in texts]
        rows: list[Sequence[int]] = self.processor.encode(lines, num_threads=self.threads)
        for i, text in enumerate(texts):
            if SPACE in text:
                rows[i] = self.encode_behind(f" {text}")
            elif not text:
                rows[i] = empty
        return pack(rows)

    def encode_behind(self, text: str) -> list[int]:
        """Without a space before it; spell each U+2581 in bytes: SentencePiece would take it for a space."""
        first, *rest = text.encode("utf-8", "surrogatepass").split(SPACE.encode())
        row: list[int] = self.continuing.encode(first)
        for part in rest:
            row += self.literal_space
            row += self.continuing.encode(part)
        return row

    def decode(self, rows: Sequence[Sequence[int]]) -> list[str]:
        plain = [[int(token) for token in row if token > UNK] for row in rows]
        return [text.replace("\n", " ") for text in self.processor.decode(plain)] if plain else []

    def spans(self, ids: Sequence[int]) -> list[Span]:
        """PAD, BOS, EOS and UNK are silent, and so is the space before a text."""
        plain = [int(token) for token in ids if token > UNK]
        surfaces: list[str | int] = [
            int(piece[3:-1], 16) if self.processor.is_byte(token) else piece
            for token, piece in zip(plain, self.pieces(plain), strict=True)
        ]
        if surfaces and isinstance(first := surfaces[0], str):
            surfaces[0] = first.removeprefix(SPACE)
        found, spans, end = iter(piece_spans(surfaces)), list[Span](), 0
        for token in ids:
            spans.append(next(found) if token > UNK else (end, end))
            end = spans[-1][1]
        return spans

    def pieces(self, ids: Sequence[int]) -> list[str]:
        return self.processor.id_to_piece([int(token) for token in ids])


def _read_pieces(file: Path) -> list[list[str]]:
    """What `save` wrote of an imported vocabulary, if it is one; raises UserError that names a damaged file."""
    try:
        pieces = json.loads(file.read_bytes())
    except FileNotFoundError:
        return []
    except (OSError, ValueError) as error:
        raise UserError(f"{file} can't be read: {error}; take it from another copy.") from None
    if not (isinstance(pieces, list) and 1 <= len(pieces) <= 2 and all(isinstance(each, list) for each in pieces)):
        raise UserError(f"{file} is damaged: it is not one or two lists of pieces; take it from another copy.")
    return pieces


def _open(model: bytes, *, foreign: bool = False) -> sentencepiece.SentencePieceProcessor:
    if not model:
        raise ValueError("it is empty")
    try:
        processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    except RuntimeError:
        raise ValueError("it is not a whole SentencePiece model") from None
    if foreign:
        return processor
    special = processor.pad_id(), processor.bos_id(), processor.eos_id(), processor.unk_id()
    if special != (PAD, BOS, EOS, UNK) or processor.piece_to_id("<0xFF>") == UNK:
        raise ValueError("it is a SentencePiece model with other special pieces, or without bytes")
    return processor


def _learn(sides: Sequence[Collection[str]], vocab_size: int, kind: str, placeholder_tokens: str) -> bytes:
    """A serialised SentencePiece model of the texts of one side, or of both."""
    special = UNK + 1 + BYTES + len(SPACE) + len(placeholder_tokens)
    if vocab_size <= special:
        raise UserError(
            f"data.vocab_size must be above {special}, not {vocab_size}: {BYTES} pieces are needed for bytes."
        )
    alphabet = _alphabet(_sample(sides), (vocab_size - special + 1) // 2, without=placeholder_tokens)
    if not alphabet:
        raise UserError("There is no text to learn a vocabulary from; is the corpus empty?")
    others = re.compile(f"[^ {re.escape(alphabet)}]")
    # A small corpus supports fewer pieces.
    sentences = (others.sub(" ", part) for part in _sample(sides))
    return _train(sentences, kind, vocab_size, hard_vocab_limit=False, user_defined_symbols=list(placeholder_tokens))


def _learn_symbols(texts: Collection[str]) -> bytes:
    """A serialised model in which every word of the texts, with the space before it, is a piece."""
    symbols = sorted({symbol for text in texts for symbol in text.split(" ") if symbol})
    if not symbols:
        raise UserError("There is no text to learn a vocabulary from; is the corpus empty?")
    pieces = [SPACE + symbol for symbol in symbols]
    size = UNK + 1 + len(pieces) + BYTES
    return _train(iter([" ".join(symbols)]), "bpe", size, hard_vocab_limit=False, user_defined_symbols=pieces)


def _train(sentences: Iterator[str], kind: str, vocab_size: int, **options: Any) -> bytes:
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=sentences,
        model_writer=model,
        model_type=kind,
        vocab_size=vocab_size,
        character_coverage=1.0,  # of what _learn has left
        byte_fallback=True,
        pad_id=PAD,
        bos_id=BOS,
        eos_id=EOS,
        unk_id=UNK,
        normalization_rule_name="identity",
        remove_extra_whitespaces=False,
        max_sentence_length=8 * CHARACTERS,  # in bytes
        num_threads=TRAINING_THREADS,
        minloglevel=2,
        **options,
    )
    return model.getvalue()


def _sample(sides: Sequence[Collection[str]]) -> Iterator[str]:
    """Evenly spaced texts of every side, in parts of at most CHARACTERS."""
    for texts in sides:
        stride = -(-len(texts) * len(sides) // SENTENCES) or 1
        for text in islice(texts, 0, None, stride):
            for start in range(0, len(text), CHARACTERS):
                yield text[start : start + CHARACTERS]


def _alphabet(texts: Iterator[str], limit: int, without: str) -> str:
    """The most frequent characters: enough for COVERAGE, and at most `limit`."""
    counts = np.zeros(0x110000, dtype=np.int64)
    for text in texts:
        np.add.at(counts, np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4"), 1)
    counts[[ord(character) for character in f" {RESERVED}{without}"]] = 0
    counts[0xD800:0xE000] = 0  # halves of surrogate pairs
    order = np.argsort(-counts, kind="stable")[:limit]
    before = np.cumsum(counts[order]) - counts[order]
    wanted = order[(counts[order] > 0) & (before < COVERAGE * counts.sum())]
    return "".join(map(chr, wanted.tolist()))
