"""Reads JSON with the places of its values in the file."""

import json
import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

from transduce.system.errors import UserError
from transduce.text.formats import DocumentFile
from transduce.text.plain import BYTE_ORDER_MARK
from transduce.wings.documents.document import decode
from transduce.wings.documents.keyed import Message

# What stands before the value of a member of an object, or before an item of an array.
MEMBER = re.compile(r'[\s,]*+(?:(?P<key>"(?:[^"\\]++|\\.)*+")\s*:\s*)?')
JSON_DECODER = json.JSONDecoder()
MAX_JSON_LEVELS = 20  # deeper texts are not read


class Member(NamedTuple):
    """A member of an object or an item of an array."""

    path: str  # stands for the keys that lead to the value; ends in the last key
    name: str  # the key, or the number of the item
    key: tuple[int, int]  # the span of the key, with its quotes
    value: Any
    begin: int
    end: int

    @property
    def is_text(self) -> bool:
        return isinstance(self.value, str)


class JsonFile:
    """A JSON file that holds an object. Raises UserError for other content."""

    def __init__(self, file: DocumentFile) -> None:
        self._name = file.name
        self.content, self.codec = decode(file.content, file.name)
        try:
            is_object = isinstance(json.loads(self.content.removeprefix(BYTE_ORDER_MARK)), dict)
        except (ValueError, RecursionError) as error:
            place = getattr(error, "pos", 0)
            line = self.content.count("\n", 0, place) + 1
            raise UserError(f"{file.name}:{line}: not valid JSON: {error}.") from None
        if not is_object:
            raise not_texts(file.name)
        # Some programs write only ASCII.
        is_ascii = self.content.isascii() and "\\u" in self.content
        # Makes a string with quotes.
        self.quoted: Callable[[str], str] = partial(json.dumps, ensure_ascii=is_ascii)

    def members(self, parent: Member | None = None) -> Iterator[Member]:
        """The members of an object, or the items of an array; without an argument, of the outermost object."""
        path = f"{hash(parent.path)} " if parent else ""  # the whole path could be long
        at = (parent.begin if parent else self.content.index("{")) + 1
        number = 0
        if parent and not isinstance(parent.value, dict | list):
            return
        while (place := MEMBER.match(self.content, at)) and self.content[place.end()] not in "]}":
            begin = place.end()
            try:
                value, at = JSON_DECODER.raw_decode(self.content, begin)
            except RecursionError:
                raise not_texts(self._name) from None
            name = json.loads(place["key"]) if place["key"] else f"{number}"
            yield Member(f"{path}{name}", name, place.span("key"), value, begin, at)
            number += 1

    def leaves(
        self, parent: Member | None = None, levels: int = MAX_JSON_LEVELS
    ) -> Iterator[Member]:
        """The members at any level that are neither objects nor arrays."""
        for member in self.members(parent):
            if isinstance(member.value, dict | list) and levels:
                yield from self.leaves(member, levels - 1)
            else:
                yield member

    def message(self, member: Member) -> Message:
        """The message of a string."""
        return Message(member.path, member.value, member.begin, member.end, self.quoted)


def not_texts(name: str) -> UserError:
    """The error for JSON that does not hold texts."""
    return UserError(
        f"{name} does not look like a file of texts.",
        "A .json file of texts is an object whose values are strings or such objects, as for i18next, or Chrome's "
        "messages.json. Rename a file of pairs to .jsonl.",
    )
