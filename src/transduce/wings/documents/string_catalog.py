"""Reads Apple's string catalogs (.xcstrings), which hold each text with its translations."""

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from transduce.system.errors import UserError
from transduce.text.formats import MESSAGE, CorpusFile, DocumentFile, TextPair
from transduce.text.languages import nearest_code
from transduce.text.plain import display_name, read_pieces
from transduce.wings.documents.document import Document, Slot, check_language
from transduce.wings.documents.json_tree import JsonFile, Node
from transduce.wings.documents.keyed import OTHER, in_categories, is_readable

STRING_UNIT = "stringUnit"
LOCALIZATIONS = "localizations"
NEW_STATE = "new"  # the state of a text without a translation
MAX_VARIATION_LEVELS = 12


class _Entry(NamedTuple):
    """A text of a catalog. `source` and `target` are its localisations, as values of JSON."""

    node: Node
    line: int
    source: Any
    target: Any

    @property
    def is_translated(self) -> bool:
        units = _units(self.target).values()
        return bool(units) and all(
            unit["value"].strip() and unit.get("state") != NEW_STATE for unit in units
        )


class _Localisation(NamedTuple):
    """The texts of an entry. `write` makes the localisation for the target language of `file`."""

    source: Any
    file: DocumentFile
    texts: list[str]

    def write(self, translations: Sequence[str]) -> str:
        """The localisation in Xcode's style; "" if a translation is missing."""
        if not all(translations):
            return ""
        rest = iter(translations)
        made = _localised(self.source, self.file, lambda _: next(rest))
        text = json.dumps(made, indent=2, ensure_ascii=False, separators=(",", " : "))
        return text.replace("\n", "\n        ")


def read_catalog(file: DocumentFile) -> Document:
    """The texts without a translation, or all if `file.redo` is true.

    `shouldTranslate` may forbid the translation. The plurals get the categories of the target language.
    """
    parsed, code, entries = _read(file)
    slots = list[Slot]()
    for entry in entries:
        texts = list[str]()

        def collect(text: str, texts: list[str] = texts) -> str:
            texts.append(text)
            return text

        _localised(entry.source, file, collect)
        if all(map(is_readable, texts)) and texts and (file.redo or not entry.is_translated):
            slots.append(_slot(parsed, code, entry, _Localisation(entry.source, file, texts)))
    return Document(file.name, parsed.content, parsed.codec, tuple(slots))


def read_catalog_pairs(file: CorpusFile) -> Iterator[TextPair]:
    """Pairs of the texts that have a translation, and of their variations."""
    content = b"".join(read_pieces(file.path))
    entries = _read(DocumentFile(content, display_name(file.path), *file.languages))[2]
    for entry in filter(lambda entry: entry.is_translated, entries):
        written = _units(entry.target)
        for path, unit in _units(entry.source).items():
            if path in written:
                yield unit["value"], written[path]["value"], entry.line


def _read(file: DocumentFile) -> tuple[JsonFile, str, list[_Entry]]:
    """A catalog, its code for the target language, and its entries that may be translated.

    Raises UserError for other JSON, and for another source language.
    """
    parsed = JsonFile(file)
    spoken = parsed.nodes[0].at("sourceLanguage")
    strings = parsed.nodes[0].at("strings")
    if not (spoken and spoken.text and strings):
        raise UserError(f"{file.name} is not a string catalog: it has no source language.")
    check_language(file.name, "from", spoken.text, file.source)
    found = list[tuple[str, Node, int, Any]]()
    line = 1
    counted = 0
    for key, node in sorted(strings.children.items(), key=lambda item: item[1].begin):
        line += parsed.content.count("\n", counted, node.begin)
        counted = node.begin
        entry = json.loads(parsed.content[node.begin : node.end])
        if isinstance(entry, dict) and entry.get("shouldTranslate") is not False:
            localisations = entry.get(LOCALIZATIONS, {})
            if isinstance(localisations, dict):
                found.append((key, node, line, localisations))
    codes = {code for *_, localisations in found for code in localisations} - {spoken.text}
    code = nearest_code(file.target, codes) or file.target.replace("_", "-")
    entries = [
        _Entry(node, line, its.get(spoken.text, {STRING_UNIT: {"value": key}}), its.get(code))
        for key, node, line, its in found
    ]
    return parsed, code, entries


def _units(value: Any, path: str = "", levels: int = MAX_VARIATION_LEVELS) -> dict[str, Any]:
    """The texts of a localisation with their states, by the names of the variations."""
    units = dict[str, Any]()
    for name, each in value.items() if isinstance(value, dict) and levels else ():
        if name == STRING_UNIT and isinstance(each, dict) and isinstance(each.get("value"), str):
            units[path] = each
        else:
            units |= _units(each, f"{path}\0{name}", levels - 1)
    return units


def _localised(
    value: Any,
    file: DocumentFile,
    translate: Callable[[str], str],
    levels: int = MAX_VARIATION_LEVELS,
) -> Any:
    """A localisation with translated texts."""
    if not isinstance(value, dict) or not levels:
        return value

    def unit(text: str) -> dict[str, str]:
        state = "needs_review" if file.needs_review else "translated"
        return {"state": state, "value": translate(text)}

    made = dict[str, Any]()
    for name, each in value.items():
        texts = {path[1:]: its["value"] for path, its in _units(each, levels=2).items()}
        if name == STRING_UNIT and "" in _units({name: each}):
            made[name] = unit(each["value"])
        elif name == "plural" and OTHER in texts:
            wanted = in_categories(texts, file.target, ordinal=False)
            made[name] = {category: {STRING_UNIT: unit(text)} for category, text in wanted.items()}
        else:
            made[name] = _localised(each, file, translate, levels - 1)
    return made


def _slot(parsed: JsonFile, code: str, entry: _Entry, localisation: _Localisation) -> Slot:
    """The slot of an entry: its localisation for the target language, or the place for a new one."""
    localisations = entry.node.at(LOCALIZATIONS)
    target = entry.node.at(LOCALIZATIONS, code)
    parent = localisations or entry.node
    members = parsed.content[parent.begin : parent.end - 1].rstrip()
    begin, end = (target.begin, target.end) if target else [parent.begin + len(members)] * 2
    before = f'\n        "{code}" : '
    after = ""
    if localisations is None:
        before = f'\n      "{LOCALIZATIONS}" : {{{before}'
        after = "\n      }"
    before = "" if target else f"{',' if len(members) > 1 else ''}{before}"
    present = parsed.content[begin:end]

    def write(made: str) -> str:
        return f"{before}{made}{after}"

    return Slot(
        localisation.texts[0],
        present,
        entry.line,
        begin,
        end,
        write,
        MESSAGE,
        branched=localisation,
    )
