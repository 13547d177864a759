"""Imported vocabularies that get the tags and characters of new languages."""

import io
from functools import cache

import pytest
import sentencepiece
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sentencepiece.sentencepiece_model_pb2 import ModelProto

from corpora import reverse_texts
from transduce.config.schema import PLACEHOLDER_TOKENS, UNK
from transduce.system.errors import UserError
from transduce.tokens.imported_vocabulary import ImportedVocabulary
from transduce.tokens.tokenizer import Tokenizer
from transduce.tokens.vocabulary import open_model
from transduce.wings.pretrained.trimming import trimmed, unused

SPECIAL = ["<pad>", "<s>", "</s>", "<unk>"]
OLD = [*reverse_texts(80, seed=0)[0], *["дом жук ещё 漢字 lož"] * 9]
NEW = ["příliš žluťoučký", "kůň ka ﬁ", "дно žž řř漢"]
SOME = st.text(alphabet="kalomi zuž řůдомукщ漢字ěﬁ ", max_size=12)


@cache
def learnt(kind: str) -> bytes:
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(OLD),
        model_writer=model,
        model_type=kind,
        vocab_size=90,
        hard_vocab_limit=False,
        normalization_rule_name="nmt_nfkc",
        minloglevel=2,
    )
    return model.getvalue()


def imported(model: bytes, tags: list[str], lacks: tuple[str, ...] = ()) -> Tokenizer:
    processor = open_model(model)
    pieces = [processor.id_to_piece(token) for token in range(3, processor.get_piece_size())]
    never = {*unused(model), *lacks}
    listed = [*SPECIAL, *tags, *(piece for piece in pieces if piece not in never)]
    return Tokenizer(ImportedVocabulary(model, listed))


@cache
def both(kind: str, trim: int = 0) -> tuple[Tokenizer, Tokenizer]:
    model = learnt(kind)
    if trim:
        model = trimmed(model, reverse_texts(80, seed=0)[0], trim)
    old = imported(model, ["<<en>>", "<<de>>"])
    return old, old.extended(NEW, 99, ["en", "de", "cs"])


CASES = [("bpe", 40), ("unigram", 0)]
few = settings(max_examples=40)


@pytest.mark.parametrize(("kind", "trim"), CASES)
@few
@given(text=st.text(max_size=20) | SOME)
@example(text="ka дом zu")
def test_a_text_without_new_characters_keeps_its_ids(text, kind, trim):
    old, new = both(kind, trim)
    size = old.target.size
    assert new.target.pieces(range(size)) == old.target.all_pieces()
    [before], [after] = old.target.encode([text]).lists(), new.target.encode([text]).lists()
    if UNK not in before or (kind == "bpe" and max(after, default=0) < size):
        assert after == before


@pytest.mark.parametrize(("kind", "trim"), CASES)
@few
@given(words=st.lists(st.sampled_from([each for text in NEW for each in text if each != " "])))
def test_new_characters_survive(words, kind, trim):
    _, new = both(kind, trim)
    text = "".join(words)
    rows = new.target.encode([text]).lists()
    assert UNK not in rows[0] and new.decode(rows) == [text.replace("ﬁ", "fi")]


@pytest.mark.parametrize(("kind", "trim"), CASES)
def test_a_vocabulary_gets_a_tag_and_the_characters_that_it_lacks(kind, trim):
    old, new = both(kind, trim)
    added = new.target.pieces(range(old.target.size, new.target.size))
    characters = {*"".join(NEW).replace("ﬁ", "fi").replace(" ", "")}
    lacked = {each for each in characters if UNK in old.target.encode([each]).lists()[0]}
    assert added[0] == "<<cs>>" and {*added[1:]} == lacked and len(added) == len(lacked) + 1
    assert lacked >= {*"řů"} and ("н" in lacked, "о" in lacked) == (True, bool(trim))
    never = {*unused(new.target.model)}
    assert never.isdisjoint(lacked) and never >= ({*"ук"} if trim else set())
    proto = ModelProto.FromString(new.target.model)
    scores = {piece.piece: piece.score for piece in proto.pieces}
    if kind == "unigram":
        others = min(score for piece, score in scores.items() if piece not in lacked)
        assert max(scores[each] for each in lacked) < others


def test_pieces_that_the_list_lacks_are_split():
    model = learnt("bpe")
    whole = imported(model, [])
    [row] = whole.target.encode(["ka lo"]).lists()
    first, second = whole.target.pieces(row)
    assert (first, second) == ("▁ka", "▁lo")
    old = imported(model, [], (first, second, "k"))
    assert old.target.encode(["ka lo"]).lists() == [[UNK, UNK]]
    new = old.extended(["ka řk"], 9, ["cs"])
    [row] = new.target.encode(["ka lo řk"]).lists()
    assert new.target.pieces(row) == ["▁", "ka", "▁", "lo", "▁", "ř", "k"]
    assert new.decode([row]) == ["ka lo řk"]
    added = new.target.all_pieces()[old.target.size :]
    assert {*added} == {">>cs<<", "k", "ř"}


def test_rare_characters_and_placeholders_stay_unknown():
    old, _ = both("bpe")
    text = "ř" * 30_000 + "ů" * 5 + "ň" * 2 + PLACEHOLDER_TOKENS[0] * 9
    new = old.extended([text], 99, [])
    assert new.target.all_pieces()[old.target.size :] == ["ř", "ů"]
    assert old.extended([text], 1, []).target.all_pieces()[old.target.size :] == ["ř"]
    assert not new.has_placeholder_tokens


def test_source_and_target_get_the_characters_of_both(tmp_path):
    """As in OPUS-MT's multilingual models: two SentencePiece models share a list of pieces."""
    one, two = learnt("bpe"), trimmed(learnt("bpe"), reverse_texts(80, seed=0)[0], 40)
    listed = imported(one, [">>de<<", ">>pt-BR<<"]).target.listed
    old = Tokenizer(ImportedVocabulary(two, listed), ImportedVocabulary(one, listed, 3), "")
    new = old.extended(NEW, 99, ["de", "pt_BR", "cs"])
    new.save(tmp_path)
    for tokenizer in (new, Tokenizer.load(tmp_path)):
        assert tokenizer.joint and tokenizer.target.model != tokenizer.source.model
        assert [*tokenizer.source.tags] == [">>de<<", ">>pt-BR<<", ">>cs<<"]
        assert tokenizer.source.listed is tokenizer.target.listed and tokenizer.quotes == ""
        for side in (tokenizer.source, tokenizer.target):
            [row] = side.encode(["о řž"]).lists()
            assert UNK not in row and side.decode([row]) == ["о řž"]
    assert new.source.threads == 3


def test_separate_vocabularies_are_refused():
    old, _ = both("bpe")
    other = imported(learnt("unigram"), [])
    with pytest.raises(UserError, match="one vocabulary for source and target"):
        Tokenizer(old.target, other.target).extended(NEW, 9, ["cs"])
