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
# Braces, arrows of selectors, and line ends with the beginning of the next line that is not blank.
FLUENT_SIGN = re.compile(r"[{}]|->|\r?\n(?:[ ]*\r?\n)*+(?P<indent>[ ]*+)(?=(?P<sign>[^\r\n]?))")
# The same in braces, where quotation marks enclose strings.
FLUENT_TOKEN = re.compile(rf'"(?:[^"\\\r\n]|\\.)*+"?|{FLUENT_SIGN.pattern}')
# A selector has the sign >.
PLACEABLE = r'\{(?:[^{}">]|"(?:[^"\\\r\n]|\\.)*+")*+\}'
# What a text can have only in quotes: braces, and some characters at the beginning of a line.
FLUENT_SPECIAL = re.compile(rf"(?m)(?P<placeable>{PLACEABLE})|[{{}}]|^[\[*. ]")
SELECTOR = re.compile(r"\{[^{}\n]*?->[ ]*(?=\r?\n)")
VARIANT = re.compile(r"(?m)^[ ]*(?P<item>\*?\[\s*(?P<key>[\w.-]+)\s*\][ ]*(?:\r?\n[ ]*)?)")


def read_fluent(file: DocumentFile) -> KeyedFile:
    """The texts of messages, terms and attributes.

    Leaves out the attributes of terms, which nobody sees, access keys, and selectors beside a text.

    Raises UserError for a line that belongs to no message, and for braces and strings that are not closed.
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
        end = _end(content, head.end())
        if end is None:
            line = content.count("\n", 0, head.end()) + 1
            raise UserError(
                f"{file.name}:{line}: a brace of this text, or a string in braces, is never closed."
            )
        attribute = head["attribute"] or ""
        if not (attribute and (name.startswith("-") or attribute.endswith("key"))):
            messages += _messages(content, f"{name}{attribute}", head.end(), end)
        at = end
    return KeyedFile(content, codec, messages, min_forms=1)


def _end(content: str, at: int) -> int | None:
    """The end of the pattern that begins at an index; None if its braces, or strings in them, are not closed."""
    opened = list[str]()  # braces, and selectors, whose variants are texts
    while token := (FLUENT_TOKEN if opened[-1:] == ["{"] else FLUENT_SIGN).search(content, at):
        at = token.end()
        if token[0] == "{":
            opened.append("{")
        elif token[0] == "->" and opened[-1:] == ["{"]:
            opened[-1] = "->"
        elif token[0] == "}" and opened:
            opened.pop()
        elif token["sign"] is None or opened:
            continue
        elif token["sign"] in ("", *"[*.}") or not token["indent"]:
            return token.start()
    return None if opened else len(content)


def _messages(content: str, key: str, begin: int, end: int) -> Iterator[Message]:
    """The messages of a pattern: one, or those of the variants of a selector."""
    selector = SELECTOR.match(content, begin, end)
    if selector is None:
        if _has_no_selector(content[begin:end]):
            yield _message(content, key, begin, end)
        return
    last = begin + len(content[begin:end].rstrip()) - 1  # the closing brace, unless a text follows
    variants = list(VARIANT.finditer(content, selector.end(), last))
    if not (variants and _has_no_selector(content[selector.end() : last])):
        return
    names = {variant["key"] for variant in variants}
    is_plural = len(names) > 1 and all(each in CLDR_ORDER or each.isdecimal() for each in names)
    ends = [*(variant.start() for variant in variants[1:]), last]
    for variant, variant_end in zip(variants, ends, strict=True):
        name = variant["key"]
        first = variant.start("item")
        message = _message(content, f"{key} {name}", variant.end(), variant_end)
        if is_plural and name in CLDR_ORDER:
            edges = (first, message.end, (first, variant.end("key")), indentation(content, first))
            form = Form(key, name, *edges, "ordinal" in selector.group(), " [")
            message = message._replace(form=form)
        yield message


def _has_no_selector(text: str) -> bool:
    return not {*"{}"} & {*re.sub(PLACEABLE, "", text)}


def _message(content: str, key: str, begin: int, end: int) -> Message:
    raw = content[begin:end].rstrip()
    indent = re.search(r"\r?\n[ ]+", raw)
    write = partial(_pattern, indent.group() if indent else "\n    ")
    text = re.sub(r"\r?\n[ ]*", "\n", raw)
    return Message(key, text, begin, begin + len(raw), write)


def _pattern(line_break: str, translation: str) -> str:
    """The pattern of a translation, with special characters in quotes."""
    escaped = FLUENT_SPECIAL.sub(
        lambda sign: sign[0] if sign["placeable"] else f'{{"{sign[0]}"}}', translation
    )
    return escaped.replace("\n", line_break)
