"""Reads Android's string resources, such as `res/values/strings.xml`."""

import re
from collections.abc import Callable, Iterator
from functools import partial
from xml.sax.saxutils import escape

from transduce.inline.markup import attribute, attributes
from transduce.system.errors import UserError
from transduce.text.formats import DocumentFile, TextKind
from transduce.wings.documents.document import KEPT_WORD, without_kept_marks
from transduce.wings.documents.keyed import (
    Form,
    KeyedFile,
    Message,
    joined_surrogates,
)
from transduce.wings.documents.plurals import CLDR_ORDER
from transduce.wings.documents.xml import (
    WHOLE_CDATA,
    XML_ATTRIBUTES,
    Element,
    Unit,
    UnitReader,
    as_content,
    decode_xml,
    indentation,
    source_text,
)

ANDROID_TOKEN = re.compile(r'\\u(?P<code>[0-9a-fA-F]{4})|\\(?P<sign>[\s\S])|"|\s+')
ANDROID_ESCAPES = {"n": "\n", "t": "\t"}
ANDROID_ESCAPED = str.maketrans(
    {"\\": "\\\\", "'": "\\'", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": ""}
)
QUOTE_ENTITY = re.compile(r"&(?:apos|quot|#39|#34|#x27|#x22);", re.IGNORECASE)
# Blanks that Android removes.
EDGE_BLANK = re.compile(r"\A | \Z")
DOUBLE_BLANK = re.compile(r"(?<= ) ")
RESOURCE = re.compile(r"\s*[@?][\w.:+]*+/[\w.]++\s*")  # a reference such as @string/app_name
# An element xliff:g, whose content must not be translated.
KEPT_ELEMENT = re.compile(rf"<[\w.-]+:g\b{XML_ATTRIBUTES}(?<!/)>.*?</[\w.-]+:g\s*>", re.DOTALL)
ANDROID_MARKUP = re.compile(
    rf"({KEPT_ELEMENT.pattern}|<{XML_ATTRIBUTES}>|<!--.*?-->|<!\[CDATA\[.*?\]\]>)", re.DOTALL
)
ANDROID_TEXT = TextKind(markup=True, preserve=True, message=True)


def read_android(file: DocumentFile) -> KeyedFile:
    """The strings, arrays of strings and plurals, except for those with `translatable="false"`."""
    content, codec = decode_xml(file.content, file.name)
    if "<resources" not in content:
        raise UserError(
            f"{file.name} is not a file of Android's string resources: it has no element <resources>.",
            "Convert other XML to .po, for example with po4a.",
        )
    elements = ("string", "string-array", "plurals")
    reader = UnitReader(file.name, "resources", elements, 1)
    messages = (each for unit in reader.read([file.content]) for each in _messages(unit, content))
    return KeyedFile(content, codec, messages, min_forms=1)


def _messages(unit: Unit, content: str) -> Iterator[Message]:
    name, product, translatable = (
        attribute(unit.opening, name) for name in ("name", "product", "translatable")
    )
    items = [Element("string", {}, 0, len(unit.content))]
    if not re.match(r"<string\s", unit.opening):
        items = [child for child in unit.children if child.name == "item"]
    counted = 0  # bytes of the unit
    first = unit.begin
    for i, item in enumerate(items if translatable != "false" else ()):
        first += len(unit.content[counted : item.begin].decode())
        counted = item.begin
        text = unit.text(item)
        raw = text.strip()
        if not raw or RESOURCE.fullmatch(raw):
            continue
        whole = unit.content[item.begin : item.last].decode()
        begin = first + len(whole) - len(text) + text.index(raw)
        category = item.attributes.get("quantity", "")
        message = _message(f"{name} {product} {category or i}", raw, begin)
        if category in CLDR_ORDER:
            span = attributes(content[first:begin])["quantity"]
            end = content.index(">", begin + len(raw)) + 1
            edges = (first, end, (first + span[0], first + span[1]))
            form = Form(f"{name} {product}", category, *edges, indentation(content, first))
            message = message._replace(form=form)
        yield message


def _message(key: str, raw: str, begin: int) -> Message:
    end = begin + len(raw)
    if cdata := WHOLE_CDATA.fullmatch(raw):
        shown = _unescaped(cdata["text"], is_markup=False)
        text, kind = source_text(f"<![CDATA[{shown}]]>", preserve=True)
        return Message(key, text, begin, end, partial(_cdata, raw), kind._replace(message=True))
    text = _mapped(raw, partial(_unescaped, is_markup=True))
    text = KEPT_ELEMENT.sub(lambda kept: kept[0].join(KEPT_WORD), text)
    return Message(key, text, begin, end, _content, ANDROID_TEXT)


def _mapped(content: str, change: Callable[[str], str]) -> str:
    """The content of an element with changed texts between the tags."""
    parts = ANDROID_MARKUP.split(content)
    parts[::2] = map(change, parts[::2])
    return "".join(parts)


def _unescaped(text: str, *, is_markup: bool) -> str:
    """A text without escapes and quotes, in which blanks outside the quotes are single."""
    is_quoted = False

    def shown(token: re.Match[str]) -> str:
        nonlocal is_quoted
        if token["code"]:
            character = chr(int(token["code"], 16))
            return escape(character) if is_markup else character
        if token["sign"]:
            return ANDROID_ESCAPES.get(token["sign"], token["sign"])
        if token[0] == '"':
            is_quoted = not is_quoted
            return ""
        return token[0] if is_quoted else " "

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
