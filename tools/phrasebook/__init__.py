"""A synchronous grammar of English and German that generates sentence pairs with trees and word alignments.

A sentence is derived once and written in both languages. `draw_sentences.py` draws a rule and a derivation: clauses
(`draw_clauses.py`) and noun phrases (`draw_phrases.py`) with words of `lexicon.py`. Clauses that make no sense
(`sense.py`) are drawn again. `english.py` writes the derivation as a tree, `german.py` as a list of words, both by the
templates of `grammar.py`. `pairs.py` spells the words and aligns them. `sampling.py` collects distinct sentences, and
holds out those with withheld combinations of words.

Every English sentence has exactly one German translation ("you" is always `du`).
"""

from phrasebook.derivation import Clause, NounPhrase, Sentence
from phrasebook.pairs import Example, build, tokens
from phrasebook.sampling import MAX_SENTENCE_TOKENS, split, stream, withheld

__all__ = [
    "MAX_SENTENCE_TOKENS",
    "Clause",
    "Example",
    "NounPhrase",
    "Sentence",
    "build",
    "split",
    "stream",
    "tokens",
    "withheld",
]
