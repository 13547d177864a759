"""Uses a translation memory: texts that people have translated before are not translated again."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import repeat
from typing import NamedTuple

from transduce.decoding.types import Guide, Guides, MemoryMatch, Translation, TranslationMemory
from transduce.text.formats import TextKind

MARKUP = frozenset("<>&")


class Recall(NamedTuple):
    """The matches of each text, and the indices of the texts that must be translated."""

    texts: Sequence[str]
    matches: list[tuple[MemoryMatch, ...]]
    others: list[int]
    given: Guides = None  # of the texts, before the look-up

    def guides(self) -> list[Guide]:
        """What guides the translation of each of `others`."""
        given = [self.given[i] if self.given else Guide() for i in self.others]
        similar = (self.matches[i] for i in self.others)
        return [each._replace(similar=its) for each, its in zip(given, similar, strict=True)]

    def with_translations(self, translations: Sequence[Translation]) -> list[Translation]:
        """The translations of all texts, given those of `others`."""
        translated = dict(zip(self.others, translations, strict=True))
        return [
            replace(translated.get(i) or known(text, its[0]), matches=its)
            for i, (text, its) in enumerate(zip(self.texts, self.matches, strict=True))
        ]


def known(text: str, match: MemoryMatch) -> Translation:
    """The translation that the memory holds, between the white space of the text."""
    inner = text.strip()
    before, _, behind = text.partition(inner)
    return Translation(f"{before}{match.target.strip()}{behind}", 0.0, ())


def recall(
    memory: TranslationMemory,
    texts: Sequence[str],
    direction: str,
    kinds: Sequence[TextKind] | None = None,
    guides: Guides = None,
) -> Recall:
    """Look texts up. A unit is plain text, so that texts with markup have no matches.

    A text must be translated, too, if its unit does not begin and end as its guide demands.
    """
    matches = memory.matches(texts, direction)
    for i, kind in enumerate(kinds or ()):
        if kind.markup:
            its = (each for each in matches[i] if MARKUP.isdisjoint(texts[i] + each.target))
            matches[i] = tuple(its)
    given = guides or repeat(Guide())
    others = [
        i
        for i, (text, its, guide) in enumerate(zip(texts, matches, given, strict=False))
        if not (its and its[0].score == 1 and guide.fits(known(text, its[0]).text))
    ]
    return Recall(texts, matches, others, guides)
