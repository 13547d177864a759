"""The embedded language: a synchronous grammar of English and German, with trees and word alignments.

A sentence is derived once and written down twice. `draw_sentences.py` draws a rule, and with it a derivation: clauses
(`draw_clauses.py`) and their noun phrases (`draw_phrases.py`), from the words of `lexicon.py`; what makes no sense
(`sense.py`) is drawn again. `english.py` writes the derivation as a tree, `german.py` as a line, both with templates
of `grammar.py`; `pairs.py` spells them and aligns their words. `sampling.py` collects sentences, and splits off those
with combinations of words that training must not see.

Every English sentence has one German one ("you" is always `du`), so that translation is a function.
"""

from transduce.wings.demo.phrasebook.derivation import Clause, NounPhrase, Sentence
from transduce.wings.demo.phrasebook.pairs import Example, build, tokens
from transduce.wings.demo.phrasebook.sampling import LONGEST, sentences, split, stream, withheld

__all__ = [
    "LONGEST",
    "Clause",
    "Example",
    "NounPhrase",
    "Sentence",
    "build",
    "sentences",
    "split",
    "stream",
    "tokens",
    "withheld",
]
