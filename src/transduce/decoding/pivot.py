"""Translates through a third language, the pivot, if a model lacks a direction.

A route has one or two hops; the second hop translates the translations of the first hop. A server must wait between the
hops, so it calls `hops_with_options` and `joined` instead of `relay`.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from transduce.decoding.types import Guides, Link, Term, Translation, TranslationOptions

Hop = TypeVar("Hop")  # translates texts: a translator, or a model of a server


def relay(
    hops: Sequence[Hop],
    texts: Sequence[str],
    options: TranslationOptions,
    translate: Callable[[Hop, Sequence[str], TranslationOptions, Guides], list[Translation]],
    guides: Guides = None,
) -> list[Translation]:
    """Translate texts by each hop in turn, by calling `translate(hop, texts, its options, its guides)`."""
    translations = []
    for hop, its, known in hops_with_options(hops, options, guides):
        translations.append(translate(hop, texts, its, known))
        texts = [each.text for each in translations[-1]]
    return joined(translations)


def hops_with_options(
    hops: Sequence[Hop], options: TranslationOptions, guides: Guides = None
) -> list[tuple[Hop, TranslationOptions, Guides]]:
    """The hops of a route, each with the options and the guides for its translations.

    A prefix or a suffix is for the last hop. Similar texts help a single model only.
    """
    *first, last = hops
    if first and guides:
        guides = [guide._replace(similar=()) for guide in guides]
    return [*((hop, into_pivot(options), None) for hop in first), (last, options, guides)]


def joined(translations: Sequence[list[Translation]]) -> list[Translation]:
    """Join the translations of a route's one or two hops."""
    if len(translations) == 1:
        return translations[0]
    return [through(*pair) for pair in zip(*translations, strict=True)]


def into_pivot(options: TranslationOptions) -> TranslationOptions:
    """The options of the first hop, which keeps the glossary's source terms for the second hop to replace."""
    kept = tuple(Term(term.source, term.source) for term in options.glossary)
    return options._replace(n_best=1, glossary=kept, glossary_exact=True)


def through(first: Translation, second: Translation) -> Translation:
    """Join a text's translation into the pivot with the second hop's translation of it."""

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
    """Links from source to target, through the pivot's words that are linked to both. Weights are multiplied."""
    weights: dict[tuple[tuple[int, int], tuple[int, int]], float] = {}
    for one in first:
        for other in second:
            if one.target[0] < other.source[1] and other.source[0] < one.target[1]:
                key = one.source, other.target
                weights[key] = max(weights.get(key, 0.0), round(one.weight * other.weight, 4))
    return tuple(
        Link(*key, weight)
        for key, weight in sorted(weights.items(), key=lambda item: item[0][::-1])
    )
