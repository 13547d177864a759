"""Reads .json files of i18next, of Chrome's extensions and of other programs, and Flutter's .arb files."""

import re

from transduce.text.formats import DocumentFile
from transduce.wings.documents.document import Edit, check_language
from transduce.wings.documents.json_tree import JsonFile, Node, not_texts
from transduce.wings.documents.keyed import OTHER, Form, KeyedFile, Message, Plural
from transduce.wings.documents.plurals import CLDR_ORDER

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
    root, *others = parsed.nodes
    of_chrome = [node.at("message") for node in root.children.values()]
    spoken = [node for node in of_chrome if node and node.text is not None]
    if len(spoken) < len(of_chrome) or not spoken:
        spoken = [node for node in others if node.text is not None]
        if CONFIGURATION_KEYS & {*root.children} or parsed.num_values > len(spoken):
            raise not_texts(file.name)
    plurals: dict[str, dict[str, Form]] = {}
    messages = list[Message | Plural]()
    for node in spoken:
        message = parsed.message(node)
        plural = PLURAL_KEY.fullmatch(node.path)
        if plural and node.key[1]:
            end = node.key[1] - 1
            span = (end - len(plural["category"]), end)
            forms = plurals.setdefault(plural["base"], {})
            forms[plural["category"]] = Form(message, node.key[0], node.end, span)
        else:
            messages.append(message)
    for base, forms in plurals.items():
        if OTHER in forms and len(forms) > 1:
            separator = f",{parsed.before(forms[OTHER].begin)}"
            messages.append(Plural(forms, separator, base.endswith("_ordinal")))
        else:
            messages += [form.message for form in forms.values()]
    return KeyedFile(parsed.content, parsed.codec, messages)


def read_arb(file: DocumentFile) -> KeyedFile:
    """The messages, without their descriptions; the file's locale becomes the target language."""
    parsed = JsonFile(file)
    members = parsed.nodes[0].children
    messages = [
        parsed.message(node)
        for key, node in members.items()
        if node.text is not None and not key.startswith("@")
    ]
    completions = list[Edit]()
    locale: Node | None = members.get("@@locale")
    if locale and locale.text and file.target:
        check_language(file.name, "from", locale.text, file.source)
        code = parsed.quoted(file.target.replace("-", "_"))
        completions.append(Edit(locale.begin, locale.end, code))
    return KeyedFile(parsed.content, parsed.codec, messages, tuple(completions))
