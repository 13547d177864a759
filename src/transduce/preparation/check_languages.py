"""Compares the texts of a corpus with the languages that the user named."""

from collections.abc import Sequence
from itertools import chain, islice

from transduce.config.schema import DataConfig
from transduce.preparation.passes import languages_in
from transduce.preparation.staging import StagedPairs, StagedTexts
from transduce.system.console import log
from transduce.system.errors import UserError
from transduce.text.identify import share_of_wrong_texts

EXAMINED_TEXTS = 10_000  # of each side of a corpus


def check_languages(data: DataConfig, corpora: Sequence[Sequence[StagedPairs]]) -> None:
    """Raise UserError if nearly all texts of a corpus look like another language of the model than their own.

    In a model with one direction, this is a warning unless both sides do, since some languages are hard to tell apart.
    """
    languages = [languages_in(data, corpus) for corpus in data.corpora]
    codes = set(chain.from_iterable(languages))
    for corpus, its, parts in zip(data.corpora, languages, corpora, strict=True):
        shares = [
            share_of_wrong_texts(
                islice(StagedTexts([(parts, column)]), EXAMINED_TEXTS), code, codes
            )
            for column, code in enumerate(its)
        ]
        for code, share in zip(its, shares, strict=True):
            error = UserError(
                f"{' + '.join(corpus.files)}: {share:.0%} of the texts in {code} look like another language of the "
                "model.",
                "Check the order of the files or columns, and their language codes.",
            )
            if share and (data.directions or all(shares)):
                raise error
            if share:
                log(f"Warning: {error}")
