"""Converts the text formats of corpora to UTF-8 with one sentence per line.

text   plain text with one sentence per line
sgm    test sets of WMT and IWSLT with the tags <doc docid=…> and <seg id=…>
ted    training data of IWSLT, with lines of metadata between the lines of text
"""

import codecs
import hashlib
import re
from collections.abc import Iterator
from typing import IO, NamedTuple

from transduce.inline.events import ENTITY
from transduce.inline.markup import attribute, decoded
from transduce.system.errors import UserError

TEXT_BLOCK_BYTES = 1 << 20
MAX_SGM_BYTES = 1 << 26  # known test sets have a few million bytes
MAX_SENTENCE_BYTES = 1 << 26
SEGMENTS = re.compile(r"(<doc\b[^>]*>)|(<seg\b[^>]*>)(.*?)</seg\s*>", re.DOTALL | re.IGNORECASE)
TED_TAG = re.compile(rb"\s*</?(\w+)\b[^>]*>")
TED_TEXT = (b"title", b"description")
TED_METADATA = (b"url", b"keywords", b"speaker", b"talkid", b"reviewer", b"translator", b"doc")


class Written(NamedTuple):
    """Facts about a text that `write_text` converted."""

    lines: int
    repaired: int  # lines with bytes that are not UTF-8, replaced by U+FFFD
    segments: str  # a digest of the segments' ids, which must be the same on both sides; "": no ids


def write_text(stream: IO[bytes], file: IO[bytes], kind: str) -> Written:
    """Convert a stream of the format `kind` to plain text, and write the text to `file`."""
    if kind == "sgm":
        return _write_segments(stream, file)
    lines = repaired = 0
    for block in _blocks(stream):
        text, bad = _utf8(_talk(block) if kind == "ted" else block)
        file.write(text)
        lines += text.count(b"\n")
        repaired += bad
    return Written(lines, repaired, "")


def _talk(block: bytes) -> bytes:
    """The text of a block in the format "ted", with titles and descriptions but no other metadata."""
    lines = []
    for line in block.removesuffix(b"\n").split(b"\n"):
        match = TED_TAG.match(line)
        if not match or match[1] not in TED_METADATA:
            text = TED_TAG.sub(b"", line) if match and match[1] in TED_TEXT else line
            lines.append(text.strip() + b"\n")
    return b"".join(lines)


def _write_segments(stream: IO[bytes], file: IO[bytes]) -> Written:
    content = stream.read(MAX_SGM_BYTES + 1)
    if len(content) > MAX_SGM_BYTES:
        raise UserError(
            f"A test set in sgm format has more than {MAX_SGM_BYTES:,} bytes.", "Split it."
        )
    text, repaired = _utf8(content.removeprefix(codecs.BOM_UTF8))
    lines = 0
    document = ""
    names = hashlib.sha256()
    for opened, segment, inside in SEGMENTS.findall(text.decode()):
        if opened:
            document = attribute(opened, "docid") or ""
            continue
        names.update(f"{document}\t{attribute(segment, 'id') or ''}\n".encode())
        # An unknown entity is left unchanged.
        plain = ENTITY.sub(lambda match: decoded(match[0]) or match[0], inside)
        file.write(" ".join(plain.split()).encode() + b"\n")
        lines += 1
    return Written(lines, repaired, names.hexdigest())


def _blocks(stream: IO[bytes]) -> Iterator[bytes]:
    """Yield blocks of whole lines, with LF as line end and without a byte order mark."""
    rest = stream.read(len(codecs.BOM_UTF8)).removeprefix(codecs.BOM_UTF8)
    while block := stream.read(TEXT_BLOCK_BYTES):
        block = rest + block
        end = block.rfind(b"\n") + 1
        if end:
            yield block[:end].replace(b"\r\n", b"\n")
        rest = block[end:]
        if len(rest) > MAX_SENTENCE_BYTES:
            raise UserError(
                f"A line of the text has more than {MAX_SENTENCE_BYTES:,} bytes.",
                "Check its format in the table.",
            )
    if rest:
        yield (rest.removesuffix(b"\n") + b"\n").replace(b"\r\n", b"\n")


def _utf8(block: bytes) -> tuple[bytes, int]:
    """The block as valid UTF-8, and the number of lines in which invalid bytes were replaced."""
    try:
        block.decode()
    except UnicodeDecodeError:
        lines = block.split(b"\n")
        texts = [line.decode(errors="replace").encode() for line in lines]
        return b"\n".join(texts), sum(text != line for text, line in zip(texts, lines, strict=True))
    return block, 0
