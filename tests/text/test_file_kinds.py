"""Tests of transduce/text/file_kinds.py."""

import pytest

from transduce.text.file_kinds import MIN_ZEROS, kind_of, utf_16

TEXT = "A dog runs after a cat."


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (TEXT, True),
        (TEXT[: MIN_ZEROS + 1], True),
        (TEXT[:MIN_ZEROS], False),
        ("Собака бежит за кошкой.", False),
        ("A dog runs after a cat" + "–" * 22, False),  # half of it has high bytes
        ("A dog runs after a –––– cat.", True),
        ("A\0dog\0runs after a cat in a park", True),
        ("A\0dog\0runs\0after\0a\0cat", False),  # over a tenth of zeros among the letters
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
