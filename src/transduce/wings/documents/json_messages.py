"""Reads .json files of i18next, of Chrome's extensions and of other programs, and Flutter's .arb files."""

import re
from collections.abc import Iterator
from itertools import chain

from transduce.system.errors import UserError
from transduce.text.formats import DocumentFile, TextPair
from transduce.wings.documents.document import Document, Edit, check_language
from transduce.wings.documents.json_tree import UNDERSTOOD, JsonFile, Node
from transduce.wings.documents.keyed import (
    OTHER,
    Form,
    KeyedFile,
    Message,
    Plural,
    keyed_document,
    pairs_by_key,
)
from transduce.wings.documents.plurals import CLDR_ORDER
from transduce.wings.documents.xml import indentation

# i18next: the category of a plural at the end of a key.
PLURAL_KEY = re.compile(
    rf"(?P<base>.+?(?P<ordinal>_ordinal)?)_(?P<category>{'|'.join(CLDR_ORDER)})"
)
# Keys of files that hold no texts, such as package.json.
CONFIGURATION_KEYS = frozenset(
    [
        "compilerOptions",
        "dependencies",
        "devDependencies",
        "lockfileVersion",
        "manifest_version",
        "openapi",
        "scripts",
        "swagger",
    ]
)
MIN_SHARE_OF_STRINGS = 0.5


def read_json(file: DocumentFile) -> Document:
    """The texts of an object and of the objects in it; of Chrome's messages.json, only the messages."""
    return keyed_document(file, _read_json(file))


def read_json_pairs(source: str, target: str) -> Iterator[TextPair]:
    """Pairs of the texts that have the same key in two .json files."""
    return pairs_by_key(source, target, _read_json)


def read_arb(file: DocumentFile) -> Document:
    """The messages, without their descriptions; the file's locale becomes the target language."""
    return keyed_document(file, _read_arb(file))


def read_arb_pairs(source: str, target: str) -> Iterator[TextPair]:
    """Pairs of the messages that have the same key in two .arb files."""
    return pairs_by_key(source, target, _read_arb)


def _read_json(file: DocumentFile) -> KeyedFile:
    parsed = JsonFile(file)
    members = parsed.root.children or {}
    of_chrome = [child.at("message") for child in members.values()]
    if members and all(node and node.text is not None for node in of_chrome):
        named = zip(members, of_chrome, strict=True)
        messages: list[Message | Plural] = [
            parsed.message(key, node) for key, node in named if node
        ]
    else:
        _refuse_data(parsed)
        messages = list(
            chain.from_iterable(_messages(parsed, *each) for each in parsed.containers())
        )
    return KeyedFile(parsed.content, parsed.codec, messages)


def _refuse_data(parsed: JsonFile) -> None:
    """Raise UserError for JSON that does not hold texts."""
    strings = 0
    values = 0
    for _, node in parsed.containers():
        values += node.values
        strings += sum(child.text is not None for child in (node.children or {}).values())
    is_configuration = CONFIGURATION_KEYS & {*(parsed.root.children or ())}
    if is_configuration or strings < MIN_SHARE_OF_STRINGS * (strings + values):
        raise UserError(f"{parsed.name} does not look like a file of texts.", UNDERSTOOD)


def _messages(parsed: JsonFile, path: str, node: Node) -> Iterator[Message | Plural]:
    """The messages of an object or an array, without those of the objects and arrays in it."""
    plurals: dict[str, dict[str, Form]] = {}
    for key, child in (node.children or {}).items():
        if child.text is None:
            continue
        message = parsed.message(f"{path}{key}", child)
        if not node.is_array and (plural := PLURAL_KEY.fullmatch(key)):
            end = child.key[1] - 1
            span = (end - len(plural["category"]), end)
            form = Form(message, child.key[0], child.end, span)
            plurals.setdefault(plural["base"], {})[plural["category"]] = form
        else:
            yield message
    for base, forms in plurals.items():
        if OTHER in forms and len(forms) > 1:
            separator = f",{indentation(parsed.content, forms[OTHER].begin)}"
            yield Plural(forms, separator, ordinal=base.endswith("_ordinal"))
        else:
            yield from (form.message for form in forms.values())


def _read_arb(file: DocumentFile) -> KeyedFile:
    parsed = JsonFile(file)
    members = parsed.root.children or {}
    messages = [
        parsed.message(key, node)
        for key, node in members.items()
        if node.text is not None and not key.startswith("@")
    ]
    locale = members.get("@@locale")
    completions = list[Edit]()
    if locale and locale.text and file.target:
        check_language(file.name, "from", locale.text, file.source)
        code = file.target.replace("-", "_")
        completions.append(Edit(locale.begin, locale.end, parsed.quoted(code)))
    return KeyedFile(parsed.content, parsed.codec, messages, tuple(completions))
