"""Spans of pieces and of bytes, by hand."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transduce.config.schema import BOS, PAD, UNK
from transduce.tokens.imported_vocabulary import (
    ImportedVocabulary,
    language_of,
    piece_spans,
)
from transduce.tokens.tokenizer import Tokenizer
from transduce.tokens.vocabulary import LANGUAGE_TAG, is_tag

TEXTS = ["a dog runs", "the dogs run", "漢字 dog", "h i h"] * 9


@given(st.lists(st.text(max_size=3) | st.characters(codec="utf-8").map(str.encode), max_size=8))
def test_the_last_byte_of_a_character_has_its_span(parts):
    pieces: list[str | int] = []
    expected: list[str] = []
    for part in parts:
        pieces += [part] if isinstance(part, str) else part
        expected += [part] if isinstance(part, str) else [*[""] * (len(part) - 1), part.decode()]
    text = "".join(expected)
    assert [text[slice(*span)] for span in piece_spans(pieces)] == expected


@pytest.mark.parametrize(
    ("pieces", "lengths"),
    [
        ([0x41], [1]),
        ([0xC3, 0xA4], [0, 1]),
        ([0xC3, "a", 0xA4], [1, 1, 1]),
        ([0xF0, 0x9F, 0x98, 0x80], [0, 0, 0, 1]),
        ([0xF0, 0x9F, 0x98], [1, 1, 1]),
        ([0xA4, 0xC3, 0xA4], [1, 0, 1]),
        ([], []),
    ],
)
def test_a_byte_of_no_character_has_a_span_of_its_own(pieces, lengths):
    spans = piece_spans(pieces)
    assert [end - begin for begin, end in spans] == lengths
    assert all(one[1] == two[0] for one, two in pairwise(spans))


@pytest.fixture(scope="module")
def own() -> Tokenizer:
    return Tokenizer.train(TEXTS, TEXTS, vocab_size=300, languages=["de"])


@pytest.fixture
def imported(own) -> ImportedVocabulary:
    """The same pieces in another order, and without that of the letter h."""
    first, others = own.target.all_pieces()[:4], own.target.all_pieces()[:3:-1]
    return ImportedVocabulary(
        own.target.model, [*first, *(each for each in others if each.strip("\u2581") != "h")]
    )


def test_ids_are_those_of_the_list(own, imported):
    ids = imported.encode(["a dog", "", "漢"]).lists()
    assert imported.pieces(ids[0]) == own.target.pieces(own.encode_target(["a dog"])[0])
    assert ids[1] == [] and imported.encode_behind("a dog") == ids[0]
    assert (
        imported.decode([[BOS, *ids[0], PAD, UNK], []]) == ["a dog", ""]
        and imported.decode([]) == []
    )
    [half] = imported.encode(["\ud800"]).lists()
    assert half == imported.encode(["?"]).lists()[0]
    assert imported.encode_behind("ah")[-1] == UNK and imported.known("ahж") == {"a", "ж"}
    assert imported.known(iter("ahж")) == {"a", "ж"} == imported.known(["ж", "a", "h"])


def test_spans_are_those_of_the_decoded_text(imported):
    text = "a dog ж"
    [ids] = imported.encode([text]).lists()
    shown = [text[slice(*span)] for span in imported.spans(ids)]
    assert "".join(shown) == text and shown[-2:] == ["", "ж"]
    with_others = imported.spans([BOS, *ids[:1], UNK, *ids[1:]])
    assert [text[slice(*span)] for span in with_others] == ["", shown[0], "", *shown[1:]]
    assert imported.spans([]) == [] and imported.spans([BOS, UNK]) == [(0, 0), (0, 0)]
    assert next(text[slice(*span)] for span in imported.spans_in(text, ids)).strip() == "a"
    # Bytes before the first piece are the beginning of the text.
    spelled = imported.encode(["ж"]).lists()[0][1:]
    [dog] = imported.encode(["dog"]).lists()
    assert imported.decode([[*spelled, *dog]]) == ["ж dog"]
    spans = imported.spans([*spelled, *dog])
    assert spans[:2] == [(0, 0), (0, 1)] and spans[2][0] == 1 and spans[-1][1] == len("ж dog")


def test_a_list_of_pieces_that_does_not_fit_is_refused(own):
    for pieces in (own.target.all_pieces()[:3], [*own.target.all_pieces(), "<pad>"]):
        with pytest.raises(ValueError, match="too short or has a piece twice"):
            ImportedVocabulary(own.target.model, pieces)
    whole = ImportedVocabulary(own.target.model, own.target.all_pieces())
    assert [*whole.tags] == [LANGUAGE_TAG.format("de")] and not whole.has_placeholder_tokens
    assert whole.tags[">>de<<"] == own.target.tags[">>de<<"]


def test_codes_of_languages():
    assert is_tag(">>de<<") and not is_tag(">>de") and not is_tag("de<<")
    assert language_of(">>pt_BR<<") == "pt_BR"
