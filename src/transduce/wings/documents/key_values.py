"""Reads Java's .properties files and Apple's .strings files."""

import json
import re
from functools import partial

from transduce.system.errors import UserError
from transduce.text.formats import DocumentFile
from transduce.text.plain import BYTE_ORDER_MARK
from transduce.wings.documents.document import decode
from transduce.wings.documents.keyed import KeyedFile, Message, joined_surrogates

ANY_LINE_END = r"(?:\r\n|\n|\r)"
# A comment, or a key and its value. A backslash at the end of a line continues the line.
PROPERTY = re.compile(
    rf"[ \t\f]*+(?:[#!][^\r\n]*+|(?P<key>(?:[^\\\r\n \t\f:=]|\\(?:{ANY_LINE_END}[ \t\f]*+|.|\Z))*+)"
    rf"[ \t\f]*+(?:[:=][ \t\f]*+)?(?P<value>(?:[^\\\r\n]|\\(?:{ANY_LINE_END}|.|\Z))*+))(?:{ANY_LINE_END}|\Z)"
)
# A text with such an argument is a pattern of Java's MessageFormat, in which an apostrophe is written twice.
MESSAGE_ARGUMENT = re.compile(r"\{\d+\s*[,}]")
# By codec: the characters of .properties files that are escaped.
NOT_IN = {"ascii": re.compile(r"[^\x00-\x7f]"), "iso-8859-1": re.compile(r"[^\x00-\xff]")}
APPLE_STRING = r'"(?:[^"\\]|\\[\s\S])*+"'
# Blanks and comments, or a key and its value.
APPLE_ENTRY = re.compile(
    rf"\s++|//[^\r\n]*+|/\*(?:[^*]|\*(?!/))*+\*/"
    rf"|(?P<key>{APPLE_STRING}|[\w.$/:-]++)(?:\s*+=\s*+(?P<value>{APPLE_STRING}))?+\s*+;"
)
ESCAPED_CHARACTER = re.compile(
    rf"\\(?:{ANY_LINE_END}[ \t\f]*+|[uU]+(?P<code>[0-9a-fA-F]{{4}})|(?P<sign>.)|\Z)"
)
CONTROL_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "f": "\f"}
WRITTEN_ESCAPES = str.maketrans(
    {"\\": "\\\\", **{sign: f"\\{letter}" for letter, sign in CONTROL_ESCAPES.items()}}
)


def read_properties(file: DocumentFile) -> KeyedFile:
    """The values of a .properties file, in UTF-8 or else in ISO-8859-1."""
    try:
        file.content.decode("utf-8")
        declared = None
    except UnicodeDecodeError:
        declared = "iso-8859-1"  # of Java before version 9
    content, codec = decode(file.content, file.name, declared)
    # Java reads escapes in either encoding.
    unwritable = NOT_IN.get("ascii" if content.isascii() else codec)
    messages = list[Message]()
    at = _begin(content)
    while at < len(content) and (entry := PROPERTY.match(content, at)):
        at = entry.end()
        if entry["value"]:
            text = _unescaped(entry["value"])
            is_pattern = MESSAGE_ARGUMENT.search(text) and "'" not in text.replace("''", "")
            write = partial(_property, unwritable, "''" if is_pattern else "'")
            text = text.replace("''", "'") if is_pattern else text
            messages.append(Message(entry["key"], text, *entry.span("value"), write))
    return KeyedFile(content, codec, messages)


def read_strings(file: DocumentFile) -> KeyedFile:
    """The values of a .strings file, in UTF-8 or UTF-16. Raises UserError for anything else than keys and values."""
    content, codec = decode(file.content, file.name)
    messages = list[Message]()
    at = _begin(content)
    while at < len(content):
        entry = APPLE_ENTRY.match(content, at)
        if entry is None:
            line = content.count("\n", 0, at) + 1
            raise UserError(
                f'{file.name}:{line}: expected a comment or "key" = "value"; found {content[at : at + 30]!r}.',
                "A property list can't be translated: translate the .strings file of the source code.",
            )
        at = entry.end()
        if value := entry["value"]:
            text = _unescaped(value[1:-1])
            messages.append(Message(entry["key"], text, *entry.span("value"), _string))
    return KeyedFile(content, codec, messages)


def _begin(content: str) -> int:
    return len(content) - len(content.removeprefix(BYTE_ORDER_MARK))


def _unescaped(value: str) -> str:
    return joined_surrogates(ESCAPED_CHARACTER.sub(_character, value))


def _character(escape: re.Match[str]) -> str:
    if escape["code"]:
        return chr(int(escape["code"], 16))
    sign = escape["sign"] or ""
    return CONTROL_ESCAPES.get(sign, sign)


def _property(unwritable: re.Pattern[str] | None, apostrophe: str, translation: str) -> str:
    """The value of a .properties file for a translation, in which blanks at the beginning don't count."""
    value = translation.replace("'", apostrophe).translate(WRITTEN_ESCAPES)
    value = f"\\{value}" if value.startswith(" ") else value
    # JSON has the same escapes.
    return unwritable.sub(lambda sign: json.dumps(sign[0])[1:-1], value) if unwritable else value


def _string(translation: str) -> str:
    escaped = translation.translate(WRITTEN_ESCAPES).replace('"', '\\"')
    return f'"{escaped}"'
