"""Whole files translated: read, their texts translated, written as they were."""

from collections.abc import Sequence
from typing import NamedTuple

from transduce.decoding.translator import Translator
from transduce.decoding.types import Term, TranslationOptions
from transduce.text.formats import read_document


class TranslatedDocument(NamedTuple):
    """A translated file."""

    content: bytes
    texts: int  # translated
    flagged: list[tuple[int, tuple[str, ...]]]  # line and flags of each text that needs a look


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
    lines = document.lines
    translations = list(translator.translate_lines(document.texts, options, kinds=document.kinds, numbers=lines))
    flagged = [(line, each.flags) for line, each in zip(lines, translations, strict=True) if each.flags]
    return TranslatedDocument(document.write([each.text for each in translations]), len(translations), flagged)
