"""Reads messages and their translations from gettext's .po files."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain

from transduce.inline.placeholders import intact
from transduce.system.errors import UserError
from transduce.text.formats import MESSAGE, CorpusFile, DocumentFile, TextPair
from transduce.text.plain import BYTE_ORDER_MARK, display_name, read_pieces
from transduce.wings.documents.document import (
    Document,
    Edit,
    Slot,
    check_language,
    decode,
    decode_pieces,
    spoken_language,
)
from transduce.wings.documents.icu import branched
from transduce.wings.documents.plurals import Plurals, has_plurals, plural_rule, plurals

HEADER_CHARSET = re.compile(rb'(?m)^(?:msgstr[ \t]+)?"Content-Type:[^"\n]*charset=([\w.:-]+)')
HEADER_LANGUAGE = re.compile(r"^(?:X-)?Language:[ \t]*([\w@-]+)", re.MULTILINE)  # X-Language: by Qt
CONTENT_TYPE = re.compile(r"^Content-Type:.*?charset=([\w.:-]+)", re.MULTILINE)
# Charsets of templates, and of files that msginit makes from templates.
OPEN_CHARSETS = (
    b"CHARSET",
    b"ASCII",
    b"US-ASCII",
)
# Messages of GNOME and KDE in whose place translators write their names.
CREDITS = (
    "translator-credits",
    "translator_credits",
    "_: NAME OF TRANSLATORS\nYour names",
    "_: EMAIL OF TRANSLATORS\nYour emails",
    "CREDIT_FOR_TRANSLATORS",
    "ROLES_OF_TRANSLATORS",
)
CREDIT_CONTEXTS = ("NAME OF TRANSLATORS", "EMAIL OF TRANSLATORS")
STRING_LINE = re.compile(
    r"[ \t]*(?:(?P<keyword>msgctxt|msgid_plural|msgid|msgstr)(?:\[(?P<number>\d{1,2})\])?[ \t]*)?"
    r'(?P<quoted>"[^"\\\r\n]*+(?:\\.[^"\\\r\n]*+)*+")[ \t]*'
)
ESCAPE = re.compile(r"\\(?:([0-7]{1,3})|x([0-9a-fA-F]{1,2})|(.))")
ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}
ESCAPED = str.maketrans(
    {
        "\\": "\\\\",
        '"': '\\"',
        **{character: f"\\{letter}" for letter, character in ESCAPES.items()},
    }
)
HEADER_BYTES = 1 << 16
MAX_STRING_CHARACTERS = 10_000_000  # limit for one line, and for one string over several lines
LINE_WIDTH = 79  # characters, as in gettext


@dataclass
class _String:
    """The lines of a string in a message, and the string's span in the file, including the quotes."""

    parts: list[str]
    begin: int
    end: int

    @property
    def value(self) -> str:
        return "".join(self.parts)


@dataclass
class _Message:
    line: int = 0
    begin: int = 0  # where the message's first line after comments and flags begins
    flags: int | None = None  # where the first line of flags begins
    is_fuzzy: bool = False
    # Strings by keyword: msgid, msgid_plural, msgctxt.
    strings: dict[str, _String] = field(default_factory=dict)
    # Translations by index of the plural form; the index is 0 without a plural.
    translations: dict[int, _String] = field(default_factory=dict)


def read_po(file: DocumentFile) -> Document:
    """The untranslated messages, or all messages if `file.redo` is true, except for fuzzy and obsolete messages.

    Raises UserError for a malformed line.
    """
    text, codec = decode(file.content, file.name, _declared(file.content))
    newline = "\r\n" if "\r\n" in text else "\n"
    messages = list(_messages(text.split("\n"), file.name))
    translatable = _translatable(messages, file.name, file.target)
    slots = (_slots(message, forms, newline, file) for message, forms in translatable)
    in_order = (sorted(of_message, key=lambda slot: slot.begin) for of_message in slots)
    in_file = tuple(chain.from_iterable(in_order))
    completions = _completions(text, messages, file, codec, newline)
    return Document(file.name, text, codec, in_file, tuple(completions))


