"""Which texts and characters a vocabulary is learnt from."""

from unittest.mock import patch

import pytest

from transduce.config.schema import PLACEHOLDER_TOKENS, UNK
from transduce.system.errors import UserError
from transduce.tokens.learning import (
    BYTES,
    RESERVED,
    _alphabet,
    _sample,
    extend_model,
    learn_model,
    learn_symbols,
)
from transduce.tokens.vocabulary import Vocabulary

SPECIAL = UNK + 1 + BYTES + 1  # and the piece of a space


def test_the_sample_is_evenly_spaced_and_its_lines_are_short():
    sides = [[f"s{i}" for i in range(10)], ["t0", "t1", "t2"]]
    assert list(_sample(sides)) == [*sides[0], *sides[1]]
    with patch("transduce.tokens.learning.MAX_LEARNING_SENTENCES", 8):
        # Half of eight for each side: 10 texts give every third, 3 texts all.
        assert list(_sample(sides)) == ["s0", "s3", "s6", "s9", *sides[1]]
    with patch("transduce.tokens.learning.MAX_LEARNING_SENTENCES", 6):
        assert list(_sample(sides)) == ["s0", "s4", "s8", *sides[1]]
        assert list(_sample([["a", "b", "c", "d", "e", "f", "g"]])) == ["a", "c", "e", "g"]
    with patch("transduce.tokens.learning.MAX_LINE_CHARACTERS", 4):
        assert list(_sample([["abcdefghi", "abcd", ""]])) == ["abcd", "efgh", "i", "abcd"]
    assert list(_sample([[], ["a"]])) == ["a"]


def test_the_alphabet_has_the_most_frequent_characters():
    texts = ["aaab bbccd", "aX\u2581\0\t\ud800"]
    assert _alphabet(iter(texts), 9, without="X") == "abcd"
    assert _alphabet(iter(texts), 2, without="X") == "ab"
    assert _alphabet(iter([*texts, "XXXXX"]), 2, without="") == "Xa"
    assert _alphabet(iter([f"{RESERVED} \n"]), 9, without="") == ""
    assert _alphabet(iter(["\U0010ffff\ue000\ud7ff"]), 9, without="") == "\ud7ff\ue000\U0010ffff"
    # Rare characters are left out once the others cover 99.99 % of the text: a is 9,999 of 10,000.
    assert _alphabet(iter(["a" * 9_999 + "b"]), 9, without="") == "a"
    assert _alphabet(iter(["a" * 9_998 + "bc"]), 9, without="") == "ab"


@pytest.mark.parametrize(
    ("tags", "tokens"), [([], ""), ([">>de<<", ">>fr<<"], "\ufdd0\ufdd1\ufdd2")]
)
def test_a_vocabulary_needs_room_for_bytes_tags_and_placeholders(tags, tokens):
    least = SPECIAL + len(tags) + len(tokens)
    with pytest.raises(
        UserError, match=rf"must be above {least}, not {least}: the vocabulary needs 256"
    ):
        learn_model([["a b"]], least, "bpe", tokens, tags)
    found = Vocabulary(learn_model([["a b c d"] * 9], least + 3, "bpe", tokens, tags))
    # Half of the free places, rounded up, is for characters.
    assert found.size == least + 3 and len(found.known("abcd")) == 2
    with pytest.raises(UserError, match="no text to learn a vocabulary from"):
        learn_model([["", tokens + " "]], 400, "bpe", tokens, tags)


def test_both_sides_are_learnt_from():
    found = Vocabulary(learn_model([["ab"] * 5, ["cd"] * 5], 300, "unigram", ""))
    assert found.known("abcd") == {*"abcd"}


