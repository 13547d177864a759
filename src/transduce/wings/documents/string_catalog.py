"""Reads Apple's string catalogs (.xcstrings), which hold each text with its translations."""

import json
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

from transduce.system.errors import UserError
from transduce.text.formats import MESSAGE, CorpusFile, DocumentFile, TextPair
from transduce.text.languages import nearest_code
from transduce.text.plain import display_name, read_pieces
from transduce.wings.documents.document import Document, LineCounter, Slot, check_language
from transduce.wings.documents.json_tree import JsonFile, Member
from transduce.wings.documents.keyed import is_readable
from transduce.wings.documents.plurals import OTHER, in_categories

STRING_UNIT = "stringUnit"
LOCALIZATIONS = "localizations"
NEW_STATE = "new"  # the state of a text without a translation
MAX_VARIATION_LEVELS = 12


class _Entry(NamedTuple):
    """A text of a catalog."""

    member: Member
    line: int
    target: Any  # the localisation for the target language
    source: str  # the localisation for the source language, as JSON
    in_language: Callable[[dict[str, Any]], dict[str, Any]]  # makes the objects of a new one
    code: str  # of the target language
    indent: str  # the line break and the blanks before a localisation in Xcode's style

    @property
    def is_translated(self) -> bool:
        units = _units(self.target).values()
        return bool(units) and all(
            unit["value"].strip() and unit.get("state") != NEW_STATE for unit in units
        )

    @property
    def texts(self) -> list[str]:
        return [unit["value"] for unit in _units(self.made()).values()]

    def made(self) -> Any:
        """The new localisation, with the texts of the source language."""
        return json.loads(self.source, object_hook=self.in_language)

    def write(self, translations: Sequence[str]) -> str:
        """The new localisation in Xcode's style; "" if a translation is missing."""
        made = self.made()
        for unit, translation in zip(_units(made).values(), translations, strict=True):
            unit["value"] = translation
        text = json.dumps(made, indent=2, ensure_ascii=False, separators=(",", " : "))
        return text.replace("\n", self.indent) if all(translations) else ""


def read_catalog(file: DocumentFile) -> Document:
    """The texts without a translation, or all if `file.redo` is true.

    `shouldTranslate` may forbid the translation. The plurals get the categories of the target language.
    """
    parsed = JsonFile(file)
    slots = list[Slot]()
    for entry in _entries(parsed, file):
        texts = entry.texts
        if texts and all(map(is_readable, texts)) and (file.redo or not entry.is_translated):
            begin, end, around = _place(parsed, entry)
            place = (parsed.content[begin:end], entry.line, begin, end, around.format, MESSAGE)
            slots.append(Slot(texts[0], *place, branched=entry))
    return Document(file.name, parsed.content, parsed.codec, tuple(slots))


def _place(parsed: JsonFile, entry: _Entry) -> tuple[int, int, str]:
    """The begin and end of the localisation for the target language or of the place for one, and what is around it."""
    parent = entry.member
    inner = {each.name: each for each in parsed.members(parent)}
    before = f'{entry.indent}"{entry.code}" : {{}}'
    if own := inner.get(LOCALIZATIONS):
        parent = own
        inner = {each.name: each for each in parsed.members(parent)}
        if target := inner.get(entry.code):
            return target.begin, target.end, "{}"
    else:
        outer = entry.indent.removesuffix("  ")
        before = f'{outer}"{LOCALIZATIONS}" : {{{{{before}{outer}}}}}'
    end = parent.begin + len(parsed.content[parent.begin : parent.end - 1].rstrip())
    return end, end, f"{',' if inner else ''}{before}"


def read_catalog_pairs(file: CorpusFile) -> Iterator[TextPair]:
    """Pairs of the texts that have a translation, and of their variations."""
    content = b"".join(read_pieces(file.path))
    catalog = DocumentFile(content, display_name(file.path), *file.languages)
    for entry in _entries(JsonFile(catalog), catalog):
        written = _units(entry.target) if entry.is_translated else {}
        for path, unit in _units(entry.made()).items():
            if path in written and is_readable(f"{unit['value']}{written[path]['value']}"):
                yield unit["value"], written[path]["value"], entry.line


def _entries(parsed: JsonFile, file: DocumentFile) -> Iterator[_Entry]:
    """The entries that may be translated. Raises UserError for other JSON, and for another source language."""
    top = {member.name: member for member in parsed.members()}
    spoken = top["sourceLanguage"].value if {"sourceLanguage", "strings"} <= top.keys() else None
    if not isinstance(spoken, str):
        raise UserError(f"{file.name} is not a string catalog: it has no source language.")
    check_language(file.name, "from", spoken, file.source)
    members = [each for each in parsed.members(top["strings"]) if _is_open(each.value)]
    top.clear()  # the values of the whole file
    codes = {code for each in members for code in each.value.get(LOCALIZATIONS, {})} - {spoken}
    code = nearest_code(file.target, codes) or file.target.replace("_", "-")
    state = "needs_review" if file.needs_review else "translated"
    in_language = partial(_in_language, state, file.target)
    lines = LineCounter(parsed.content)
    indent = "\r\n        " if "\r\n" in parsed.content else "\n        "
    for member in members:
        localisations = member.value.get(LOCALIZATIONS, {})
        source = localisations.get(spoken, {STRING_UNIT: {"value": member.name}})
        texts = (json.dumps(source), in_language)
        yield _Entry(
            member, lines.line(member.begin), localisations.get(code), *texts, code, indent
        )


def _is_open(entry: Any) -> bool:
    """Whether the value of an entry is valid and may be translated."""
    return (
        isinstance(entry, dict)
        and entry.get("shouldTranslate") is not False
        and isinstance(entry.get(LOCALIZATIONS, {}), dict)
    )


def _units(value: Any, path: str = "", levels: int = MAX_VARIATION_LEVELS) -> dict[str, Any]:
    """The texts of a localisation with their states, by the names of the variations."""
    units = dict[str, Any]()
    for name, each in value.items() if isinstance(value, dict) and levels else ():
        if name == STRING_UNIT and isinstance(each, dict) and isinstance(each.get("value"), str):
            units[path] = each
        else:
            units |= _units(each, f"{path}\0{name}", levels - 1)
    return units


def _in_language(state: str, language: str, value: dict[str, Any]) -> dict[str, Any]:
    """Give an object of a localisation the state of its translation and the categories of a language."""
    units = _units(value.get("plural"), levels=2)
    texts = {path[1:]: unit["value"] for path, unit in units.items()}
    if OTHER in texts:
        value["plural"] = {
            category: {STRING_UNIT: {"state": state, "value": text}}
            for category, text in in_categories(texts, language, ordinal=False).items()
        }
    for unit in _units(value, levels=1).values():
        value[STRING_UNIT] = {"state": state, "value": unit["value"]}
    return value
