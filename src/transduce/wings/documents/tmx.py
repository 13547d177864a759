"""TMX, versions 1.1 to 1.4: translation memories, whose units hold the same text in several languages.

Pairs are read as a stream of any length. As a document, a unit that lacks the target language gets it. The codes of
formatting (`<bpt>`, `<ph>` …) are no text. A DTD is never read.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, lru_cache
from html import unescape
from itertools import product
from typing import NamedTuple

from transduce.system.errors import UserError
from transduce.text.formats import CorpusFile, DocumentFile, TextPair
from transduce.text.plain import display_name, read_pieces
from transduce.wings.documents.document import UNSPECIFIED_LANGUAGES, Document, Slot
from transduce.wings.documents.markup import pieces
from transduce.wings.documents.xml import (
    Characters,
    Element,
    UnitReader,
    decode_xml,
    decode_xml_pieces,
    fill,
    indentation,
    without_illegal,
)
from transduce.wings.inline.events import ENTITY
from transduce.wings.inline.placeholders import mask

FORMATTING = frozenset(["bpt", "ept", "it", "ph", "ut"])  # elements whose content is code of the original file
MAX_SEGMENT_CHARACTERS = 1_000_000
MAX_LANGUAGES_NAMED = 8  # in a message


class _Variant(NamedTuple):
    """A unit's text in one language."""

    language: str  # as the file writes it
    element: Element  # <tuv>
    segment: Element  # <seg>


class _Unit(NamedTuple):
    line: int
    origin: str  # code of the language that it was translated from, or ""
    variants: list[_Variant]

    @property
    def codes(self) -> tuple[str, ...]:
        """The languages of the variants, to compare."""
        return tuple([language_code(variant.language) for variant in self.variants])


def read_tmx_pairs(file: CorpusFile) -> Iterator[TextPair]:
    """Source, target and line of every unit that has both languages.

    "en" also matches "en-US", and "en-US" matches "en", but the code itself is preferred. Of two regions, the one that
    the unit was translated from is taken, else the first. Several texts in the target language are several pairs.
    Raises UserError for a file that is not TMX or has no unit in both languages.
    """
    name, (source, target) = display_name(file.path), file.languages
    if source in UNSPECIFIED_LANGUAGES or target in UNSPECIFIED_LANGUAGES:
        raise UserError(f"{name} holds texts in several languages. Say with --from and --to which to read.")
    is_empty, units_by_language = True, Counter[str]()
    for unit in _units(decode_xml_pieces(read_pieces(file.path), name), name):
        codes = unit.codes
        units_by_language.update(dict.fromkeys(codes, 1))
        if chosen := choose_languages(codes, unit.origin, language_code(source), language_code(target)):
            is_empty = False
            spoken = segment_text(unit.variants[codes.index(chosen[0])].segment, name)
            for variant, code in zip(unit.variants, codes, strict=True):
                if code == chosen[1]:
                    yield spoken, segment_text(variant.segment, name), unit.line
    if is_empty and units_by_language:
        common = units_by_language.most_common(MAX_LANGUAGES_NAMED)
        languages = ", ".join(f"{code} ({count:,})" for code, count in common)
        raise UserError(f"{name} has no unit in both {source} and {target}. Its languages are {languages}.")


def read_tmx(file: DocumentFile) -> Document:
    """The units that have the source language, chosen as for pairs, but no target; all of them with `redo`."""
    text, codec = decode_xml(file.content, file.name)
    units, characters = list(_units([text], file.name)), Characters(text)
    source, target = language_code(file.source), language_code(file.target)
    language = _spelling(units, file.target)
    slots = list[Slot]()
    for unit in units:
        codes = unit.codes
        if both := choose_languages(codes, unit.origin, source, target):
            spoken, written = (unit.variants[codes.index(code)] for code in both)
            if file.redo or not written.segment.content.strip():
                slots.append(_existing_target(unit, spoken, written.segment, characters))
        elif one := choose_languages(codes, unit.origin, source):
            slots.append(_new_target(text, unit, unit.variants[codes.index(one[0])], language, characters))
    slots = [slot for slot in slots if mask(slot.text, markup=True).text.strip()]
    return Document(file.name, text, codec, tuple(slots))