def read_po_pairs(file: CorpusFile) -> Iterator[TextPair]:
    """Pairs of a message and its translation."""
    pieces = read_pieces(file.path)
    name = display_name(file.path)
    return read_translated_po(pieces, name, file.languages[1], lenient=file.lenient)


def read_translated_po(
    pieces: Iterable[bytes], name: str, language: str, *, lenient: bool = False
) -> Iterator[TextPair]:
    """Yield pairs of a message and its translation from a file that arrives in chunks."""
    texts = decode_pieces(pieces, name, _declared, HEADER_BYTES, lenient=lenient)
    for message, forms in _translatable(_messages(_lines(texts, name), name), name, language):
        if all(string.value for string in message.translations.values()):
            yield from _pairs(message, forms)


def _is_header(message: _Message) -> bool:
    return not message.strings["msgid"].value and "msgctxt" not in message.strings


def _completions(
    text: str, messages: Sequence[_Message], file: DocumentFile, codec: str, newline: str
) -> Iterator[Edit]:
    """The edits that complete the header of a template, and remove the header's flag "fuzzy"."""
    message = next(filter(_is_header, messages), _Message())
    string = message.translations.get(0, _String([], 0, 0))
    fields = _missing_fields(string.value, messages, file, codec)
    if not message.line:
        begin = len(text) - len(text.removeprefix(BYTE_ORDER_MARK))
        quoted = _with_fields('""', "", fields, newline)
        yield Edit(begin, begin, f'msgid ""{newline}msgstr {quoted}{newline}{newline}')
    elif fields:
        quoted = _with_fields(text[string.begin : string.end], string.value, fields, newline)
        yield Edit(string.begin, string.end, quoted)
    if message.is_fuzzy and message.flags is not None:
        lines = re.findall(r"[^\n]*\n|[^\n]+", text[message.flags : message.begin])
        others = "".join(map(_without_fuzzy, lines))
        yield Edit(message.flags, message.begin, others)
    if "Plural-Forms" in fields:
        number = plurals(fields["Plural-Forms"], file.target, file.name).number
        for message in messages:
            for string in [each for i, each in message.translations.items() if i >= number]:
                if not string.value:
                    end = text.find("\n", string.end) + 1 or len(text)
                    yield Edit(text.rindex("\n", 0, string.begin) + 1, end, "")


def _missing_fields(
    header: str, messages: Sequence[_Message], file: DocumentFile, codec: str
) -> dict[str, str]:
    """The fields of a template's header that are missing or have no value yet, with their values."""
    fields = dict[str, str]()
    if not header.strip():
        fields["MIME-Version"] = "1.0"
    declared = CONTENT_TYPE.search(header)
    if codec == "utf-8" and (not declared or declared[1].upper().encode() in OPEN_CHARSETS):
        fields["Content-Type"] = "text/plain; charset=UTF-8"  # translations may be in any script
    if not header.strip() or "Content-Transfer-Encoding: ENCODING" in header:
        fields["Content-Transfer-Encoding"] = "8bit"
    if spoken_language(file.target) and not HEADER_LANGUAGE.search(header):
        fields["Language"] = file.target.replace("-", "_")
    needs_rule = any("msgid_plural" in message.strings for message in messages)
    if not has_plurals(header) and (needs_rule or "Plural-Forms:" in header):
        fields["Plural-Forms"] = plural_rule(file.target, file.name)
    return fields


def _with_fields(quoted: str, header: str, fields: dict[str, str], newline: str) -> str:
    """The string of a header in which `fields` replace fields of the same names, or are added at the end.

    `quoted` is the present string, and `header` its value. The lines of other fields are not changed if possible.
    """
    for name, value in fields.items():
        field = f"{name}: {value}"
        if re.search(f"(?m)^{name}:", header):
            header = re.sub(f"(?m)^{name}:.*$", field, header, count=1)
            in_line = rf'(?<=["n]){name}:[^"\\]*(?=\\n|")'
            quoted = re.sub(in_line, field, quoted, count=1)
            continue
        if header and not header.endswith("\n"):
            header += "\n"
            quoted = f'{quoted[:-1]}\\n"'
        header += f"{field}\n"
        quoted += f'{newline}"{field}\\n"'
    lines = filter(None, map(STRING_LINE.fullmatch, quoted.split(newline)))
    written = "".join(ESCAPE.sub(_character, line["quoted"][1:-1]) for line in lines)
    return quoted if written == header else _quote(header, len("msgstr "), newline)


