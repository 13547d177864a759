"""Reads Fluent's .ftl files. Each variant of a selector is a text of its own."""

import re
from collections.abc import Iterator
from functools import partial

from transduce.system.errors import UserError
from transduce.text.formats import DocumentFile
from transduce.wings.documents.document import decode
from transduce.wings.documents.keyed import OTHER, Form, KeyedFile, Message, Plural
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
PLACEABLE = r'\{(?:[^{}"]|"(?:[^"\\\r\n]|\\.)*+")*+\}'
# What a text can have only in quotes: braces, and some characters at the beginning of a line.
FLUENT_SPECIAL = re.compile(rf"(?m)(?P<placeable>{PLACEABLE})|[{{}}]|^[\[*. ]")
SELECTOR = re.compile(r"\{[^{}\n]*?->[ ]*(?=\r?\n)")
VARIANT = re.compile(r"\s*(?P<item>\*?\[\s*(?P<key>[\w.-]+)\s*\][ ]*(?:\r?\n[ ]*)?)")
MAX_SELECTOR_LEVELS = 3


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
    messages = list[Message | Plural]()
    name = ""
    at = 0
    while head := FLUENT_HEAD.search(content, at):
        name = head["name"] or name
        at = _end(content, head.end(), is_variant=False)
        attribute = head["attribute"] or ""
        if not (attribute and (name.startswith("-") or attribute.endswith("key"))):
            key = f"{name}{attribute}"
            messages += _messages(content, key, (head.end(), at), MAX_SELECTOR_LEVELS)
    return KeyedFile(content, codec, messages)


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


def _messages(
    content: str, key: str, span: tuple[int, int], levels: int
) -> Iterator[Message | Plural]:
    """The messages of a pattern, with selectors up to `levels` deep."""
    begin = span[0]
    raw = content[begin : span[1]].rstrip()
    selector = SELECTOR.match(raw)
    if selector is None and not {*"{}"} & {*re.sub(PLACEABLE, "", raw)}:
        indent = re.search(r"\r?\n[ ]+", raw)
        write = partial(_pattern, indent.group() if indent else "\n    ")
        text = re.sub(r"\r?\n[ ]*", "\n", raw)
        yield Message(key, text, begin, begin + len(raw), write)
    if selector is None or not levels:
        return
    at = begin + selector.end()
    variants = list[tuple[re.Match[str], list[Message | Plural]]]()
    while variant := VARIANT.match(content, at):
        at = _end(content, variant.end(), is_variant=True)
        inner = f"{key} {variant['key']}"
        its = list(_messages(content, inner, (variant.end(), at), levels - 1))
        variants.append((variant, its))
    if not re.compile(r"\s*\}\Z").match(content, at, begin + len(raw)):
        return  # a text follows
    is_plural = all(_is_category(variant["key"]) for variant, _ in variants)
    forms = dict[str, Form]()
    for variant, its in variants:
        category = variant["key"]
        if is_plural and category in CLDR_ORDER and len(its) == 1 and isinstance(its[0], Message):
            edges = (variant.start("item"), its[0].end, variant.span("key"))
            forms[category] = Form(its[0], *edges)
        else:
            yield from its
    if OTHER in forms and len(variants) > 1:
        separator = indentation(content, forms[OTHER].begin)
        yield Plural(forms, separator, "ordinal" in selector.group())
    else:
        yield from (form.message for form in forms.values())


def _is_category(key: str) -> bool:
    return key in CLDR_ORDER or key.isdecimal()


def _pattern(line_break: str, translation: str) -> str:
    """The pattern of a translation, with special characters in quotes."""
    escaped = FLUENT_SPECIAL.sub(
        lambda sign: sign[0] if sign["placeable"] else f'{{"{sign[0]}"}}', translation
    )
    return escaped.replace("\n", line_break)
