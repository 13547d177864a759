"""Dictionary forms of words, by simplemma."""

import unicodedata
from functools import lru_cache

from transduce.system.errors import Hint, NotInstalledError
from transduce.text.languages import main_language

# Two forms of a word that simplemma does not know differ only in their last characters; their stem is longer.
MAX_ENDING = 3
MAX_CACHED = 100_000  # words


class Lemmas:
    """The dictionary forms of the words of a language. Without data for the language, a word is its own."""

    def __init__(self, language: str) -> None:
        """Raises NotInstalledError without simplemma."""
        try:
            import simplemma
        except ImportError:
            raise NotInstalledError("Lemmas need simplemma.", Hint.install("terms")) from None
        self._language = main_language(language)
        self._simplemma = simplemma
        try:
            simplemma.is_known("a", self._language)
            self.has_data = True
        except ValueError:
            self.has_data = False
        self.of = lru_cache(MAX_CACHED)(self._of)

    def _of(self, word: str) -> str:
        """The dictionary form of a word."""
        if not self.has_data:
            return word
        lemma: str = self._simplemma.lemmatize(word, self._language)
        # Of an unknown word, simplemma returns the lower case.
        return lemma if self._knows(word) or lemma != word.lower() else word

    def with_capitals(self, word: str) -> str:
        """The dictionary form of a word with the word's capitals: a company's name is no fruit, and IT is not "it"."""
        lemma = word if word.isupper() and len(word) > 1 else self.of(word)
        return lemma[:1].upper() + lemma[1:] if word[:1].isupper() else lemma

    def _knows(self, word: str) -> bool:
        return self.has_data and self._simplemma.is_known(word, self._language)

    def same(self, word: str, other: str) -> bool:
        """Whether two words are forms of the same word."""
        forms, others = ({each.casefold(), self.of(each).casefold()} for each in (word, other))
        if forms & others:
            return True
        if self._knows(word) and self._knows(other):
            return False
        shorter, longer = sorted(map(_plain, (word, other)), key=len)
        letters = enumerate(shorter)
        stem = next((i for i, letter in letters if letter != longer[i]), len(shorter))
        return len(longer) - stem <= MAX_ENDING < stem


def _plain(word: str) -> str:
    """A word in lower case, without accents: an umlaut may distinguish a plural."""
    decomposed = unicodedata.normalize("NFD", word.casefold())
    return "".join(each for each in decomposed if not unicodedata.combining(each))
