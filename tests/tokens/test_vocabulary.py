"""Tests of transduce/tokens/vocabulary.py."""

import io
from itertools import pairwise
from unittest.mock import patch

import numpy as np
import pytest
import sentencepiece
from hypothesis import given
from hypothesis import strategies as st

from transduce.config.schema import BOS, EOS, PAD, PLACEHOLDER_TOKENS, UNK
from transduce.tokens.tokenizer import Tokenizer
from transduce.tokens.vocabulary import (
    LANGUAGE_TAG,
    SPACE,
    Vocabulary,
    WordCache,
    open_model,
    pack,
)

TEXTS = ["a dog runs", "the cats  sleep", "ein Hund läuft", "漢字 かな", "dogs, cats: 12"] * 9


@pytest.fixture(scope="module", params=["bpe", "unigram", "char"])
def vocabulary(request) -> Vocabulary:
    return Tokenizer.train(TEXTS, TEXTS, vocab_size=330, kind=request.param).target


rows = st.lists(st.lists(st.integers(0, 2**32 - 1), max_size=4), max_size=6)


@given(rows, st.data())
def test_rows_are_chosen_like_lists(rows, data):
    packed = pack(rows)
    assert packed.lists() == rows and packed.lengths.tolist() == [len(row) for row in rows]
    mask = data.draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows)))
    chosen = packed.where(np.array(mask, dtype=bool))
    assert chosen.lists() == [row for row, its in zip(rows, mask, strict=True) if its]
    places = data.draw(st.lists(st.sampled_from(range(len(rows))), max_size=9)) if rows else []
    taken = packed.take(np.array(places, dtype=np.int64))
    assert taken.lists() == [rows[place] for place in places]


@given(st.lists(st.lists(st.sampled_from(["a", "bb", "ccc", ""]), max_size=4).map(" ".join)))
def test_texts_are_divided_at_their_spaces(texts):
    """However many words are encoded together; an empty word is the space before it."""

    def encode(words):
        return pack([[ord(letter) for letter in word] or [32] for word in words])

    expected = [
        [ord(each) if each else 32 for word in text.split(" ") for each in word or [""]]
        if text
        else []
        for text in texts
    ]
    for together in (1, 3, 100):
        with patch("transduce.tokens.vocabulary.WORDS_AT_ONCE", together):
            assert WordCache(encode).encode(texts).lists() == expected


def test_kinds_scores_and_pieces(vocabulary):
    pieces, scores = vocabulary.all_pieces(), vocabulary.scores()
    assert len(pieces) == len(scores) == vocabulary.size
    assert pieces[:4] == ["<pad>", "<s>", "</s>", "<unk>"] and scores[:4] == [None] * 4
    of_bytes = range(UNK + 1, UNK + 257)
    assert [pieces[token] for token in of_bytes] == [f"<0x{byte:02X}>" for byte in range(256)]
    assert all(scores[token] is None for token in of_bytes)
    assert all(score is not None for score in scores[UNK + 257 :])
    assert (vocabulary.kind == "bpe") == all(
        score.is_integer() for score in scores if score is not None
    )
    assert (vocabulary.kind == "char") == (max(map(len, pieces[UNK + 257 :])) == 1)
    # Only BPE splits a word in the same way in every text.
    assert (vocabulary.kind == "bpe") == (vocabulary._words is not None)
    assert vocabulary.known("a漢ж") == {"a", "漢"} and not vocabulary.tags
    assert not vocabulary.has_placeholder_tokens


