"""Reads files with the texts of one language by keys.

To translate such a file, its texts are replaced, and its plurals get the categories of the target language. Two such
files, in the source and the target language, are a corpus: texts with the same key are pairs.
"""

from collections.abc import Callable, Iterator

from transduce.inline.placeholders import mask
from transduce.system.errors import UserError
from transduce.text.formats import DocumentFile, TextPair
from transduce.text.plain import display_name, read_pieces, suffixes
from transduce.wings.documents.android import read_android
from transduce.wings.documents.document import Document
from transduce.wings.documents.fluent import read_fluent
from transduce.wings.documents.json_messages import read_arb, read_json
from transduce.wings.documents.key_values import read_properties, read_strings
from transduce.wings.documents.keyed import KeyedFile, Message, is_readable
from transduce.wings.documents.rails_yaml import read_rails
from transduce.wings.documents.resx import read_resx

READERS: dict[str, Callable[[DocumentFile], KeyedFile]] = {
    ".xml": read_android,
    ".json": read_json,
    ".arb": read_arb,
    ".strings": read_strings,
    ".properties": read_properties,
    ".ftl": read_fluent,
    ".resx": read_resx,
    ".resw": read_resx,
    ".yml": read_rails,
    ".yaml": read_rails,
}


def read_keyed(file: DocumentFile) -> Document:
    """The texts of a file with keys. Raises UserError for other content."""
    return _read(file).document(file.name, file.target)


def read_keyed_pairs(source: str, target: str) -> Iterator[TextPair]:
    """Pairs of the texts that have the same key in two files; raises UserError if no key is in both files."""
    messages, translations = (
        # a key may be repeated
        {
            message.key: message
            for message in _read(
                DocumentFile(b"".join(read_pieces(file)), display_name(file), "", "")
            ).numbered()
            if is_readable(message.text)
        }
        for file in (source, target)
    )
    pairs = [
        (_shown(message), _shown(translations[key]), message.line)
        for key, message in messages.items()
        if key in translations
    ]
    if messages and translations and not pairs:
        raise UserError(
            f"{source} and {target} have no key in common.", "Give the same file in two languages."
        )
    yield from pairs


def _read(file: DocumentFile) -> KeyedFile:
    return READERS[suffixes(file.name)[0]](file)


def _shown(message: Message) -> str:
    return mask(message.text, message.kind).text if message.kind.markup else message.text
