"""Finds out, by word alignment, whether a term replaces the words that the model would have written, or was only added.

"A dog runs." with the term dog → Pudel: "Ein Pudel läuft." is right, "Ein Hund läuft. Pudel." is not. Here, Hund is the
rival of the term.
"""

from collections.abc import Mapping, Sequence
from functools import partial

from transduce.decoding.alignment import align
from transduce.decoding.translator import Translator
from transduce.decoding.types import Engine, Hypothesis, Match, Sentences, Translation
from transduce.decoding.words import kind
from transduce.tokens.spans import Span
from transduce.tokens.tokenizer import Tokenizer
from transduce.wings.terms.glossary import Constraint, spans_of

Rivals = dict[str, str]  # the target of a term -> the word that a translation has in its place
Tokens = tuple[int, ...]


def find_rivals(
    translator: Translator,
    engine: Engine,
    sentences: Sentences,
    hypotheses: Mapping[int, Hypothesis],
    matches: Mapping[int, Sequence[Match]],
) -> dict[int, Rivals]:
    """The rivals in the translations of some sentences, by their indices. `engine` computes the attention."""
    some = sentences.select(list(hypotheses))
    texts = translator.tokenizer.decode([each.tokens for each in hypotheses.values()])
    ranked = [
        (Translation(text, 0.0, ()), [each])
        for text, each in zip(texts, hypotheses.values(), strict=True)
    ]
    attention = partial(translator.forced, engine, engine.attention)
    aligned = align(translator.tokenizer, some.texts, some.sources, ranked, attention)
    return {i: _rivals(each, matches[i]) for i, each in zip(hypotheses, aligned, strict=True)}


def _rivals(translation: Translation, matches: Sequence[Match]) -> Rivals:
    # Target word -> weight of its strongest link, source word.
    best: dict[Span, tuple[float, Span]] = {}
    for link in translation.links:
        best[link.target] = max(
            best.get(link.target, (0.0, link.source)), (link.weight, link.source)
        )
    words = {span: translation.text[slice(*span)] for span in best}
    rivals = {}
    for match in matches:
        own = {
            span
            for span, (_, source) in best.items()
            if _overlap(source, match.span) and _begins_word(words[span][0])
        }
        if own:
            rival = words[max(own, key=lambda span: best[span][0])]
            is_elsewhere = any(word == rival and span not in own for span, word in words.items())
            if not is_elsewhere and rival.casefold() not in _words(match.target.casefold()):
                rivals[match.target] = rival
    return rivals


def is_added(text: str, free: str, target: str, rival: str | None) -> bool:
    """Whether a translation has the term beside its rival, or is the free translation with the term added."""
    words = sorted(_words(text))
    others = sorted(_words(free))
    for word in _words(target):
        if word in words:
            words.remove(word)
    # If signs are missing, the term may have replaced one: "Hunde und Katzen" for "Hunde & Katzen".
    keeps_signs = len(spans_of(text)) >= len(spans_of(free)) + len(spans_of(target))
    return (words == others and keeps_signs) or (
        rival is not None and words.count(rival) >= others.count(rival) > 0
    )


def forbidden(tokenizer: Tokenizer, rivals: Rivals, terms: Sequence[Constraint]) -> list[Tokens]:
    """The tokens that spell the rivals, without those that begin a term."""
    spelt = list[Tokens]()
    for rival in rivals.values():
        behind_space = tokenizer.encode_target([rival])[0]
        spelt += [tuple(behind_space), tuple(tokenizer.target.encode_behind(rival))]
    needed = [tokens for term in terms for tokens in term.segmentations]
    return [tokens for tokens in spelt if not any(each[: len(tokens)] == tokens for each in needed)]


def _words(text: str) -> list[str]:
    return [text[begin:end] for begin, end in spans_of(text) if _begins_word(text[begin])]


def _begins_word(character: str) -> bool:
    return kind(character) in ("letter", "unspaced")


def _overlap(one: Span, other: Span) -> bool:
    return one[0] < other[1] and other[0] < one[1]