def _without_fuzzy(line: str) -> str:
    """A comment without the flag "fuzzy"; empty if it has no other flag."""
    flags = re.split(r"[,\s]+", line[2:].strip()) if line.startswith("#,") else []
    if "fuzzy" not in flags:
        return line
    others = ", ".join(flag for flag in flags if flag not in ("", "fuzzy"))
    end = line[len(line.rstrip("\r\n")) :]
    return f"#, {others}{end}" if others else ""


def _declared(content: bytes) -> str | None:
    match = HEADER_CHARSET.search(content, 0, HEADER_BYTES)
    return match[1].decode() if match and match[1].upper() not in OPEN_CHARSETS else None


def _lines(texts: Iterable[str], name: str) -> Iterator[str]:
    rest = ""
    number = 1
    for text in texts:
        *lines, rest = (rest + text).split("\n")
        yield from lines
        number += len(lines)
        if len(rest) > MAX_STRING_CHARACTERS:
            raise UserError(
                f"{name}:{number}: the line has more than {MAX_STRING_CHARACTERS:,} characters."
            )
    yield rest


def _translatable(
    messages: Iterable[_Message], name: str, language: str
) -> Iterator[tuple[_Message, Plurals]]:
    """The messages that are not fuzzy, each with its translation's plural forms."""
    header = ""
    for message in messages:
        if _is_header(message):
            header = message.translations[0].value
            declared = HEADER_LANGUAGE.search(header)
            check_language(name, "into", declared[1] if declared else "", language)
        elif not message.is_fuzzy:
            yield (
                message,
                plurals(header, language, name)
                if "msgid_plural" in message.strings
                else Plurals(1, 0),
            )


def _messages(lines: Iterable[str], name: str) -> Iterator[_Message]:
    message = _Message()
    string = None
    line_begin = 0
    for number, line in enumerate(lines, 1):
        line_begin += line.startswith("\ufeff")
        line = line.removeprefix("\ufeff")
        if match := STRING_LINE.fullmatch(line.rstrip("\r")):
            begin, end = (line_begin + edge for edge in match.span("quoted"))
            if match["keyword"]:
                if match["keyword"] != "msgstr" and message.translations:
                    yield _complete(message, name)
                    message = _Message()
                if not message.line:
                    message.line = number
                    message.begin = message.begin or line_begin
                string = _begin_string(message, match, begin, f"{name}:{number}")
            if string is None:
                raise UserError(
                    f"{name}:{number}: this line continues a string, but no string begins before it."
                )
            string.parts.append(ESCAPE.sub(_character, match["quoted"][1:-1]))
            string.end = end
            if end - string.begin > MAX_STRING_CHARACTERS:
                raise UserError(
                    f"{name}:{message.line}: a string has more than {MAX_STRING_CHARACTERS:,} characters."
                )
        elif line.strip():  # a blank line does not end a message
            if not line.lstrip().startswith("#"):
                raise UserError(
                    f'{name}:{number}: expected a comment, or msgid or msgstr with a "string", found '
                    f"{line.strip()[:40]!r}."
                )
            if message.line:
                yield _complete(message, name)
                message = _Message()
            is_flag = line.startswith("#,") and "fuzzy" in re.split(r"[,\s]+", line[2:])
            if line.startswith("#,") and message.flags is None:
                message.flags = line_begin
            if line.startswith("#|"):
                message.begin = message.begin or line_begin
            # An obsolete message.
            message.is_fuzzy = (message.is_fuzzy or is_flag) and not line.startswith("#~")
            string = None
        line_begin += len(line) + 1
    if message.line:
        yield _complete(message, name)


