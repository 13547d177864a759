"""The languages that a server's models translate, their names, and which one a text is in."""

import re
from collections.abc import Iterable, Sequence
from html import unescape
from typing import NamedTuple

from transduce.decoding.translator import Translator
from transduce.system.errors import UserError
from transduce.text.markup import pieces

SAMPLE = 10_000  # characters of a text by which its language is detected: some milliseconds
MARKED = 1 << 16  # characters with markup in which so many of a text are looked for


class Direction(NamedTuple):
    """From one language to another, by their codes."""

    source: str
    target: str


class Detected(NamedTuple):
    """A language that a text may be in."""

    language: str
    confidence: float  # per cent


class Served(NamedTuple):
    """A model that is served."""

    folder: str
    direction: Direction
    translator: Translator

    @property
    def can_align(self) -> bool:
        """Whether it says which words of a translation come from which of the text."""
        return "attention" in self.translator.engine.supports


def by_direction(served: Iterable[Served]) -> dict[Direction, Served]:
    """Raises UserError if two models translate the same way."""
    found: dict[Direction, Served] = {}
    for each in served:
        if each.direction in found:
            source, target = each.direction
            raise UserError(
                f"{found[each.direction].folder} and {each.folder} both translate {source} to {target}; serve one of "
                "them, or name the languages of a model in its config.toml (data.source, data.target)."
            )
        found[each.direction] = each
    return found


def codes(directions: Iterable[Direction]) -> list[str]:
    """All languages, those that can be translated first."""
    directions = list(directions)
    return list(dict.fromkeys([each.source for each in directions] + [each.target for each in directions]))


def unmarked(text: str) -> str:
    """The beginning of a text, without its markup: names and addresses in tags look like English."""
    text = text[:MARKED]
    return unescape(" ".join(text[each.begin : each.end] for each in pieces(text, html=True) if each.kind == "text"))


class Detector:
    """py3langid, limited to some languages; what it doesn't know is never detected, unless it is the only one."""

    def __init__(self, languages: Sequence[str]):
        from py3langid.langid import MODEL_FILE, LanguageIdentifier

        self._identifier = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
        labels = set(self._identifier.labels)
        self._labels = {code: label for code in languages if (label := re.split("[-_]", code.lower())[0]) in labels}
        if self._labels:
            self._identifier.set_languages(sorted(set(self._labels.values())))

    def detect(self, text: str, among: Sequence[str]) -> list[Detected]:
        """Some of the languages by how likely the text is in each, the likeliest first."""
        known = [code for code in among if code in self._labels]
        if len(among) == 1 or not known:
            return [Detected(among[0], 100.0)]
        likely = {label: float(value) for label, value in self._identifier.rank(text[:SAMPLE])}
        found = {code: likely[self._labels[code]] for code in known}
        total = sum(found.values()) or 1.0
        ranked = sorted(found, key=lambda code: -found[code])
        return [Detected(code, round(100 * found[code] / total, 1)) for code in ranked]
