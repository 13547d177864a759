"""Compares the texts of a corpus with the languages that the user named."""

from collections.abc import Sequence
from itertools import chain, islice
from pkgutil import resolve_name

from transduce.config.schema import DataConfig
from transduce.preparation.passes import languages_in
from transduce.preparation.staging import StagedPairs, StagedTexts
from transduce.system.console import log
from transduce.system.errors import UserError
from transduce.text.languages import SHARE_IN_OTHER_LANGUAGES

EXAMINED_TEXTS, IDENTIFIED_TEXTS, MIN_IDENTIFIED_CHARACTERS, MAX_OTHER_SHARE = 10_000, 500, 20, 0.9
MIN_IDENTIFIED_TEXTS = 20  # fewer say little


def check_languages(data: DataConfig, corpora: Sequence[Sequence[StagedPairs]]) -> None:
    """Raise UserError if nearly all texts of a corpus look like another language of the model than their own.

    In a model with one direction, this is a warning unless both sides do, since some languages are hard to tell apart.
    """
    languages = [languages_in(data, corpus) for corpus in data.corpora]
    codes = set(chain.from_iterable(languages))
    for corpus, its, parts in zip(data.corpora, languages, corpora, strict=True):
        shares = {code: _share_in_other_languages(parts, column, code, codes) for column, code in enumerate(its)}
        wrong = {code: share for code, share in shares.items() if share > MAX_OTHER_SHARE}
        for code, share in wrong.items():
            message = (
                f"{' + '.join(corpus.files)}: {share:.0%} of the texts in {code} look like another language of the "
                "model. Check the files and their language codes."
            )
            if data.directions or len(wrong) == len(its):
                raise UserError(message)
            log(f"Warning: {message}")


def _share_in_other_languages(parts: Sequence[StagedPairs], column: int, code: str, codes: set[str]) -> float:
    first = islice(StagedTexts([(parts, column)]), EXAMINED_TEXTS)
    texts = list(islice((text for text in first if len(text) > MIN_IDENTIFIED_CHARACTERS), IDENTIFIED_TEXTS))
    share = resolve_name(SHARE_IN_OTHER_LANGUAGES)(texts, code, codes) if len(texts) >= MIN_IDENTIFIED_TEXTS else None
    return share or 0.0
