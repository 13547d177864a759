"""Staged pairs: what is written is read back, part by part, and a sample is the same however a corpus is cut."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from transduce.preparation import staging
from transduce.preparation.staging import StagedPairs, StagedTexts, StagingWriter
from transduce.text.holdout import Part
from transduce.text.holdout import sentences as hashes_of
from transduce.text.pairs import Origin, Pair
from transduce.text.rules import DUPLICATE, NEAR_DUPLICATE

texts = st.text(st.characters(exclude_characters="\n", codec="utf-8"), max_size=12)
rows = st.lists(st.tuples(texts, texts, st.sampled_from("fgh"), st.integers(1, 2**62)), max_size=12)


RULES = {DUPLICATE: 1, NEAR_DUPLICATE: 2}


def stage(folder: Path, pairs: Sequence[Pair], parts: Sequence[int], block: int) -> StagedPairs:
    with StagingWriter(folder, with_sentences=True) as writer:
        for start in range(0, len(pairs), block):
            some = slice(start, start + block)
            lines = np.array([pair.origin.line for pair in pairs[some]], dtype="<u8")
            hashes = {rule: lines * np.uint64(times) for rule, times in RULES.items()}
            writer.append(pairs[some], np.array(parts[some], dtype=np.int8), hashes)
    return writer.finish(read=len(pairs))


@given(rows, st.integers(1, 5), st.data())
def test_staged_pairs_are_read_back_by_part(tmp_path_factory, rows, block, data):
    pairs = [Pair(source, target, Origin(file, line)) for source, target, file, line in rows]
    parts = data.draw(
        st.lists(
            st.sampled_from([Part.TRAIN, Part.HELD_OUT]), min_size=len(pairs), max_size=len(pairs)
        )
    )
    staged = stage(tmp_path_factory.mktemp("staged") / "0", pairs, parts, block)
    assert staged.parts.tolist() == parts and staged.read == len(pairs)
    assert staged.origins(range(len(pairs))) == [pair.origin for pair in pairs]
    for rule, times in RULES.items():
        assert staged.hashes(rule).tolist() == [times * pair.origin.line for pair in pairs]
    for part in (Part.TRAIN, Part.HELD_OUT):
        expected = [pair for pair, its in zip(pairs, parts, strict=True) if its == part]
        assert list(staged.pairs(part)) == expected
        assert staged.count(part) == len(expected)
    trained = [pair for pair, its in zip(pairs, parts, strict=True) if its == Part.TRAIN]
    assert [row for rows in staged.sentences() for row in rows.tolist()] == hashes_of(
        trained
    ).tolist()
    for column in (0, 1):
        both = StagedTexts([([staged], column)] * 2)
        assert all(pair[column] in both for pair in trained) and "\n" not in both
        assert list(both) == 2 * [pair[column] for pair in trained]
        assert len(both) == 2 * len(trained)


def test_a_sample_of_a_very_large_corpus_is_the_same_however_it_is_cut(tmp_path):
    chance = np.random.default_rng(1)
    pairs = [Pair(str(number), f"-{number}", Origin("", number)) for number in range(17_000)]
    is_repeated = chance.random(len(pairs)) < 0.2
    parts = np.where(chance.random(len(pairs)) < 0.01, Part.HELD_OUT, Part.TRAIN)
    kept = np.flatnonzero(~is_repeated).tolist()
    one = stage(tmp_path / "one", [pairs[number] for number in kept], parts[kept].tolist(), 700)
    parts[is_repeated] = Part.REPEATED
    shards = []
    for begin, end in pairwise([0, 3_000, 3_001, 3_001, 11_500, len(pairs)]):
        folder = tmp_path / f"{len(shards)}-{begin}"
        shards.append(stage(folder, pairs[begin:end], parts[begin:end].tolist(), 1_300))
    blocks = [kept[start : start + 2000] for start in range(0, len(kept), 2000)]
    for every in range(1, 5):
        taken = [
            number for block in blocks[::every] for number in block if parts[number] == Part.TRAIN
        ]
        for corpora in ([[one]], [shards]):
            sample = StagedTexts([(each, 1) for each in corpora], every)
            assert list(sample) == [f"-{number}" for number in taken]
            assert len(sample) == len(taken)


def test_pairs_that_are_left_out_are_counted_and_the_first_ones_named(tmp_path, monkeypatch):
    monkeypatch.setattr(staging, "LINES_KEPT", 2)
    with StagingWriter(tmp_path / "0", with_sentences=False) as writer:
        for rule, line in (("b", 1), ("a", 2), ("b", 3), ("b", 4)):
            writer.leave_out(rule, line - 1, Origin("f", line))
    staged = writer.finish(read=4)
    assert staged.read == 4 and staged.left_out == {
        "b": (3, [(0, Origin("f", 1)), (2, Origin("f", 3))]),
        "a": (1, [(1, Origin("f", 2))]),
    }


def test_staged_pairs_are_opened_again_as_they_were_written(tmp_path):
    pairs = [Pair(f"s{n}", f"t{n}", Origin("ä" if n > 4 else "f", n)) for n in range(6)]
    folder = tmp_path / "staged" / "0"
    with StagingWriter(folder, tag="<tag> ", with_sentences=False) as writer:
        writer.append(pairs[:4], np.array([0, 1, 2, 0], dtype=np.int8), {})
        assert writer.length == 4
        writer.leave_out("empty", 4, Origin("g", 7))
        writer.append(pairs[4:], np.array([0, 3], dtype=np.int8), {})
    written = writer.finish(read=9)
    opened = StagedPairs.open(folder)
    assert opened.parts.tolist() == written.parts.tolist() == [0, 1, 2, 0, 0, 3]
    assert replace(opened, parts=written.parts) == written
    assert (len(opened), opened.read, opened.tag) == (6, 9, "<tag> ")
    assert opened.left_out == {"empty": (1, [(4, Origin("g", 7))])}
    assert opened.files == ["f", "ä"] and opened.file_numbers().tolist() == [0] * 5 + [1]
    assert [pair.source for pair in opened.pairs()] == ["<tag> s0", "<tag> s3", "<tag> s4"]
    assert [pair.origin.line for pair in opened.pairs(Part.REPEATED)] == [5]
    assert [len(block.sources) for block in opened.blocks()] == [2, 1]
    assert [part.tolist() for part in opened.block_parts()] == [[0, 1, 2, 0], [0, 3]]
    assert [opened.count(part) for part in Part] == [3, 1, 1, 1, 0]
    whole = opened.read_block(1)
    assert whole.where(np.ones(2, dtype=bool)).sources == ["<tag> s4", "<tag> s5"]
    some = whole.where(np.array([False, True]))
    assert (*some[:2], some.files.tolist(), some.lines.tolist()) == (["<tag> s5"], ["t5"], [1], [5])


def test_many_pairs_are_staged_in_blocks(tmp_path):
    pairs = [Pair("s", "t", Origin("f", n)) for n in range(4001)]
    staged = stage(tmp_path / "0", pairs, [0] * len(pairs), 4001)
    assert staged.pair_ends == [0, 2000, 4000, 4001] and staged.byte_ends[-1] == 4 * 4001
    assert [pair.origin.line for pair in staged.pairs()] == [*range(4001)]
