"""Reads translation memories in TMX, versions 1.1 to 1.4.

Corpora of any length are streamed. Formatting elements such as `<bpt>` are not text. DTDs are never read.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from html import escape
from itertools import product
from typing import NamedTuple

from transduce.inline.blocks import BLOCK_TAG
from transduce.inline.events import ENTITY, unescape
from transduce.inline.placeholders import BLANK_BEFORE, BLANK_BEHIND
from transduce.system.console import count, log
from transduce.system.errors import UserError
from transduce.text.formats import CorpusFile, DocumentFile, TextPair
from transduce.text.languages import main_language, script_of
from transduce.text.plain import display_name, read_pieces
from transduce.wings.documents.document import UNSPECIFIED_LANGUAGES, Document, Slot
from transduce.wings.documents.xml import (
    XML_ATTRIBUTES,
    Element,
    Unit,
    UnitReader,
    decode_xml,
    has_text,
    indentation,
    source_text,
    target_slot,
)

MAX_SEGMENT_CHARACTERS = 1_000_000
MAX_LANGUAGES_NAMED = 8  # maximum in an error message
# Names of elements whose content is code.
FORMATTING = r"(?:[\w.-]+:)?(?:bpt|ept|it|ph|ut)(?=[\s/>])"
TAG = re.compile(
    rf"<(?P<close>/?+)(?P<formatting>{FORMATTING})?{XML_ATTRIBUTES}(?P<empty>(?<=/))?>"
)
REGION = re.compile(r"-(?:[a-z]{2}|\d{3})\b")
NOT_A_TAG = re.compile(r"<!\[CDATA\[(.*?)\]\]>|<!--.*?-->|<\?.*?\?>", re.DOTALL)


class _Variant(NamedTuple):
    """The text of a unit in one language."""

    language: str  # language code as spelled in the file
    element: Element  # <tuv>
    segment: Element  # <seg>
    content: str  # content of the segment, as XML


class _Memory(NamedTuple):
    unit: Unit
    origin: str  # code of the language that the unit was translated from, or ""
    variants: list[_Variant]
    codes: tuple[str, ...]  # the variants' language codes, normalised for comparison


def read_tmx_pairs(file: CorpusFile) -> Iterator[TextPair]:
    """Yield the source text, target text and line of each pair.

    The codes "en" and "en-US" match each other, but an exact match is preferred. The number of units that lack one of
    the languages is printed. Raises UserError for a file that is not TMX or has no unit in both languages.
    """
    name = display_name(file.path)
    source, target = file.languages
    if source in UNSPECIFIED_LANGUAGES or target in UNSPECIFIED_LANGUAGES:
        raise UserError(
            f"{name} holds several languages.",
            "Name the two languages to read.",
            "data.source",
            "data.target",
        )
    wanted = language_code(source), language_code(target)
    skipped = first_skipped = 0
    units_by_languages = Counter[tuple[str, ...]]()
    for unit in _units(read_pieces(file.path), name):
        codes = unit.codes
        line = unit.unit.line
        units_by_languages[codes] += 1
        chosen = choose_languages(codes, unit.origin, *wanted)
        if not chosen:
            skipped += 1
            first_skipped = first_skipped or line
            continue
        spoken = segment_text(unit.variants[codes.index(chosen[0])].content, name, line)
        for variant, code in zip(unit.variants, codes, strict=True):
            if code == chosen[1]:
                yield spoken, segment_text(variant.content, name, line), line
    units = units_by_languages.total()
    if skipped == units and any(units_by_languages):
        raise _without_units(name, f"both {source} and {target}", units_by_languages)
    if skipped:
        log(
            f"{name}: {skipped:,} of {count(units, 'unit')} lack a text in {source} or {target}, and are "
            f"skipped. The first is in line {first_skipped}."
        )


def read_tmx(file: DocumentFile) -> Document:
    """The untranslated units, or all units if `file.redo` is true."""
    text, codec = decode_xml(file.content, file.name)
    units = list(_units([file.content], file.name))
    source = language_code(file.source)
    target = language_code(file.target)
    language = _spelling(units, file.target)
    slots = list[Slot]()
    is_empty = True
    for unit in units:
        codes = unit.codes
        if file.source in UNSPECIFIED_LANGUAGES:
            spoken_in = (
                code for code in (unit.origin, *codes) if choose_languages(codes, unit.origin, code)
            )
            source = next(
                (code for code in spoken_in if language_distance(code, target) is None), unit.origin
            )
        chosen = choose_languages(codes, unit.origin, source, target)
        chosen = chosen or choose_languages(codes, unit.origin, source)
        if chosen:
            is_empty = False
            spoken, *others = (unit.variants[codes.index(code)] for code in chosen)
            written = others[0] if others else None
            if file.redo or not written or not has_text(written.content):
                slots.append(_slot(text, unit.unit, spoken, written, language))
    if is_empty and any(unit.codes for unit in units):
        raise _without_units(file.name, file.source, Counter(unit.codes for unit in units))
    return Document(file.name, text, codec, tuple(slot for slot in slots if has_text(slot.text)))


def _without_units(
    name: str, wanted: str, units_by_languages: Counter[tuple[str, ...]]
) -> UserError:
    units_by_language = Counter[str]()
    for codes, number in units_by_languages.items():
        units_by_language.update(dict.fromkeys(codes, number))
    common = units_by_language.most_common(MAX_LANGUAGES_NAMED)
    languages = ", ".join(f"{code} ({number:,})" for code, number in common)
    return UserError(f"{name} has no unit in {wanted}. Units by language: {languages}.")


def segment_text(raw: str, name: str, line: int) -> str:
    """The text of a segment without formatting; raises UserError for a long segment or an unknown entity."""
    if len(raw) > MAX_SEGMENT_CHARACTERS:
        raise UserError(
            f"{name}:{line}: a segment has more than {MAX_SEGMENT_CHARACTERS:,} characters.",
            "Remove it.",
        )
    if "<" in raw:
        raw = _without_formatting(NOT_A_TAG.sub(lambda match: escape(match[1] or ""), raw))
    if "&" in raw and (
        unknown := next((name for name in ENTITY.findall(raw) if unescape(name) == name), None)
    ):
        raise UserError(
            f"{name}:{line}: the entity {unknown} is not known without a DTD.",
            "Write the character itself.",
        )
    return unescape(raw)


def _without_formatting(raw: str) -> str:
    """Remove the tags of a segment, and the content of formatting elements.

    Two blanks around a formatting element become one. Words around a line break or the tag of a block get a blank
    between them.
    """
    parts = [""]
    codes = [(0, 0)]  # spans of formatting elements, each before its part
    depth = 0
    done = 0
    for tag in TAG.finditer(raw):
        parts[-1] += raw[done : tag.start()] if not depth else ""
        done = tag.end()
        if tag["formatting"] and tag["close"]:
            depth -= 1
            codes[-1] = codes[-1][0], done
        elif tag["formatting"]:
            if not depth:
                parts.append("")
                codes.append(tag.span())
            depth += tag["empty"] is None
    parts[-1] += raw[done:]
    text = ""
    between = list[tuple[int, int]]()  # between: the formatting elements after the text so far
    for part, code in zip(parts, codes, strict=True):
        between.append(code)
        if text[-1:].isspace() and part[:1].isspace():
            part = part[1:]
        elif BLANK_BEHIND.match(text[-1:]) and BLANK_BEFORE.match(part):
            text += " " if any(BLOCK_TAG.match(raw, *each) for each in between) else ""
        text += part
        between = between if not part else []
    return text


@lru_cache
def choose_languages(codes: tuple[str, ...], origin: str, *wanted: str) -> tuple[str, ...] | None:
    """Choose a different code for each language in `wanted`; returns None if this is impossible.

    The smallest `language_distance` is preferred, then the code `origin`, then the first code.
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
    # Enough candidates for different codes.
    choices = [
        (sum(distance for distance, *_ in choice), choice[0][1], [place for *_, place in choice])
        for choice in product(*(near[: len(wanted)] for near in candidates))
        if len({place for *_, place in choice}) == len(choice)
    ]
    return tuple(codes[place] for place in min(choices)[2]) if choices else None


