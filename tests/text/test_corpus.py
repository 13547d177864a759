"""Files to text: no line is lost, cut or shifted, what is left out is counted, what is held out is unseen."""

import bz2
import gzip
import itertools
import json
import lzma
import os
import subprocess
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

import numpy as np
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from corpora import clean
from transduce.system.errors import UserError
from transduce.text import jsonl, plain
from transduce.text.clean import CHUNK, LINES_KEPT, Cleaning
from transduce.text.hashes import SeenHashes
from transduce.text.holdout import Part, hold_out
from transduce.text.holdout import sentences as hashes_of
from transduce.text.pairs import Origin, Pair, are_line_aligned, read_pairs
from transduce.text.plain import read_lines
from transduce.text.rules import Rules

COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    ".gz": gzip.compress,
    ".xz": lzma.compress,
    ".bz2": bz2.compress,
    ".zst": zstandard.compress,
}
every_compression = pytest.mark.parametrize("suffix", COMPRESS)

BREAKS = [
    "\r",
    "\x0b",
    "\x0c",
    "\x1c",
    "\x1d",
    "\x1e",
    "\x85",
    "\u2028",
    "\u2029",
    "\ufeff",
    "\0",
    "\t",
]
texts = st.text(
    st.one_of(st.sampled_from(BREAKS), st.characters(exclude_characters="\n", codec="utf-8")),
    max_size=12,
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("corpus")


def write(folder: Path, name: str, data: bytes | str) -> str:
    path = folder / name
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return str(path)


def without_common_cr(lines: list[str]) -> list[str]:
    return [line[:-1] for line in lines] if all(line.endswith("\r") for line in lines) else lines


# -- lines ---------------------------------------------------------------------------------------


@given(st.lists(texts), st.integers(1, 40))
def test_lines_written_are_the_lines_read(folder, lines, block):
    file = write(folder, "lines.txt", "".join(line + "\n" for line in lines))
    with patch.object(plain, "BLOCK_BYTES", block):
        assert list(read_lines(file)) == without_common_cr(lines)


@given(st.lists(texts, min_size=1))
def test_last_line_needs_no_line_feed(folder, lines):
    file = write(folder, "open.txt", "\n".join([*lines, "end"]))
    assert list(read_lines(file)) == [*without_common_cr(lines), "end"]


@given(st.lists(texts, min_size=1), st.booleans(), st.integers(1, 40))
def test_carriage_returns_at_every_line_end_are_removed(folder, lines, closed, block):
    file = write(folder, "crlf.txt", "\r\n".join([*lines, "end"]) + ("\r\n" if closed else ""))
    with patch.object(plain, "BLOCK_BYTES", block):
        assert list(read_lines(file)) == [*lines, "end"]


@pytest.mark.parametrize("odd", [0, 1, 499])
def test_carriage_returns_at_some_line_ends_stay(folder, odd):
    lines = [f"{i}" if i == odd else f"{i}\r" for i in range(500)]
    file = write(folder, "mixed.txt", "".join(line + "\n" for line in lines))
    with patch.object(plain, "BLOCK_BYTES", 100):
        assert list(read_lines(file)) == lines


def test_empty_file_has_no_lines(folder):
    assert list(read_lines(write(folder, "empty.txt", ""))) == []
    assert list(read_lines(write(folder, "blank.txt", "\n"))) == [""]


@every_compression
@given(lines=st.lists(texts), cut=st.integers(0, 200))
def test_compression_changes_nothing(folder, suffix, lines, cut):
    data = "".join(line + "\n" for line in lines).encode()
    # As `cat a.gz b.gz` makes them.
    streams = COMPRESS[suffix](data[:cut]) + COMPRESS[suffix](data[cut:])
    with patch.object(plain, "COMPRESSED_BLOCK_BYTES", 16):
        assert list(read_lines(write(folder, "lines" + suffix, streams))) == without_common_cr(
            lines
        )


@every_compression
def test_lines_across_compressed_blocks_are_read(folder, suffix):
    lines = [f"{i} " + "x" * (i % 700) for i in range(3000)]
    for end in ("\n", "\r\n"):
        data = "".join(line + end for line in lines).encode()
        assert len(data) > 3 * plain.BLOCK_BYTES
        assert list(read_lines(write(folder, "long" + suffix, COMPRESS[suffix](data)))) == lines


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    reading, writing = os.pipe()
    yield reading, writing
    for end in (reading, writing):
        try:
            os.close(end)
        except OSError:
            assert end == writing  # closed by the test, so that the pipe ends


@pytest.mark.parametrize("spool", [1, plain.PIPE_MEMORY_BYTES])
@pytest.mark.parametrize("ends", ["\n\n\n", "\r\r\r", "\r\n\r", "\r\r\n"])
def test_pipes_are_read_like_files(pipe, folder, monkeypatch, ends, spool):
    data = "".join(f"line {i}" + ("\r\n" if end == "\r" else "\n") for i, end in enumerate(ends))
    os.write(pipe[1], data.encode())
    os.close(pipe[1])
    monkeypatch.setattr(plain, "BLOCK_BYTES", 5)
    monkeypatch.setattr(plain, "PIPE_MEMORY_BYTES", spool)
    assert list(read_lines(f"/dev/fd/{pipe[0]}")) == list(
        read_lines(write(folder, "pipe.txt", data))
    )


def test_standard_input_is_not_waited_for(pipe, monkeypatch):
    with os.fdopen(pipe[0], encoding="ascii", closefd=False) as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        lines = read_lines("-")
        os.write(pipe[1], "one\nÄ\n".encode())
        assert [next(lines), next(lines)] == ["one", "Ä"]
        os.write(pipe[1], b"two\tzwei")
        os.close(pipe[1])
        assert list(lines) == ["two\tzwei"]


def test_byte_order_mark_is_a_character_of_a_line_but_not_of_a_pair(folder):
    file = write(folder, "mark.tsv", "\ufeffa\t\ufeffb\n")
    assert list(read_lines(file)) == ["\ufeffa\t\ufeffb"]
    assert [pair[:2] for pair in read_pairs([file])] == [("a", "\ufeffb")]
    mark = write(folder, "mark.en", "\ufeffa\n\ufeffb\n")
    assert [pair[:2] for pair in read_pairs([mark, mark])] == [("a", "a"), ("\ufeffb", "\ufeffb")]


# -- pairs ---------------------------------------------------------------------------------------


@given(st.lists(st.tuples(texts, texts)))
def test_two_files_give_every_pair(folder, pairs):
    marked = [(f"<{source}>", f"<{target}>") for source, target in pairs]
    files = [write(folder, f"side.{i}", "".join(pair[i] + "\n" for pair in marked)) for i in (0, 1)]
    assert list(read_pairs(files)) == [
        Pair(*pair, Origin(files[0], i)) for i, pair in enumerate(marked, start=1)
    ]


def test_empty_lines_do_not_shift_pairs(folder):
    source, target = (
        write(folder, "holes.en", "one\n\nthree\n\n"),
        write(folder, "holes.de", "eins\nzwei\n\n\n"),
    )
    expected = [("one", "eins"), ("", "zwei"), ("three", ""), ("", "")]
    assert [pair[:2] for pair in read_pairs([source, target])] == expected
    both = write(folder, "holes.tsv", "one\teins\n\tzwei\nthree\t\n\n")
    assert [pair[:2] for pair in read_pairs([both])] == expected


def test_a_tab_in_a_plain_file_is_text(folder):
    assert next(read_pairs([write(folder, "tab.en", "a\tb\n"), write(folder, "tab.de", "c\n")]))[
        :2
    ] == ("a\tb", "c")


@pytest.mark.parametrize("suffix", [".tsv", ".txt", ".TSV.gz", ".tab.xz"])
def test_tsv_reads_two_columns(folder, suffix):
    compress = COMPRESS["." + suffix.rsplit(".", 1)[1]] if suffix.count(".") == 2 else bytes
    file = write(folder, "pairs" + suffix, compress(b'Go.\tGeh.\tCC-BY 2.0 #1\n"Run!"\tLauf!\n'))
    assert list(read_pairs([file])) == [
        Pair("Go.", "Geh.", Origin(file, 1)),
        Pair('"Run!"', "Lauf!", Origin(file, 2)),
    ]


def test_standard_input_alone_is_tsv(pipe, monkeypatch):
    os.write(pipe[1], b"Go.\tGeh.\n")
    os.close(pipe[1])
    with os.fdopen(pipe[0], closefd=False) as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        assert list(read_pairs(["-"])) == [Pair("Go.", "Geh.", Origin("standard input", 1))]


@pytest.mark.parametrize(
    "record",
    [
        {"source": "a", "target": "b", "id": 7},
        {"src": "a", "tgt": "b"},
        {"en": "a", "de": "b", "source": "Tatoeba"},
        {"en": "a", "de": "b", "source": "x", "target": "y"},
        {"id": 7, "translation": {"de": "b", "en": "a"}},
    ],
)
def test_jsonl_keys(folder, record):
    file = write(folder, "keys.jsonl", json.dumps(record) + "\n")
    assert list(read_pairs([file], languages=("en", "de"))) == [Pair("a", "b", Origin(file, 1))]


@pytest.mark.parametrize("key", ["pt-BR", "pt_BR"])
@pytest.mark.parametrize("code", ["pt-BR", "pt_BR"])
def test_a_hyphen_in_a_code_may_be_an_underscore(folder, key, code):
    file = write(
        folder, "keys.jsonl", json.dumps({"en": "a", key: "b", "source": "c", "target": "d"}) + "\n"
    )
    assert list(read_pairs([file], languages=("en", code))) == [Pair("a", "b", Origin(file, 1))]


def test_doctor_lists_in_a_corpus_folder_are_ignored(folder):
    (folder / "mem").mkdir()
    files = [
        write(folder, f"mem/a.tsv{suffix}", "a\tb\n")
        for suffix in ("", ".left-out.jsonl", ".mended.jsonl")
    ]
    assert [pair.origin.file for pair in read_pairs([str(folder / "mem")])] == files[:1]


@given(st.lists(st.tuples(st.text(), st.text())), st.booleans())
def test_jsonl_holds_every_text(folder, pairs, escaped):
    lines = [json.dumps({"source": s, "target": t}, ensure_ascii=escaped) + "\n" for s, t in pairs]
    file = write(folder, "any.jsonl", "".join(lines) + "\n")
    assert [pair[:2] for pair in read_pairs([file])] == [*pairs, ("", "")]


@pytest.mark.parametrize("half", ["\\ud83d", "\\udcff"])
def test_replacing_a_target_keeps_other_json_keys(half):
    """Also half of a character, which JSON can say and UTF-8 can't."""
    line = f'{{"src": "{half} ä", "tgt": "b"}}'
    changed = jsonl.with_target(line, "c", ("en", "de"))
    assert json.loads(changed.encode()) == {**json.loads(line), "tgt": "c"}


# -- what users get wrong ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (("a.txt", "b.txt.gz"), True),
        (("a.tab", "b.en"), True),
        (("a.txt",), False),
        (("a.txt", "b.txt", "c.txt"), False),
        (("a.txt", "b.tsv"), False),
        (("a.tmx", "b.txt"), False),
        (("a.html", "b.html"), False),
        (("a.txt", "."), False),
    ],
)
def test_aligned_text_files_are_recognised_by_their_names(
    files: tuple[str, ...], expected: bool
) -> None:
    assert are_line_aligned(files) is expected


