"""Which texts and characters a vocabulary is learnt from."""

from unittest.mock import patch

import pytest

from transduce.config.schema import UNK
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
