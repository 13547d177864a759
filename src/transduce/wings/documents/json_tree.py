"""Reads JSON into nodes that know their places in the file."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from transduce.system.errors import UserError
from transduce.text.formats import DocumentFile
from transduce.text.plain import BYTE_ORDER_MARK
from transduce.wings.documents.document import decode
from transduce.wings.documents.keyed import Message
from transduce.wings.documents.xml import indentation

JSON_TOKEN = re.compile(r'"(?:[^"\\]++|\\.)*+"|[{}\[\]]|[^\s{}\[\]",:]++')


@dataclass(slots=True)
class Node:
    """A string, an object or an array. Empty strings, numbers and the like have no nodes."""

    begin: int
    end: int
    path: str = ""  # stands for the keys that lead to the node; ends in the last key
    key: tuple[int, int] = (0, 0)  # the span of the last key, with its quotes
    text: str | None = None  # the value of a string
    is_array: bool = False
    # Of an object or an array, by key or index.
    children: dict[str, "Node"] = field(default_factory=dict)

    def at(self, *path: str) -> "Node | None":
        """The node to which a path of keys leads."""
        node: Node | None = self
        for key in path:
            node = node.children.get(key) if node else None
        return node


class JsonFile:
    """A JSON file that holds an object. Raises UserError for other content."""

    def __init__(self, file: DocumentFile) -> None:
        self.content, self.codec = decode(file.content, file.name)
        try:
            parsed = json.loads(self.content.removeprefix(BYTE_ORDER_MARK))
        except (ValueError, RecursionError) as error:
            place = getattr(error, "pos", 0)
            line = self.content.count("\n", 0, place) + 1
            raise UserError(f"{file.name}:{line}: not valid JSON: {error}.") from None
        if not isinstance(parsed, dict):
            raise not_texts(file.name)
        # Some programs write only ASCII.
        is_ascii = self.content.isascii() and "\\u" in self.content
        # Makes a string with quotes.
        self.quoted: Callable[[str], str] = partial(json.dumps, ensure_ascii=is_ascii)
        self.num_values = 0  # numbers and the like
        self.nodes = list[Node]()  # in file order
        self._parse()

    def _parse(self) -> None:
        opened = [Node(0, 0, is_array=True)]
        key: re.Match[str] | None = None
        for token in JSON_TOKEN.finditer(self.content):
            sign = token.group()[0]
            parent = opened[-1]
            if sign in "}]":
                opened.pop().end = token.end()
            elif not parent.is_array and key is None:
                key = token
            elif sign not in '{["' or token.group() == '""':
                key = None
                self.num_values += sign != '"'
            else:
                name = _value(key.group()) if key else f"{len(parent.children)}"
                span = key.span() if key else (0, 0)
                path = f"{hash(parent.path)} {name}"  # the whole path could be long
                node = Node(*token.span(), path, span, is_array=sign == "[")
                key = None
                parent.children[name] = node
                self.nodes.append(node)
                if sign == '"':
                    node.text = _value(token.group())
                else:
                    opened.append(node)

    def message(self, node: Node) -> Message:
        """The message of a string."""
        return Message(node.path, node.text or "", node.begin, node.end, self.quoted)

    def before(self, place: int) -> str:
        """The line break and the blanks before a place."""
        return indentation(self.content, place)


def not_texts(name: str) -> UserError:
    """The error for JSON that does not hold texts."""
    return UserError(
        f"{name} does not look like a file of texts.",
        "A .json file of texts is an object whose values are strings or such objects, as for i18next, or Chrome's "
        "messages.json. Rename a file of pairs to .jsonl.",
    )


def _value(string: str) -> str:
    text: str = json.loads(string) if "\\" in string else string[1:-1]
    return text
