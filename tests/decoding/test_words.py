"""Tests of transduce/decoding/words.py."""

import unicodedata
from collections import Counter

import pytest
from hypothesis import given

from aligned import CONFIG, EXAMPLES, lively, model_config, texts, without_links
from transduce.config.families import families
from transduce.decoding.alignment import starts
from transduce.decoding.torch_engine import TorchEngine
from transduce.decoding.translator import Translator
from transduce.decoding.types import BLANK_TRANSLATION, TranslationOptions
from transduce.decoding.words import kind, words
from transduce.system.errors import UserError


@given(text=texts)
def test_words_are_disjoint_and_hold_every_character_but_spaces(aligning_tokenizer, text):
    found = words(
        text,
        starts(
            aligning_tokenizer.source.spans_in(text, aligning_tokenizer.encode_source([text])[0])
        ),
    )
    places = [place for begin, end in found for place in range(begin, end)]
    assert places == sorted(set(places))
    assert not any(text[begin:end].isspace() for begin, end in found)
    rest = set(range(len(text))) - set(places)
    assert all(
        text[place].isspace() or unicodedata.category(text[place])[0] in "ZC" for place in rest
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The dog's tail, isn't it?", ["The", "dog's", "tail", ",", "isn't", "it", "?"]),
        ("'So' – E-Mail -x", ["'", "So", "'", "–", "E-Mail", "-", "x"]),
        ("e\u0301te\u0301 हिन्दी", ["e\u0301te\u0301", "हिन्दी"]),
        ("snake_case 3.5 €", ["snake_case", "3", ".", "5", "€"]),
        ("a\u00a0b\u2028c\tx", ["a", "b", "c", "x"]),
        ("👨\u200d👩 \u2581", ["👨\u200d", "👩", "\u2581"]),
        ("\u0301a .\u0301x 漢\u0301字", ["\u0301a", ".\u0301", "x", "漢\u0301字"]),
        ("a--b a-漢 漢-a 1-2", ["a", "-", "-", "b", "a", "-", "漢", "漢", "-", "a", "1-2"]),
        ("  ", []),
        ("", []),
    ],
)
def test_words_by_hand(text, expected):
    assert [text[begin:end] for begin, end in words(text, ())] == expected


def test_words_without_spaces_are_pieces():
    text = "漢字かなABC語。"
    spans = [(0, 2), (2, 4), (4, 7), (7, 8), (8, 9)]
    assert [text[b:e] for b, e in words(text, starts(spans))] == ["漢字", "かな", "ABC", "語", "。"]
    assert [text[b:e] for b, e in words("漢字", {0, 1})] == ["漢", "字"]


@pytest.mark.parametrize("kind", families())
def test_every_word_of_a_translation_is_linked_to_words_of_its_source(bpe, kind):
    translator = Translator(TorchEngine([lively(model_config(bpe, kind=kind))]), bpe, CONFIG)
    texts = ["", *(each.english for each in EXAMPLES[:5]), " ", "漢 字", EXAMPLES[0].english]
    plain = translator.translate(texts, n_best=2)
    if kind in ("bytenet", "neural_gpu"):  # without attention
        with pytest.raises(UserError, match="torch can't align words with this model"):
            translator.translate(texts, align=True)
        return
    found = translator.translate(texts, n_best=2, align=True)
    assert found[0] == BLANK_TRANSLATION and found[1] == found[-1]
    # Nothing else changes, and nobody who didn't ask has links.
    assert plain == [without_links(each) for each in found]
    assert (
        list(translator.translate_lines(texts, TranslationOptions(n_best=2, align=True))) == found
    )
    for text, best in zip(texts, found, strict=True):
        for translation in (best, *best.alternatives):
            tracked = bpe.normalizer.tracked(text)
            cuts = starts(bpe.source.spans_in(tracked.text, bpe.encode_source([text])[0]))
            source_words = map(tracked.original, words(tracked.text, cuts))
            linked = Counter(link.target for link in translation.links)
            assert {link.source for link in translation.links} <= set(source_words)
            assert all(0 <= link.weight <= 1.0001 for link in translation.links)
            assert [link.target for link in translation.links] == sorted(
                link.target for link in translation.links
            )
            for begin, end in linked:
                assert translation.text[begin:end] == translation.text[begin:end].strip() != ""
            is_copied = not translation.tokens
            if any(map(str.isprintable, translation.text.strip())) and not is_copied:
                assert linked  # control characters are no words


def test_kinds_of_characters_by_hand():
    kinds = {
        "space": ["", " ", "\u00a0", "\u2028", "\0", "\u200b"[:0]],
        "mark": ["\u0301", "\u200d", "\u00ad"],
        "letter": ["a", "5", "½", "_", "\u203f", "\ue000", "\ud800", "한"[:0] or "я"],
        "unspaced": ["漢", "か", "〇", "カ", "ក", "ກ", "က", "ไ", "ཀ"],
        "sign": [".", "+", "「", "€"],
    }
    for expected, characters in kinds.items():
        assert {character: kind(character) for character in characters} == dict.fromkeys(
            characters, expected
        )