def test_spans_and_the_space_before_a_text(vocabulary):
    text = "a dog ж"
    [ids] = vocabulary.encode([text]).lists()
    spans = vocabulary.spans(ids)
    assert spans[0][0] == 0 and spans[-1] == (6, 7) and spans[-2] == (6, 6), "the second byte of ж"
    assert all(one[1] == two[0] for one, two in pairwise(spans))
    assert vocabulary.spans_in(text, ids) == spans
    shown = [token for token in ids[:-2] for token in (token, UNK, PAD)]
    again = vocabulary.spans([BOS, *shown, *ids[-2:], EOS])
    assert again[0] == (0, 0) and again[1::3][: len(ids) - 2] == spans[:-2]
    assert again[2] == again[3] == (spans[0][1], spans[0][1]) and again[-1] == (7, 7)
    half = "a\ud800 dog"
    [ids] = vocabulary.encode([half]).lists()
    covered = [half[slice(*span)] for span in vocabulary.spans_in(half, ids)]
    assert "".join(covered) == half and covered.count("\ud800") == 1
    for piece, part in zip(vocabulary.pieces(ids), covered, strict=True):
        assert piece.startswith("<0x") or piece.replace(SPACE, " ").strip() == part.strip()
    behind = vocabulary.encode_behind("dog")
    assert "".join(vocabulary.pieces(behind)) == "dog"
    assert "".join(vocabulary.pieces(vocabulary.encode(["dog"]).lists()[0])) == "\u2581dog"
    literal = vocabulary.encode_behind(f"a{SPACE}b{SPACE}")
    assert vocabulary.decode([literal]) == [f"a{SPACE}b{SPACE}"]
    assert vocabulary.pieces(vocabulary.literal_space) == ["<0xE2>", "<0x96>", "<0x81>"]


def test_tags_and_placeholder_tokens_are_pieces():
    tokenizer = Tokenizer.train(
        TEXTS, [], vocab_size=400, languages=["de", "pt_BR"], placeholder_tokens=PLACEHOLDER_TOKENS
    )
    vocabulary = tokenizer.target
    assert vocabulary.has_placeholder_tokens
    assert {*vocabulary.tags} == {LANGUAGE_TAG.format("de"), LANGUAGE_TAG.format("pt_BR")}
    tag = vocabulary.tags[LANGUAGE_TAG.format("de")]
    assert vocabulary.pieces([tag]) == [">>de<<"] and vocabulary.scores()[tag] is None
    assert vocabulary.decode([[tag, *vocabulary.encode(["dog"]).lists()[0]]]) == ["dog"]
    assert tag not in vocabulary.encode([">>de<<"]).lists()[0]
    fewer = Tokenizer.train(TEXTS, [], vocab_size=400, placeholder_tokens=PLACEHOLDER_TOKENS[1:])
    assert not fewer.target.has_placeholder_tokens


def test_symbols_are_the_pieces_before_the_bytes():
    trees = Tokenizer.train(["a b"], ["(S NN )S"], vocab_size=300, joint=False, symbols=True)
    symbols = trees.target.symbols()
    assert [*symbols.values()] == ["(S", ")S", "NN"] and [*symbols] == [4, 5, 6]
    assert trees.source.symbols() == {}


def test_unusable_models_are_refused():
    for model, reason in ((b"", "empty"), (b"\x0a\xff", "not a complete")):
        with pytest.raises(ValueError, match=reason):
            open_model(model)
    plain = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(TEXTS), model_writer=plain, vocab_size=34, minloglevel=2
    )
    with pytest.raises(ValueError, match="unexpected special pieces or without byte pieces"):
        Vocabulary(plain.getvalue())


@given(
    st.lists(st.sampled_from(["a", "bb", "ccc", "dddd"]), min_size=1, max_size=9), st.integers(1, 9)
)
def test_a_word_is_encoded_again_only_if_the_cache_was_full(words, most):
    encoded = []
    cache = WordCache(
        lambda new: encoded.append(sorted(new)) or pack([[len(word)] for word in new])
    )
    with patch("transduce.tokens.vocabulary.MAX_CACHED_CHARACTERS", most):
        expected, kept = [], set()
        for word in words:
            assert cache.encode([word]).lists() == [[len(word)]]
            if kept and sum(map(len, {*kept, word})) > most:
                kept = set()
            expected += [] if word in kept else [[word]]
            kept.add(word)
    assert encoded == expected
