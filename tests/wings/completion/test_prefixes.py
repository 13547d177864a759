"""Tests of transduce/wings/completion/prefixes.py; tests/decoding/test_completion.py tests the search."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from phrases import SOURCES, TARGETS
from transduce.config.schema import UNK
from transduce.decoding.types import Guide, Sentences
from transduce.system.errors import UserError
from transduce.tokens.imported_vocabulary import ImportedVocabulary
from transduce.tokens.tokenizer import Tokenizer
from transduce.tokens.vocabulary import Vocabulary
from transduce.wings.completion.prefixes import NEVER, Prefix, prefix_filter

TEXTS = st.text("HhuKatzeß ü.🙂\u2581", min_size=1, max_size=8).map(str.lstrip).filter(bool)


@pytest.fixture(scope="module", params=["bpe", "unigram", "char"])
def vocabulary(request: pytest.FixtureRequest) -> Vocabulary:
    return Tokenizer.train(SOURCES, TARGETS, vocab_size=340, kind=request.param).target


@given(text=TEXTS, data=st.data())
def test_each_path_through_a_prefix_spells_it(
    vocabulary: Vocabulary, text: str, data: st.DataObject
) -> None:
    prefix = Prefix(vocabulary, text)
    tokens: list[int] = []
    while (place := prefix.place(tokens)) < prefix.end:
        tokens.append(data.draw(st.sampled_from(prefix.allowed(place, NEVER).tolist())))
    [spelt] = vocabulary.decode([tokens])
    assert spelt.startswith(text)


@given(text=TEXTS)
def test_each_token_that_keeps_a_prefix_is_allowed(vocabulary: Vocabulary, text: str) -> None:
    """All tokens are tried behind the usual segmentation, but for the byte of a space, which no text is encoded to."""
    prefix = Prefix(vocabulary, text)
    usual = prefix.segmentation()
    assert vocabulary.decode([usual])[0].startswith(text)
    assert len(prefix.shortest(0)) == prefix.fewest[0] <= len(usual)
    space = vocabulary.processor.piece_to_id("<0x20>")
    for size in range(1, len(usual)):
        before = usual[:size]
        spelt = vocabulary.decode([[*before, token] for token in range(vocabulary.size)])
        allowed = set(prefix.allowed(prefix.place(before), NEVER).tolist())
        for token in range(UNK + 1, vocabulary.size):
            if not vocabulary.processor.is_byte(token):
                keeps = spelt[token].startswith(text) or text.startswith(spelt[token])
                assert (token in allowed) == keeps
        assert space not in allowed


def test_tokens_that_leave_too_little_room_are_forbidden(vocabulary: Vocabulary) -> None:
    prefix = Prefix(vocabulary, "Katze u")
    for room in range(8):
        for token in prefix.allowed(0, room).tolist():
            assert prefix.fewest[prefix.place([token])] <= room


def test_unknown_characters_and_long_prefixes_are_refused() -> None:
    processor = Tokenizer.train(SOURCES, TARGETS, vocab_size=340).target.model
    listed = ["<pad>", "<s>", "</s>", "<unk>", "\u2581", "H", "u"]
    pieces = ImportedVocabulary(processor, listed)

    def refused(prefix: str, limit: int) -> str:
        sentences = Sentences(["a"], [[4]], [7], [Guide(prefix=prefix)])
        with pytest.raises(UserError) as caught:
            prefix_filter(pieces, sentences, [limit])
        return str(caught.value)

    said = refused("Hüu", 99)
    assert said == "Text 7: the model's vocabulary can't spell 'ü'. Leave it out of the prefix."
    assert refused("HHu", 3).startswith("Text 7: the prefix has at least 4 tokens")
