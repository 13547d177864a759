"""Training pairs with the dictionary forms of some translated words (Bergmanis and Pinnis, 2021): data.terms."""

from collections.abc import Iterator, Sequence
from itertools import islice
from random import Random

import numpy as np

from transduce.system.console import count, log
from transduce.text.languages import Direction
from transduce.tokens.spans import Span
from transduce.tokens.store import Encoded, StoreView
from transduce.tokens.terms import annotated
from transduce.tokens.tokenizer import Tokenizer
from transduce.tokens.vocabulary import Vocabulary, pack
from transduce.wings.terms.lemmas import Lemmas
from transduce.wings.terms.lexicon import Lexicon, Word, Words, words_in

MAX_ALIGNED_PAIRS = 500_000  # more pairs are not aligned, since a model learns from fewer copies
PHRASE_SHARE = 0.5  # of neighbouring words with neighbouring translations, one term is made


def pairs_with_terms(
    pairs: StoreView, tokenizer: Tokenizer, direction: Direction
) -> Iterator[Encoded]:
    """Copies of the pairs with aligned words: dictionary forms of the translations follow some words of the source.

    The words of each pair are drawn from its line number.
    """
    log(f"Aligning the words of {count(min(pairs.pairs, MAX_ALIGNED_PAIRS), 'pair')} {direction} …")
    both = [
        (tokenizer.source, Lemmas(direction.source)),
        (tokenizer.target, Lemmas(direction.target)),
    ]
    step = -(-pairs.pairs // MAX_ALIGNED_PAIRS)
    blocks = list(islice(pairs.blocks(), 0, None, step)) if step else []

    def words(block: Encoded) -> Iterator[tuple[Words, Words]]:
        sides = [
            [words_in(text, lemmas) for text in vocabulary.decode(rows.lists())]
            for (vocabulary, lemmas), rows in zip(both, block[:2], strict=True)
        ]
        return zip(*sides, strict=True)

    lexicon = Lexicon(pair for block in blocks for pair in words(block))
    for block in blocks:
        origins = zip(words(block), block.files.tolist(), block.lines.tolist(), strict=True)
        terms = [_drawn(lexicon, *pair, Random(f"{file}:{line}")) for pair, file, line in origins]
        yield _copied(block, terms, tokenizer.source)


def _drawn(
    lexicon: Lexicon, source: Words, target: Words, random: Random
) -> list[tuple[Span, str]]:
    """Some terms of a source, with the dictionary forms of their translations."""
    terms = list[tuple[Span, str]]()
    last: tuple[Word, Word] | None = None
    for i, j in lexicon.align(source, target):
        word = source[i]
        translation = target[j]
        follows = last and _follows(last[0], word) and _follows(last[1], translation)
        last = (word, translation)
        if follows and random.random() < PHRASE_SHARE:
            (begin, _), first = terms.pop()
            terms.append(((begin, word.span[1]), f"{first} {translation.lemma}"))
            last = None
        else:
            terms.append((word.span, translation.lemma))
    number = random.randint(1, random.randint(1, len(terms))) if terms else 0
    return sorted(random.sample(terms, number))


def _follows(word: Word, other: Word) -> bool:
    """Whether only a space stands between two words."""
    return word.span[1] + 1 == other.span[0]


def _copied(
    block: Encoded, terms: Sequence[Sequence[tuple[Span, str]]], vocabulary: Vocabulary
) -> Encoded:
    """The pairs of a block that have terms, with their translations."""
    chosen = block.where(np.array(list(map(bool, terms))))
    rows = chosen.source.lists()
    texts = vocabulary.decode(rows)
    each = zip(texts, rows, filter(None, terms), strict=True)
    return chosen._replace(source=pack([annotated(vocabulary, *its) for its in each]))