def segment_text(segment: Element, name: str) -> str:
    """The text of a segment; of a blank before formatting and one behind it, one is kept."""
    raw = segment.content
    if len(raw) > MAX_SEGMENT_CHARACTERS:
        raise UserError(
            f"{name}:{segment.line}: a segment has more than {MAX_SEGMENT_CHARACTERS:,} characters. Remove it."
        )
    if "<" not in raw and "&" not in raw:
        return raw
    if "&" in raw and (unknown := next((name for name in ENTITY.findall(raw) if unescape(name) == name), None)):
        raise UserError(f"{name}:{segment.line}: the entity {unknown} is not known without a DTD.")
    if "<" not in raw:
        return unescape(raw)
    parts, formatting = [""], 0  # formatting: open elements from the outermost with codes on
    after_blank = False
    for piece in pieces(raw):
        is_formatting = bool(formatting) or piece.name.rpartition(":")[2] in FORMATTING
        if piece.kind in ("open", "close", "empty"):
            if is_formatting:
                formatting += {"open": 1, "close": -1, "empty": 0}[piece.kind]
                after_blank = not formatting and parts[-1][-1:].isspace()
            continue
        text = raw[piece.begin : piece.end]
        if piece.kind == "text":
            text = unescape(text)
        else:  # a CDATA section, a comment or an instruction
            text = text.removeprefix("<![CDATA[").removesuffix("]]>") if text.startswith("<![CDATA[") else ""
        if text and not formatting:
            text = text[1:] if after_blank and text[0].isspace() else text
            after_blank = False
            parts += [text] if text else []
    return "".join(parts)


@lru_cache
def choose_languages(codes: tuple[str, ...], origin: str, *wanted: str) -> tuple[str, ...] | None:
    """The different codes of a unit that are nearest to the wanted ones; None if one of them is missing.

    Of equally near codes, the one that the unit was translated from is taken, else the first.
    """
    places = {code: place for place, code in reversed(list(enumerate(codes)))}
    candidates = [
        sorted(
            (distance, code != origin, place)
            for code, place in places.items()
            if (distance := language_distance(code, language)) is not None
        )
        for language in wanted
    ]
    choices = [
        (sum(distance for distance, *_ in choice), choice[0][1], [place for *_, place in choice])
        for choice in product(*(near[: len(wanted)] for near in candidates))  # enough to find different ones
        if len({place for *_, place in choice}) == len(choice)
    ]
    return tuple(codes[place] for place in min(choices)[2]) if choices else None


@cache
def language_code(language: str) -> str:
    """A language code to compare: with hyphens, in lower case."""
    return language.strip().replace("_", "-").lower()


def language_distance(code: str, wanted: str) -> int | None:
    """0: the wanted code; 1: it has a region in addition; 2: it lacks the region; None: another language."""
    if code == wanted:
        return 0
    if code.startswith(f"{wanted}-"):
        return 1
    return 2 if code and wanted.startswith(f"{code}-") else None


def _units(texts: Iterable[str], name: str) -> Iterator[_Unit]:
    is_tmx, origin = False, ""

    def start(element: Element) -> None:
        nonlocal is_tmx, origin
        is_tmx |= element.name == "tmx"
        if element.name == "header":
            origin = element.attributes.get("srclang", "")

    for unit in UnitReader(name, ["tu"], ["seg"], start).read(texts):
        variants = [
            _Variant(variant.attributes.get("xml:lang") or variant.attributes.get("lang") or "", variant, segment)
            for variant in unit.children
            for segment in variant.children
            if variant.name == "tuv" and segment.name == "seg"
        ]
        yield _Unit(unit.line, language_code(unit.attributes.get("srclang", origin)), variants)
    if not is_tmx:
        raise UserError(f"{name} is XML but not TMX: it has no element <tmx>.")


def _spelling(units: Sequence[_Unit], target: str) -> str:
    """The target language as the file writes it, perhaps with a region."""
    languages = dict.fromkeys(variant.language for unit in units for variant in unit.variants)
    for distance in (0, 1):
        for language in languages:
            if language_distance(language_code(language), language_code(target)) == distance:
                return language
    return target


def _existing_target(unit: _Unit, spoken: _Variant, segment: Element, characters: Characters) -> Slot:
    def write(translation: str) -> str:
        legal = without_illegal(translation)
        return fill(segment, legal) if segment.is_empty else legal

    whole = segment.begin, segment.end
    begin, end = map(characters, whole if segment.is_empty else (segment.content_begin, segment.content_end))
    return Slot(spoken.segment.content, segment.content, unit.line, begin, end, write, "preserved")


def _new_target(text: str, unit: _Unit, spoken: _Variant, language: str, characters: Characters) -> Slot:
    """A variant behind the source's, written like it."""
    before = indentation(text, characters(spoken.element.begin))
    end = characters(spoken.element.end)
    variant, segment = spoken.element.full_name, spoken.segment.full_name
    key = "xml:lang" if "xml:lang" in spoken.element.attributes else "lang"

    def write(translation: str) -> str:
        content = f"<{segment}>{without_illegal(translation)}</{segment}>"
        return f'{before}<{variant} {key}="{language}">{content}</{variant}>'

    return Slot(spoken.segment.content, "", unit.line, end, end, write, "preserved")
