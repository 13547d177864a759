"""Rewrites sentences in capitals or in title case before translation, because models hardly know them.

A corpus has few such sentences, so their words are encoded in short pieces, which a model can't read. Each word gets
the case with the fewest tokens, so names and abbreviations in the vocabulary don't change.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import accumulate
from unicodedata import category

from transduce.decoding.types import Link, Translation
from transduce.text.languages import main_language

# A word with punctuation around it, but no placeholder or markup.
LETTERS = re.compile(r"""[^\W\d_]+(?:['’./-][^\W\d_]+)*""")
AROUND = "\"'()[]„“”‚‘’«»‹›¿¡.,;:!?…-–—。、"
MIN_TITLE_WORDS = 3  # long words that begin with a capital
MIN_LONG_WORD = 4  # letters; headlines may have shorter words in lower case

DOTTED = ("tr", "az", "tur", "aze", "azj")  # languages with the letter pairs i, İ and ı, I

Lengths = Callable[[Sequence[str]], list[int]]  # measures texts in tokens


def readable(texts: Sequence[str], lengths: Lengths, language: str = "") -> list[str]:
    """Rewrite each text in capitals or in title case, if it then has fewer tokens. The number of characters does not
    change.

    `language` is the code of the texts' language.
    """
    unusual = [i for i, text in enumerate(texts) if is_in_capitals(text) or _is_title(text)]
    if not unusual:
        return list(texts)
    words = [texts[i].split(" ") for i in unusual]
    forms = [
        form
        for its in words
        for place, word in enumerate(its)
        for form in _forms(word, language, not place)
    ]
    counts = iter(zip(lengths(forms), forms, strict=True))
    rewritten = list(texts)
    for i, its in zip(unusual, words, strict=True):
        rewritten[i] = " ".join(
            min((next(counts) for _ in range(3)), key=lambda each: each[0])[1] for _ in its
        )
    before, after = (lengths([column[i] for i in unusual]) for column in (texts, rewritten))
    fewer = {i for i, old, new in zip(unusual, before, after, strict=True) if new < old}
    return [rewritten[i] if i in fewer else text for i, text in enumerate(texts)]


def is_in_capitals(text: str) -> bool:
    """Whether a text has at least two capitals and no other letters, such as letters without case."""
    return text.isupper() and sum(map(str.isupper, text)) > 1 and "Lo" not in map(category, text)


def case_folding(language: str) -> Callable[[str], str]:
    """The function that removes the differences in case from texts in a language."""
    return (
        (lambda text: text.replace("I", "ı").replace("İ", "i").casefold())
        if _is_dotted(language)
        else str.casefold
    )


def capitalised(translation: Translation, language: str = "") -> Translation:
    """Write a translation into `language` and its alternatives in capitals. Their scores and tokens do not change."""
    text = translation.text.replace("i", "İ") if _is_dotted(language) else translation.text
    ends = [0, *accumulate(len(letter.upper()) for letter in text)]  # ß becomes SS
    links = tuple(
        Link(source, (ends[begin], ends[end]), weight)
        for source, (begin, end), weight in translation.links
    )
    others = tuple(capitalised(other, language) for other in translation.alternatives)
    return replace(translation, text=text.upper(), links=links, alternatives=others)


def _is_title(text: str) -> bool:
    """Whether all long words of a text begin with a capital."""
    if sum(map(str.isupper, text)) < MIN_TITLE_WORDS:  # a quick test that excludes most sentences
        return False
    long = [word for word in text.split(" ") if sum(map(str.isalpha, word)) >= MIN_LONG_WORD]
    return len(long) >= MIN_TITLE_WORDS and all(
        word.lstrip("\"'([„“«¿¡")[:1].isupper() for word in long
    )


def _forms(word: str, language: str, first: bool) -> list[str]:
    """The three ways to write a word, the most likely way first. If `first` is true, the word begins the text."""
    if not LETTERS.fullmatch(word.strip(AROUND)):
        return [word] * 3  # a placeholder, an address or markup
    lower = _lower(word.replace("I", "ı").replace("İ", "i") if _is_dotted(language) else word)
    begin = next((i for i, letter in enumerate(word) if letter.isalpha()), len(word))
    sentence_case = word[: begin + 1] + lower[begin + 1 :]
    return [sentence_case, lower, word] if first else [lower, sentence_case, word]


def _is_dotted(language: str) -> bool:
    return main_language(language) in DOTTED


def _lower(text: str) -> str:
    """The text in lower case, with the same length."""
    lower = text.lower()
    if len(lower) == len(text):  # the whole text at once, so that Σ at the end of a word becomes ς
        return lower
    return "".join(letter.lower() if len(letter.lower()) == 1 else letter for letter in text)
