"""Tests of transduce_lab/words.py."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models import make_model
from transduce.config.schema import UNK
from transduce.model_folder import read_config
from transduce.system.errors import UserError
from transduce.tokens.imported_vocabulary import readable
from transduce.tokens.tokenizer import Tokenizer
from transduce.wings.formats import FORMATS, refuse_config
from transduce.wings.serving.models import summarize
from transduce_lab.words import UNKNOWN_WORD, WordVocabulary

pytest.importorskip("tokenizers", reason="pip install 'transduce[lab]'")
TEXTS = ["the brown dog runs", "the dog's house, a house", "1,000 dogs ## über", "a  b"]
PIECES = Tokenizer.train(TEXTS, TEXTS, vocab_size=300, kind="wordpiece", quotes="")
WORDS = Tokenizer.train(TEXTS, TEXTS, vocab_size=18, kind="word", joint=False, quotes="")


@given(st.text())
def test_word_pieces_lose_no_text(text):
    [row] = PIECES.target.encode([text]).lists()
    expected = readable(text).replace("\n", " ")
    assert PIECES.target.decode([row]) == [expected] and UNK not in row
    spans = PIECES.target.spans_in(text, row)
    assert "".join(text[slice(*span)] for span in spans) == text


def test_a_text_of_the_training_needs_no_bytes():
    bytes_of_text = {f"<0x{byte:02X}>" for byte in range(256)}
    for row in PIECES.target.encode(TEXTS).lists():
        assert bytes_of_text.isdisjoint(PIECES.target.pieces(row))
    assert PIECES.source.known("dü漢") == {"d", "ü"}


def test_longer_pieces_are_frequent():
    many = Tokenizer.train(["dogs run"] * 9, TEXTS, vocab_size=320, kind="wordpiece", quotes="")
    [row] = many.target.encode(["dogs run"]).lists()
    assert many.target.pieces(row) == ["▁dogs", "▁run"]


@given(st.text(alphabet="theo dgs'▁,", min_size=1))
def test_words_have_spans_also_if_they_are_unknown(text):
    [row] = WORDS.target.encode([text]).lists()
    spans = WORDS.target.spans_in(text, row)
    assert len(spans) == len(row) and "".join(text[slice(*span)] for span in spans) == text
    assert UNK not in row


def test_frequent_words_are_known():
    [row] = WORDS.target.encode(["the dog saw a house"]).lists()
    assert WORDS.target.decode([row]) == [f"the dog {UNKNOWN_WORD} a house"]


@pytest.mark.parametrize("tokenizer", [PIECES, WORDS])
def test_a_saved_vocabulary_is_the_same(tokenizer, tmp_path):
    tokenizer.save(tmp_path)
    again = Tokenizer.load(tmp_path)
    assert isinstance(again.target, WordVocabulary) and again.joint == tokenizer.joint
    assert again.same_pieces(tokenizer)
    assert again.encode_source(TEXTS) == tokenizer.encode_source(TEXTS)


@pytest.mark.parametrize("more", [{"marks": ["<term>"]}, {"symbols": True, "joint": False}])
def test_other_tasks_are_refused(more):
    with pytest.raises(UserError, match=r"data\.tokenizer=word is for plain text in two languages"):
        Tokenizer.train(TEXTS, TEXTS, vocab_size=50, kind="word", **more)
    with pytest.raises(UserError, match="can only be trained, evaluated and used to translate"):
        WORDS.target.processor.piece_to_id("a")
    with pytest.raises(UserError, match="one vocabulary"):
        WORDS.extended(TEXTS, 5, ["fr"])


def test_a_text_without_words_is_refused():
    with pytest.raises(UserError, match="no text to learn"):
        Tokenizer.train([""], [""], vocab_size=300, kind="word")


def test_models_are_neither_served_nor_exported(tmp_path):
    folder = make_model(tmp_path / "model", {"data.tokenizer": "wordpiece"}, updates=0)
    config = read_config(folder)
    for form in FORMATS:
        refusal = refuse_config(form, config)
        assert refusal and refusal.reason == "it does not support data.tokenizer = wordpiece"
    with pytest.raises(UserError, match=r"data\.tokenizer=wordpiece can't be served"):
        summarize(folder)


def test_a_damaged_vocabulary_is_refused(tmp_path):
    PIECES.save(tmp_path)
    (tmp_path / "tokenizer.model").write_text('{"kind": "word", "pieces": ["a"]}')
    with pytest.raises(UserError, match="does not begin with the special pieces"):
        Tokenizer.load(tmp_path)
    (tmp_path / "tokenizer.model").write_text('{"kind": "word"}')
    with pytest.raises(UserError, match="can't be read"):
        Tokenizer.load(tmp_path)
