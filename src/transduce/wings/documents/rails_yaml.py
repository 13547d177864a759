"""Reads the .yml files of Ruby on Rails, whose root key is the language. PyYAML finds the places of the texts."""

import json
import re
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
# A list of Ruby's symbols, which PyYAML refuses. As tags they have the same length.
RUBY_SYMBOLS = re.compile(r"(?m)^\s*[\w-]+:\s*\[\s*:\w+(?:\s*,\s*:\w+)*\s*\]\s*$")
RUBY_SYMBOL = re.compile(r":(?=\w)")
# Characters that only a text in double quotes may have, as an escape.
YAML_ESCAPED = re.compile(
    "[^\t\n\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]"
)
# The beginning of a block, up to the first character of its text.
YAML_BLOCK = re.compile(r"[^\r\n]*(?P<end>\r?\n)(?:[ \t]*\r?\n)*(?P<indent>[ ]*)")
# A text that a block can't express.
NOT_IN_BLOCK = re.compile(r"(?:\A|\n)[ \t]|\A\n|\A\Z")


def read_rails(file: DocumentFile) -> KeyedFile:
    """The texts under the language, which becomes the target language. Raises UserError for other YAML."""
    content, codec = decode(file.content, file.name)
    yaml = _Yaml(content)
    root = yaml.root(file.name)
    pairs = root.value if root and root.id == "mapping" else []
    language = pairs[0][0] if len(pairs) == 1 and pairs[0][1].id == "mapping" else None
    if language is None or language.id != "scalar" or not spoken_language(language.value):
        raise UserError(
            f"{file.name} is not a file of texts of Ruby on Rails: it needs one root key, the language.",
            "Convert other YAML to .po, for example with yaml2po of the Translate Toolkit.",
        )
    check_language(file.name, "from", language.value, file.source)
    code = yaml.write(file.target.replace("_", "-"), language.style, is_flow=False, raw="")
    messages = yaml.messages(pairs[0][1])
    return KeyedFile(content, codec, messages, (Edit(*yaml.span(language), code),))


class _Yaml:
    """The content of a file, and PyYAML."""

    def __init__(self, content: str) -> None:
        with needing("documents", "Reading YAML"):
            import yaml
        self._yaml = yaml
        self._loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        self._content = content
        self._begin = len(content) - len(content.removeprefix(BYTE_ORDER_MARK))

    def root(self, name: str) -> Any:
        """The outermost node. Raises UserError for a file that is not YAML."""
        content = RUBY_SYMBOLS.sub(_as_tags, self._content[self._begin :])
        try:
            return self._yaml.compose(content, Loader=self._loader)
        except (self._yaml.YAMLError, RecursionError) as error:
            mark = getattr(error, "problem_mark", None)
            place = f"{name}:{mark.line + 1}" if mark else name
            problem = getattr(error, "problem", None) or "a character is not allowed"
            raise UserError(f"{place}: not valid YAML: {problem}.") from None

    def messages(self, root: Any) -> list[Message | Plural]:
        """The texts of a mapping and of the collections in it."""
        found = list[Message | Plural]()
        waiting: list[tuple[str, Any, bool]] = [("", root, False)]  # is_flow: of the parent
        read = set[int]()  # an alias is the same node
        while waiting:
            path, node, is_flow = waiting.pop()
            if id(node) in read:
                continue
            read.add(id(node))
            if node.id == "scalar":
                if node.tag == YAML_STRING_TAG and not RUBY_SYMBOL.match(node.value):
                    found.append(self._message(path, node, is_flow))
            elif node.id == "sequence":
                for number, child in enumerate(node.value):
                    waiting.append((f"{hash(path)} {number}", child, bool(node.flow_style)))
            elif plural := self._plural(path, node):
                found.append(plural)
            else:
                for key, child in node.value:
                    name = key.value if key.id == "scalar" else key.start_mark.index
                    waiting.append((f"{hash(path)} {name}", child, bool(node.flow_style)))
        return found

    def _plural(self, path: str, node: Any) -> Plural | None:
        """The plural of a mapping whose keys are categories, with two or more texts."""
        forms = dict[str, Form]()
        for key, value in node.value:
            if key.value not in CLDR_ORDER or value.tag != YAML_STRING_TAG:
                return None
            message = self._message(f"{hash(path)} {key.value}", value, bool(node.flow_style))
            first, last = self.span(key)
            quote = 1 if key.style else 0
            forms[key.value] = Form(message, first, message.end, (first + quote, last - quote))
        if OTHER not in forms or len(forms) < 2:
            return None
        before = indentation(self._content, forms[OTHER].begin)
        return Plural(forms, ", " if node.flow_style else before)

    def span(self, node: Any) -> tuple[int, int]:
        """The indices of a scalar, without anchor, tag and the line end of a block."""
        begin = node.start_mark.index + self._begin
        properties = YAML_PROPERTIES.match(self._content, begin)
        begin = properties.end() if properties else begin
        raw = self._content[begin : node.end_mark.index + self._begin]
        return begin, begin + len(raw.rstrip() if node.style in BLOCK_STYLES else raw)

    def _message(self, path: str, node: Any, is_flow: bool) -> Message:
        begin, end = self.span(node)
        text = node.value.rstrip("\n") if node.style in BLOCK_STYLES else node.value
        raw = self._content[begin:end]
        write = partial(self.write, style=node.style, is_flow=is_flow, raw=raw)
        return Message(path, text, begin, end, write)

    def write(self, text: str, style: str | None, *, is_flow: bool, raw: str) -> str:
        """A scalar in the style of `raw`, or in double quotes if this style can't express the text."""
        if not YAML_ESCAPED.search(text):
            if style in BLOCK_STYLES and not NOT_IN_BLOCK.search(text):
                block = YAML_BLOCK.match(raw)
                assert block is not None
                gap = block["end"] * (2 if style == ">" else 1) + block["indent"]
                return block.group() + text.replace("\n", gap)
            if style == "'" and "\n" not in text:
                return "'{}'".format(text.replace("'", "''"))
            if not style and self._is_plain(text, is_flow):
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


def _as_tags(symbols: re.Match[str]) -> str:
    key, _, values = symbols[0].partition("[")
    return f"{key}[{RUBY_SYMBOL.sub('!', values)}"
