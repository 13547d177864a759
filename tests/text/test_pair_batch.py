"""Batches of texts are searched all at once, as each text alone."""

import re
import unicodedata

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from transduce.text.hashes import hash_texts
from transduce.text.pair_batch import PairBatch, TextColumn

TEXTS = st.lists(
    st.text(st.sampled_from("aAbß1٣ \t\n.,-–!$€\u00a0\u0301é漢😀\ufffd")) | st.text(max_size=8),
    max_size=8,
)


@given(TEXTS)
def test_a_text_has_the_same_properties_alone_and_among_others(texts):
    column = TextColumn(texts)
    assert column.lengths.tolist() == [len(text.strip()) for text in texts]
    assert np.zeros(len(texts))[column.with_line_breaks].shape == column.with_line_breaks.shape
    assert column.with_line_breaks.tolist() == [i for i, text in enumerate(texts) if "\n" in text]
    for pattern in (re.compile("[ab]+"), re.compile("1"), re.compile(r"\w")):
        assert column.rows_with(pattern).tolist() == [
            i for i, text in enumerate(texts) if pattern.search(text)
        ]
    assert column.letters == [
        "".join(
            character
            for character in text.casefold()
            if character > "\uffff" or unicodedata.category(character)[0] not in "PSZCN"
        )
        for text in texts
    ]
    alone = [TextColumn([text]) for text in texts]
    assert column.letters == [each.letters[0] for each in alone]
    assert column.hashes.tolist() == [int(each.hashes[0]) for each in alone]


def test_letters_and_hashes_by_hand():
    texts = [
        "A dog, 2!",
        "a\u00a0DOG",
        "1 – 2",
        "…",
        "! ?",
        "",
        "Straße\nß",
        "漢字。",
        "x\u0301",
        "$5 €",
    ]
    column = TextColumn(texts)
    assert column.letters == ["adog", "adog", "", "", "", "", "strassess", "漢字", "x\u0301", ""]
    plain = ["adog2", "adog", "12", "…", "! ?", "", "strassess", "漢字", "x\u0301", "5"]
    assert column.hashes.tolist() == hash_texts(plain).tolist()
    assert column.begins.tolist()[:3] == [0, 10, 16]


def test_hashes_of_pairs_by_hand():
    batch = PairBatch(
        ["A dog 1", "a DOG 2", "A dog", "12", "1"], ["ein Hund", "Ein Hund", "5", "x", "2 x"]
    )
    assert len(batch) == 5
    near = batch.near_hashes(range(5)).tolist()
    expected = ["adog\neinhund", "adog\neinhund", "A dog\n5", "12\nx", "1\n2 x"]
    assert near == hash_texts(expected).tolist()
    assert batch.near_hashes([3, 0]).tolist() == [near[3], near[0]]
    assert batch.exact_hashes([1]).tolist() == hash_texts(["a DOG 2\nEin Hund"]).tolist()
