"""Reads the .yml files of Ruby on Rails, whose root key is the language. PyYAML finds the places of the texts."""

import json
import re
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from transduce.system.errors import UserError, needing
from transduce.text.formats import DocumentFile
from transduce.text.plain import BYTE_ORDER_MARK
from transduce.wings.documents.document import Edit, check_language, decode, spoken_language
from transduce.wings.documents.keyed import OTHER, Form, KeyedFile, Message, Plural
from transduce.wings.documents.plurals import CLDR_ORDER
from transduce.wings.documents.xml import indentation

# The anchor and the tag before a value.
YAML_PROPERTIES = re.compile(r"(?:[&!]\S*+\s++)*+")
YAML_STRING_TAG = "tag:yaml.org,2002:str"
BLOCK_STYLES = ("|", ">")
# A list of Ruby's symbols, which PyYAML refuses. As aliases they have the same length.
RUBY_SYMBOLS = re.compile(r"(?m)^\s*[\w-]+:\s*\[\s*:\w+(?:\s*,\s*:\w+)*\s*\]\s*$")
RUBY_SYMBOL = re.compile(r":\w+")
# Characters that only a text in double quotes may have, as an escape.
YAML_ESCAPED = re.compile(
    "[^\t\n\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]"
)


@dataclass
class _Collection:
    """A mapping or a sequence that is read."""

    path: str
    is_mapping: bool
    is_flow: bool
    key: Any = None  # the event of the last key, while its value is to come
    messages: list[Message] = field(default_factory=list)
    forms: dict[str, Form] = field(default_factory=dict)
    others: int = 0  # the number of values that are not plural forms


def read_rails(file: DocumentFile) -> KeyedFile:
    """The texts under the language, which becomes the target language. Raises UserError for other YAML."""
    with needing("documents", "Reading YAML"):
        import yaml
    content, codec = decode(file.content, file.name)
    reader = _Reader(content, yaml)
    try:
        reader.read()
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or "a character is not allowed"
        place = f"{file.name}:{mark.line + 1}" if mark else file.name
        raise UserError(f"{place}: not valid YAML: {problem}.") from None
    languages = [getattr(key, "value", "") for key in reader.roots]
    if len(languages) != 1 or not spoken_language(languages[0]):
        raise UserError(
            f"{file.name} is not a file of texts of Ruby on Rails: it needs one root key, the language.",
            "Convert other YAML to .po, for example with yaml2po of the Translate Toolkit.",
        )
    check_language(file.name, "from", languages[0], file.source)
    span = reader.span(reader.roots[0])
    code = file.target.replace("_", "-")
    written = reader.write(code, reader.roots[0].style, is_flow=False, raw="")
    return KeyedFile(content, codec, reader.messages, (Edit(*span, written),))


