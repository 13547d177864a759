"""Writers for the formats of corpora; all write UTF-8 with one sentence a line.

text   one sentence a line already
sgm    <doc docid=…> <seg id=…> of the WMT and IWSLT test sets; neither quite SGML nor quite XML
ted    IWSLT's training data: lines of text among lines of metadata, of which titles and descriptions are text
"""

import codecs
import hashlib
import re
from collections.abc import Callable, Iterator
from typing import IO, NamedTuple

from transduce.system.errors import UserError

TEXT_BLOCK_BYTES = 1 << 20
MAX_SGM_BYTES = 1 << 26  # known test sets have a few million
MAX_SENTENCE_BYTES = 1 << 26
SEGMENTS = re.compile(r"<doc\b([^>]*)>|<seg\b([^>]*)>(.*?)</seg\s*>", re.DOTALL | re.IGNORECASE)
SGM_ATTRIBUTE = r"""\b{}\s*=\s*["']?([^"'\s>]*)"""
DOCUMENT_ID, SEGMENT_ID = (re.compile(SGM_ATTRIBUTE.format(name), re.IGNORECASE) for name in ("docid", "id"))
REFERENCE = re.compile(r"&(?:#(\d{1,7})|#[xX]([0-9a-fA-F]{1,6})|(lt|gt|amp|quot|apos));")
NAMED_CHARACTERS = {"lt": "<", "gt": ">", "amp": "&", "quot": '"', "apos": "'"}
TED_TAG = re.compile(rb"\s*</?(\w+)\b[^>]*>")
TED_TEXT = (b"title", b"description")
TED_METADATA = (b"url", b"keywords", b"speaker", b"talkid", b"reviewer", b"translator", b"doc")


class Written(NamedTuple):
    """The text of one side."""

    lines: int
    repaired: int  # lines with bytes that are not UTF-8, replaced by U+FFFD
    segments: str  # a digest of the segments' names, which must be the same on both sides; "": no names


def write_text(stream: IO[bytes], file: IO[bytes], kind: str) -> Written:
    """Write the text of a stream in the format `kind`."""
    return WRITERS[kind](stream, file)


def _write_lines(stream: IO[bytes], file: IO[bytes]) -> Written:
    lines = repaired = 0
    for block in _blocks(stream):
        text, bad = _utf8(block)
        file.write(text)
        lines += text.count(b"\n")
        repaired += bad
    return Written(lines, repaired, "")


def _write_ted(stream: IO[bytes], file: IO[bytes]) -> Written:
    lines = repaired = 0
    for block in _blocks(stream):
        for line in block.removesuffix(b"\n").split(b"\n"):
            match = TED_TAG.match(line)
            if match and match[1] in TED_METADATA:
                continue
            text, bad = _utf8(TED_TAG.sub(b"", line) if match and match[1] in TED_TEXT else line)
            file.write(text.strip() + b"\n")
            lines += 1
            repaired += bad
    return Written(lines, repaired, "")


def _write_sgm(stream: IO[bytes], file: IO[bytes]) -> Written:
    content = stream.read(MAX_SGM_BYTES + 1)
    if len(content) > MAX_SGM_BYTES:
        raise UserError(f"A test set in sgm format has more than {MAX_SGM_BYTES:,} bytes. Split it.")
    text, repaired = _utf8(content.removeprefix(codecs.BOM_UTF8))
    lines, document, names = 0, "", hashlib.sha256()
    for match in SEGMENTS.finditer(text.decode()):
        if match[1] is not None:
            document = _attribute(DOCUMENT_ID, match[1])
            continue
        names.update(f"{document}\t{_attribute(SEGMENT_ID, match[2])}\n".encode())
        file.write(" ".join(REFERENCE.sub(_character, match[3]).split()).encode() + b"\n")
        lines += 1
    return Written(lines, repaired, names.hexdigest())


WRITERS: dict[str, Callable[[IO[bytes], IO[bytes]], Written]] = {
    "text": _write_lines,
    "sgm": _write_sgm,
    "ted": _write_ted,
}


def _blocks(stream: IO[bytes]) -> Iterator[bytes]:
    """Blocks of whole lines with plain line feeds, without the byte order mark."""
    rest = stream.read(len(codecs.BOM_UTF8)).removeprefix(codecs.BOM_UTF8)
    while block := stream.read(TEXT_BLOCK_BYTES):
        block = rest + block
        end = block.rfind(b"\n") + 1
        if end:
            yield block[:end].replace(b"\r\n", b"\n")
        rest = block[end:]
        if len(rest) > MAX_SENTENCE_BYTES:
            raise UserError(f"A line of the text has more than {MAX_SENTENCE_BYTES:,} bytes. Is its format right?")
    if rest:
        yield (rest.removesuffix(b"\n") + b"\n").replace(b"\r\n", b"\n")


def _utf8(block: bytes) -> tuple[bytes, int]:
    """The block as valid UTF-8, and how many lines had to be changed for it."""
    try:
        block.decode()
    except UnicodeDecodeError:
        lines = block.split(b"\n")
        texts = [line.decode(errors="replace").encode() for line in lines]
        return b"\n".join(texts), sum(text != line for text, line in zip(texts, lines, strict=True))
    return block, 0


def _attribute(pattern: re.Pattern[str], attributes: str) -> str:
    match = pattern.search(attributes)
    return match[1] if match else ""


def _character(match: re.Match[str]) -> str:
    """The character of a reference; an invalid reference stays as it is."""
    if match[3]:
        return NAMED_CHARACTERS[match[3]]
    number = int(match[1] or match[2], 10 if match[1] else 16)
    return chr(number) if 32 <= number < 0xD800 or 0xE000 <= number < 0x110000 else match[0]
