"""Reads JSON into nodes that know their places in the file."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

from transduce.system.errors import UserError
from transduce.text.formats import DocumentFile
from transduce.text.plain import BYTE_ORDER_MARK
from transduce.wings.documents.document import decode
from transduce.wings.documents.keyed import LineNumbers, Message

JSON_TOKEN = re.compile(r'"(?:[^"\\]++|\\.)*+"|[{}\[\]]|[^\s{}\[\]",:]++')

UNDERSTOOD = (
    "A .json file of texts is an object whose values are strings or such objects, as for i18next, or Chrome's "
    "messages.json. Rename a file of pairs to .jsonl."
)


@dataclass(slots=True)
class Node:
    """A string, an object or an array."""

    begin: int
    end: int
    text: str | None = None  # the value of a string
    # Of an object or an array, by key or index. Numbers and the like are only counted.
    children: "dict[str, Node] | None" = None
    is_array: bool = False
    key: tuple[int, int] = (0, 0)  # the span of the key in an object, with its quotes
    values: int = 0  # the number of children that are neither strings nor objects nor arrays

    def at(self, *path: str) -> "Node | None":
        """The node to which a path of keys leads."""
        node: Node | None = self
        for key in path:
            node = (node.children or {}).get(key) if node else None
        return node


class JsonFile:
    """A JSON file that holds an object. Raises UserError for other content."""

    def __init__(self, file: DocumentFile) -> None:
        self.name = file.name
        self.content, self.codec = decode(file.content, file.name)
        try:
            json.loads(self.content.removeprefix(BYTE_ORDER_MARK))
        except json.JSONDecodeError as error:
            place = f"{file.name}:{error.lineno}"
            raise UserError(
                f"{place}: not valid JSON: {error.msg} at column {error.colno}."
            ) from None
        except (ValueError, RecursionError) as error:
            raise UserError(f"{file.name}: not valid JSON: {error}.") from None
        self.root = _parse(self.content)
        if self.root.children is None or self.root.is_array:
            raise UserError(f"{file.name} does not look like a file of texts.", UNDERSTOOD)
        self._lines = LineNumbers(self.content)
        # Some programs write only ASCII.
        self._ascii = self.content.isascii() and "\\u" in self.content

    def containers(self) -> Iterator[tuple[str, Node]]:
        """All objects and arrays, each with the path of its keys."""
        waiting = [("", self.root)]
        while waiting:
            path, node = waiting.pop()
            yield path, node
            for key, child in (node.children or {}).items():
                if child.children is not None:
                    waiting.append((f"{path}{key}\0", child))

    def message(self, key: str, node: Node) -> Message:
        """The message of a string."""
        text = node.text or ""
        return Message(key, text, self.line(node), node.begin, node.end, self.quoted)

    def line(self, node: Node) -> int:
        """The number of the line in which a node begins."""
        return self._lines.of(node.begin)

    def quoted(self, text: str) -> str:
        """A string with quotes."""
        return json.dumps(text, ensure_ascii=self._ascii)


def _parse(content: str) -> Node:
    """The outermost node of valid JSON."""
    root = Node(0, 0, children={}, is_array=True)
    opened = [root]
    key: re.Match[str] | None = None
    for token in JSON_TOKEN.finditer(content):
        sign = token.group()[0]
        parent = opened[-1]
        if sign in "}]":
            opened.pop().end = token.end()
            continue
        if not parent.is_array and key is None:
            key = token
            continue
        name = _value(key.group()) if key else f"{len(parent.children or ())}"
        span = key.span() if key else (0, 0)
        key = None
        if sign in '{["':
            node = Node(*token.span(), is_array=sign == "[", key=span)
            if sign == '"':
                node.text = _value(token.group())
            else:
                node.children = {}
                opened.append(node)
            assert parent.children is not None
            parent.children[name] = node
        else:
            parent.values += 1
    return next(iter((root.children or {}).values()), root)


def _value(string: str) -> str:
    return json.loads(string) if "\\" in string else string[1:-1]