def test_unequal_files_are_refused_with_both_counts(folder):
    long, short = write(folder, "long.en", "a\n" * 1200), write(folder, "short.de", "a\n" * 7)
    with pytest.raises(UserError, match=r"long\.en has 1,200 lines and .*short\.de has 7\."):
        list(read_pairs([long, short]))
    with pytest.raises(UserError, match=r"short\.de has 7 lines and .*long\.en has 1,200\."):
        list(read_pairs([short, long]))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (
            b"good\nna\xc3\xafve caf\xe9\n",
            r"2: byte 0xE9 at offset 10 of the line is not UTF-8\. Convert",
        ),
        (b"\xc3", ":1: byte 0xC3 at offset 0 "),
        (b"a\nb\n\xed\xa0\x80\n", ":3: byte 0xED at offset 0 "),
        (b"a\r\nb\r\nc\xff\r\n", ":3: byte 0xFF at offset 1 "),
        ("Äh\n".encode("utf-16"), "looks like UTF-16"),
        ("A dog runs after a cat.\nÄh\n".encode("utf-16-le"), "looks like UTF-16LE. Convert"),
        ("A dog runs after a cat.\nA cat.\n".encode("utf-16-be"), "looks like UTF-16BE. Convert"),
        (gzip.compress(b"a", mtime=0), r"looks like gzip data\. Decompress it, or add \.gz to the"),
        (b"%PDF-1.7 \xe2\xe3\n", r"looks like a PDF file\. Save the text as \.txt or \.html\.$"),
    ],
)
def test_invalid_utf8_is_named(folder, data, message):
    file = write(folder, "bad.txt", data)
    for block in (2, plain.BLOCK_BYTES):
        with (
            patch.object(plain, "BLOCK_BYTES", block),
            pytest.raises(UserError, match=r"bad\.txt.*" + message),
        ):
            list(read_lines(file))


