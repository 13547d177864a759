"""Tests of transduce/wings/tables/records.py: every kind of object gives the pairs that it holds."""

from collections.abc import Callable, Iterable
from typing import Any

import datasets
import pandas
import pytest
from hypothesis import given
from hypothesis import strategies as st

from transduce.system.errors import UserError
from transduce.wings.tables.records import read_records

PAIRS = [("A dog runs.", "Ein Hund läuft."), ("Two men.", "Zwei\nMänner."), ("", "7")]
Pairs = list[tuple[str, str]]


def columns(pairs: Pairs) -> dict[str, list[str]]:
    return {"en": [pair[0] for pair in pairs], "de": [pair[1] for pair in pairs]}


def rows(pairs: Pairs) -> list[dict[str, str]]:
    return [{"en": source, "de": target} for source, target in pairs]


KINDS: dict[str, Callable[[Pairs], Any]] = {
    "mappings": rows,
    "translations": lambda pairs: [{"translation": each, "id": 1} for each in rows(pairs)],
    "a generator": lambda pairs: (each for each in rows(pairs)),
    "pandas": lambda pairs: pandas.DataFrame(columns(pairs)),
    "pandas, more columns": lambda pairs: pandas.DataFrame(
        {"n": range(len(pairs))} | columns(pairs) | {"when": pandas.Timestamp(0)}
    ),
    "pandas of translations": lambda pairs: pandas.DataFrame({"translation": rows(pairs)}),
    "datasets": lambda pairs: datasets.Dataset.from_dict(columns(pairs)),
    "datasets of translations": lambda pairs: datasets.Dataset.from_dict(
        {"translation": rows(pairs)}
    ),
    "a stream of datasets": lambda pairs: datasets.Dataset.from_dict(
        columns(pairs)
    ).to_iterable_dataset(),
    "two tables": lambda pairs: [
        pandas.DataFrame(columns(pairs[:1])),
        datasets.Dataset.from_dict(columns(pairs[1:])),
    ],
}
PAIR_KINDS: dict[str, Callable[[Pairs], Iterable[Any]]] = {
    "tuples": list,
    "lists": lambda pairs: [list(pair) for pair in pairs],
    "zip": lambda pairs: zip(*columns(pairs).values(), strict=True),
    "source and target": lambda pairs: pandas.DataFrame(pairs, columns=["source", "target"]),
}


def read(records: Any, languages: tuple[str, str] = ("", "")) -> tuple[tuple[str, str], Pairs]:
    direction, pairs = read_records(records, languages, "train")
    return direction, [(pair.source, pair.target) for pair in pairs]


@pytest.mark.parametrize("kind", KINDS)
def test_keys_are_the_languages(kind):
    assert read(KINDS[kind](PAIRS)) == (("en", "de"), PAIRS)
    turned = [pair[::-1] for pair in PAIRS]
    assert read(KINDS[kind](PAIRS), ("de", "en")) == (("de", "en"), turned)


@pytest.mark.parametrize("kind", PAIR_KINDS)
def test_pairs_have_the_given_languages(kind):
    for languages in (("en", "de"), ("", "")):
        assert read(PAIR_KINDS[kind](PAIRS), languages) == (languages, PAIRS)


@given(st.lists(st.tuples(st.text(), st.text()), min_size=1, max_size=5))
def test_texts_are_not_changed(pairs):
    for records in (pairs, rows(pairs), pandas.DataFrame(columns(pairs), dtype=object)):
        assert read(records, ("en", "de"))[1] == pairs


@pytest.mark.parametrize("missing", [None, float("nan"), pandas.NA, pandas.NaT])
def test_a_missing_text_is_empty(missing):
    table = pandas.DataFrame(
        {"en": ["a", missing], "de": pandas.Series([missing, "b"], dtype=object)}
    )
    assert read(table)[1] == [("a", ""), ("", "b")]
    assert read([("a", None)])[1] == [("a", "")]


def test_origins_are_the_numbers_of_records():
    _, pairs = read_records(iter(PAIRS), ("en", "de"), "valid")
    assert [pair.origin for pair in pairs] == [("valid", 1), ("valid", 2), ("valid", 3)]


def test_more_columns_are_ignored_as_in_tsv():
    assert read([("a", "b", "attribution")], ("en", "de"))[1] == [("a", "b")]


def test_regions_may_be_spelt_in_both_ways():
    assert read([{"en": "a", "pt-BR": "b"}], ("en", "pt_BR"))[1] == [("a", "b")]
    assert read([{"en": "a", "pt-BR": "b"}])[0] == ("en", "pt-BR")


@pytest.mark.parametrize(
    ("records", "said"),
    [
        ([], "train has no pairs"),
        (iter(()), "train has no pairs"),
        (pandas.DataFrame({"en": [], "de": []}), "train has no pairs"),
        (
            pandas.DataFrame({"a": ["x"], "b": [1]}),
            r'train:1: expected strings .* found "a" \(a string\), "b" \(a number\)',
        ),
        (
            pandas.DataFrame({"en": ["x"], "de": ["y"], "fr": ["z"]}),
            r'found "en" \(a string\), "de" \(a string\), "fr" \(a string\)',
        ),
        (
            [("a", "b"), {"en": "x", "de": pandas.Timestamp(0)}],
            r'train:2: expected .* found "en" \(a string\), "de"',
        ),
        ([("a", "b"), ("a", 5)], r'train:2: .*"target" \(a number\)'),
        ([("a",)], r'train:1: expected .*, found "source" \(a string\)'),
        (["a dog", "ein Hund"], "train:1: not a JSON object such as"),
        ([5], "train:1: not a JSON object such as"),
        ([{0: "a", 1: "b"}], r'found "0" \(a string\), "1" \(a string\)'),
        (datasets.DatasetDict({"test": datasets.Dataset.from_dict({})}), "train:1: not a JSON"),
    ],
)
def test_mistakes_name_the_record_and_its_columns(records, said):
    with pytest.raises(UserError, match=said):
        read(records)
