"""Files with the texts of one language by keys, such as Android's `strings.xml`: what all their readers share."""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from operator import attrgetter
from typing import NamedTuple

from transduce.text.formats import MESSAGE, TextKind
from transduce.text.jsonl import LONE_SURROGATE
from transduce.wings.documents.document import Document, Edit, LineCounter, Slot
from transduce.wings.documents.icu import branched
from transduce.wings.documents.plurals import CLDR_ORDER, OTHER, in_categories


class Form(NamedTuple):
    """The category of a message in a plural, and the places of the message's item and of the category's name."""

    plural: str  # the same for all forms of a plural
    category: str  # such as "one"; a plural has no other words
    begin: int
    end: int
    name: tuple[int, int]
    separator: str  # characters between two forms
    ordinal: bool = False
    before_name: str = ""  # characters before the name of another category


class Message(NamedTuple):
    """A text with a key; `begin` and `end` are indices of characters in the file."""

    key: str
    text: str
    begin: int
    end: int
    write: Callable[[str], str]  # converts a translation to the syntax of the file
    kind: TextKind = MESSAGE
    form: Form | None = None
    line: int = 0

    def slot(self, text: str, target: str) -> Slot:
        """The slot in which the translation of a text takes the place of this message's text."""
        branches = None if self.kind.markup else branched(text, target)
        place = (self.line, self.begin, self.end, self.write, self.kind)
        return Slot(text, self.text, *place, branched=branches)


class KeyedFile(NamedTuple):
    """The content of a file and its messages, in file order."""

    content: str
    codec: str
    messages: Iterable[Message]
    completions: tuple[Edit, ...] = ()  # made if any message gets a translation
    min_forms: int = 2  # messages with fewer forms are no plural

    def numbered(self) -> Iterator[Message]:
        """The messages with their lines."""
        lines = LineCounter(self.content)
        for message in self.messages:
            yield message._replace(line=lines.line(message.begin))

    def document(self, name: str, target: str) -> Document:
        """A document of the messages that are neither blank nor damaged."""
        slots = list[Slot]()
        plurals: dict[str, dict[str, Message]] = {}
        for message in self.numbered():
            if message.form:
                forms = plurals.setdefault(message.form.plural, {})
                forms[message.form.category] = message
            else:
                slots.append(message.slot(message.text, target))
        for forms in plurals.values():
            slots += self._forms(forms, target)
        spoken = sorted((slot for slot in slots if is_readable(slot.text)), key=attrgetter("begin"))
        return Document(name, self.content, self.codec, tuple(spoken), self.completions)

    def _forms(self, forms: dict[str, Message], target: str) -> Iterator[Slot]:
        """The slots of the forms, and of forms that only the target language has; these come before "other"."""
        texts = {category: message.text for category, message in forms.items()}
        ordinal = any(message.form and message.form.ordinal for message in forms.values())
        if OTHER in forms and len(forms) >= self.min_forms and forms.keys() <= {*CLDR_ORDER}:
            texts = in_categories(texts, target, ordinal=ordinal)
        for category, text in texts.items():
            if category in forms:
                yield forms[category].slot(text, target)
            else:
                yield self._added(forms[OTHER], category).slot(text, target)._replace(present="")

    def _added(self, other: Message, category: str) -> Message:
        """The message of a new form before the form "other"."""
        form = other.form
        assert form is not None
        head = f"{self.content[form.begin : form.name[0]]}{form.before_name}{category}"
        before = f"{head}{self.content[form.name[1] : other.begin]}"
        after = f"{self.content[other.end : form.end]}{form.separator}"
        write = partial(_around, before, other.write, after)
        return other._replace(begin=form.begin, end=form.begin, write=write)


def is_readable(text: str) -> bool:
    """Whether a text is neither blank nor, because of a wrong escape, no Unicode."""
    return bool(text.strip()) and not LONE_SURROGATE.search(text)


def joined_surrogates(text: str) -> str:
    """A text in which the two halves of a character above U+FFFF, as in UTF-16, are one character."""
    if not LONE_SURROGATE.search(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def _around(before: str, write: Callable[[str], str], after: str, translation: str) -> str:
    return f"{before}{write(translation)}{after}"
