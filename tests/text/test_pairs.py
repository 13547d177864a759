"""Tests of transduce/text/pairs.py."""

import gzip
import json
import os
import re
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from text_files import COMPRESS, texts, write
from transduce.system.errors import UserError
from transduce.text.pairs import (
    Origin,
    Pair,
    _as_line,
    are_documents,
    are_line_aligned,
    are_trees,
    by_direction,
    check_file_names,
    expand_folders,
    first_of_each_direction,
    read_pairs,
    single_lines,
    usable,
)


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


@given(
    st.lists(st.tuples(st.text() | st.none(), st.text()), min_size=1),
    st.sampled_from([None, 0, 2]),
)
def test_json_is_an_array_or_lines_or_pretty_printed(folder, pairs, indent):
    objects = [{"source": source, "target": target} for source, target in pairs]
    for content in (
        json.dumps(objects, indent=indent),
        "".join(json.dumps(each, indent=indent) + "\n" for each in objects),
    ):
        file = write(folder, "any.jsonl", content)
        read = list(read_pairs([file]))
        assert [pair[:2] for pair in read] == [(source or "", target) for source, target in pairs]
        lines = content.split("\n")
        assert all("{" in lines[pair.origin.line - 1] for pair in read)


@given(st.lists(st.tuples(st.text(), st.text())), st.booleans())
def test_jsonl_holds_every_text(folder, pairs, escaped):
    lines = [json.dumps({"source": s, "target": t}, ensure_ascii=escaped) + "\n" for s, t in pairs]
    file = write(folder, "any.jsonl", "".join(lines) + "\n")
    assert [pair[:2] for pair in read_pairs([file])] == [*pairs, ("", "")]


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
    ("name", "content", "message"),
    [
        ("one.tsv", "a\tb\nc\n", r"one\.tsv:2: expected 2 columns, found 1"),
        ("comment.tsv", "# a glossary\na\tb\n", r"comment\.tsv:1: expected 2 columns, found 1"),
        ("ids.tsv", "1\ta\t2\tb\n3\tc\t4\n", r"ids\.tsv:2: expected 4 columns, found 3"),
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
        ("null.jsonl", '{"source": null, "text": "a"}\n', r'found "source" \(null\)'),
        ("cut.jsonl", '[{"source": "a", "target": "b"},\n', ":1: not valid JSON"),
        ("odd.jsonl", '[{"source": "a",\n"target" "b"}]', ":2: not valid JSON: .* at column 10"),
        ("corpus.json", "[]", "Rename a .json file of pairs to .jsonl."),
        (
            "half.jsonl",
            '{"source": "a", "target": "\\ud83d"}\n',
            r":1: \\ud83d is only half of a surrogate pair",
        ),
        ("corpus.ods", "a,b\n", r"corpus\.ods.*Save it as \.xlsx or \.csv"),
        (
            "corpus.doc",
            "a,b\n",
            r"corpus\.doc: the suffix does not name a bilingual format\. Save the text as \.txt",
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


def paired(*texts: tuple[str, str], direction: str = "") -> list[Pair]:
    return [Pair(a, b, Origin("f", i), direction) for i, (a, b) in enumerate(texts, 1)]


def test_pairs_are_chosen_by_direction():
    german, french = (
        paired(("a", "b"), ("c", "d"), ("e", "f"), direction=d) for d in ("x-de", "x-fr")
    )
    mixed = [german[0], french[0], *german[1:], *french[1:]]
    assert by_direction(mixed) == {"x-de": german, "x-fr": french}
    assert first_of_each_direction(mixed, 4) == [*german[:2], *french[:2]]
    assert first_of_each_direction(mixed, 1) == [german[0], french[0]]
    assert first_of_each_direction(german, 2) == german[:2] and first_of_each_direction([], 5) == []


def test_usable_pairs_have_two_texts_of_one_line():
    pairs = paired(
        ("a", "b"), ("", "b"), ("a", " "), ("a\nb", "c"), ("a", "b\n"), ("\u2028", "x\ry")
    )
    assert usable(pairs) == [pairs[0]] and usable(paired(("a", "x\ry"))) == paired(("a", "x\ry"))
    assert list(single_lines([pairs[0], pairs[1]])) == pairs[:2]
    for wrong, line in ((3, 4), (4, 5)):
        with pytest.raises(UserError, match=rf"f:{line}: the text contains a line break"):
            list(single_lines([pairs[0], pairs[wrong]]))


def test_the_lines_of_a_document_are_joined():
    cells = {
        "a \t\r\n\n  b \n c\n": "a b c",
        "\n a": "a",
        "a  b": "a  b",
        "\n": "",
        " a\n ": " a",
    }
    for text, joined in cells.items():
        assert _as_line(text) == joined, repr(text)


def test_a_folder_stands_for_its_bilingual_files(tmp_path):
    for name in (
        "b.tsv",
        "sub/a.tsv.gz",
        "a.jsonl",
        ".hidden.tsv",
        ".git/x.tsv",
        "notes.md",
        "x.txt",
        "a.left-out.jsonl",
        "a.mended.jsonl",
        "folder.tsv/c.po",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    found = expand_folders(["first.en", str(tmp_path), "last.de"])
    names = ["a.jsonl", "b.tsv", "folder.tsv/c.po", "sub/a.tsv.gz"]
    assert found == ["first.en", *(str(tmp_path / name) for name in names), "last.de"]
    with pytest.raises(UserError, match=r"\.git has no bilingual files"):
        (tmp_path / ".git/x.tsv").unlink()
        expand_folders([str(tmp_path / ".git")])
    with pytest.raises(UserError, match="name of a corpus file is empty"):
        expand_folders(["a", ""])
    with pytest.raises(UserError, match="\ufffd\\.tsv: this name is not UTF-8"):
        expand_folders(["\udcff.tsv"])
    (tmp_path / "manifest.json").touch()
    with pytest.raises(UserError, match=r"is a folder\. Name a file in it"):
        expand_folders([str(tmp_path)])


def test_kinds_of_corpora(tmp_path):
    assert are_documents(["a.tsv", "a.po"]) and not are_documents(["a.tsv", "a.txt"])
    assert are_line_aligned(["a.en", "a.de"]) and are_line_aligned(["a.txt", "b.txt"])
    for files in (
        ["a.en"],
        ["a.en", "b.tsv"],
        ["a.tsv", "b"],
        ["a.html", "b.html"],
        [str(tmp_path), "a"],
    ):
        assert not are_line_aligned(files)


@pytest.mark.parametrize(
    ("shorter", "missing"), [("source", 3), ("target", 3), ("source", 20), ("target", 21)]
)
def test_one_side_may_be_a_little_shorter_if_lenient(folder, shorter, missing):
    lines = {"source": 30, "target": 30}
    lines[shorter] -= missing
    files = [
        write(folder, f"short.{side}", "".join(f"{side} {i}\n" for i in range(count)))
        for side, count in lines.items()
    ]
    said = rf"short.source has {lines['source']} lines and .*short.target has {lines['target']}\."
    with pytest.raises(UserError, match=said):
        list(read_pairs(files))
    if missing > 20:
        with pytest.raises(UserError, match=said):
            list(read_pairs(files, lenient=True))
        return
    found = list(read_pairs(files, lenient=True))
    assert [pair.origin.line for pair in found] == list(range(1, 31))
    assert [pair[:2] for pair in found[-missing - 1 :]] == [
        (f"source {30 - missing - 1}", f"target {30 - missing - 1}"),
        *(
            ("", f"target {i}") if shorter == "source" else (f"source {i}", "")
            for i in range(30 - missing, 30)
        ),
    ]


def test_what_can_not_be_read_as_a_corpus_is_named(tmp_path):
    for files, said in (
        (["-", "/dev/stdin"], "can't both come from standard input"),
        (["a", "b", "c"], "3 files can't be read as a corpus"),
        ([], "0 files can't be read as a corpus"),
        (["a.tsv", "b"], "a.tsv has the suffix of a bilingual file"),
        (["a", "b.tsv"], "b.tsv has the suffix of a bilingual file"),
        (["a.html", "b"], "a.html is a document. Give its translation in the same format"),
        (["a.html"], "a.html holds one language"),
        (["missing.xyz"], "missing.xyz does not exist"),
    ):
        with pytest.raises(UserError, match=re.escape(said)):
            list(read_pairs(files))
    (tmp_path / "a.ods").touch()
    (tmp_path / "a.xyz").touch()
    with pytest.raises(UserError, match=r"a.ods.*Save it as .xlsx"):
        list(read_pairs([str(tmp_path / "a.ods")]))
    with pytest.raises(UserError, match=r"a.xyz: the suffix does not name a bilingual format"):
        list(read_pairs([str(tmp_path / "a.xyz")]))


@pytest.mark.parametrize(
    ("names", "is_refused"),
    [
        (("en", "de"), False),
        (("de", "en"), True),
        (("de", "fr"), True),  # the source is the target's language
        (("fr", "en"), True),
        (("fr", "it"), False),
        (("en_US", "en_GB"), False),
    ],
)
def test_names_of_files_in_the_other_languages_are_refused(names, is_refused):
    files = [f"a.{name}" for name in names]
    if is_refused:
        with pytest.raises(UserError, match="for en and de, but their names say"):
            check_file_names(files, ("en", "de"))
    else:
        check_file_names(files, ("en", "de"))
    check_file_names(["en.tsv", "de.tsv"], ("en", "de"))
    with pytest.raises(UserError, match="but their names say en_GB and en_US"):
        check_file_names(["a.en_GB", "a.en_US"], ("en_US", "en_GB"))


def test_one_file_of_trees_or_documents_is_enough(tmp_path):
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "a.tsv").touch()
    for names, trees, documents in (
        (["a.mrg", "b.tsv"], True, False),
        (["a.tsv", "b.html"], False, True),
        ([str(tmp_path / "texts")], False, False),
        ([], False, False),
    ):
        assert (are_trees(names), are_documents(names)) == (trees, documents)


def test_all_bilingual_files_are_read_with_the_languages_and_leniently(folder):
    files = [
        write(
            folder,
            f"{name}.jsonl",
            b'{"en": "a\xff", "de": "%s", "source": "no"}\n' % name.encode(),
        )
        for name in ("one", "two")
    ]
    for some in (files, files[:1]):
        found = list(read_pairs(some, ("en", "de"), lenient=True))
        assert [pair[:2] for pair in found] == [("a\udcff", "one"), ("a\udcff", "two")][: len(some)]
        with pytest.raises(UserError, match="byte 0xFF"):
            list(read_pairs(some, ("en", "de")))
    plain = [write(folder, f"lenient.{code}", b"a\xff\n") for code in ("en", "de")]
    for number in (0, 1):  # either of them may be damaged
        pair = [plain[0], write(folder, "good.de", "b\n")][:: 1 - 2 * number]
        [found] = read_pairs(pair, ("en", "de")[:: 1 - 2 * number], lenient=True)
        assert {*found[:2]} == {"a\udcff", "b"}


def test_only_texts_of_documents_are_joined_to_lines(folder):
    memory = write(folder, "lines.po", 'msgid "a \\n"\n" b"\nmsgstr "c\\nd"\n')
    [pair] = read_pairs([memory], ("en", "de"))
    assert pair[:2] == ("a b", "c d")
    subtitles = [
        write(folder, f"{text}.srt", f"1\n00:00:01,000 --> 00:00:02,000\n{text} \ntwo\n")
        for text in ("One", "Eins")
    ]
    [pair] = read_pairs(subtitles)
    assert pair[:2] == ("One two", "Eins two") and pair.origin.file == subtitles[0]
    records = write(folder, "lines.jsonl", '{"source": "a\\nb", "target": "c\\n"}\n')
    assert [each[:2] for each in read_pairs([records])] == [("a\nb", "c\n")]


def test_empty_lines_at_the_end_are_counted_as_lines(folder):
    long, short = write(folder, "ends.en", "a\n\n\n"), write(folder, "ends.de", "a\n")
    with pytest.raises(UserError, match=r"ends\.en has 3 lines and .*ends\.de has 1\."):
        list(read_pairs([long, short]))
    found = list(read_pairs([long, short], lenient=True))
    assert [pair[:2] for pair in found] == [("a", "a"), ("", ""), ("", "")]