@lru_cache
def language_code(language: str) -> str:
    """A language code in lower case, with hyphens instead of underscores."""
    return language.strip().replace("_", "-").lower()


def language_distance(code: str, wanted: str) -> int | None:
    """0 for equal codes, 1 for "en-US" or "eng" and "en", 2 for "en" and "en-US", None for different languages.

    "zh-TW" and "zh-Hant" have distance 1, too, because the region implies the script.
    """
    if code == wanted:
        return 0
    code, wanted = (
        each.replace(each.split("-")[0], main_language(each), 1) for each in (code, wanted)
    )
    same_script = (
        main_language(code) == main_language(wanted) and script_of(code) == script_of(wanted) != ""
    )
    regions = {*REGION.findall(code), *REGION.findall(wanted)}
    if (same_script and len(regions) < 2) or f"{code}-".startswith(f"{wanted}-"):
        return 1
    return 2 if code and wanted.startswith(f"{code}-") else None


def _units(pieces: Iterable[bytes], name: str) -> Iterator[_Memory]:
    origin = ""

    def start(element: str, attributes: dict[str, str]) -> None:
        nonlocal origin
        if element == "header":
            origin = attributes.get("srclang", "")

    for unit in UnitReader(name, "tmx", ["tu"], 2, start).read(pieces):
        variants = list(_variants(unit))
        codes = tuple([language_code(variant.language) for variant in variants])
        yield _Memory(unit, language_code(unit.attributes.get("srclang", origin)), variants, codes)


def _variants(unit: Unit) -> Iterator[_Variant]:
    for variant in unit.children:
        if variant.name == "tuv":
            language = variant.attributes.get("xml:lang") or variant.attributes.get("lang") or ""
            for segment in variant.children:
                if segment.name == "seg":
                    yield _Variant(language, variant, segment, unit.text(segment))


def _spelling(units: Sequence[_Memory], target: str) -> str:
    """The file's code for the target language, or `target` if the file lacks this language."""
    languages = dict.fromkeys(variant.language for unit in units for variant in unit.variants)
    distances = {
        each: language_distance(language_code(each), language_code(target)) for each in languages
    }
    near = [each for each in languages if distances[each] in (0, 1)]
    return min(near, key=lambda each: distances[each] or 0, default=target.replace("_", "-"))


def _slot(text: str, unit: Unit, spoken: _Variant, written: _Variant | None, language: str) -> Slot:
    """The slot at a unit's existing <tuv> element, or for a new one after the source's <tuv> element."""
    variant = spoken.element.full_name
    segment = spoken.segment.full_name
    key = "xml:lang" if "xml:lang" in spoken.element.attributes else "lang"
    before = indentation(text, unit.character(spoken.element.begin))
    opening = f'{before}<{variant} {key}="{language}"><{segment}>'
    new = (unit.end(spoken.element), opening, f"</{segment}></{variant}>")
    said = source_text(spoken.content, preserve=True)
    return target_slot(unit, spoken.segment, written and written.segment, said, new)
