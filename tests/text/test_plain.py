"""Tests of transduce/text/plain.py."""

import gzip
import io
import os
import re
import sys
from pathlib import Path
from unittest.mock import patch

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from text_files import COMPRESS, texts, write
from transduce.system.errors import UserError
from transduce.text import plain
from transduce.text.pairs import read_pairs
from transduce.text.plain import check_output, read_lines, write_lines

every_compression = pytest.mark.parametrize("suffix", COMPRESS)


def without_common_cr(lines: list[str]) -> list[str]:
    return [line[:-1] for line in lines] if all(line.endswith("\r") for line in lines) else lines


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
    assert list(read_lines(write(folder, "blank.txt", "a\n \n\t"))) == ["a", " ", "\t"]
    assert list(read_lines(write(folder, "blank.txt", "a\r\n\r\n \r"))) == ["a", "", " "]


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


def test_a_file_of_another_kind_is_named_if_its_first_line_is_text(folder):
    with pytest.raises(UserError, match=r":2: byte 0xE2 .*looks like a PDF file"):
        list(read_lines(write(folder, "bad.txt", b"%PDF-1.7\n\xe2\xe3\n")))


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
    with pytest.raises(
        UserError, match=r"^Reading \.zst files needs .* zstandard\. .*\[zstd\]'\.$"
    ):
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
    with pytest.raises(UserError, match="round can't be read: "):
        list(read_lines(str(tmp_path / "round")))


@pytest.mark.skipif(os.geteuid() == 0, reason="the administrator may read every file")
def test_file_without_permission_is_named(tmp_path):
    file = write(tmp_path, "secret", "a")
    Path(file).chmod(0)
    with pytest.raises(UserError, match="secret can't be read: permission denied"):
        list(read_lines(file))


def test_bytes_that_are_not_utf8_are_kept_if_lenient(folder):
    file = write(folder, "lenient.txt", b"good\nca\xe9\r\nend\xff")
    assert list(read_lines(file, lenient=True)) == ["good", "ca\udce9\r", "end\udcff"]
    zipped = write(folder, "zipped.txt", b"PK\x03\x04\xff\n")
    with pytest.raises(UserError, match="looks like a ZIP archive"):
        list(read_lines(zipped, lenient=True))


@pytest.mark.parametrize(
    ("name", "suffix", "compression"),
    [
        ("a.TSV.GZ", ".tsv", ".gz"),
        ("a.gz", "", ".gz"),
        ("a.tsv", ".tsv", ""),
        ("x.tar/a", "", ""),
        ("a.en.zst", ".en", ".zst"),
    ],
)
def test_suffixes_of_format_and_compression(name, suffix, compression):
    assert plain.suffixes(name) == (suffix, compression)


def test_unreadable_files_are_named(folder):
    with pytest.raises(UserError, match=r"can't read \.docx files\. Save the text as \.txt"):
        list(read_lines(write(folder, "a.docx", "")))
    for name, text in (("a.ts", '<?xml version="1.0"?>\n'), ("b.ts", "\ufeff<!DOCTYPE TS>\n")):
        with pytest.raises(UserError, match=r"is a file of Qt Linguist\. Convert it to \.xlf"):
            list(read_lines(write(folder, name, text)))
    assert list(read_lines(write(folder, "c.ts", "Avuxeni\n<?xml\n"))) == ["Avuxeni", "<?xml"]
    assert list(read_lines(write(folder, "d.txt", "<?xml\n"))) == ["<?xml"]


def test_lines_are_written_to_files_links_and_devices(tmp_path, capsys):
    (tmp_path / "link").symlink_to("file")
    (tmp_path / "file").write_text("before")
    write_lines(tmp_path / "link", iter(["ä", "", "b\r"]))
    assert (tmp_path / "link").is_symlink() and (
        tmp_path / "file"
    ).read_bytes() == b"\xc3\xa4\n\nb\r\n"

    def failing():
        yield "new"
        raise RuntimeError("no more")

    with pytest.raises(RuntimeError):
        write_lines(tmp_path / "file", failing())
    assert (tmp_path / "file").read_bytes() == b"\xc3\xa4\n\nb\r\n"
    write_lines(Path("-"), ["ä", "b"])
    assert capsys.readouterr().out == "ä\nb\n"
    write_lines(Path(os.devnull), ["a"])
    with pytest.raises(
        UserError, match=r"full can't be written: No space left on device\. Choose an"
    ):
        write_lines(Path("/dev/full"), ["a"])