def test_invalid_utf8_far_into_a_file(folder):
    lines = [b"%d" % i for i in range(100_000)]
    lines[77_777] = b"ab\x80"
    with pytest.raises(UserError, match=":77778: byte 0x80 at offset 2 "):
        list(read_lines(write(folder, "far.txt", b"\n".join(lines))))


@pytest.mark.parametrize("suffix", [suffix for suffix in COMPRESS if suffix])
def test_damaged_compression_is_refused(folder, suffix):
    data = COMPRESS[suffix](b"".join(b"%d\n" % (i * 7919 % 10007) for i in range(20_000)))
    for cut in (0, 3, len(data) // 2, len(data) - 1):
        with pytest.raises(UserError, match=rf"cut{suffix} is cut short"):
            list(read_lines(write(folder, "cut" + suffix, data[:cut])))
    for bad in (
        b"this is no compressed data",
        data + b"nor is this",
        data[:9] + bytes(60) + data[69:],
    ):
        with pytest.raises(UserError, match=rf"bad{suffix} is (damaged|cut short)"):
            list(read_lines(write(folder, "bad" + suffix, bad)))
    assert len(list(read_lines(write(folder, "padded" + suffix, data + bytes(512))))) == 20_000


def test_zstandard_is_an_extra(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with pytest.raises(UserError, match=r"needs the package zstandard\. Install it: pip install"):
        list(read_lines(write(folder, "a.zst", zstandard.compress(b"a\n"))))


def test_missing_files_name_the_nearest(tmp_path):
    write(tmp_path, "train.de.gz", b"")
    write(tmp_path, "notes", b"")
    (tmp_path / "link").symlink_to("nowhere")
    for missing, message in {
        "train.de": r"train\.de does not exist\. Did you mean .*train\.de\.gz\?$",
        "zzz": r"zzz does not exist; no file in .* has a similar name\.$",
        "folder/train.de": r"does not exist, nor does the folder .*folder\.$",
        "notes/train.de": "does not exist",
        "link": "link does not exist: it is a broken symbolic link to nowhere",
    }.items():
        with pytest.raises(UserError, match=message):
            list(read_lines(str(tmp_path / missing)))


def test_folders_and_broken_links_are_refused(tmp_path):
    (tmp_path / "round").symlink_to(tmp_path / "round")
    with pytest.raises(UserError, match="is a folder"):
        list(read_lines(str(tmp_path)))
    with pytest.raises(UserError, match="round cannot be read: "):
        list(read_lines(str(tmp_path / "round")))


@pytest.mark.skipif(os.geteuid() == 0, reason="the administrator may read every file")
def test_file_without_permission_is_named(tmp_path):
    file = write(tmp_path, "secret", "a")
    Path(file).chmod(0)
    with pytest.raises(UserError, match="secret cannot be read: permission denied"):
        list(read_lines(file))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("one.tsv", "a\tb\nc\n", r"one\.tsv:2: expected 2 columns, found 1"),
        ("comment.tsv", "# a glossary\na\tb\n", r"comment\.tsv:1: expected 2 columns, found 1"),
        (
            "ids.tsv",
            "1276\tLet's try.\t373330\tVersuchen wir es.\n",
            r"sentence numbers\. Keep .* `cut -f 2,4`",
        ),
        (
            "bad.jsonl",
            '{"source": "a", "target": "b"}\n{"source"\n',
            r"bad\.jsonl:2: not valid JSON: .* at column ",
        ),
        ("deep.jsonl", "[" * 100_000, ":1: not valid JSON"),
        ("list.jsonl", '["a", "b"]\n', ":1: not a JSON object"),
        (
            "keys.jsonl",
            '{"en": "a", "text": 3}\n',
            r'"src" and "tgt", found "en" \(a string\), "text" \(a number\)',
        ),
        ("null.jsonl", '{"source": "a", "target": null}\n', r'"target" \(null\)'),
        (
            "half.jsonl",
            '{"source": "a", "target": "\\ud83d"}\n',
            r":1: \\ud83d is only half of a surrogate pair",
        ),
        ("corpus.csv", "a,b\n", r"corpus\.csv is a spreadsheet\. Save its two columns as \.tsv"),
        (
            "corpus.doc",
            "a,b\n",
            r"corpus\.doc: the suffix does not name a bilingual format\. .*\.tsv, .*\.jsonl",
        ),
        (
            "corpus.gz",
            gzip.compress(b"a\tb\n", mtime=0),
            "the suffix does not name a bilingual format",
        ),
    ],
)
def test_malformed_bilingual_files_are_refused(folder, name, content, message):
    with pytest.raises(UserError, match=message):
        list(read_pairs([write(folder, name, content)], languages=("en", "de")))


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ([], "0 files can't be read"),
        (["a", "b", "c"], "3 files can't be read"),
        (["-", "-"], "Source and target can't both come from standard input"),
        (["a.tsv", "b.txt"], "Give only this file"),
        (["a.jsonl.gz", "b"], "Give only this file"),
    ],
)
def test_wrong_numbers_of_corpus_files_are_refused(files, message):
    with pytest.raises(UserError, match=message):
        read_pairs(files)


