"""Tests of transduce/tokens/store.py."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpora import blocks
from transduce.system.errors import UserError
from transduce.system.files import write_folder
from transduce.tokens.store import StoreView, TokenStore, write_store

ids = st.lists(st.integers(0, 300) | st.sampled_from([65535, 65536, 2**32 - 1]), max_size=6)


pairs = st.lists(st.tuples(ids, ids, st.integers(0, 2**31 - 1), st.integers(1, 2**62)), max_size=12)


@given(rows=pairs)
def test_store_returns_the_written_pairs(tmp_path_factory, rows):
    folder = tmp_path_factory.mktemp("store") / "train"
    write_store(folder, blocks(rows))
    store = TokenStore(folder)
    assert len(store) == len(rows)
    every = np.arange(len(rows))
    texts = zip(store.source.rows(every), store.target.rows(every), strict=True)
    assert [(*map(list, text), *store.origin(i)) for i, text in enumerate(texts)] == rows
    assert store.source.lengths.tolist() == [len(row[0]) for row in rows]
    assert store.target.lengths.tolist() == [len(row[1]) for row in rows]


def test_ids_take_16_bits_until_one_does_not_fit(tmp_path):
    many = [([7] * 50, [65535], 0, line) for line in range(100)]
    write_store(tmp_path / "narrow", blocks(many))
    write_store(tmp_path / "wide", blocks([*many, ([65536], [1], 0, 101)]))
    sizes = {name: (tmp_path / name / "source.ids").stat().st_size for name in ("narrow", "wide")}
    assert sizes == {"narrow": 2 * 5000, "wide": 4 * 5001}
    wide = TokenStore(tmp_path / "wide")
    assert [row.tolist() for row in wide.source.rows(np.array([99, 100]))] == [[7] * 50, [65536]]
    assert wide.target.ids.itemsize == 2


def test_pairs_take_few_bytes_besides_their_ids(tmp_path):
    write_store(
        tmp_path / "store",
        blocks(([1] * (n % 7), [2] * (n % 5), n // 3000, n % 3000 * 2) for n in range(6000)),
    )
    sizes = {
        path.name: path.stat().st_size
        for path in (tmp_path / "store").iterdir()
        if path.name != "manifest.json"
    }
    assert sizes["source.starts"] == sizes["target.starts"] == 8 * 94  # of every 64th of 6,000
    ids = sizes.pop("source.ids") + sizes.pop("target.ids")
    assert ids == 2 * sum(n % 7 + n % 5 for n in range(6000))
    assert sum(sizes.values()) < 5.5 * 6000
    store = TokenStore(tmp_path / "store")
    assert [store.origin(n) for n in range(6000)] == [
        (n // 3000, n % 3000 * 2) for n in range(6000)
    ]
    places = np.random.default_rng(1).permutation(6000)
    assert [ids.tolist() for ids in store.source.rows(places)] == [[1] * (n % 7) for n in places]
    assert [ids.tolist() for ids in store.target.rows(places)] == [[2] * (n % 5) for n in places]


def test_gaps_between_the_lines_of_pairs_change_no_line_number(tmp_path):
    """One to 255 lines fit into a step; blocks may end anywhere, and a file may go on with a lower line."""
    gaps = [1, 254, 255, 256, 257, 511, 512, 1, 65_536, 0, 1, 255]
    lines = np.cumsum(gaps).tolist()
    rows = [([1], [2], 0, line) for line in lines]
    rows += [([1], [2], 1, line) for line in (lines[-1] + 1, lines[-1] + 2, 7, 7, 8)]
    rows += [([1], [2], 0, 9)]
    expected = [row[2:] for row in rows]
    for size in (1, 2, 5, 99):
        write_store(tmp_path / f"{size}", blocks(rows, size=size))
        store = TokenStore(tmp_path / f"{size}")
        assert [store.origin(i) for i in range(len(rows))] == expected
        steps = [0, 254, 255, 0, 0, 0, 0, 1, 0, 0, 1, 255, 0, 1, 0, 0, 1, 0]
        assert [*(tmp_path / f"{size}" / "origin.steps").read_bytes()] == steps
        # Jumps: the begin, six gaps of the first file, the other file, 7 and 7, and the first file again.
        assert (tmp_path / f"{size}" / "origin.jumps").stat().st_size == 11 * 24
    write_store(tmp_path / "long", blocks((([1], [2], 0, line) for line in range(5, 9005)), 1000))
    assert (tmp_path / "long" / "origin.jumps").stat().st_size == 3 * 24
    store = TokenStore(tmp_path / "long")
    assert [store.origin(i)[1] for i in (0, 4095, 4096, 4097, 8192, 8999)] == [
        5,
        4100,
        4101,
        4102,
        8197,
        9004,
    ]


def test_a_view_shows_a_store_in_either_direction(tmp_path):
    write_store(tmp_path / "store", blocks([([1, 2], [3], 0, 5), ([4], [5, 6], 0, 6)]))
    store = TokenStore(tmp_path / "store")
    every = np.arange(2)
    for view, source, target, tags in (
        (StoreView(store), [[1, 2], [4]], [[3], [5, 6]], ()),
        (StoreView(store, True, (9, 8)), [[3], [5, 6]], [[1, 2], [4]], (9, 8)),
    ):
        assert (view.pairs, view.tags) == (2, tags)
        assert [row.tolist() for row in view.source.rows(every)] == source
        assert [row.tolist() for row in view.target.rows(every)] == target


def test_blocks_without_pairs_change_nothing(tmp_path):
    rows = [([1, 2], [3], 0, 5), ([4], [5, 6], 0, 6), ([7], [8], 1, 7)]
    some = [*blocks(rows, size=1)]
    none = some[0].where(np.array([False]))
    write_store(tmp_path / "plain", some)
    write_store(tmp_path / "with", [none, some[0], none, none, *some[1:], none])
    for file in (tmp_path / "plain").iterdir():
        assert file.read_bytes() == (tmp_path / "with" / file.name).read_bytes(), file.name


def test_encoded_pairs_are_chosen_by_a_mask():
    [encoded] = blocks([([1, 2], [3], 0, 5), ([], [4, 5], 1, 6), ([6], [7], 2, 7)])
    chosen = encoded.where(np.array([True, False, True]))
    assert chosen.source.lists() == [[1, 2], [6]] and chosen.target.lists() == [[3], [7]]
    assert (chosen.files.tolist(), chosen.lines.tolist()) == ([0, 2], [5, 7])
    assert encoded.where(np.ones(3, dtype=bool)) is encoded


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"source": "<u8"}, "it names unknown number types"),
        ({"target_lengths": "|u1"}, "it names unknown number types"),
        ({"target": None}, "it names unknown number types"),
        ({"format": "2"}, "has format 2, but this version reads format 2"),
        ({"source": []}, "is missing or damaged"),
    ],
)
def test_a_header_that_does_not_fit_is_refused(tmp_path, changes, said):
    with write_folder(tmp_path / "other") as aside:
        types = dict.fromkeys(("source", "target", "source_lengths", "target_lengths"), "<u2")
        (aside / "store.json").write_text(json.dumps({"format": 2} | types | changes))
    with pytest.raises(UserError, match=said):
        TokenStore(tmp_path / "other")
    damaged = (json.dumps({"format": 2, "source": "<u2"}), "{}", "[2]", "{", "[" * 99_999)
    for number, content in enumerate(damaged):
        with write_folder(tmp_path / str(number)) as aside:
            (aside / "store.json").write_text(content)
        with pytest.raises(UserError, match=r"store\.json is missing or damaged"):
            TokenStore(tmp_path / str(number))
    with write_folder(tmp_path / "without"):
        pass
    with pytest.raises(UserError, match=r"store\.json is missing or damaged"):
        TokenStore(tmp_path / "without")


def test_a_sentence_may_be_very_long(tmp_path):
    write_store(
        tmp_path / "store",
        blocks([([1], [2], 0, 1), ([3] * 70_000, [4] * 65_535, 0, 2), ([5], [6], 0, 3)]),
    )
    store = TokenStore(tmp_path / "store")
    assert [len(row) for row in store.source.rows(np.arange(3))] == [1, 70_000, 1]
    assert (store.source.lengths.itemsize, store.target.lengths.itemsize) == (4, 2)
    last = np.array([2])
    assert (store.source.rows(last)[0].tolist(), store.target.rows(last)[0].tolist()) == ([5], [6])


@pytest.mark.parametrize("other", [1, 3])
def test_a_store_of_another_format_is_refused(tmp_path, other):
    write_store(tmp_path / "store", blocks([([1, 2], [3], 0, 1)]))
    header = tmp_path / "store/store.json"
    header.write_text(header.read_text().replace('"format": 2', f'"format": {other}'))
    with pytest.raises(UserError, match=f"format {other}, but this version reads format 2"):
        TokenStore(tmp_path / "store")


def test_failed_writing_leaves_no_store(tmp_path):
    def rows():
        yield [1], [2], 0, 1
        raise RuntimeError("the corpus ended badly")

    with pytest.raises(RuntimeError):
        write_store(tmp_path / "store", blocks(rows(), size=1))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "name",
    [
        "source.ids",
        "target.lengths",
        "source.starts",
        "origin.steps",
        "store.json",
        "manifest.json",
    ],
)
def test_a_damaged_store_is_named(name, tmp_path):
    write_store(tmp_path / "store", blocks([([1, 2], [3], 0, 1)]))
    path = tmp_path / "store" / name
    path.write_bytes(path.read_bytes()[:-3])
    with pytest.raises(UserError, match=name):
        TokenStore(tmp_path / "store")
    path.unlink()
    with pytest.raises(UserError, match=f"{name} is missing"):
        TokenStore(tmp_path / "store")
