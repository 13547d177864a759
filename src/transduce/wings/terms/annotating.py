"""Training pairs with the dictionary forms of some translated words (Bergmanis and Pinnis, 2021): data.terms."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from random import Random
from typing import NamedTuple

import numpy as np

from transduce.system.console import count, log
from transduce.text.languages import Direction
from transduce.tokens.spans import Span
from transduce.tokens.store import Encoded, StoreView
from transduce.tokens.terms import annotated
from transduce.tokens.tokenizer import Tokenizer
from transduce.tokens.vocabulary import pack
from transduce.wings.terms.lemmas import Lemmas
from transduce.wings.terms.lexicon import Lexicon, Words, words_in

MAX_ALIGNED_PAIRS = 500_000  # more pairs are not aligned, since a model learns from fewer copies
PHRASE_SHARE = 0.5  # of neighbouring words with neighbouring translations, one term is made
# Of the terms of one word, so many get the translation of another word, also in the target. From the usual translation
# alone, a model would learn to guess it, and not to read it.
REPLACED_SHARE = 0.5

Slot = tuple[str | bool, ...]  # of words that may replace each other


class _Pair(NamedTuple):
    """The words of a pair, and its target."""

    source: Words
    target: Words
    text: str


class _Term(NamedTuple):
    """A word of a source or two, the dictionary form of the translation, and the spans of both."""

    source: Span
    lemma: str
    target: Span


class _Copy(NamedTuple):
    """The terms of a copy, and its target."""

    terms: list[tuple[Span, str]]
    text: str


def pairs_with_terms(
    pairs: StoreView, tokenizer: Tokenizer, direction: Direction
) -> Iterator[Encoded]:
    """Copies of the pairs with aligned words: dictionary forms of the translations follow some words of the source.

    The words of each pair are drawn from its line number.
    """
    log(f"Aligning the words of {count(min(pairs.pairs, MAX_ALIGNED_PAIRS), 'pair')} {direction} …")
    both = [Lemmas(code) for code in direction]
    step = -(-pairs.pairs // MAX_ALIGNED_PAIRS)
    blocks = list(islice(pairs.blocks(), 0, None, step)) if step else []

    def read(block: Encoded) -> Iterator[_Pair]:
        sources = tokenizer.source.decode(block.source.lists())
        targets = tokenizer.target.decode(block.target.lists())
        for source, target in zip(sources, targets, strict=True):
            yield _Pair(words_in(source, both[0]), words_in(target, both[1]), target)

    lexicon = Lexicon(pair[:2] for block in blocks for pair in read(block))
    slots = dict[Slot, dict[tuple[str, str], None]]()
    for block in blocks:
        for pair in read(block):
            for _, j in lexicon.align(*pair[:2]):
                lemma, span = pair.target[j]
                form = pair.text[slice(*span)]
                slots.setdefault(_slot(pair.text, span, lemma), {})[lemma, form] = None
    choices = {slot: list(words) for slot, words in slots.items()}
    for block in blocks:
        origins = zip(read(block), block.files.tolist(), block.lines.tolist(), strict=True)
        copies = list[_Copy]()
        for pair, file, line in origins:
            random = Random(f"{file}:{line}")
            copies.append(_copy(pair, _terms(lexicon, pair, random), choices, random))
        yield _encoded(block, copies, tokenizer)


def _slot(text: str, span: Span, lemma: str) -> Slot:
    """What words have in common that may replace each other: the word before them, the ending, and the form."""
    form = text[slice(*span)]
    return *text[: span[0]].split()[-1:], form[-1], form == lemma, form[0].isupper()


def _terms(lexicon: Lexicon, pair: _Pair, random: Random) -> list[_Term]:
    """The aligned words of a pair; some that follow each other on both sides are one term."""
    terms = list[_Term]()
    follows = False
    for i, j in lexicon.align(pair.source, pair.target):
        term = _Term(pair.source[i].span, *pair.target[j])
        last = terms[-1] if follows else term
        follows = not follows or not _follows(last, term) or random.random() >= PHRASE_SHARE
        if follows:
            terms.append(term)
        else:
            source = (last.source[0], term.source[1])
            target = (last.target[0], term.target[1])
            terms[-1] = _Term(source, f"{last.lemma} {term.lemma}", target)
    return terms


def _follows(term: _Term, other: _Term) -> bool:
    """Whether only a space stands between the words of two terms, on both sides."""
    return (term.source[1] + 1, term.target[1] + 1) == (other.source[0], other.target[0])


def _copy(
    pair: _Pair,
    terms: Sequence[_Term],
    choices: Mapping[Slot, Sequence[tuple[str, str]]],
    random: Random,
) -> _Copy:
    """A copy of a pair with some of its terms."""
    number = random.randint(1, len(terms)) if terms else 0
    # From the last to the first, since spans behind a replaced word move.
    drawn = sorted(random.sample(terms, number), key=lambda term: -term.target[0])
    chosen = list[tuple[Span, str]]()
    text = pair.text
    for source, lemma, target in drawn:
        others = choices.get(_slot(pair.text, target, lemma))
        if others and random.random() < REPLACED_SHARE:
            lemma, form = random.choice(others)
            text = text[: target[0]] + form + text[target[1] :]
        chosen.append((source, lemma))
    return _Copy(sorted(chosen), text)


def _encoded(block: Encoded, copies: Sequence[_Copy], tokenizer: Tokenizer) -> Encoded:
    """The copies of a block that have terms."""
    chosen = block.where(np.array([bool(copy.terms) for copy in copies]))
    copies = [copy for copy in copies if copy.terms]
    vocabulary = tokenizer.source
    rows = chosen.source.lists()
    texts = vocabulary.decode(rows)
    sources = [
        annotated(vocabulary, text, row, copy.terms)
        for text, row, copy in zip(texts, rows, copies, strict=True)
    ]
    targets = tokenizer.target.encode([copy.text for copy in copies])
    return chosen._replace(source=pack(sources), target=targets)