# -- cleaning ------------------------------------------------------------------------------------


def number(texts: list[tuple[str, str]]) -> list[Pair]:
    return [
        Pair(source, target, Origin("f", line))
        for line, (source, target) in enumerate(texts, start=1)
    ]


few_texts = st.one_of(
    st.sampled_from(["", " ", "\u3000", "a", "b ", "c\nd", "a" * 30]), st.text(max_size=40)
)


@given(st.lists(st.tuples(few_texts, few_texts)), st.sampled_from([0.0, 1.0, 3.0]), st.booleans())
def test_kept_and_counted_pairs_add_up(texts, max_ratio, deduplicate):
    pairs, report, rules = number(texts), Cleaning(), Rules(max_ratio, deduplicate)
    kept = clean(pairs, rules, report)
    left_out = sorted(itertools.chain(*report.lines.values()))
    assert report.read == len(pairs) == len(kept) + report.counts.total()
    assert {rule: len(lines) for rule, lines in report.lines.items()} == dict(report.counts)
    assert [pair.origin for pair in kept] == [
        pair.origin for pair in pairs if pair.origin not in left_out
    ]
    again = Cleaning()
    assert clean(kept, rules, again) == kept
    assert again.counts.total() == 0 and again.sentences() == []


def test_rules_by_hand():
    texts = [
        ("a", "b"),
        (" ", "b"),
        ("a", "\u3000"),
        ("a", "b"),
        ("A", "b"),
        ("x\ny", "z"),
        ("a", "b" * 13),
        ("a", "b" * 14),
    ]
    report = Cleaning()
    kept = clean(number(texts), Rules(max_ratio=3, deduplicate=True), report)
    assert [pair.origin.line for pair in kept] == [1, 5, 7]
    found = {rule: [origin.line for origin in lines] for rule, lines in report.lines.items()}
    assert found == {"empty": [2, 3], "duplicate": [4], "line-break": [6], "ratio": [8]}
    assert len(clean(number(texts), Rules(max_ratio=0, deduplicate=False), Cleaning())) == 5