def _begin_string(message: _Message, match: re.Match[str], begin: int, place: str) -> _String:
    """Begin a string of a message; raises UserError for a repeated keyword such as msgid."""
    string = _String([], begin, begin)
    number = int(match["number"] or 0)
    if match["keyword"] == "msgstr":
        if "msgid_plural" in message.strings and not match["number"]:
            raise UserError(
                f"{place}: this message has a msgid_plural, so its translation can't be a mere msgstr.",
                "Number its translations from 'msgstr[0]'.",
            )
        kept = message.translations.setdefault(number, string)
    else:
        kept = message.strings.setdefault(match["keyword"], string)
    if kept is not string:
        raise UserError(
            f"{place}: this message has two {match['keyword']}.",
            "Move one of the two to the message that it belongs to, or remove it.",
        )
    return string


def _complete(message: _Message, name: str) -> _Message:
    if "msgid" not in message.strings or 0 not in message.translations:
        missing = "msgid" if "msgid" not in message.strings else "msgstr"
        raise UserError(
            f"{name}:{message.line}: this message has no {missing}. The file is damaged or cut short."
        )
    return message


def _slots(message: _Message, forms: Plurals, newline: str, file: DocumentFile) -> Iterator[Slot]:
    """The slots for a message's untranslated plural forms, or for all its forms if `file.redo` is true."""
    if "msgctxt" in message.strings and message.strings["msgctxt"].value in CREDIT_CONTEXTS:
        return
    marks = [_fuzzy_mark(message, newline)] if file.needs_review else []
    last = max(string.end for string in message.translations.values())
    one = message.strings["msgid"].value
    many = message.strings.get("msgid_plural", message.strings["msgid"]).value
    # Otherwise, "One file" would also be shown for 21 files.
    uses_one = forms.is_singular or intact(one, many, MESSAGE)
    for number in range(forms.number):
        text = one if number == forms.singular and uses_one else many
        string = message.translations.get(number)
        if not text.strip() or text in CREDITS or (string and string.value and not file.redo):
            continue
        keyword = f"msgstr[{number}] " if "msgid_plural" in message.strings else "msgstr "
        before = "" if string else newline + keyword

        def write(translation: str, keyword_width: int = len(keyword), before: str = before) -> str:
            return before + _quote(translation, keyword_width, newline)

        begin, end = (string.begin, string.end) if string else (last, last)
        present = string.value if string else ""
        branches = branched(text, file.target)
        yield Slot(
            text,
            present,
            message.line,
            begin,
            end,
            write,
            MESSAGE,
            branched=branches,
            marks=tuple(marks),
        )


def _fuzzy_mark(message: _Message, newline: str) -> Edit:
    """The edit that adds the flag "fuzzy" before a message's other flags, as gettext does."""
    if message.flags is None:
        return Edit(message.begin, message.begin, f"#, fuzzy{newline}")
    begin = message.flags + len("#,")
    return Edit(begin, begin, " fuzzy,")


def _pairs(message: _Message, forms: Plurals) -> Iterator[TextPair]:
    """Yield a message's pair, or up to two pairs for a message with plural forms."""
    translations = message.translations
    if "msgid_plural" not in message.strings:
        yield message.strings["msgid"].value, translations[0].value, message.line
        return
    if forms.singular in translations and forms.singular is not None:
        yield message.strings["msgid"].value, translations[forms.singular].value, message.line
    if others := [number for number in translations if number != forms.singular]:
        yield message.strings["msgid_plural"].value, translations[max(others)].value, message.line


def _character(escape: re.Match[str]) -> str:
    if escape[1] or escape[2]:
        return chr(int(escape[1], 8) if escape[1] else int(escape[2], 16))
    return ESCAPES.get(escape[3], escape[3])


def _quote(text: str, keyword_width: int, newline: str) -> str:
    """Quote a text as gettext does, wrapped at LINE_WIDTH characters."""
    lines = [line.translate(ESCAPED) for line in re.findall(r"[^\n]*\n|[^\n]+", text)]
    if len(lines) < 2 and keyword_width + sum(map(len, lines)) + 2 <= LINE_WIDTH:
        return f'"{"".join(lines)}"'
    parts = [""]
    for line in lines:
        parts.append("")
        for word in re.findall(r"\S*\s*", line):
            if parts[-1] and len(parts[-1]) + len(word) + 2 > LINE_WIDTH:
                parts.append("")
            parts[-1] += word
    return newline.join(f'"{part}"' for part in parts)
