"""TMX, versions 1.1 to 1.4: translation memories, whose units say the same in any number of languages.

Read as a stream, whatever its size. Codes of formatting (`<bpt>`, `<ph>` …) are no text. A DTD is never looked at.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import NamedTuple

from transduce.system.errors import UserError
from transduce.text.plain import read_pieces
from transduce.wings.documents.document import UNTOLD
from transduce.wings.documents.xml import Parser, stream_xml

CODES = frozenset(["bpt", "ept", "it", "ph", "ut"])  # elements whose content belongs to the file the text came from
LONGEST = 1_000_000  # characters of a segment; what is longer is no memory, and would fill ours
SHOWN = 8  # languages that a complaint names


class Variant(NamedTuple):
    """A unit's text in one language."""

    language: str  # as in the file, with hyphens, in small letters
    text: str


@dataclass
class _Unit:
    line: int
    source: str  # the language it was translated from, or ""
    variants: list[Variant] = field(default_factory=list)


def read_tmx(file: str, name: str, languages: tuple[str, str]) -> Iterator[tuple[str, str, int]]:
    """Source, target and line of every unit that has both languages, given by their codes.

    "en" is found as "en-US", too, and "en-US" as "en", but the code itself is preferred; of two regions, the one that
    the unit was translated from, or the first. Several texts in the same language are several pairs. Raises UserError
    for a file that isn't a memory or has no such unit.
    """
    if any(each in UNTOLD for each in languages):
        raise UserError(f"{name} holds texts in several languages: say with --from and --to which are wanted.")
    wanted = (code(languages[0]), code(languages[1]))
    memory = _Memory(Parser(name))
    found, held = False, Counter[str]()
    for unit in _units(file, name, memory):
        held.update(dict.fromkeys((variant.language for variant in unit.variants), 1))
        for source, target in _pairs(unit, *wanted):
            found = True
            yield source, target, unit.line
    if not memory.is_tmx:
        raise UserError(f"{name} is XML but not TMX: it has no element <tmx>.")
    if not found and held:
        codes = ", ".join(f"{code} ({count:,})" for code, count in held.most_common(SHOWN))
        raise UserError(f"{name} has no unit in both {languages[0]} and {languages[1]}; its languages are {codes}.")


def _units(file: str, name: str, memory: "_Memory") -> Iterator[_Unit]:
    for _ in stream_xml(read_pieces(file), name, memory.parser):
        yield from memory.take()


class _Memory:
    """What the parser's handlers know."""

    def __init__(self, parser: Parser) -> None:
        self.parser, self.is_tmx, self.source = parser, False, ""
        self.units: list[_Unit] = []  # that are whole
        self.unit: _Unit | None = None
        self.language = ""
        self.parts: list[str] | None = None  # of a segment
        self.length = 0
        self.codes = 0  # elements around, from the outermost with codes in it
        self.blank = False  # whether a blank stands before the codes
        parser.expat.StartElementHandler = self._start
        parser.expat.EndElementHandler = self._end
        parser.expat.SkippedEntityHandler = self._skipped

    def take(self) -> list[_Unit]:
        """The units since the last call."""
        units, self.units = self.units, []
        return units

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        if self.parts is not None:
            self.codes += bool(self.codes) or name.rpartition(":")[2] in CODES
            return
        match name.rpartition(":")[2]:
            case "tmx":
                self.is_tmx = True
            case "header":
                self.source = code(attributes.get("srclang", ""))
            case "tu":
                self.unit = _Unit(self.parser.line, code(attributes.get("srclang", self.source)))
            case "tuv":
                self.language = code(attributes.get("xml:lang") or attributes.get("lang") or "")
            case "seg" if self.unit:
                self.parts, self.length = [], 0
                self.parser.expat.CharacterDataHandler = self._text

    def _end(self, name: str) -> None:
        if self.codes:
            self.codes -= 1
            self.blank = not self.codes and bool(self.parts) and self._so_far()[-1:].isspace()
            return
        match name.rpartition(":")[2]:
            case "seg" if self.unit and self.parts is not None:
                self.unit.variants.append(Variant(self.language, "".join(self.parts)))
                self.parts, self.blank = None, False
                self.parser.expat.CharacterDataHandler = None
            case "tu" if self.unit:
                self.units.append(self.unit)
                self.unit, self.parser.unit = None, self.parser.expat.CurrentByteIndex

    def _so_far(self) -> str:
        return next((part for part in reversed(self.parts or []) if part), "")

    def _text(self, text: str) -> None:
        if self.parts is None or self.codes:
            return
        if self.blank and text[:1].isspace():
            text = text[1:]  # of a blank before the codes and one behind them, one is left
        self.blank = False
        self.length += len(text)
        if self.length > LONGEST:
            raise UserError(
                f"{self.parser.name}, line {self.parser.line}: a segment has more than {LONGEST:,} characters; "
                "take it out."
            )
        self.parts.append(text)

    def _skipped(self, name: str, is_parameter: int) -> None:
        if not is_parameter:
            self._text(self.parser.entity(name))


def _pairs(unit: _Unit, source: str, target: str) -> Iterator[tuple[str, str]]:
    """The texts of a unit in the two languages that are wanted."""
    found = chosen([variant.language for variant in unit.variants], unit.source, source, target)
    if found:
        first = next(variant.text for variant in unit.variants if variant.language == found[0])
        for variant in unit.variants:
            if variant.language == found[1]:
                yield first, variant.text


def chosen(codes: Sequence[str], origin: str, *wanted: str) -> tuple[str, ...] | None:
    """The different codes of a unit that are nearest to those that are wanted; None if one of them isn't there.

    Of those that are equally near, the first is that of the language the unit was translated from, or the first.
    """
    places = {each: place for place, each in reversed(list(enumerate(codes)))}
    near = [
        sorted(
            (far, each != origin, place) for each, place in places.items() if (far := distance(each, one)) is not None
        )
        for one in wanted
    ]
    ways = [
        (sum(far for far, *_ in way), way[0][1], [place for *_, place in way])
        for way in product(*(each[: len(wanted)] for each in near))  # more are never needed to find different ones
        if len({place for *_, place in way}) == len(way)
    ]
    return tuple(codes[place] for place in min(ways)[2]) if ways else None


def code(language: str) -> str:
    """A language as it is compared: with hyphens, in small letters."""
    return language.strip().replace("_", "-").lower()


def distance(given: str, wanted: str) -> int | None:
    """How far a language is from the one that is wanted: 0 the same, 1 with a region, 2 without; None: another."""
    if given == wanted:
        return 0
    if given.startswith(f"{wanted}-"):
        return 1
    return 2 if given and wanted.startswith(f"{given}-") else None