def test_only_equal_pairs_are_repetitions():
    pairs = number(
        [("ab", "c"), ("a", "bc"), ("c", "ab"), *((f"s{i}", "t") for i in range(100_000))]
    )
    assert clean(pairs, Rules(0, True), Cleaning()) == pairs


@pytest.mark.parametrize("distance", [1, CHUNK - 1, CHUNK, 5 * CHUNK + 1])
def test_a_repetition_is_found_at_any_distance(distance):
    pairs = number([(f"s{i}", "t") for i in range(distance)] * 2)
    report = Cleaning()
    assert clean(pairs, Rules(0, True), report) == pairs[:distance]
    assert report.counts == {"duplicate": distance}


@given(st.lists(st.lists(st.integers(0, 20) | st.just(2**64 - 1), max_size=9), max_size=20))
def test_each_hash_is_new_only_once(calls):
    hashes, known = SeenHashes(), set()
    for numbers in calls:
        expected = []
        for each in numbers:
            expected.append(each not in known)
            known.add(each)
        assert hashes.add(np.array(numbers, dtype="<u8")).tolist() == expected


def test_report_in_sentences():
    report = Cleaning()
    clean(number([("a", "b")] * 1500 + [("", "")]), Rules(0, True), report)
    report.count("too-long", Origin("g", 9))
    assert report.counts.total() == 1501
    assert report.sentences() == [
        "Left out 1,499 of 1,501 pairs because of a repetition of an earlier pair; the first is f, line 2.",
        "Left out 1 of 1,501 pairs because of a blank side; the first is f, line 1501.",
        "Left out 1 of 1,501 pairs because of a text with more tokens than data.max_length; the first is g, line 9.",
    ]


