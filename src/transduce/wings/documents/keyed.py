"""Files with the texts of one language by keys, such as Android's `strings.xml`.

To translate such a file, its texts are replaced, and its plurals get the categories of the target language. Two such
files, in the source and the target language, are a corpus: texts with the same key are pairs.
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

from transduce.inline.placeholders import intact, mask
from transduce.system.errors import UserError
from transduce.text.formats import MESSAGE, DocumentFile, TextKind, TextPair
from transduce.text.jsonl import LONE_SURROGATE
from transduce.text.plain import display_name, read_pieces
from transduce.wings.documents.document import Document, Edit, Slot
from transduce.wings.documents.icu import branched
from transduce.wings.documents.plurals import CLDR_ORDER, categories

OTHER = "other"  # the category of a plural that every language has


@dataclass(frozen=True, slots=True)
class Message:
    """A text with a key; `begin` and `end` are indices of characters in the file."""

    key: str
    text: str
    line: int
    begin: int
    end: int
    write: Callable[[str], str]  # converts a translation to the syntax of the file
    kind: TextKind = MESSAGE

    def slot(self, text: str, target: str) -> Slot:
        """The slot in which the translation of a text takes the place of this message's text."""
        branches = None if self.kind.markup else branched(text, target)
        return Slot(
            text,
            self.text,
            self.line,
            self.begin,
            self.end,
            self.write,
            self.kind,
            branched=branches,
        )


class Form(NamedTuple):
    """A plural form: its message, the span of its item in the file, and the span of the category's name."""

    message: Message
    begin: int
    end: int
    category: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Plural:
    """The forms of a message by the categories of plurals, such as "one" and "other"."""

    forms: dict[str, Form]
    separator: str  # characters between two forms
    ordinal: bool = False

    @property
    def messages(self) -> list[Message]:
        return [form.message for form in self.forms.values()]

    def slots(self, content: str, target: str) -> Iterator[Slot]:
        """The slots of the forms, and of forms that only the target language has; these come before "other"."""
        texts = {category: form.message.text for category, form in self.forms.items()}
        template = self.forms[OTHER]
        message = template.message
        for category, text in in_categories(texts, target, ordinal=self.ordinal).items():
            if form := self.forms.get(category):
                yield form.message.slot(text, target)
                continue
            before = f"{content[template.begin : template.category[0]]}{category}"
            before += content[template.category[1] : message.begin]
            after = content[message.end : template.end] + self.separator

            def write(translation: str, before: str = before, after: str = after) -> str:
                return f"{before}{message.write(translation)}{after}"

            begin = template.begin
            slot = message.slot(text, target)
            yield slot._replace(present="", begin=begin, end=begin, write=write)


class LineNumbers:
    """The line numbers of the characters of a file."""

    def __init__(self, content: str) -> None:
        self._ends = [match.start() for match in re.finditer("\n", content)]

    def of(self, place: int) -> int:
        """The number of the line, from 1, with the character at an index."""
        return bisect_right(self._ends, place - 1) + 1


class KeyedFile(NamedTuple):
    """The content of a file and its messages in file order."""

    content: str
    codec: str
    messages: Sequence[Message | Plural]
    completions: tuple[Edit, ...] = ()  # made if any message gets a translation


def in_categories(texts: Mapping[str, str], language: str, *, ordinal: bool) -> dict[str, str]:
    """The text to translate for each category of plurals that a language has or that `texts` has.

    `texts` must have the category "other". Without Babel, no category is added.
    """
    other = texts[OTHER]
    one = texts.get("one", other)
    is_singular = True
    used = list[str]()
    with suppress(ValueError):  # for an unknown language
        is_singular, used = categories(language, ordinal=ordinal)
    if not (is_singular or intact(one, other, MESSAGE)):
        one = other  # "one" is also for 21, so its text can't be used
    wanted = {*texts, *used}
    return {
        category: one if category == "one" else texts.get(category, other)
        for category in CLDR_ORDER
        if category in wanted
    }


def keyed_document(file: DocumentFile, keyed: KeyedFile) -> Document:
    """A document of the messages that are not blank."""
    slots = list[Slot]()
    for message in keyed.messages:
        if isinstance(message, Plural):
            slots += message.slots(keyed.content, file.target)
        else:
            slots.append(message.slot(message.text, file.target))
    spoken = (slot for slot in slots if is_readable(slot.text))
    in_order = tuple(sorted(spoken, key=lambda slot: slot.begin))
    return Document(file.name, keyed.content, keyed.codec, in_order, keyed.completions)


def pairs_by_key(
    source: str, target: str, read: Callable[[DocumentFile], KeyedFile]
) -> Iterator[TextPair]:
    """Pairs of the texts that have the same key in two files; raises UserError if no key is in both files."""
    spoken, written = (_by_key(file, read) for file in (source, target))
    if spoken and written and not spoken.keys() & written.keys():
        raise UserError(
            f"{source} and {target} have no key in common.",
            "Give the same file in two languages.",
        )
    for key, message in spoken.items():
        if key in written:
            yield _shown(message), _shown(written[key]), message.line


def _by_key(file: str, read: Callable[[DocumentFile], KeyedFile]) -> dict[str, Message]:
    content = b"".join(read_pieces(file))
    keyed = read(DocumentFile(content, display_name(file), "", ""))
    messages = (
        message
        for each in keyed.messages
        for message in (each.messages if isinstance(each, Plural) else [each])
    )
    in_order = sorted(messages, key=lambda message: message.begin)
    return {message.key: message for message in in_order if is_readable(message.text)}


def joined_surrogates(text: str) -> str:
    """A text in which the two halves of a character above U+FFFF, as in UTF-16, are one character."""
    if not LONE_SURROGATE.search(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def is_readable(text: str) -> bool:
    """Whether a text is neither blank nor, by a damaged escape, no Unicode."""
    return bool(text.strip()) and not LONE_SURROGATE.search(text)


def _shown(message: Message) -> str:
    return mask(message.text, message.kind).text if message.kind.markup else message.text
