"""Reads Apple's string catalogs (.xcstrings), which hold each text with its translations."""

import json
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

from transduce.system.errors import UserError
from transduce.text.formats import MESSAGE, CorpusFile, DocumentFile, TextPair
from transduce.text.languages import nearest_code
from transduce.text.plain import display_name, read_pieces
from transduce.wings.documents.document import Document, LineCounter, Slot, check_language
from transduce.wings.documents.json_tree import JsonFile, Member
from transduce.wings.documents.keyed import OTHER, in_categories, is_readable

STRING_UNIT = "stringUnit"
LOCALIZATIONS = "localizations"
NEW_STATE = "new"  # the state of a text without a translation
MAX_VARIATION_LEVELS = 12


class _Entry(NamedTuple):
    """A text of a catalog. Its translations are written with the whole entry."""

    member: Member
    line: int
    codes: tuple[str, str]  # in the catalog, of the source and the target language
    file: DocumentFile
    line_break: str

    def localisation(self, language: int) -> Any:
        """The localisation for the source language, if `language` is 0, or for the target language."""
        key: Any = {STRING_UNIT: {"state": NEW_STATE, "value": self.member.name}}
        default = {} if language else key
        return self.member.value.get(LOCALIZATIONS, {}).get(self.codes[language], default)

    @property
    def is_translated(self) -> bool:
        units = _units(self.localisation(1)).values()
        return bool(units) and all(
            unit["value"].strip() and unit.get("state") != NEW_STATE for unit in units
        )

    @property
    def texts(self) -> list[str]:
        return [unit["value"] for unit in _units(self._made()).values()]

    def write(self, translations: Sequence[str]) -> str:
        """The entry in Xcode's style, with a localisation for the target language; "" if a translation is missing."""
        made = self._made()
        state = "needs_review" if self.file.needs_review else "translated"
        for unit, translation in zip(_units(made).values(), translations, strict=True):
            unit |= {"state": state, "value": translation}
        value = self.member.value
        localisations = {**value.get(LOCALIZATIONS, {}), self.codes[1]: made}
        entry = {**value, LOCALIZATIONS: localisations}
        text = json.dumps(entry, indent=2, ensure_ascii=False, separators=(",", " : "))
        return text.replace("\n", f"{self.line_break}    ") if all(translations) else ""

    def _made(self) -> Any:
        """The localisation for the target language, with the texts of the source."""
        source = json.dumps(self.localisation(0))
        return json.loads(source, object_hook=partial(_in_language, self.file.target))


def read_catalog(file: DocumentFile) -> Document:
    """The texts without a translation, or all if `file.redo` is true.

    `shouldTranslate` may forbid the translation. The plurals get the categories of the target language.
    """
    parsed = JsonFile(file)
    slots = list[Slot]()
    for entry in _entries(parsed, file):
        texts = entry.texts
        if texts and all(map(is_readable, texts)) and (file.redo or not entry.is_translated):
            begin = entry.member.begin
            end = entry.member.end
            place = (parsed.content[begin:end], entry.line, begin, end, str, MESSAGE)
            slots.append(Slot(texts[0], *place, branched=entry))
    return Document(file.name, parsed.content, parsed.codec, tuple(slots))


def read_catalog_pairs(file: CorpusFile) -> Iterator[TextPair]:
    """Pairs of the texts that have a translation, and of their variations."""
    content = b"".join(read_pieces(file.path))
    catalog = DocumentFile(content, display_name(file.path), *file.languages)
    for entry in _entries(JsonFile(catalog), catalog):
        written = _units(entry.localisation(1)) if entry.is_translated else {}
        for path, unit in _units(entry.localisation(0)).items():
            if path in written:
                yield unit["value"], written[path]["value"], entry.line


def _entries(parsed: JsonFile, file: DocumentFile) -> Iterator[_Entry]:
    """The entries that may be translated. Raises UserError for other JSON, and for another source language."""
    spoken = parsed.root.get("sourceLanguage")
    if not (isinstance(spoken, str) and isinstance(parsed.root.get("strings"), dict)):
        raise UserError(f"{file.name} is not a string catalog: it has no source language.")
    check_language(file.name, "from", spoken, file.source)
    [strings] = [member for member in parsed.members() if member.name == "strings"]
    entries = [entry for entry in parsed.members(strings) if _is_open(entry.value)]
    codes = {code for entry in entries for code in entry.value.get(LOCALIZATIONS, {})}
    code = nearest_code(file.target, codes - {spoken}) or file.target.replace("_", "-")
    lines = LineCounter(parsed.content)
    line_break = "\r\n" if "\r\n" in parsed.content else "\n"
    for entry in entries:
        yield _Entry(entry, lines.line(entry.begin), (spoken, code), file, line_break)


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


def _in_language(language: str, value: dict[str, Any]) -> dict[str, Any]:
    """Give the plural in an object of a localisation the categories of a language."""
    units = _units(value.get("plural"), levels=2)
    texts = {path[1:]: unit["value"] for path, unit in units.items()}
    if OTHER in texts:
        value["plural"] = {
            category: {STRING_UNIT: {"state": NEW_STATE, "value": text}}
            for category, text in in_categories(texts, language, ordinal=False).items()
        }
    return value
