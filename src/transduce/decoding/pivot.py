"""Translates through a third language, the pivot, if a model lacks a direction."""

from collections.abc import Sequence
from dataclasses import replace

from transduce.decoding.translator import Translator
from transduce.decoding.types import PLAIN, Link, Scored, Term, Translation, TranslationOptions
from transduce.system.errors import UserError
from transduce.text.formats import TextKind
from transduce.text.languages import Direction


class PivotTranslator(Translator):
    """Translates texts with two translators, from the source into the pivot and from the pivot into the target."""

    def __init__(self, first: Translator, second: Translator) -> None:
        self.__dict__ |= second.__dict__  # its engine, options and tokenizer
        self.first, self.second = first, second
        source, target = first.require_direction().source, second.require_direction().target
        self.direction, self.language = Direction(source, target), source

    def with_beam_size(self, beam_size: int) -> "PivotTranslator":
        return PivotTranslator(self.first.with_beam_size(beam_size), self.second.with_beam_size(beam_size))

    def toward(self, source: str = "", target: str = "") -> Translator:
        return self.second.toward(source, target)

    @property
    def pivot(self) -> str:
        return self.second.language

    def _translate(
        self, texts: list[str], options: TranslationOptions, kinds: Sequence[TextKind] | None, numbers: Sequence[int]
    ) -> list[Translation]:
        found = self.first._translate(texts, into_pivot(options), kinds, numbers)
        last = self.second._translate([each.text for each in found], options, kinds, numbers)
        return [through(*pair) for pair in zip(found, last, strict=True)]

    def translate_sentences(
        self, sentences: Sequence[str], options: TranslationOptions = PLAIN, numbers: Sequence[int] | None = None
    ) -> list[Translation]:
        found = self.first.translate_sentences(sentences, into_pivot(options), numbers)
        last = self.second.translate_sentences([each.text for each in found], options, numbers)
        return [through(*pair) for pair in zip(found, last, strict=True)]

    def score(self, sources: Sequence[str], targets: Sequence[str], *, masked: bool = False) -> list[Scored]:
        """Score directly. Raises UserError if the model lacks the direction, because the probability is unknown."""
        if self.direction in self.directions:
            return self.second.direct(self.require_direction()).score(sources, targets, masked=masked)
        raise UserError(
            f"The model does not translate {self.direction} directly, so it can't score translations. "
            f"Choose one of its directions: {', '.join(map(str, self.directions))}."
        )


def into_pivot(options: TranslationOptions) -> TranslationOptions:
    """The options for the translation into the pivot. It keeps terms of the glossary, which the second one replaces."""
    kept = tuple(Term(term.source, term.source) for term in options.glossary)
    return options._replace(n_best=1, glossary=kept)


def through(first: Translation, second: Translation) -> Translation:
    """Join the translation of a text into the pivot with the translation of this translation."""

    def joined(last: Translation) -> Translation:
        confidence = None
        if first.confidence is not None and last.confidence is not None:
            confidence = first.confidence * last.confidence
        links = _join(first.links, last.links)
        return replace(last, score=first.score + last.score, confidence=confidence, links=links)

    return replace(
        joined(second),
        alternatives=tuple(map(joined, second.alternatives)),
        flags=tuple(dict.fromkeys(first.flags + second.flags)),
        hops=(replace(first, links=()), replace(second, links=(), alternatives=())),
    )


def _join(first: Sequence[Link], second: Sequence[Link]) -> tuple[Link, ...]:
    """Links from source to target, by words of the pivot that both have. Weights are multiplied."""
    weights: dict[tuple[tuple[int, int], tuple[int, int]], float] = {}
    for one in first:
        for other in second:
            if one.target[0] < other.source[1] and other.source[0] < one.target[1]:
                key = one.source, other.target
                weights[key] = max(weights.get(key, 0.0), round(one.weight * other.weight, 4))
    return tuple(Link(*key, weight) for key, weight in sorted(weights.items(), key=lambda item: item[0][::-1]))
