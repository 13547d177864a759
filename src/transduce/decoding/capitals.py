"""Translates sentences in capitals by way of lower case, if the vocabulary does not know their words in capitals.

A corpus has few sentences in capitals, so a word in capitals is encoded letter by letter, which a model can't read.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import accumulate

from transduce.decoding.types import Link, Translation


def readable(texts: Sequence[str], lengths: Callable[[Sequence[str]], list[int]]) -> list[str]:
    """Replace each text in capitals by its sentence case or lower case, if this has fewer tokens.

    `lengths` counts tokens. A replaced text is as long as the original text.
    """
    in_capitals = [i for i, text in enumerate(texts) if text.isupper() and sum(map(str.isupper, text)) > 1]
    forms = [form for i in in_capitals for form in (texts[i], _sentence_case(texts[i]), _lower(texts[i]))]
    counts, read = iter(zip(lengths(forms), forms, strict=True)), list(texts)
    for i, three in zip(in_capitals, zip(counts, counts, counts, strict=True), strict=True):
        read[i] = min(three, key=lambda counted: counted[0])[1]  # the first of the shortest
    return read


def capitalised(translation: Translation) -> Translation:
    """Write a translation and its alternatives in capitals. Its score and its tokens stay."""
    ends = [0, *accumulate(len(letter.upper()) for letter in translation.text)]  # ß becomes SS
    links = tuple(Link(source, (ends[begin], ends[end]), weight) for source, (begin, end), weight in translation.links)
    others = tuple(map(capitalised, translation.alternatives))
    return replace(translation, text=translation.text.upper(), links=links, alternatives=others)


def _lower(text: str) -> str:
    """The text in lower case, letter by letter, so that its length stays."""
    return "".join(lower if len(lower := letter.lower()) == 1 else letter for letter in text)


def _sentence_case(text: str) -> str:
    first = next(i for i, letter in enumerate(text) if letter.isupper())
    return text[: first + 1] + _lower(text[first + 1 :])