def test_outputs_that_can_not_be_written_are_named(tmp_path):
    source = write(tmp_path, "in.txt", "a\n")
    (tmp_path / "round").symlink_to("round")
    (tmp_path / "same").symlink_to("in.txt")
    for name, said in {
        "": "is a folder. Name a file in it.",
        "out.txt.gz": "would not be compressed. Leave .gz out of its name.",
        "no/out": "there is no folder",
        "in.txt": "in.txt is also the input. Name another file.",
        "same": "same is also the input.",
        "round": "round is a symbolic link to itself. Remove it.",
    }.items():
        with pytest.raises(UserError, match=re.escape(said)) as error:
            check_output(tmp_path / name, iter([source]))
        assert error.value.hint.options == ("output",)
        with pytest.raises(UserError, match=re.escape(said)) as error:
            check_output(tmp_path / name, [source], "out")
        assert error.value.hint.options == ("out",)
    check_output(tmp_path / "out.txt", [source])
    check_output(Path(source), [str(tmp_path / "missing")])
    check_output(Path("-"), ["-"])
    check_output(Path(os.devnull), [source, "-", str(tmp_path / "missing")])
    assert not (tmp_path / "out.txt").exists()
    before = os.access

    def access(path, mode):
        return before(path, mode) and not str(path).endswith(("locked", "old.txt"))

    (tmp_path / "locked").mkdir()
    write(tmp_path, "old.txt", "")
    with patch("os.access", access):  # an administrator may write everywhere
        with pytest.raises(UserError, match=r"old.txt is write-protected"):
            check_output(tmp_path / "old.txt", [])
        with pytest.raises(UserError, match=r"can't be written: .*locked is read-only"):
            check_output(tmp_path / "locked" / "new", [])
        os.mkfifo(tmp_path / "locked" / "pipe")
        check_output(tmp_path / "locked" / "pipe", [])  # it is written to, and not replaced


@pytest.fixture
def redirected(tmp_path):
    """A file that is the standard input, as after `<`."""
    file = tmp_path / "redirected.txt"
    file.write_text("a\nb")
    before = os.dup(0)
    with file.open("rb") as stream:
        os.dup2(stream.fileno(), 0)
        yield file
    os.dup2(before, 0)
    os.close(before)


@pytest.mark.parametrize("name", ["-", "/dev/stdin"])
def test_a_redirected_input_is_no_output(redirected, name, tmp_path, monkeypatch):
    with pytest.raises(UserError, match=r"redirected.txt is also the input"):
        check_output(redirected, [name])
    check_output(tmp_path / "new.txt", [name])
    with open(0, closefd=False) as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        assert list(read_lines(name)) == ["a", "b"]
    assert plain.display_name(name) == "standard input" and plain.display_name("a") == "a"


def test_an_earlier_file_that_somebody_changed_is_kept_under_another_name(tmp_path, capsys):
    file = tmp_path / "out.txt"
    (tmp_path / "out.txt.bak1").write_text("somebody else's")
    for content in ("one", "one", "two", "three", "four"):
        write_lines(file, [content], keep=True)
    kept = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert kept == {
        "out.txt": "four\n",
        "out.txt.bak": "one\n",
        "out.txt.bak1": "somebody else's",
        "out.txt.bak2": "two\n",
        "out.txt.bak3": "three\n",
    }
    said = "".join(capsys.readouterr().err.split())
    assert said.count("Theearlier") == 3 and said.endswith(f"isnow{file}.bak3.")
    write_lines(file, ["five"])
    assert len([*tmp_path.iterdir()]) == 5 and capsys.readouterr().err == ""


@pytest.mark.parametrize("name", ["a.docx", "a.ts", "a.sdlxliff.gz"])
def test_the_suffix_of_a_format_may_be_ignored(folder, name):
    text = b"<?xml\n"
    file = write(folder, name, gzip.compress(text) if name.endswith(".gz") else text)
    assert list(read_lines(file, plain=True)) == ["<?xml"]
    with pytest.raises(UserError, match=r"can't read|Qt Linguist"):
        list(read_lines(file))


def test_lines_are_printed_in_utf_8_with_line_feeds_whatever_the_terminal_uses(monkeypatch):
    printed = io.BytesIO()
    with io.TextIOWrapper(printed, encoding="ascii", newline="\r\n") as stream:
        monkeypatch.setattr("sys.stdout", stream)
        write_lines(Path("-"), ["ä", "b"])
        stream.flush()
        assert printed.getvalue() == "ä\nb\n".encode()


def test_the_most_similar_name_is_suggested(tmp_path):
    for name in ("train.de", "train.deu", "train"):
        write(tmp_path, name, "")
    with pytest.raises(UserError, match=r"Did you mean .*/train\.deu\?$"):
        list(read_lines(str(tmp_path / "train.deuu")))


def test_a_very_large_window_of_zstandard_is_read(folder):
    """As `zstd --long=31` writes it; by default, the library reads windows of up to 128 MB."""
    parameters = zstandard.ZstdCompressionParameters.from_level(1, window_log=28)
    writer = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    data = writer.compress(b"a\n") + writer.flush()
    assert zstandard.get_frame_parameters(data).window_size == 1 << 28
    assert list(read_lines(write(folder, "long.zst", data))) == ["a"]


def test_only_the_beginning_of_a_file_tells_its_kind(folder):
    latin = "A dog runs after a cat.".encode("utf-16-le")
    with patch.object(plain, "BLOCK_BYTES", 3):
        assert list(read_lines(write(folder, "e.ts", "ab\n<?xml\n"))) == ["ab", "<?xml"]
        assert list(read_lines(write(folder, "e.txt", b"ab\n" + latin)))[1] == latin.decode()
        with pytest.raises(UserError, match=r"e2\.txt:2: byte 0xFF at offset 3 .* is not UTF-8\."):
            list(read_lines(write(folder, "e2.txt", b"ab\nBZh\xff\n")))
