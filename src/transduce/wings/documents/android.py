"""Reads Android's string resources, such as `res/values/strings.xml`."""

import re
from collections.abc import Callable, Iterator
from functools import partial
from xml.sax.saxutils import escape

from transduce.inline.markup import attribute, attributes, pieces
from transduce.inline.markup_events import last_piece
from transduce.system.errors import UserError
from transduce.text.formats import DocumentFile, TextKind
from transduce.wings.documents.document import KEPT_WORD, without_kept_marks
from transduce.wings.documents.keyed import (
    OTHER,
    Form,
    KeyedFile,
    Message,
    Plural,
    joined_surrogates,
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
    r'\\u(?P<code>[0-9a-fA-F]{4})|\\(?P<sign>[\s\S])|"(?P<quoted>(?:[^"\\]|\\[\s\S])*+)"?|\s+'
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


def read_android(file: DocumentFile) -> KeyedFile:
    """The strings, arrays of strings and plurals, except for those with `translatable="false"`."""
    content, codec = decode_xml(file.content, file.name)
    if "<resources" not in content:
        raise UserError(
            f"{file.name} is not a file of Android's string resources: it has no element <resources>.",
            "Convert other XML to .po, for example with po4a.",
        )
    reader = UnitReader(file.name, "resources", STRING_ELEMENTS, 0, lambda *_: None)
    messages = [each for unit in reader.read([file.content]) for each in _messages(unit, content)]
    return KeyedFile(content, codec, messages)


def _messages(unit: Unit, content: str) -> Iterator[Message | Plural]:
    if attribute(unit.opening, "translatable") == "false":
        return
    inner = unit.content.decode()
    markup = list(pieces(inner))
    name = f"{attribute(unit.opening, 'name')} {attribute(unit.opening, 'product')}"
    forms = dict[str, Form]()
    read = 0  # the end of the last text
    for i, piece in enumerate(markup):
        if piece.kind != "open" or piece.name not in ("string", "item") or piece.begin < read:
            continue
        last = markup[last_piece(markup, i)]
        end = last.begin if last.kind == "close" and last.name == "item" else len(inner)
        text = inner[piece.end : end]
        read = end
        if not text.strip() or RESOURCE.fullmatch(text):
            continue
        tag = inner[piece.begin : piece.end]
        category = attribute(tag, "quantity") or ""
        begin = unit.begin + piece.end + len(text) - len(text.lstrip())
        message = _message(f"{name} {category or i}", text.strip(), begin)
        if unit.opening.startswith("<plurals") and category in CLDR_ORDER:
            span = attributes(tag)["quantity"]
            first = unit.begin + piece.begin
            edges = (first, unit.begin + last.end, (first + span[0], first + span[1]))
            forms[category] = Form(message, *edges)
        else:
            yield message
    if OTHER in forms:
        yield Plural(forms, indentation(content, forms[OTHER].begin))
    else:
        yield from (form.message for form in forms.values())


def _message(key: str, raw: str, begin: int) -> Message:
    end = begin + len(raw)
    if cdata := WHOLE_CDATA.fullmatch(raw):
        shown = _unescaped(cdata["text"], is_markup=False)
        text, kind = source_text(f"<![CDATA[{shown}]]>", preserve=True)
        return Message(key, text, begin, end, partial(_cdata, raw), kind._replace(message=True))
    text = _mapped(raw, partial(_unescaped, is_markup=True), KEPT_WORD)
    return Message(key, text, begin, end, _content, ANDROID_TEXT)


def _mapped(content: str, change: Callable[[str], str], around: tuple[str, str] = ("", "")) -> str:
    """The content of an element with changed texts; `around` stands around what must not be translated (xliff:g)."""
    markup = list(pieces(content))
    parts = list[str]()
    i = 0
    while i < len(markup):
        piece = markup[i]
        if piece.kind == "open" and piece.name.endswith(":g"):
            i = last_piece(markup, i)
            parts += [around[0], content[piece.begin : markup[i].end], around[1]]
        else:
            raw = content[piece.begin : piece.end]
            parts.append(change(raw) if piece.kind == "text" else raw)
        i += 1
    return "".join(parts)


def _unescaped(text: str, *, is_markup: bool) -> str:
    """A text without escapes and quotes, in which blanks outside the quotes are single."""

    def shown(token: re.Match[str]) -> str:
        if token["code"]:
            character = chr(int(token["code"], 16))
            return escape(character) if is_markup else character
        if token["sign"]:
            return ANDROID_ESCAPES.get(token["sign"], token["sign"])
        if token["quoted"] is None:
            return " "
        return ANDROID_TOKEN.sub(
            lambda inner: inner[0] if inner[0].isspace() else shown(inner), token["quoted"]
        )

    return joined_surrogates(ANDROID_TOKEN.sub(shown, text))


def _content(translation: str) -> str:
    content = _mapped(without_kept_marks(translation), _escaped)
    content = EDGE_BLANK.sub(r"\\u0020", content)
    return as_content(f"\\{content}" if content.startswith(("@", "?")) else content, "")


def _cdata(raw: str, translation: str) -> str:
    return as_content(_escaped(translation), raw)


def _escaped(text: str) -> str:
    escaped = QUOTE_ENTITY.sub(r"\\\g<0>", text.translate(ANDROID_ESCAPED))
    return DOUBLE_BLANK.sub(r"\\u0020", escaped)
