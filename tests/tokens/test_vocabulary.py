"""Tests of transduce/tokens/vocabulary.py."""

from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st

from transduce.tokens.vocabulary import WordCache, pack


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