class _Reader:
    """Collects the texts of a file. `yaml` is the module of PyYAML."""

    def __init__(self, content: str, yaml: Any) -> None:
        self.content = content
        self.messages = list[Message | Plural]()
        self.roots = list[Any]()  # the events of the keys of the outermost mapping
        self._yaml = yaml
        self._loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        self._resolver = yaml.resolver.Resolver()
        self._begin = len(content) - len(content.removeprefix(BYTE_ORDER_MARK))

    def read(self) -> None:
        """Read all texts. Raises YAMLError."""
        opened = list[_Collection]()
        content = RUBY_SYMBOLS.sub(
            lambda symbols: symbols[0].replace(" :", " *").replace("[:", "[*").replace(",:", ",*"),
            self.content[self._begin :],
        )
        for event in self._yaml.parse(content, Loader=self._loader):
            if isinstance(event, self._yaml.CollectionEndEvent):
                self._close(opened.pop())
            elif isinstance(event, self._yaml.NodeEvent):
                parent = opened[-1] if opened else _Collection("", False, False)
                if parent.is_mapping and parent.key is None:
                    parent.key = event
                    self.roots += [event] if len(opened) == 1 else []
                    if isinstance(event, self._yaml.CollectionStartEvent):
                        raise self._yaml.MarkedYAMLError(
                            problem="a key is a collection", problem_mark=event.start_mark
                        )
                    continue
                name = getattr(parent.key, "value", parent.others)
                path = f"{hash(parent.path)} {name}" if len(opened) > 1 else ""
                if isinstance(event, self._yaml.CollectionStartEvent):
                    is_mapping = isinstance(event, self._yaml.MappingStartEvent)
                    opened.append(_Collection(path, is_mapping, bool(event.flow_style)))
                    parent.others += 1
                elif isinstance(event, self._yaml.ScalarEvent) and self._is_text(event):
                    self._add(parent, path, event)
                else:
                    parent.others += 1
                parent.key = None

    def _is_text(self, event: Any) -> bool:
        if event.style or event.tag:
            return event.tag in (None, "!", YAML_STRING_TAG)
        tag = self._resolver.resolve(self._yaml.ScalarNode, event.value, (True, False))
        return tag == YAML_STRING_TAG and not RUBY_SYMBOL.fullmatch(event.value)

    def span(self, event: Any) -> tuple[int, int]:
        """The indices of a scalar, without anchor, tag and the line end of a block."""
        begin = event.start_mark.index + self._begin
        properties = YAML_PROPERTIES.match(self.content, begin)
        begin = properties.end() if properties else begin
        raw = self.content[begin : event.end_mark.index + self._begin]
        return begin, begin + len(raw.rstrip() if event.style in BLOCK_STYLES else raw)

    def _add(self, parent: _Collection, path: str, event: Any) -> None:
        begin, end = self.span(event)
        raw = self.content[begin:end]
        text = event.value
        if event.style in BLOCK_STYLES:
            text = text.rstrip("\n")
        write = partial(self.write, style=event.style, is_flow=parent.is_flow, raw=raw)
        message = Message(path, text, begin, end, write)
        name = getattr(parent.key, "value", "")
        if name in CLDR_ORDER:
            first, last = self.span(parent.key)
            quote = 1 if parent.key.style else 0
            parent.forms[name] = Form(message, first, end, (first + quote, last - quote))
        else:
            parent.others += 1
        parent.messages.append(message)

    def _close(self, closed: _Collection) -> None:
        """Add the messages of a collection; plural forms only if all its keys are categories."""
        if closed.others or OTHER not in closed.forms or len(closed.forms) < 2:
            self.messages += closed.messages
            return
        before = ", " if closed.is_flow else indentation(self.content, closed.forms[OTHER].begin)
        self.messages.append(Plural(closed.forms, before))

    def write(self, text: str, style: str | None, *, is_flow: bool, raw: str) -> str:
        """A scalar in the style of `raw`, or in double quotes if this style can't express the text."""
        is_printable = not YAML_ESCAPED.search(text)
        if (
            style in BLOCK_STYLES
            and is_printable
            and not re.search(r"(?:\A|\n)[ \t]|\A\n|\A\Z", text)
        ):
            header, *lines = raw.splitlines(keepends=True)
            shown = next(line for line in lines if line.strip())
            line_end = header[len(header.rstrip()) :]
            gap = line_end * (2 if style == ">" else 1) + shown[: len(shown) - len(shown.lstrip())]
            return header.rstrip() + line_end + gap.lstrip("\r\n") + text.replace("\n", gap)
        if style == "'" and is_printable and "\n" not in text:
            return "'{}'".format(text.replace("'", "''"))
        if not style and is_printable and self._is_plain(text, is_flow):
            return text
        quoted = json.dumps(text, ensure_ascii=False)
        return YAML_ESCAPED.sub(lambda sign: f"\\U{ord(sign[0]):08x}", quoted)

    def _is_plain(self, text: str, is_flow: bool) -> bool:
        """Whether a text without quotes is read as this text."""
        try:
            found = self._yaml.load(f"[{text}]" if is_flow else f"- {text}", Loader=self._loader)
        except self._yaml.YAMLError:
            return False
        return bool(found == [text])
