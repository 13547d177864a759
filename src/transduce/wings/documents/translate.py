"""Whole files translated: read, their texts translated, written as they were."""

from collections.abc import Sequence
from typing import NamedTuple

from transduce.decoding.translator import Translator
from transduce.decoding.types import Term, TranslationOptions
from transduce.text.formats import read_document


class FlaggedText(NamedTuple):
    """A text of a file that needs a look."""

    line: int
    flags: tuple[str, ...]


class TranslatedDocument(NamedTuple):
    """A translated file."""

    content: bytes
    texts: int  # translated
    flagged: list[FlaggedText]


def translate_document(
    translator: Translator,
    content: bytes,
    name: str,
    source: str,
    target: str,
    *,
    redo: bool = False,
    glossary: Sequence[Term] = (),
) -> TranslatedDocument:
    """A file with its texts translated; the suffix of its name says its format.

    redo: also texts that have a translation, in a file that holds both languages. Raises UserError for a file that
    can't be read.
    """
    document = read_document(content, name, source, target, redo=redo)
    options = TranslationOptions(glossary=tuple(glossary), sentences=True)
    translations = translator.translate_lines(document.texts, options, kinds=document.kinds, numbers=document.lines)
    texts, flagged = list[str](), list[FlaggedText]()
    for line, translation in zip(document.lines, translations, strict=True):
        texts.append(translation.text)
        if translation.flags:
            flagged.append(FlaggedText(line, translation.flags))
    return TranslatedDocument(document.write(texts), len(texts), flagged)
