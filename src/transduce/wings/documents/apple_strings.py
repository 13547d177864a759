"""Reads Apple's .strings files."""

import re
from collections.abc import Iterator

from transduce.system.errors import UserError
from transduce.text.formats import DocumentFile, TextPair
from transduce.text.plain import BYTE_ORDER_MARK
from transduce.wings.documents.document import Document, decode
from transduce.wings.documents.keyed import (
    KeyedFile,
    LineNumbers,
    Message,
    joined_surrogates,
    keyed_document,
    pairs_by_key,
)

APPLE_STRING = r'"(?:[^"\\]|\\[\s\S])*+"'
# Blanks and comments, or a key and its value.
APPLE_ENTRY = re.compile(
    rf"\s++|//[^\r\n]*+|/\*(?:[^*]|\*(?!/))*+\*/"
    rf"|(?P<key>{APPLE_STRING}|[\w.$/:-]++)(?:(?P<gap>\s*+=\s*+)(?P<value>{APPLE_STRING}))?+\s*+;"
)
APPLE_ESCAPE = re.compile(r"\\(?:U([0-9a-fA-F]{4})|([0-7]{1,3})|([\s\S]))")
APPLE_ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}
APPLE_ESCAPED = str.maketrans({"\\": "\\\\", '"': '\\"', "\r": "\\r", "\n": "\\n", "\t": "\\t"})


def read_strings(file: DocumentFile) -> Document:
    """The values, without the escapes of the file."""
    return keyed_document(file, _read(file))


def read_strings_pairs(source: str, target: str) -> Iterator[TextPair]:
    """Pairs of the values that have the same key in two files."""
    return pairs_by_key(source, target, _read)


def _read(file: DocumentFile) -> KeyedFile:
    if file.content.startswith((b"bplist", b"<?xml")):
        raise UserError(
            f"{file.name} is a property list.",
            "Convert it to a text file first, or translate the .strings file of the source code.",
        )
    content, codec = decode(file.content, file.name)
    return KeyedFile(content, codec, list(_messages(content, file.name)))


def _messages(content: str, name: str) -> Iterator[Message]:
    at = len(content) - len(content.removeprefix(BYTE_ORDER_MARK))
    lines = LineNumbers(content)
    while at < len(content):
        entry = APPLE_ENTRY.match(content, at)
        if entry is None:
            raise UserError(
                f'{name}:{lines.of(at)}: expected a comment or "key" = "value";, found '
                f"{content[at : at + 40].partition(chr(10))[0]!r}."
            )
        at = entry.end()
        if entry["value"]:
            text = _unescaped(entry["value"])
            line = lines.of(entry.start())
            yield Message(_unescaped(entry["key"]), text, line, *entry.span("value"), _quoted)


def _unescaped(string: str) -> str:
    inner = string[1:-1] if string.startswith('"') else string
    return joined_surrogates(APPLE_ESCAPE.sub(_character, inner))


def _character(escape: re.Match[str]) -> str:
    if escape[1] or escape[2]:
        return chr(int(escape[1], 16) if escape[1] else int(escape[2], 8))
    return APPLE_ESCAPES.get(escape[3], escape[3])


def _quoted(translation: str) -> str:
    return f'"{translation.translate(APPLE_ESCAPED)}"'
