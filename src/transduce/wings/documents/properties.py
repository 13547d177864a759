"""Reads Java's .properties files, in UTF-8 or ISO-8859-1."""

import json
import re
from collections.abc import Iterator

from transduce.text.formats import DocumentFile, TextPair
from transduce.text.plain import BYTE_ORDER_MARK
from transduce.wings.documents.document import Document, decode
from transduce.wings.documents.keyed import (
    KeyedFile,
    Message,
    joined_surrogates,
    keyed_document,
    pairs_by_key,
)

ANY_LINE_END = r"(?:\r\n|\n|\r)"
# A comment, or a key and its value. A backslash at the end of a line continues the line.
ENTRY = re.compile(
    rf"[ \t\f]*+(?:[#!][^\r\n]*+|(?P<key>(?:[^\\\r\n \t\f:=]|\\(?:{ANY_LINE_END}[ \t\f]*+|.|\Z))*+)"
    rf"[ \t\f]*+(?:[:=][ \t\f]*+)?(?P<value>(?:[^\\\r\n]|\\(?:{ANY_LINE_END}|.|\Z))*+))(?:{ANY_LINE_END}|\Z)"
)
PROPERTY_ESCAPE = re.compile(rf"\\(?:{ANY_LINE_END}[ \t\f]*+|u+([0-9a-fA-F]{{4}})|(.)|\Z)")
PROPERTY_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "f": "\f"}
PROPERTY_ESCAPED = str.maketrans(
    {"\\": "\\\\", **{sign: f"\\{letter}" for letter, sign in PROPERTY_ESCAPES.items()}}
)
# By codec: the characters that are escaped.
NOT_IN = {"ascii": re.compile(r"[^\x00-\x7f]"), "iso-8859-1": re.compile(r"[^\x00-\xff]")}
NOTHING_ESCAPED = re.compile(r"(?!)")
# A text with such an argument is a pattern of Java's MessageFormat, in which an apostrophe is written twice.
MESSAGE_ARGUMENT = re.compile(r"\{\d+\s*[,}]")


def read_properties(file: DocumentFile) -> Document:
    """The values, without the escapes of the file."""
    return keyed_document(file, _read(file))


def read_property_pairs(source: str, target: str) -> Iterator[TextPair]:
    """Pairs of the values that have the same key in two files."""
    return pairs_by_key(source, target, _read)


def _read(file: DocumentFile) -> KeyedFile:
    try:
        file.content.decode("utf-8")
    except UnicodeDecodeError:
        content, codec = decode(file.content, file.name, "iso-8859-1")  # of Java before version 9
    else:
        content, codec = decode(file.content, file.name)
    # Escapes are read in either encoding.
    written = "ascii" if content.isascii() else codec
    return KeyedFile(content, codec, list(_messages(content, written)))


def _messages(content: str, written: str) -> Iterator[Message]:
    at = len(content) - len(content.removeprefix(BYTE_ORDER_MARK))
    line = 1
    while at < len(content) and (entry := ENTRY.match(content, at)):
        at = entry.end()
        if entry["key"] is not None:
            text = _unescaped(entry["value"])
            pattern = MESSAGE_ARGUMENT.search(text) and "'" not in text.replace("''", "")

            def write(translation: str, is_pattern: bool = bool(pattern)) -> str:
                return _escaped(
                    translation.replace("'", "''") if is_pattern else translation, written
                )

            yield Message(
                _unescaped(entry["key"]),
                text.replace("''", "'") if pattern else text,
                line,
                *entry.span("value"),
                write,
            )
        line += len(re.findall(ANY_LINE_END, entry.group()))


def _unescaped(value: str) -> str:
    return joined_surrogates(PROPERTY_ESCAPE.sub(_character, value))


def _character(escape: re.Match[str]) -> str:
    if escape[1]:
        return chr(int(escape[1], 16))
    return PROPERTY_ESCAPES.get(escape[2], escape[2]) if escape[2] else ""


def _escaped(text: str, codec: str) -> str:
    escaped = text.translate(PROPERTY_ESCAPED)
    if escaped.startswith(" "):
        escaped = f"\\{escaped}"  # blanks behind the separator don't count
    # JSON has the same escapes.
    return NOT_IN.get(codec, NOTHING_ESCAPED).sub(lambda sign: json.dumps(sign[0])[1:-1], escaped)
