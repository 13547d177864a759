"""gettext's .po files: messages with their translations, as programs and documentation have them.

Read line by line, so that each translation's place is known; what is written is wrapped as gettext does it.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain

from transduce.system.errors import UserError
from transduce.wings.documents.document import Document, Known, Slot, check_language, decode, decoded
from transduce.wings.documents.plurals import Plurals, plurals

CHARSET = re.compile(rb'(?m)^(?:msgstr[ \t]+)?"Content-Type:[^"\n]*charset=([\w.:-]+)')
LANGUAGE = re.compile(r"^Language:[ \t]*([\w@-]*)", re.MULTILINE)
TEMPLATE = b"CHARSET"  # stands in templates, where nothing else than ASCII is expected
LINE = re.compile(
    r"[ \t]*(?:(?P<word>msgctxt|msgid_plural|msgid|msgstr)(?:\[(?P<number>\d{1,2})\])?[ \t]*)?"
    r'(?P<quoted>"[^"\\\r\n]*+(?:\\.[^"\\\r\n]*+)*+")[ \t]*'
)
ESCAPE = re.compile(r"\\(?:([0-7]{1,3})|x([0-9a-fA-F]{1,2})|(.))")
ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}
WRITTEN = str.maketrans(
    {"\\": "\\\\", '"': '\\"', **{character: f"\\{letter}" for letter, character in ESCAPES.items()}}
)
HEAD = 1 << 16  # bytes that the header is in
LONGEST = 10_000_000  # characters of a line, and of a string of many
WIDTH = 79  # of a line, as gettext wraps them


@dataclass
class _String:
    """A string of a message: what its lines say, and where it stands with its quotes."""

    parts: list[str]
    begin: int
    end: int

    @property
    def value(self) -> str:
        return "".join(self.parts)


@dataclass
class _Message:
    """A message while it is read."""

    line: int = 0
    fuzzy: bool = False
    strings: dict[str, _String] = field(default_factory=dict)  # by keyword: msgid, msgid_plural, msgctxt
    translations: dict[int, _String] = field(default_factory=dict)  # by number; 0 where there is no plural


def read_po(content: bytes, name: str, language: str, *, redo: bool = False) -> Document:
    """The messages without a translation, or all with `redo`; fuzzy and obsolete ones are left alone.

    Of a plural, each form that the language has is a text: made of the singular for one thing, else of the plural.
    Raises UserError that names the line that can't be read.
    """
    text, codec = decode(content, name, _declared(content))
    newline = "\r\n" if "\r\n" in text else "\n"
    entries = _entries(text.split("\n"), name, language)
    slots = (_slots(message, forms, newline, redo=redo) for message, forms in entries)
    in_order = (sorted(each, key=lambda slot: slot.begin) for each in slots)
    return Document(name, text, codec, tuple(chain.from_iterable(in_order)))


def read_translated_po(pieces: Iterable[bytes], name: str, language: str, *, lenient: bool = False) -> Iterator[Known]:
    """The messages with a translation, of a file that comes in pieces; raises UserError as `read_po` does.

    lenient: bytes that can't be read are given, too; see `undecoded`.
    """
    texts = decoded(pieces, name, _declared, HEAD, lenient=lenient)
    for message, forms in _entries(_lines(texts, name), name, language):
        if all(string.value for string in message.translations.values()):
            yield from _known(message, forms)


def _declared(content: bytes) -> str | None:
    found = CHARSET.search(content, 0, HEAD)
    return found[1].decode() if found and found[1] != TEMPLATE else None


def _lines(texts: Iterable[str], name: str) -> Iterator[str]:
    rest = ""
    for text in texts:
        *lines, rest = (rest + text).split("\n")
        yield from lines
        if len(rest) > LONGEST:
            raise UserError(f"{name} has a line of more than {LONGEST:,} characters, as no .po file has.")
    yield rest


def _entries(lines: Iterable[str], name: str, language: str) -> Iterator[tuple[_Message, Plurals]]:
    """The messages that are not fuzzy, with the forms that each has; the header decides them."""
    header = ""
    for message in _messages(lines, name):
        if not message.strings["msgid"].value and "msgctxt" not in message.strings:
            header = message.translations[0].value
            declared = LANGUAGE.search(header)
            check_language(name, "into", declared[1] if declared else "", language)
        elif not message.fuzzy:
            yield message, plurals(header, language) if "msgid_plural" in message.strings else Plurals(1, 0)


def _messages(lines: Iterable[str], name: str) -> Iterator[_Message]:
    message, string, at = _Message(), None, 0
    for number, line in enumerate(lines, 1):
        at += line.startswith("\ufeff")
        line = line.removeprefix("\ufeff")
        if found := LINE.fullmatch(line.rstrip("\r")):
            begin, end = (at + edge for edge in found.span("quoted"))
            if found["word"]:
                if found["word"] != "msgstr" and message.translations:
                    yield _whole(message, name)
                    message = _Message()
                message.line = message.line or number
                string = _begun(message, found, begin, f"{name}, line {number}")
            if string is None:
                raise UserError(f"{name}, line {number} continues a string, but none begins before it.")
            string.parts.append(_unescaped(found["quoted"]))
            string.end = end
            if end - string.begin > LONGEST:
                raise UserError(f"{name}, line {message.line}: a string has more than {LONGEST:,} characters.")
        elif line.strip():  # a blank line ends nothing
            if not line.lstrip().startswith("#"):
                raise UserError(
                    f"{name}, line {number}: {line.strip()[:40]!r} is no line of a .po file: a comment, or msgid or "
                    'msgstr with a "string", is expected.'
                )
            if message.line:
                yield _whole(message, name)
                message = _Message()
            message.fuzzy |= line.startswith("#,") and "fuzzy" in re.split(r"[,\s]+", line[2:])
            string = None
        at += len(line) + 1
    if message.line:
        yield _whole(message, name)


def _begun(message: _Message, found: re.Match[str], begin: int, place: str) -> _String:
    """A string that begins, put into the message, which can't have it yet."""
    string, number = _String([], begin, begin), int(found["number"] or 0)
    if found["word"] == "msgstr":
        kept = message.translations.setdefault(number, string)
    else:
        kept = message.strings.setdefault(found["word"], string)
    if kept is not string:
        raise UserError(f"{place}: this message has its {found['word']} twice; one of them belongs to another message.")
    return string


