"""Files with the texts of one language by keys, such as Android's `strings.xml`: what all their readers share."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

from transduce.inline.placeholders import intact
from transduce.text.formats import MESSAGE, TextKind
from transduce.text.jsonl import LONE_SURROGATE
from transduce.wings.documents.document import Document, Edit, Slot
from transduce.wings.documents.icu import branched
from transduce.wings.documents.plurals import CLDR_ORDER, categories

DEFAULT_MARK = "*"  # before a form in Fluent
OTHER = "other"  # the category of a plural that every language has


class Message(NamedTuple):
    """A text with a key; `begin` and `end` are indices of characters in the file."""

    key: str
    text: str
    begin: int
    end: int
    write: Callable[[str], str]  # converts a translation to the syntax of the file
    kind: TextKind = MESSAGE

    def slot(self, text: str, target: str) -> Slot:
        """The slot in which the translation of a text takes the place of this message's text."""
        branches = None if self.kind.markup else branched(text, target)
        place = (self.begin, self.end, self.write, self.kind)
        return Slot(text, self.text, 0, *place, branched=branches)


class Form(NamedTuple):
    """A plural form: its message, the span of its item in the file, and the span of the category's name."""

    message: Message
    begin: int
    end: int
    category: tuple[int, int]


class Plural(NamedTuple):
    """The forms of a message by the categories of plurals, such as "one" and "other"."""

    forms: dict[str, Form]
    separator: str  # characters between two forms
    ordinal: bool = False

    def slots(self, content: str, target: str) -> Iterator[Slot]:
        """The slots of the forms, and of forms that only the target language has; these come before "other"."""
        texts = {category: form.message.text for category, form in self.forms.items()}
        message, begin, end, name = self.forms[OTHER]
        for category, text in in_categories(texts, target, ordinal=self.ordinal).items():
            if category in self.forms:
                yield self.forms[category].message.slot(text, target)
                continue
            head = content[begin : name[0]]
            head = f" {head[1:]}" if head.startswith(DEFAULT_MARK) else head
            before = f"{head}{category}{content[name[1] : message.begin]}"

            def write(translation: str, before: str = before) -> str:
                after = f"{content[message.end : end]}{self.separator}"
                return f"{before}{message.write(translation)}{after}"

            slot = message.slot(text, target)
            yield slot._replace(present="", begin=begin, end=begin, write=write)


class KeyedFile(NamedTuple):
    """The content of a file and its messages."""

    content: str
    codec: str
    messages: Sequence[Message | Plural]
    completions: tuple[Edit, ...] = ()  # made if any message gets a translation

    def document(self, name: str, target: str) -> Document:
        """A document of the messages that are neither blank nor damaged."""
        slots = list[Slot]()
        for message in self.messages:
            if isinstance(message, Plural):
                slots += message.slots(self.content, target)
            else:
                slots.append(message.slot(message.text, target))
        spoken = sorted((slot for slot in slots if is_readable(slot.text)), key=_begin)
        for number, line in enumerate(self.lines(spoken)):
            spoken[number] = spoken[number]._replace(line=line)
        return Document(name, self.content, self.codec, tuple(spoken), self.completions)

    def single_messages(self) -> list[Message]:
        """The messages and plural forms that are neither blank nor damaged, in file order."""
        single = list[Message]()
        for message in self.messages:
            if isinstance(message, Plural):
                single += [form.message for form in message.forms.values()]
            else:
                single.append(message)
        last = {
            each.key: each for each in single if is_readable(each.text)
        }  # a key may be repeated
        return sorted(last.values(), key=_begin)

    def lines(self, places: Sequence[Message | Slot]) -> Iterator[int]:
        """The line numbers, from 1, of messages or slots in file order."""
        line = 1
        counted = 0
        for place in places:
            line += self.content.count("\n", counted, place.begin)
            counted = place.begin
            yield line


def in_categories(texts: Mapping[str, str], language: str, *, ordinal: bool) -> dict[str, str]:
    """The text to translate for each category of plurals that a language has or that `texts` has.

    `texts` must have the category "other". For an unknown language, or without Babel, no category is added.
    """
    other = texts[OTHER]
    one = texts.get("one", other)
    wanted = {*texts}
    with suppress(ValueError):
        is_singular, used = categories(language, ordinal=ordinal)
        wanted.update(used)
        if not (is_singular or intact(one, other, MESSAGE)):
            one = other  # "one" is also for 21, so its text can't be used
    return {
        category: one if category == "one" else texts.get(category, other)
        for category in CLDR_ORDER
        if category in wanted
    }


def is_readable(text: str) -> bool:
    """Whether a text is neither blank nor, because of a wrong escape, no Unicode."""
    return bool(text.strip()) and not LONE_SURROGATE.search(text)


def joined_surrogates(text: str) -> str:
    """A text in which the two halves of a character above U+FFFF, as in UTF-16, are one character."""
    if not LONE_SURROGATE.search(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def _begin(place: Message | Slot) -> int:
    return place.begin
