"""Tests of transduce/wings/ct2/beginnings.py."""

from collections.abc import Sequence
from itertools import product

import numpy as np
import pytest

from phrases import SOURCES, TARGETS
from transduce.tokens.imported_vocabulary import ImportedVocabulary
from transduce.tokens.tokenizer import Tokenizer
from transduce.wings.completion.prefixes import Prefix
from transduce.wings.ct2.beginnings import FREE, Logits, beginnings

LISTED = ["<pad>", "<s>", "</s>", "<unk>", "\u2581", "H", "\u2581H", "u", "Hu", "\u2581Hu", "uH"]


@pytest.fixture(scope="module")
def pieces() -> ImportedVocabulary:
    return ImportedVocabulary(
        Tokenizer.train(SOURCES, TARGETS, vocab_size=340).target.model, LISTED
    )


def logits(sentence: int, row: Sequence[int]) -> Logits:
    """Any history has random, but always the same, probabilities of what follows."""
    rows = [
        np.random.default_rng([sentence, *row[:size]]).normal(0, 2, len(LISTED))
        for size in range(len(row))
    ]
    return np.array(rows, np.float32)


@pytest.mark.parametrize("text", ["H", "Hu", "HuHu", "uHu", "H Hu", "u "])
def test_the_most_likely_beginning_is_found(pieces: ImportedVocabulary, text: str) -> None:
    """By brute force: all token sequences whose text reaches the end of the prefix with the last token."""
    prefix = Prefix(pieces, text)
    calls = []

    def forced(places: Sequence[int], rows: Sequence[Sequence[int]]) -> list[Logits]:
        calls.append(len(rows))
        return [logits(place, row) for place, row in zip(places, rows, strict=True)]

    for sentence in range(5):
        limit = 4
        given = [None] * sentence + [prefix]
        *free, [best, *others] = beginnings(given, [limit] * (sentence + 1), 3, forced)
        assert free == [[FREE]] * sentence
        expected = {}
        for size in range(1, limit + 1):
            for row in product(range(4, len(LISTED)), repeat=size):
                spelt = ["".join(LISTED[token] for token in row[:n]) for n in (size - 1, size)]
                before, whole = (each.replace("\u2581", " ") for each in spelt)
                if whole.startswith(f" {text}") and len(before) < len(text) + 1:
                    its = logits(sentence, row)
                    log_probs = its - np.logaddexp.reduce(its, axis=1)[:, None]
                    expected[row] = sum(log_probs[range(size), row])
        assert best.log_prob == pytest.approx(max(expected.values()), abs=1e-4)
        for each in (best, *others):
            assert expected[each.tokens] == pytest.approx(each.log_prob, abs=1e-4)
    assert max(calls) <= 3  # beginnings that are followed at the same time
