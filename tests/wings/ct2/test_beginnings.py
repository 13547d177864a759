"""Tests of transduce/wings/ct2/beginnings.py."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from engines import SMALL, converted, lively
from phrases import SOURCES, TARGETS
from transduce.config.schema import DecodeConfig
from transduce.decoding.types import Request, length_penalty
from transduce.tokens.imported_vocabulary import ImportedVocabulary
from transduce.tokens.tokenizer import Tokenizer
from transduce.wings.completion.prefixes import Prefix, PrefixFilter
from transduce.wings.ct2 import beginnings as ct2_beginnings
from transduce.wings.ct2.beginnings import Logits, beginnings

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
def test_the_most_likely_beginning_is_found(
    pieces: ImportedVocabulary, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By brute force: all token sequences whose text reaches the end of the prefix with the last token.

    Complete words are in their usual segmentation.
    """
    monkeypatch.setattr(ct2_beginnings, "MAX_PASSES", 99)
    prefix = Prefix(pieces, text)
    words = [f" {word}" for word in text.split(" ")[:-1]]
    usual = tuple(token for word in words for token in Prefix(pieces, word[1:]).segmentation())
    calls = []

    def forced(places: Sequence[int], rows: Sequence[Sequence[int]]) -> list[Logits]:
        calls.append(len(rows))
        return [logits(place, row) for place, row in zip(places, rows, strict=True)]

    for sentence in range(5):
        limit = 4
        given = [None] * sentence + [prefix]
        *free, [best, *others] = beginnings(given, [limit] * (sentence + 1), 3, forced)
        assert free == [[]] * sentence
        expected = {}
        for size in range(1, limit + 1):
            for row in product(range(4, len(LISTED)), repeat=size):
                spelt = ["".join(LISTED[token] for token in row[:n]) for n in (size - 1, size)]
                before, whole = (each.replace("\u2581", " ") for each in spelt)
                is_usual = row[: len(usual)] == usual
                if is_usual and whole.startswith(f" {text}") and len(before) < len(text) + 1:
                    its = logits(sentence, row)
                    log_probs = its - np.logaddexp.reduce(its, axis=1)[:, None]
                    expected[row] = sum(log_probs[range(size), row])
        assert best.log_prob == pytest.approx(max(expected.values()), abs=1e-4)
        for each in (best, *others):
            assert expected[each.tokens] == pytest.approx(each.log_prob, abs=1e-4)
    assert max(calls) <= 3  # beginnings that are followed at the same time


@pytest.mark.parametrize("tags", [0, 1])
def test_scores_are_those_of_forced_decoding(
    pieces: ImportedVocabulary, tags: int, tmp_path: Path
) -> None:
    """Also if the decoder reads a tag first, if the limit ends a translation, and if no n-gram may be repeated."""
    config = replace(SMALL, vocab_size=len(LISTED), target_tag=bool(tags))
    engine = converted(lively(config), config, tmp_path)
    sources = [[4, 5, 6], [7, 5], [4, 9, 8]]
    limits = [9, 4, 5]
    for options in ({"beam_size": 1}, {"beam_size": 4}, {"beam_size": 4, "no_repeat_ngram": 2}):
        prefixes = [Prefix(pieces, "Hu"), Prefix(pieces, "uHu"), None]
        token_filter = PrefixFilter(prefixes, limits)
        request = Request([""] * 3, sources, limits, token_filter=token_filter)
        search = replace(DecodeConfig(), **options)
        [n_best_lists] = engine.search([request], search, options["beam_size"])
        for source, limit, prefix, best in zip(
            sources, limits, ["Hu", "uHu", ""], n_best_lists, strict=True
        ):
            assert best
            for each in best:
                text = "".join(LISTED[token] for token in each.tokens).replace("\u2581", " ")
                assert text.startswith(f" {prefix}" if prefix else "") and len(each.tokens) <= limit
                [log_probs] = engine.log_probs([source], [each.tokens])
                expected = sum(log_probs) / length_penalty(len(each.tokens) + 1, 0.6)
                # CTranslate2's search leaves out the probabilities of PAD, BOS and UNK.
                assert prefix == "" or each.score == pytest.approx(expected, abs=0.3)
        scores = [[each.score for each in best] for best in n_best_lists]
        assert scores == [sorted(its, reverse=True) for its in scores]
