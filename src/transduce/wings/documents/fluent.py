"""Reads Fluent's .ftl files. Each variant of a selector is a text of its own."""

import re
from collections.abc import Iterator
from functools import partial

from transduce.system.errors import UserError
from transduce.text.formats import DocumentFile
from transduce.wings.documents.document import decode
from transduce.wings.documents.keyed import Form, KeyedFile, Message
from transduce.wings.documents.plurals import CLDR_ORDER
from transduce.wings.documents.xml import indentation

# The beginning of a message or a term, or of its attribute.
FLUENT_HEAD = re.compile(
    r"(?m)^\ufeff?(?:(?P<name>-?[A-Za-z][\w-]*)|[ ]+(?P<attribute>\.[A-Za-z][\w-]*))"
    r"[ ]*=[ ]*(?:(?:[ ]*\r?\n)++[ ]+(?=[^\s.]))?+"
)
# A line that Fluent ignores as damaged.
FLUENT_JUNK = re.compile(r"(?m)^(?![#}\[*\s\ufeff]|-?[A-Za-z][\w-]*[ ]*=)[^\r\n]+")
# Quotes, braces and line ends, with the beginning of the next line that is not blank.
FLUENT_TOKEN = re.compile(
    r'"(?:[^"\\\r\n]|\\.)*+"|[{}]|\r?\n(?:[ ]*\r?\n)*+(?P<indent>[ ]*+)(?=(?P<sign>[^\r\n]?))'
)
# A selector has the sign >.
PLACEABLE = r'\{(?:[^{}">]|"(?:[^"\\\r\n]|\\.)*+")*+\}'
# What a text can have only in quotes: braces, and some characters at the beginning of a line.
FLUENT_SPECIAL = re.compile(rf"(?m)(?P<placeable>{PLACEABLE})|[{{}}]|^[\[*. ]")
SELECTOR = re.compile(r"\{[^{}\n]*?->[ ]*(?=\r?\n)")
SELECTOR_END = re.compile(r"\s*\}\s*\Z")
VARIANT = re.compile(r"\s*(?P<item>\*?\[\s*(?P<key>[\w.-]+)\s*\][ ]*(?:\r?\n[ ]*)?)")


def read_fluent(file: DocumentFile) -> KeyedFile:
    """The texts of messages, terms and attributes.

    Leaves out the attributes of terms, which nobody sees, access keys, and selectors beside a text.

    Raises UserError for a line that belongs to no message.
    """
    content, codec = decode(file.content, file.name)
    if junk := FLUENT_JUNK.search(content):
        line = content.count("\n", 0, junk.start()) + 1
        raise UserError(
            f"{file.name}:{line}: expected a message such as `key = text`, found {junk[0][:30]!r}."
        )
    messages = list[Message]()
    name = ""
    at = 0
    while head := FLUENT_HEAD.search(content, at):
        name = head["name"] or name
        at = _end(content, head.end(), is_variant=False)
        attribute = head["attribute"] or ""
        if not (attribute and (name.startswith("-") or attribute.endswith("key"))):
            messages += _messages(content, f"{name}{attribute}", head.end(), at)
    return KeyedFile(content, codec, messages, min_forms=1)


def _end(content: str, at: int, *, is_variant: bool) -> int:
    """The end of the pattern that begins at an index: a variant ends before the next one or a brace."""
    depth = 0
    for token in FLUENT_TOKEN.finditer(content, at):
        depth += {"{": 1, "}": -1}.get(token.group(), 0)
        if depth < 0:
            return token.start()
        is_next = token["sign"] in ("", *"[*.}") or not (token["indent"] or is_variant)
        if token["sign"] is not None and is_next and not depth:
            return token.start()
    return len(content)


def _messages(content: str, key: str, begin: int, end: int) -> Iterator[Message]:
    """The messages of a pattern: one, or those of the variants of a selector."""
    selector = SELECTOR.match(content, begin, end)
    if selector is None:
        yield from _texts(content, key, begin, end)
        return
    at = selector.end()
    variants = list[tuple[re.Match[str], int]]()
    while variant := VARIANT.match(content, at):
        at = _end(content, variant.end(), is_variant=True)
        variants.append((variant, at))
    if not SELECTOR_END.match(content, at, end):
        return  # a text follows
    names = {variant["key"] for variant, _ in variants}
    is_plural = len(names) > 1 and all(each in CLDR_ORDER or each.isdecimal() for each in names)
    for variant, last in variants:
        name = variant["key"]
        first = variant.start("item")
        for message in _texts(content, f"{key} {name}", variant.end(), last):
            edges = (first, message.end, (first, variant.end("key")), indentation(content, first))
            form = Form(key, name, *edges, "ordinal" in selector.group(), " [")
            yield message._replace(form=form if is_plural and name in CLDR_ORDER else None)


def _texts(content: str, key: str, begin: int, end: int) -> Iterator[Message]:
    """The message of a pattern without selectors."""
    raw = content[begin:end].rstrip()
    if not {*"{}"} & {*re.sub(PLACEABLE, "", raw)}:
        indent = re.search(r"\r?\n[ ]+", raw)
        write = partial(_pattern, indent.group() if indent else "\n    ")
        text = re.sub(r"\r?\n[ ]*", "\n", raw)
        yield Message(key, text, begin, begin + len(raw), write)


def _pattern(line_break: str, translation: str) -> str:
    """The pattern of a translation, with special characters in quotes."""
    escaped = FLUENT_SPECIAL.sub(
        lambda sign: sign[0] if sign["placeable"] else f'{{"{sign[0]}"}}', translation
    )
    return escaped.replace("\n", line_break)
