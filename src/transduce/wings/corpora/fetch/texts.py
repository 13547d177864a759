"""What corpora come as, made plain: UTF-8, a line for a sentence.

text   a line for a sentence already
sgm    <doc docid=…> <seg id=…> of the WMT and IWSLT test sets; not quite SGML, and not quite XML
ted    lines of IWSLT's training data, with lines about the talks in between: titles and descriptions are text
"""

import hashlib
import re
from collections.abc import Callable, Iterator
from typing import IO, NamedTuple

from transduce.system.errors import UserError

BLOCK = 1 << 20
LARGEST_SGM = 1 << 26  # bytes; the largest known has a few million
LONGEST_LINE = 1 << 26  # bytes
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
SEGMENTS = re.compile(r"<doc\b([^>]*)>|<seg\b([^>]*)>(.*?)</seg\s*>", re.DOTALL | re.IGNORECASE)
ATTRIBUTE = r"""\b{}\s*=\s*["']?([^"'\s>]*)"""
DOCUMENT, SEGMENT = (re.compile(ATTRIBUTE.format(name), re.IGNORECASE) for name in ("docid", "id"))
REFERENCE = re.compile(r"&(?:#(\d{1,7})|#[xX]([0-9a-fA-F]{1,6})|(lt|gt|amp|quot|apos));")
CHARACTERS = {"lt": "<", "gt": ">", "amp": "&", "quot": '"', "apos": "'"}
TAGGED = re.compile(rb"\s*</?(\w+)\b[^>]*>")
KEPT = (b"title", b"description")
DROPPED = (b"url", b"keywords", b"speaker", b"talkid", b"reviewer", b"translator", b"doc")


class Written(NamedTuple):
    """What was written of one side."""

    lines: int
    repaired: int  # lines with bytes that are not UTF-8, which became U+FFFD
    names: str  # a digest of the segments' names, if they have any: the sides must have the same


def write_text(stream: IO[bytes], file: IO[bytes], kind: str) -> Written:
    """Write the text of a stream of this kind, line by line."""
    return WRITERS[kind](stream, file)


def _write_lines(stream: IO[bytes], file: IO[bytes]) -> Written:
    lines = repaired = 0
    for block in _blocks(stream):
        block, bad = _utf8(block)
        lines += block.count(b"\n")
        repaired += bad
        file.write(block)
    return Written(lines, repaired, "")


def _write_ted(stream: IO[bytes], file: IO[bytes]) -> Written:
    lines = repaired = 0
    for block in _blocks(stream):
        for line in block.removesuffix(b"\n").split(b"\n"):
            match = TAGGED.match(line)
            if match and match[1] in DROPPED:
                continue
            text, bad = _utf8(TAGGED.sub(b"", line) if match and match[1] in KEPT else line)
            file.write(text.strip() + b"\n")
            lines += 1
            repaired += bad
    return Written(lines, repaired, "")


def _write_sgm(stream: IO[bytes], file: IO[bytes]) -> Written:
    content = stream.read(LARGEST_SGM + 1)
    if len(content) > LARGEST_SGM:
        raise UserError(f"A test set of more than {LARGEST_SGM:,} bytes is not read.")
    text, repaired = _utf8(content.removeprefix(BYTE_ORDER_MARK))
    lines, document, names = 0, "", hashlib.sha256()
    for match in SEGMENTS.finditer(text.decode()):
        if match[1] is not None:
            document = _attribute(DOCUMENT, match[1])
            continue
        names.update(f"{document}\t{_attribute(SEGMENT, match[2])}\n".encode())
        file.write(" ".join(REFERENCE.sub(_character, match[3]).split()).encode() + b"\n")
        lines += 1
    return Written(lines, repaired, names.hexdigest())


WRITERS: dict[str, Callable[[IO[bytes], IO[bytes]], Written]] = {
    "text": _write_lines,
    "sgm": _write_sgm,
    "ted": _write_ted,
}


def _blocks(stream: IO[bytes]) -> Iterator[bytes]:
    """Blocks of whole lines that end in a line feed alone; a byte order mark goes."""
    rest = stream.read(len(BYTE_ORDER_MARK)).removeprefix(BYTE_ORDER_MARK)
    while block := stream.read(BLOCK):
        block = rest + block
        end = block.rfind(b"\n") + 1
        if end:
            yield block[:end].replace(b"\r\n", b"\n")
        rest = block[end:]
        if len(rest) > LONGEST_LINE:
            raise UserError(f"A line of more than {LONGEST_LINE:,} bytes is no sentence; the text is refused.")
    if rest:
        yield (rest.removesuffix(b"\n") + b"\n").replace(b"\r\n", b"\n")


def _utf8(block: bytes) -> tuple[bytes, int]:
    """The same as UTF-8, and how many lines weren't."""
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
    """What a reference stands for; what stands for nothing stays as it is."""
    if match[3]:
        return CHARACTERS[match[3]]
    number = int(match[1] or match[2], 10 if match[1] else 16)
    return chr(number) if 32 <= number < 0xD800 or 0xE000 <= number < 0x110000 else match[0]