def test_counts_are_exact_where_lines_are_not_kept():
    report = Cleaning()
    for line in range(LINES_KEPT + 5):
        report.count("empty", Origin("f", line))
    assert report.counts["empty"] == LINES_KEPT + 5
    assert len(report.lines["empty"]) == LINES_KEPT


# -- holding out ---------------------------------------------------------------------------------


class Split(NamedTuple):
    train: list[Pair]
    held_out: list[Pair]
    dropped: list[Pair]


def split_off(pairs: list[Pair], count: int, seed: int) -> Split:
    parts = hold_out(lambda: [hashes_of(pairs)], count, seed).tolist()
    return Split(
        *(
            [pair for pair, its in zip(pairs, parts, strict=True) if its == part]
            for part in (Part.TRAIN, Part.HELD_OUT, Part.DROPPED)
        )
    )


def sentences(pairs: list[Pair]) -> set[str]:
    return {" ".join(text.casefold().split()) for pair in pairs for text in pair[:2]}


def related(pair: Pair, pairs: list[Pair]) -> list[Pair]:
    """All pairs that sentences link to this one, found by growing."""
    known = sentences([pair])
    while True:
        found = [other for other in pairs if sentences([other]) & known]
        if sentences(found) <= known:
            return found
        known |= sentences(found)


words = st.builds(
    lambda i, case, space: case(f"satz {i}").replace(" ", space),
    st.integers(0, 60),
    st.sampled_from([str.upper, str.lower, str.title]),
    st.sampled_from([" ", "  ", "\u00a0"]),
)


