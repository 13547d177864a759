"""Tests of transduce/text/file_kinds.py."""

import pytest

from text_files import COMPRESS
from transduce.text.file_kinds import OFFICE, TOOLS, UNREADABLE, kind_of, utf_16

TEXT = "A dog runs after a cat."


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (TEXT, True),
        (TEXT[:17], True),
        (TEXT[:16], False),
        ("Собака бежит за кошкой.", False),
        ("A dog runs after a cat" + "–" * 22, False),  # half of it has high bytes
        ("A dog runs after a –––– cat.", True),
        ("A\0dog\0runs after a cat in a park", True),
        ("A\0dog\0runs\0after\0a\0cat", False),  # over a tenth of zeros among the letters
        ("A\0dog\0runs after a c", False),  # exactly a tenth
        ("A\0dog\0runs after a ca", True),
    ],
)
def test_utf_16_without_a_byte_order_mark(text, expected):
    for codec in ("UTF-16LE", "UTF-16BE"):
        found = utf_16(text.encode(codec))
        assert found == (codec if expected else ""), codec
    assert utf_16(text.encode()) == ""


def test_only_the_beginning_is_examined():
    assert utf_16((TEXT * 50).encode("utf-16-le")[:1024] + b"\xff" * 9000) == "UTF-16LE"
    assert utf_16(b"\xff" * 1024 + TEXT.encode("utf-16-le") * 99) == ""
    for name, found in (("Собака" * 42, "UTF-16LE"), ("Собака" * 43, "")):  # of 512 characters
        assert utf_16((name + TEXT * 50).encode("utf-16-le")) == found


@pytest.mark.parametrize(
    ("block", "kind"),
    [
        (b"\x1f\x8b\x08", "gzip data"),
        (b"\xfd7zXZ\0", "xz data"),
        (b"BZh9", "bzip2 data"),
        (b"\x28\xb5\x2f\xfd\0", "Zstandard data"),
        (b"PK\x03\x04x", "a ZIP archive, such as a .docx or .odt file"),
        (b"%PDF-1", "a PDF file"),
        (b"\xff\xfeA\0", "UTF-16"),
        (b"\xfe\xff\0A", "UTF-16"),
        (b"x\x1f\x8b", ""),
        (b"", ""),
    ],
)
def test_the_first_bytes_tell_the_kind_of_a_file(block, kind):
    assert (kind_of(block) or ("",))[0] == kind


@pytest.mark.parametrize("suffix", [suffix for suffix in COMPRESS if suffix])
def test_compressed_data_is_recognised_and_its_suffix_named(suffix):
    kind = kind_of(COMPRESS[suffix](b"text"))
    assert kind is not None and f"add {suffix} to the name" in kind[1]


@pytest.mark.parametrize(
    ("suffixes", "advice"),
    [
        (".doc .docx .odt .pdf .rtf .epub .ppt .pptx .odp", OFFICE),
        (".sdlxliff .mqxliff .mqxlz .mxliff .txlf .ttx .txml .wsxz", TOOLS),
        (".txt .html .xlf .ts .xml", None),
    ],
)
def test_what_to_do_with_a_file_of_another_program(suffixes, advice):
    assert {UNREADABLE.get(suffix) for suffix in suffixes.split()} == {advice}
