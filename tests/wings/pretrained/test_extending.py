"""Imported vocabularies that get the tags, characters and longer pieces of new languages."""

import io
from collections.abc import Callable
from functools import cache
from itertools import chain, pairwise

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
from transduce.wings.pretrained.merging import MAX_PIECE_CHARACTERS
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


CASES = [("bpe", 40), ("unigram", 0), ("unigram", 40)]
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


SYLLABLES = ["ka", "lo", "mi", "ža", "řů", "дом", "н", "漢"]
WORD = st.lists(st.sampled_from(SYLLABLES), min_size=1, max_size=5).map("".join)
TEXTS = st.lists(st.lists(WORD, min_size=1, max_size=4).map(" ".join), min_size=1, max_size=4)


def neighbours(tokenizer: Tokenizer, texts: list[str]) -> set[str]:
    """Pieces of letters that are neighbours in a word, joined."""
    joined = set[str]()
    for row in tokenizer.target.encode(texts).lists():
        for left, right in pairwise(tokenizer.target.pieces(row)):
            if left.strip("▁").isalpha() and right.isalpha():
                joined.add(left + right)
    return joined


@pytest.mark.parametrize(("kind", "trim"), CASES)
@few
@given(texts=TEXTS)
@example(texts=["žakařů žaka", "kařů žakařů lo"])
@example(texts=["žakalo žakalo", "žakalomi", "ža7lomi"])
def test_frequent_neighbours_are_joined(texts, kind, trim):
    """So the pieces are those of byte-pair encoding, and the model splits texts into them."""
    old, _ = both(kind, trim)
    texts = texts * 15
    new = old.extended(texts, 999, [])
    joined = neighbours(new, texts)
    assert all(len(piece) > MAX_PIECE_CHARACTERS for piece in joined), "all occur 15 times"
    rows = new.target.encode(texts).lists()
    assert UNK not in {*chain(*rows)} and new.decode(rows) == texts


def test_an_old_piece_that_only_new_ones_reach_comes_before_them():
    """The model joins ka and ža as soon as there is a ža."""
    proto = ModelProto.FromString(learnt("bpe"))
    proto.pieces.add(piece="kaža", score=-50)
    texts = ["ka7kažalo", "ža"] * 15
    new = imported(proto.SerializeToString(), []).extended(texts, 99, [], ["7žalo", "7ža7lo"] * 9)
    assert new.target.pieces(new.target.encode(texts[:1]).lists()[0]) == ["▁ka", "7", "kažalo"]


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
@few
@given(texts=TEXTS, old_texts=TEXTS)
@example(texts=["kalo žaka"], old_texts=["kalo", "mi", "lo ka"])
def test_texts_of_old_languages_are_split_as_before(texts, old_texts, kind):
    old, _ = both(kind)
    new = old.extended(texts * 15, 999, [], [text for text in old_texts for _ in range(15)])
    before, after = (each.target.encode(old_texts).lists() for each in (old, new))
    longer = [row for row in after if any(map(new_piece(old, new), row))]
    assert not longer
    assert [row for row in before if UNK not in row] == [
        now for row, now in zip(before, after, strict=True) if UNK not in row
    ]


def new_piece(old: Tokenizer, new: Tokenizer) -> Callable[[int], bool]:
    """Whether a token is a longer piece that the old vocabulary lacks."""
    return lambda token: token >= old.target.size and len(new.target.pieces([token])[0]) > 1


@pytest.mark.parametrize(("kind", "trim"), CASES)
def test_a_new_language_needs_fewer_tokens(kind, trim):
    old, characters = both(kind, trim)
    new = old.extended(NEW * 10, 99, ["cs"], OLD)
    lengths = [sum(map(len, each.target.encode(NEW).lists())) for each in (characters, new)]
    assert lengths[1] < 0.5 * lengths[0]
    added = new.target.all_pieces()[old.target.size :]
    assert new.target.size == old.target.size + len({*added})
    assert [len(each) > 1 for each in added[1:]] == sorted(len(each) > 1 for each in added[1:])
    if kind == "bpe":  # the order of the old model's merges
        before, after = (
            {p.piece: p.score for p in ModelProto.FromString(each.target.model).pieces}
            for each in (old, new)
        )
        assert before.items() <= after.items()
    first = old.extended(NEW * 10, len(added) - 3, ["cs"], OLD)
    assert first.target.all_pieces() == new.target.all_pieces()[:-2]


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
    added = new.target.all_pieces()[old.target.size :]
    assert [piece for piece in added if len(piece) == 1] == ["ř", "ů"]
    several = old.extended(["ř"] * 300_000 + ["ňů řů-ř ř2ř"] * 10, 99, [])
    assert several.target.all_pieces()[old.target.size :] == ["ř", "▁ř"]
    assert old.extended([text], 1, []).target.all_pieces()[old.target.size :] == ["ř"]
    assert not new.has_placeholder_tokens and not {*PLACEHOLDER_TOKENS} & {*"".join(added)}


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
