"""Reads the .yml files of Ruby on Rails, whose root key is the language. PyYAML finds the places of the texts."""

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from transduce.system.errors import UserError, needing
from transduce.text.formats import DocumentFile
from transduce.text.plain import BYTE_ORDER_MARK
from transduce.wings.documents.document import Edit, check_language, decode, spoken_language
from transduce.wings.documents.keyed import Form, KeyedFile, Message
from transduce.wings.documents.plurals import CLDR_ORDER
from transduce.wings.documents.xml import indentation

# The anchor and the tag before a value.
YAML_PROPERTIES = re.compile(r"(?:[&!]\S*+\s++)*+")
YAML_STRING_TAG = "tag:yaml.org,2002:str"
BLOCK_STYLES = ("|", ">")
# Names of PyYAML's classes.
MAPPING = "MappingStartEvent"
SCALAR = "ScalarEvent"
# A list of Ruby's symbols, which PyYAML refuses.
RUBY_SYMBOLS = re.compile(r"(?m)\[[ \t]*:\w+(?:[ \t]*,[ \t]*:\w+)*[ \t]*\]$")
RUBY_SYMBOL = re.compile(r":\w")
# The line break and the blanks before the first line of a block.
BLOCK_INDENTATION = re.compile(r"\r?\n[ ]*(?=\S)")
# A text that has such characters needs double quotes.
NOT_IN_STYLES = re.compile("\\A\\s|[\x85\u2028\u2029]")


def read_rails(file: DocumentFile) -> KeyedFile:
    """The texts under the language, which becomes the target language. Raises UserError for other YAML."""
    content, codec = decode(file.content, file.name)
    yaml = _Yaml(content, file.name)
    messages = list(yaml.messages())
    if len(yaml.roots) != 1 or not spoken_language(yaml.roots[0].value):
        raise UserError(
            f"{file.name} is not a file of texts of Ruby on Rails: it needs one root key, the language.",
            "Convert other YAML to .po, for example with yaml2po of the Translate Toolkit.",
        )
    language = yaml.roots[0]
    check_language(file.name, "from", language.value, file.source)
    code = yaml.write(language.style, "", "", file.target.replace("_", "-"))
    return KeyedFile(content, codec, messages, (Edit(*yaml.span(language), code),))


@dataclass(slots=True)
class _Collection:
    """A mapping or a sequence whose end is not yet read."""

    path: str
    is_mapping: bool
    is_flow: bool
    key: Any = None  # the event of the key whose value follows
    items: int = 0
    is_plural: bool = False  # whether the first key is a category of plurals


class _Yaml:
    """The content of a file, and PyYAML."""

    def __init__(self, content: str, name: str) -> None:
        with needing("documents", "Reading YAML"):
            import yaml
        self._yaml = yaml
        self._resolver = yaml.resolver.Resolver()
        self._content = content
        self._begin = len(content) - len(content.removeprefix(BYTE_ORDER_MARK))
        self._name = name
        self.roots = list[Any]()  # the outermost keys

    def _events(self) -> Iterator[Any]:
        """PyYAML's events. Raises UserError for a file that is not YAML."""
        loader = getattr(self._yaml, "CSafeLoader", self._yaml.SafeLoader)
        content = RUBY_SYMBOLS.sub(lambda symbols: " " * len(symbols[0]), self._content)
        try:
            yield from self._yaml.parse(content[self._begin :], loader)
        except self._yaml.YAMLError as error:
            mark = getattr(error, "problem_mark", None)
            place = f"{self._name}:{mark.line + 1}" if mark else self._name
            problem = getattr(error, "problem", None) or "a character is not allowed"
            raise UserError(f"{place}: not valid YAML: {problem}.") from None

    def messages(self) -> Iterator[Message]:
        """The texts in mappings and sequences."""
        opened = [_Collection("", is_mapping=False, is_flow=False)]
        for event in self._events():
            kind = type(event).__name__
            parent = opened[-1]
            if kind in ("MappingEndEvent", "SequenceEndEvent"):
                opened.pop()
            elif parent.is_mapping and parent.key is None:
                if kind != SCALAR:
                    line = event.start_mark.line + 1
                    raise UserError(f"{self._name}:{line}: this key is a collection or an alias.")
                parent.key = event
                parent.is_plural |= not parent.items and event.value in CLDR_ORDER
                if len(opened) == 2:
                    self.roots.append(event)
            elif kind in (MAPPING, SCALAR, "SequenceStartEvent", "AliasEvent"):
                # The language is no part of a path.
                is_named = parent.is_mapping and len(opened) > 2
                path = f"{hash(parent.path)} {parent.key.value if is_named else parent.items}"
                if kind == SCALAR:
                    yield self._message(path, event, parent)
                elif kind != "AliasEvent":
                    is_flow = bool(event.flow_style)
                    opened.append(_Collection(path, kind == MAPPING, is_flow))
                parent.key = None
                parent.items += 1

    def _message(self, path: str, scalar: Any, parent: _Collection) -> Message:
        """The message of a scalar, which is blank for other values than texts."""
        begin, end = self.span(scalar)
        indent = BLOCK_INDENTATION.search(self._content, begin, end)
        is_block = scalar.style in BLOCK_STYLES
        text = scalar.value.rstrip("\n") if is_block else scalar.value
        last = scalar.value[len(text) :]
        kind = self._yaml.ScalarNode
        tag = scalar.tag or self._resolver.resolve(kind, text, scalar.implicit)
        is_symbol = scalar.style is None and RUBY_SYMBOL.match(text)
        if tag != YAML_STRING_TAG or is_symbol:
            text = ""
        # In a flow collection, more characters need quotes.
        style = scalar.style or ('"' if parent.is_flow else None)
        write = partial(self.write, style, last, indent.group() if is_block and indent else "")
        message = Message(path, text, begin, end, write)
        return message._replace(form=self._form(parent, end)) if parent.is_plural else message

    def _form(self, parent: _Collection, end: int) -> Form:
        begin, last = self.span(parent.key)
        quote = 1 if parent.key.style else 0
        separator = ", " if parent.is_flow else indentation(self._content, begin)
        name = (begin + quote, last - quote)
        return Form(parent.path, parent.key.value, begin, end, name, separator)

    def span(self, scalar: Any) -> tuple[int, int]:
        """The indices of a scalar, without anchor, tag and the line end of a block."""
        properties = YAML_PROPERTIES.match(self._content, scalar.start_mark.index + self._begin)
        begin = properties.end() if properties else 0
        raw = self._content[begin : scalar.end_mark.index + self._begin]
        return begin, begin + len(raw.rstrip())

    def write(self, style: str | None, last: str, indent: str, text: str) -> str:
        """A scalar in a style, or in quotes if the style can't express the text.

        A block has the line ends `last` and an indentation.
        """
        is_block = style in BLOCK_STYLES
        is_symbol = style is None and RUBY_SYMBOL.match(text)
        if is_symbol or NOT_IN_STYLES.search(text) or ("\n" in text and not is_block):
            style = '"'
        elif is_block:
            text += last
        written: str = self._yaml.safe_dump(
            [text],
            default_style=style,
            allow_unicode=True,
            width=sys.maxsize,
            line_break=indent.strip(" ") or "\n",
        )
        return re.sub(r"\r?\n  ", indent, written[2:].rstrip())
