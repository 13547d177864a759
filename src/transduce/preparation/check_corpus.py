"""Warns, before a training begins, of texts in another language and of faults that a whole corpus has."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import chain

from transduce.config.commands import option
from transduce.config.families import TEXT_SOURCES
from transduce.config.schema import DataConfig
from transduce.preparation.passes import languages_in
from transduce.preparation.staging import StagedPairs
from transduce.system.console import log
from transduce.system.errors import NotInstalledError, UserError
from transduce.text.holdout import Part
from transduce.text.identify import foreign_share, share_of_wrong_texts
from transduce.text.languages import languages_of, main_language
from transduce.text.pair_batch import TextColumn
from transduce.text.pairs import Origin, Pair

EXAMINED_PAIRS, EXAMINED_BLOCKS = 2_000, 10  # pairs per corpus, in blocks at equal distances


def check_corpora(data: DataConfig, corpora: Sequence[Sequence[StagedPairs]]) -> None:
    """Raise UserError if nearly all texts of a corpus look like another language of the model than their own.

    In a model with one direction, one such side only causes a warning, since some languages are hard to tell apart.
    Many texts in a third language, or faults of the whole corpus, also cause a warning. Trees, and sources that
    are not text, are not checked.
    """
    if data.symbols or data.source_kind != TEXT_SOURCES:
        return
    languages = [languages_in(data, corpus) for corpus in data.corpora]
    codes = set(chain.from_iterable(languages))
    for corpus, its, parts in zip(data.corpora, languages, corpora, strict=True):
        name = " + ".join(corpus.files)
        pairs = list(_sample(parts))
        columns = [
            TextColumn([pair.source for pair in pairs]),
            TextColumn([pair.target for pair in pairs]),
        ]
        shares = [
            share_of_wrong_texts(column.texts, code, codes)
            for column, code in zip(columns, its, strict=True)
        ]
        for share, column, code in zip(shares, columns, its, strict=True):
            wrong = UserError(
                f"{name}: {share:.0%} of the texts in {code} look like another language of the model.",
                "Check the order of the files or columns, and their language codes.",
            )
            if share and (data.directions or all(shares)):
                raise wrong
            if share:
                log(f"Warning: {wrong}")
                continue
            share, other = foreign_share(column.texts, code)
            if share:
                log(f"Warning: {name}: {share:.0%} of the texts in {code} look like {other}.")
        _check_names(corpus.files, its)
        with suppress(NotInstalledError):
            for sentence in option("faults of a corpus")(columns, [pair.origin for pair in pairs]):
                log(f"Warning: {sentence} `transduce doctor --fix` can repair many such faults.")


def _check_names(files: Sequence[str], languages: Sequence[str]) -> None:
    """Warn of a file whose name has the code of another language, if two letters are enough for this code."""
    for file, code, own in zip(files, languages_of(files) or (), languages, strict=False):
        named = main_language(code)
        wanted = main_language(own)
        if named != wanted and len(named) == len(wanted) == 2:
            log(f"Warning: {file} is read as {own}, but its name says {code}.")


def _sample(parts: Sequence[StagedPairs]) -> Iterator[Pair]:
    """About EXAMINED_PAIRS training pairs, from blocks at equal distances in the corpus."""
    blocks = [
        (part, number, kinds) for part in parts for number, kinds in enumerate(part.block_parts())
    ]
    examined = blocks[:: max(1, len(blocks) // EXAMINED_BLOCKS)]
    of_each = EXAMINED_PAIRS // max(1, min(len(examined), EXAMINED_BLOCKS))
    for part, number, kinds in examined:
        block = part.read_block(number).where(kinds == Part.TRAIN)
        for row in range(0, len(block.sources), max(1, len(block.sources) // of_each)):
            origin = Origin(part.files[block.files[row]], int(block.lines[row]))
            yield Pair(block.sources[row], block.targets[row], origin)