def _whole(message: _Message, name: str) -> _Message:
    if "msgid" not in message.strings or 0 not in message.translations:
        missing = "msgid" if "msgid" not in message.strings else "msgstr"
        raise UserError(f"{name}, line {message.line}: a message has no {missing}; the file is damaged or cut short.")
    return message


def _slots(message: _Message, forms: Plurals, newline: str, *, redo: bool) -> Iterator[Slot]:
    """A slot for each form that is to be translated; those that aren't there yet are put behind the last."""
    last = max(string.end for string in message.translations.values())
    for number in range(forms.number):
        text = message.strings["msgid" if number == forms.singular else "msgid_plural"].value
        string = message.translations.get(number)
        if not text.strip() or (string and string.value and not redo):
            continue
        lead = f"msgstr[{number}] " if "msgid_plural" in message.strings else "msgstr "
        before = "" if string else newline + lead

        def write(new: str, width: int = len(lead), before: str = before) -> str:
            return before + _quoted(new, width, newline)

        begin, end = (string.begin, string.end) if string else (last, last)
        yield Slot(text, string.value if string else "", message.line, begin, end, write)


def _known(message: _Message, forms: Plurals) -> Iterator[Known]:
    translations = message.translations
    if "msgid_plural" not in message.strings:
        yield Known(message.strings["msgid"].value, translations[0].value, message.line)
        return
    if forms.singular in translations and forms.singular is not None:
        yield Known(message.strings["msgid"].value, translations[forms.singular].value, message.line)
    others = [number for number in translations if number != forms.singular]
    if others:
        yield Known(message.strings["msgid_plural"].value, translations[max(others)].value, message.line)


def _unescaped(quoted: str) -> str:
    return ESCAPE.sub(_character, quoted[1:-1])


def _character(escape: re.Match[str]) -> str:
    if escape[1] or escape[2]:
        return chr(int(escape[1], 8) if escape[1] else int(escape[2], 16))
    return ESCAPES.get(escape[3], escape[3])


def _quoted(text: str, lead: int, newline: str) -> str:
    """A string as gettext writes it: on one line if it fits, else each line of the text by itself, and wrapped."""
    lines = [line.translate(WRITTEN) for line in re.findall(r"[^\n]*\n|[^\n]+", text)]
    if len(lines) < 2 and lead + sum(map(len, lines)) + 2 <= WIDTH:
        return f'"{"".join(lines)}"'
    parts = [""]
    for line in lines:
        parts.append("")
        for word in re.findall(r"\S*\s*", line):
            if parts[-1] and len(parts[-1]) + len(word.rstrip(" ")) + 2 > WIDTH:
                parts.append("")
            parts[-1] += word
    return newline.join(f'"{part}"' for part in parts)
