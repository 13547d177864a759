"""Reads .json files of i18next, of Chrome's extensions and of other programs, and Flutter's .arb files."""

import re
from typing import Any

from transduce.text.formats import DocumentFile
from transduce.wings.documents.document import Edit, check_language
from transduce.wings.documents.json_tree import JsonFile, Member, not_texts
from transduce.wings.documents.keyed import Form, KeyedFile, Message
from transduce.wings.documents.plurals import CLDR_ORDER
from transduce.wings.documents.xml import indentation

# i18next: the category of a plural at the end of a key.
PLURAL_KEY = re.compile(rf"(?P<base>.+?)_(?P<category>{'|'.join(CLDR_ORDER)})", re.DOTALL)
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


def read_json(file: DocumentFile) -> KeyedFile:
    """The strings of an object and of the objects in it; of Chrome's messages.json, only the messages."""
    parsed = JsonFile(file)
    are_of_chrome = {each.name: _is_of_chrome(each.value) for each in parsed.members()}
    members = parsed.leaves()
    is_of_chrome = all(are_of_chrome.values())
    if is_of_chrome:
        inside = (member for entry in parsed.members() for member in parsed.members(entry))
        members = (member for member in inside if member.name == "message")
    num_values = 0  # numbers and the like
    messages = list[Message]()
    for member in members:
        if member.is_text:
            messages.append(_message(parsed, member))
        else:
            num_values += 1
    has_settings = CONFIGURATION_KEYS & are_of_chrome.keys() or num_values > len(messages)
    if has_settings and not is_of_chrome:
        raise not_texts(file.name)
    return KeyedFile(parsed.content, parsed.codec, messages)


def _is_of_chrome(entry: Any) -> bool:
    return isinstance(entry, dict) and isinstance(entry.get("message"), str)


def _message(parsed: JsonFile, member: Member) -> Message:
    message = parsed.message(member)
    plural = PLURAL_KEY.fullmatch(member.path)
    if plural is None or not member.key[1]:
        return message
    begin, end = member.key
    name = (end - 1 - len(plural["category"]), end - 1)
    separator = f",{indentation(parsed.content, begin)}"
    ordinal = plural["base"].endswith("_ordinal")
    return message._replace(
        form=Form(plural["base"], plural["category"], begin, member.end, name, separator, ordinal)
    )


def read_arb(file: DocumentFile) -> KeyedFile:
    """The messages, without their descriptions; the file's locale becomes the target language."""
    parsed = JsonFile(file)
    messages = list[Message]()
    completions = list[Edit]()
    for member in filter(lambda member: member.is_text, parsed.members()):
        if not member.name.startswith("@"):
            messages.append(parsed.message(member))
        elif member.name == "@@locale" and file.target:
            check_language(file.name, "from", member.value, file.source)
            code = parsed.quoted(file.target.replace("-", "_"))
            completions.append(Edit(member.begin, member.end, code))
    return KeyedFile(parsed.content, parsed.codec, messages, tuple(completions))