def test_symbols_are_the_distinct_words_in_order():
    found = Vocabulary(learn_symbols(["b  a", "c", ""]))
    assert list(found.symbols().values()) == ["a", "b", "c"]
    assert found.size == UNK + 1 + 3 + BYTES
    with pytest.raises(UserError, match="no text"):
        learn_symbols(["", " "])


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_an_extended_vocabulary_keeps_its_ids_and_gets_new_pieces(kind):
    model = learn_model([["a dog runs", "dogs run"] * 9], 290, kind, "", [">>de<<"])
    old = Vocabulary(model)
    texts = ["öü öüß ßß üß", "dog öü ßöü ßß"] * 9
    new = Vocabulary(extend_model(model, texts, 5, kind, [">>de<<", ">>fr<<"]))
    assert new.all_pieces()[: old.size] == old.all_pieces()
    added = new.all_pieces()[old.size :]
    assert added[0] == ">>fr<<" and len(added) == 6 and not {*added} & {*old.all_pieces()}
    assert {*added[1:4]} == {"ö", "ü", "ß"} and max(map(len, added[4:])) > 1, (
        "characters come first"
    )
    assert {*new.tags} == {">>de<<", ">>fr<<"}
    scores = dict(zip(new.all_pieces(), new.scores(), strict=True))
    lowest = min(score for score in old.scores() if score is not None)
    if kind == "bpe":
        assert [scores[piece] for piece in added[1:]] == [lowest - n for n in range(1, 6)]
    assert new.decode(new.encode(["öü dog"]).lists()) == ["öü dog"]
    assert len(new.encode(["öü"]).lists()[0]) < len(old.encode(["öü"]).lists()[0])
    few = Vocabulary(extend_model(model, texts, 2, kind, []))
    assert few.size == old.size + 2


@pytest.mark.parametrize("kind", ["bpe", "unigram", "char"])
def test_texts_are_learnt_from_and_encoded_as_they_are(kind, capfd):
    """Without SentencePiece's normalisation, whatever their length, and without its messages."""
    rare = "".join(map(chr, range(0x4E00, 0x4E10)))
    long = "漢" * 4000  # 12,000 bytes
    model = learn_model([["Ａ  ｂ", f" {rare} ", long] * 3], 330, kind, "", [">>de<<"])
    found = Vocabulary(model)
    texts = ["Ａ  ｂ", " Ａ ", f"{rare}漢"]
    assert found.decode(found.encode(texts).lists()) == texts
    assert found.known("Ａｂ漢Ab") == {*"Ａｂ漢"} and len(found.known(rare)) == 16
    assert found.kind == kind
    added = Vocabulary(extend_model(model, ["Ж ж"] * 9, 3, kind, [">>de<<", ">>fr<<"]))
    assert added.kind == kind and added.known("Жж") == {"Ж", "ж"}
    assert added.decode(added.encode(texts).lists()) == texts
    assert capfd.readouterr() == ("", "")


def test_a_symbol_may_begin_with_another_one_or_with_a_single_letter():
    symbols = ["(S", "(SBAR", ")S", "N", "NN", "NNS"]
    found = Vocabulary(learn_symbols([" ".join(symbols[::-1])]))
    assert [*found.symbols().values()] == symbols
    text = "(S (SBAR NNS N NN )S"
    [ids] = found.encode([text]).lists()
    assert [found.symbols()[token] for token in ids] == text.split(" ")


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_new_letters_get_pieces_though_most_texts_of_a_new_language_are_old_words(kind):
    model = learn_model([["the dog runs", "dogs run there"] * 9], 300, kind, "")
    texts = ["the dog runs there"] * 30 + ["öüßä äßüö öäüß ßäöü"] * 9
    new = Vocabulary(extend_model(model, texts, 8, kind, []))
    assert new.known("öüßäж") == {*"öüßä"}


def test_no_placeholder_token_is_learnt_from_the_texts_of_a_new_language():
    model = learn_model([["a b"] * 9], 280, "bpe", "")
    texts = [f"{PLACEHOLDER_TOKENS[0]}Ж {PLACEHOLDER_TOKENS[1]} Ж"] * 9
    new = Vocabulary(extend_model(model, texts, 3, "bpe", []))
    assert not {*PLACEHOLDER_TOKENS} & {*"".join(new.all_pieces())} and new.known("Ж") == {"Ж"}
