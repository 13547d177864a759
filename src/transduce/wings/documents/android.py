"""Reads Android's string resources, such as `res/values/strings.xml`."""

import re
from collections.abc import Callable, Iterator, Sequence
from xml.sax.saxutils import escape

from transduce.inline.markup import attribute, attributes, pieces
from transduce.inline.markup_events import last_piece
from transduce.system.errors import UserError
from transduce.text.formats import DocumentFile, TextKind, TextPair
from transduce.wings.documents.document import KEPT_WORD, Document, without_kept_marks
from transduce.wings.documents.keyed import (
    OTHER,
    Form,
    KeyedFile,
    LineNumbers,
    Message,
    Plural,
    joined_surrogates,
    keyed_document,
    pairs_by_key,
)
from transduce.wings.documents.plurals import CLDR_ORDER
from transduce.wings.documents.xml import (
    WHOLE_CDATA,
    Unit,
    UnitReader,
    as_content,
    decode_xml,
    indentation,
    source_text,
)

# Blanks are single unless in quotes.
ANDROID_TOKEN = re.compile(
    r'\\u(?P<code>[0-9a-fA-F]{4})|\\(?P<sign>[\s\S])|(?P<quote>")|(?P<blanks>\s+)'
)
ANDROID_ESCAPES = {"n": "\n", "t": "\t"}
ANDROID_ESCAPED = str.maketrans(
    {"\\": "\\\\", "'": "\\'", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": ""}
)
QUOTE_ENTITY = re.compile(r"&(?:apos|quot|#39|#34|#x27|#x22);", re.IGNORECASE)
# Blanks that Android removes.
EDGE_BLANK = re.compile(r"\A | \Z")
DOUBLE_BLANK = re.compile(r"(?<= ) ")
RESOURCE = re.compile(r"\s*[@?][\w.:+]*+/[\w.]++\s*")  # a reference such as @string/app_name
STRING_ELEMENTS = ("string", "string-array", "plurals")
ANDROID_TEXT = TextKind(markup=True, preserve=True, message=True)


def read_android(file: DocumentFile) -> Document:
    """The strings, arrays of strings and plurals, except for those with `translatable="false"`."""
    return keyed_document(file, _read(file))


def read_android_pairs(source: str, target: str) -> Iterator[TextPair]:
    """Pairs of the texts that have the same name in two files."""
    return pairs_by_key(source, target, _read)


def _read(file: DocumentFile) -> KeyedFile:
    content, codec = decode_xml(file.content, file.name)
    if "<resources" not in content:
        raise UserError(
            f"{file.name} is not a file of Android's string resources: it has no element <resources>.",
            "Convert other XML to .po, for example with po4a.",
        )
    reader = UnitReader(file.name, "resources", STRING_ELEMENTS, 0, lambda *_: None)
    messages = list[Message | Plural]()
    for unit in reader.read([file.content]):
        if attribute(unit.opening, "translatable") != "false":
            messages += _messages(unit, content)
    return KeyedFile(content, codec, messages)


def _messages(unit: Unit, content: str) -> Sequence[Message | Plural]:
    name = f"{attribute(unit.opening, 'name')}\0{attribute(unit.opening, 'product')}"
    inner = unit.content.decode()
    lines = LineNumbers(inner)
    markup = list(pieces(inner))
    if markup[0].name == "string":
        text = _message(name, inner, (markup[0].end, len(inner)), unit, unit.line)
        return [text] if text else []
    forms = dict[str, Form]()
    texts = list[Message | Plural]()
    for i, piece in enumerate(markup):
        if piece.name != "item" or piece.kind != "open":
            continue
        closing = markup[last_piece(markup, i)]
        tag = inner[piece.begin : piece.end]
        line = unit.line + lines.of(piece.begin) - 1
        category = attribute(tag, "quantity") or f"{len(texts)}"
        span = (piece.end, closing.begin)
        message = _message(f"{name}\0{category}", inner, span, unit, line)
        if message is None:
            continue
        texts.append(message)
        if category in CLDR_ORDER:
            edges = (piece.begin + edge for edge in attributes(tag)["quantity"])
            begin, end = (unit.begin + edge for edge in edges)
            item = unit.begin + piece.begin
            forms[category] = Form(message, item, unit.begin + closing.end, (begin, end))
    if OTHER in forms and len(forms) == len(texts):
        return [Plural(forms, indentation(content, forms[OTHER].begin))]
    return texts


def _message(name: str, inner: str, span: tuple[int, int], unit: Unit, line: int) -> Message | None:
    """The message of a part of a unit's content; None for a reference to another string, and for no text."""
    raw = inner[slice(*span)]
    begin = unit.begin + span[0] + len(raw) - len(raw.lstrip())
    raw = raw.strip()
    if not raw or RESOURCE.fullmatch(raw):
        return None
    end = begin + len(raw)
    is_quoted = raw[0] == raw[-1] == '"' and len(raw) > 1 and raw[-2] != "\\"
    if cdata := WHOLE_CDATA.fullmatch(raw):
        text, kind = source_text(
            f"<![CDATA[{_Unescaper(is_markup=False).text(cdata['text'])}]]>", preserve=True
        )
        kind = kind._replace(message=True)

        def write(translation: str) -> str:
            return as_content(_escaped(translation), raw)

        return Message(name, text, line, begin, end, write, kind)

    def write_markup(translation: str) -> str:
        change = _escaped if is_quoted else _with_blanks
        content = _mapped(without_kept_marks(translation), change)
        content = f'"{content}"' if is_quoted else EDGE_BLANK.sub(r"\\u0020", content)
        return as_content(f"\\{content}" if content.startswith(("@", "?")) else content, "")

    text = joined_surrogates(_mapped(raw, _Unescaper(is_markup=True).text, KEPT_WORD))
    return Message(name, text, line, begin, end, write_markup, ANDROID_TEXT)


class _Unescaper:
    """Undoes the escapes of a text that arrives in pieces, and collapses blanks outside quotes."""

    def __init__(self, *, is_markup: bool) -> None:
        self._is_markup = is_markup
        self._is_quoted = False

    def text(self, piece: str) -> str:
        return ANDROID_TOKEN.sub(self._token, piece)

    def _token(self, token: re.Match[str]) -> str:
        if token["code"]:
            character = chr(int(token["code"], 16))
            return escape(character) if self._is_markup else character
        if token["sign"]:
            return ANDROID_ESCAPES.get(token["sign"], token["sign"])
        if token["quote"]:
            self._is_quoted = not self._is_quoted
            return ""
        return token.group() if self._is_quoted or token["blanks"] is None else " "


def _mapped(content: str, change: Callable[[str], str], around: tuple[str, str] = ("", "")) -> str:
    """The content of an element with changed texts; `around` stands around what must not be translated (xliff:g)."""
    markup = list(pieces(content))
    parts = list[str]()
    i = 0
    while i < len(markup):
        piece = markup[i]
        raw = content[piece.begin : piece.end]
        if piece.kind == "open" and piece.name.endswith(":g"):
            i = last_piece(markup, i)
            parts += [around[0], content[piece.begin : markup[i].end], around[1]]
        else:
            parts.append(change(raw) if piece.kind == "text" else raw)
        i += 1
    return "".join(parts)


def _escaped(text: str) -> str:
    return QUOTE_ENTITY.sub(r"\\\g<0>", text.translate(ANDROID_ESCAPED))


def _with_blanks(text: str) -> str:
    return DOUBLE_BLANK.sub(r"\\u0020", _escaped(text))
