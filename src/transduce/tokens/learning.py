"""Learns SentencePiece vocabularies from texts."""

import io
import re
from collections.abc import Collection, Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np
import sentencepiece

from transduce.config.schema import BOS, EOS, PAD, PLACEHOLDER_TOKENS, UNK
from transduce.system.errors import UserError
from transduce.tokens.spelling import SPELLINGS
from transduce.tokens.vocabulary import NO_PREFIX, SPACE

RESERVED = "\0\t\n\r\u2581\u2585"  # SentencePiece skips lines that contain some of these characters
CHARACTER_COVERAGE = 0.9999  # share of the corpus's characters that get pieces; rarer characters are spelled in bytes
MAX_LEARNING_SENTENCES = 2_000_000  # more sentences need more memory but don't change a vocabulary
# Longer lines are split, since SentencePiece skips them or fails on them.
MAX_LINE_CHARACTERS = 4000
BYTES = 256
TRAINING_THREADS = 16  # fixed, because sums in unigram training depend on the number of threads


def learn_model(
    sides: Sequence[Collection[str]],
    vocab_size: int,
    kind: str,
    placeholder_tokens: str,
    tags: Sequence[str] = (),
) -> bytes:
    """Learn a SentencePiece model from the texts in `sides`, and return the serialised model.

    `tags` are pieces that no text contains. Raises UserError if there is no text, or if `vocab_size` leaves no room for
    the 256 byte pieces.
    """
    special = UNK + 1 + len(tags) + BYTES + len(SPACE) + len(placeholder_tokens)
    if vocab_size <= special:
        raise UserError(
            f"data.vocab_size must be above {special}, not {vocab_size}: the vocabulary needs {BYTES} byte pieces."
        )
    alphabet = _alphabet(
        _sample(sides), (vocab_size - special + 1) // 2, without=placeholder_tokens
    )
    if not alphabet:
        raise _no_text()
    others = re.compile(f"[^ {re.escape(alphabet)}]")
    sentences = (others.sub(" ", part) for part in _sample(sides))
    more = {"user_defined_symbols": list(placeholder_tokens), "control_symbols": list(tags)}
    return _train(sentences, kind, vocab_size, **more)


def extend_model(
    model: bytes, texts: Collection[str], extra: int, kind: str, tags: Sequence[str]
) -> bytes:
    """Add `tags` and at most `extra` pieces, learnt from texts in new languages, behind the pieces of `model`.

    Characters come first. BPE merges the new pieces after those of `model`.
    """
    old = sentencepiece.SentencePieceProcessor(model_proto=model)
    size = old.get_piece_size()
    known = {old.id_to_piece(token) for token in range(size)}
    special = UNK + 1 + BYTES + len(SPACE)
    new = sentencepiece.SentencePieceProcessor(
        model_proto=learn_model([texts], 2 * extra + special + 1, kind, "")
    )
    scores = {new.id_to_piece(token): new.get_score(token) for token in range(new.get_piece_size())}
    pieces = [
        piece for piece in scores if piece not in known and not {*PLACEHOLDER_TOKENS} & {*piece}
    ]
    pieces = sorted(pieces, key=lambda piece: (len(piece) > 1, -scores[piece]))[:extra]
    if kind == "bpe":
        lowest = min(map(old.get_score, range(size)))
        scores = {piece: lowest - rank for rank, piece in enumerate(pieces, 1)}
    from sentencepiece.sentencepiece_model_pb2 import ModelProto  # type: ignore[attr-defined]

    added = ModelProto()
    for tag in tags:
        if tag not in known:
            added.pieces.add(piece=tag, score=0.0, type=ModelProto.SentencePiece.CONTROL)
    for piece in pieces:
        added.pieces.add(piece=piece, score=scores[piece], type=ModelProto.SentencePiece.NORMAL)
    return model + added.SerializeToString()  # repeated fields of concatenated messages are joined


def learn_symbols(texts: Collection[str]) -> bytes:
    """Return a serialised SentencePiece model with one piece for each distinct word of the texts."""
    symbols = sorted({symbol for text in texts for symbol in text.split(" ") if symbol})
    if not symbols:
        raise _no_text()
    pieces = [SPACE + symbol for symbol in symbols]
    size = UNK + 1 + len(pieces) + BYTES
    return _train(iter([" ".join(symbols)]), "bpe", size, user_defined_symbols=pieces)


def value_symbols() -> bytes:
    """Return a serialised SentencePiece model of the characters that spell values, in the order of the values."""
    size = UNK + 1 + len(SPELLINGS) + BYTES + len(SPACE)
    model = _train(iter([SPELLINGS]), "bpe", size, user_defined_symbols=list(SPELLINGS))
    return model + NO_PREFIX


def _no_text() -> UserError:
    return UserError(
        "There is no text to learn a vocabulary from.", "Check that the corpus is not empty."
    )


def _train(sentences: Iterator[str], kind: str, vocab_size: int, **options: Any) -> bytes:
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=sentences,
        model_writer=model,
        model_type=kind,
        vocab_size=vocab_size,
        hard_vocab_limit=False,  # a small corpus may not contain enough different pieces
        character_coverage=1.0,  # all characters that learn_model kept
        byte_fallback=True,
        pad_id=PAD,
        bos_id=BOS,
        eos_id=EOS,
        unk_id=UNK,
        normalization_rule_name="identity",
        remove_extra_whitespaces=False,
        max_sentence_length=8 * MAX_LINE_CHARACTERS,  # maximum in bytes
        num_threads=TRAINING_THREADS,
        minloglevel=2,
        **options,
    )
    return model.getvalue()


def _sample(sides: Sequence[Collection[str]]) -> Iterator[str]:
    """Yield up to MAX_LEARNING_SENTENCES evenly spaced texts, in lines of up to MAX_LINE_CHARACTERS characters."""
    for texts in sides:
        stride = -(-len(texts) * len(sides) // MAX_LEARNING_SENTENCES) or 1
        for text in islice(texts, 0, None, stride):
            for start in range(0, len(text), MAX_LINE_CHARACTERS):
                yield text[start : start + MAX_LINE_CHARACTERS]


def _alphabet(texts: Iterator[str], limit: int, without: str) -> str:
    """The most frequent characters, except those in `without`. `limit` and CHARACTER_COVERAGE limit their number."""
    counts = np.zeros(0x110000, dtype=np.int64)
    for text in texts:
        np.add.at(counts, np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4"), 1)
    counts[[ord(character) for character in f" {RESERVED}{without}"]] = 0
    counts[0xD800:0xE000] = 0  # halves of surrogate pairs
    order = np.argsort(-counts, kind="stable")[:limit]
    before = np.cumsum(counts[order]) - counts[order]
    wanted = order[(counts[order] > 0) & (before < CHARACTER_COVERAGE * counts.sum())]
    return "".join(map(chr, wanted.tolist()))