@given(
    st.lists(st.tuples(words, words), min_size=1, max_size=60),
    st.integers(1, 10),
    st.integers(0, 3),
)
def test_no_sentence_is_on_both_sides(texts, count, seed):
    pairs = number(texts)
    try:
        split = split_off(pairs, count, seed)
    except UserError:
        assert related(pairs[0], pairs) == pairs
        return
    if len(pairs) // 10 < count:
        assert split == Split(pairs, [], [])
        return
    assert not sentences(split.train) & sentences(split.held_out)
    assert sorted(itertools.chain(*split), key=lambda pair: pair.origin) == pairs
    assert all(list(part) == sorted(part, key=lambda pair: pair.origin) for part in split)
    assert 1 <= len(split.held_out) <= count
    assert len(split.held_out) == 1 or len(split.held_out) + len(split.dropped) <= len(pairs) // 10
    components = [related(pair, pairs) for pair in split.held_out]
    assert sum(map(len, components)) == len(split.held_out) + len(split.dropped)  # one pair of each
    assert split_off(pairs, count, seed) == split


def test_the_giant_component_stays_in_training():
    giant = [("hello", f"hallo {i}") for i in range(900)]
    twins = [(f"s{i // 2}", f"t{i}") for i in range(100)]
    split = split_off(number(giant + twins), 40, seed=1)
    assert (len(split.train), len(split.held_out), len(split.dropped)) == (920, 40, 40)
    assert split.train[:900] == number(giant)


@pytest.mark.parametrize(
    ("pairs", "count", "held_out"),
    [(157, 1000, 15), (99, 1000, 0), (99, 9, 9), (57, 6, 0), (57, 5, 5), (1, 1, 0)],
)
def test_a_small_corpus_gives_a_tenth_or_if_that_is_too_few_none(pairs, count, held_out):
    split = split_off(number([(f"s{i}", f"t{i}") for i in range(pairs)]), count, seed=1)
    assert [len(part) for part in split] == [pairs - held_out, held_out, 0]


def test_memory_for_a_pair_is_that_of_four_numbers_of_sentences_and_a_little():
    """Two of them say what a pair links, two where that leads, at 4 bytes each; its hashes are read when needed."""
    hashes = np.random.default_rng(1).integers(0, 2**63, (300_000, 2)).astype("<u8")
    with patch("transduce.text.holdout.SLICE_ITEMS", 2000):
        tracemalloc.start()
        try:
            hold_out(lambda: np.split(hashes, 100), 1000, seed=1)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert peak < 22 * len(hashes)


def test_only_the_seed_changes_the_held_out_pairs():
    code = (
        "from transduce.text.pairs import *\nfrom transduce.text.holdout import *\n"
        "pairs = [Pair(f's{i // 2}', f't{i}', Origin('f', i)) for i in range(2000)]\n"
        "parts = [hold_out(lambda: [sentences(pairs)], 50, seed) for seed in (1, 2)]\n"
        "print([(part == Part.HELD_OUT).nonzero()[0].tolist() for part in parts])"
    )
    runs = [
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert runs[0] == runs[1]
    first, second = json.loads(runs[0])
    assert len(first) == len(second) == 50
    assert first != second
    assert {line % 2 for line in first} == {0, 1}  # either pair of a component


def test_corpus_that_can_not_be_split_is_refused():
    texts = [("a", "b"), ("A ", "c"), ("d", "c"), ("e", "D")] * 3
    with pytest.raises(
        UserError, match=r"shared sentences link all 12 pairs.*or give validation files"
    ):
        split_off(number(texts), 1, seed=1)


def test_long_chains_of_sentences_take_no_long_time():
    chain = number([(f"s{i}", f"s{i + 1}") for i in range(40_000)])
    split = split_off([*chain[::-1], *number([("alone", "allein")])], 10, seed=1)
    assert [len(part) for part in split] == [40_000, 1, 0]
