"""Reads the test sets of `transduce evaluate` and `transduce score`."""

from collections.abc import Sequence
from itertools import product
from typing import TYPE_CHECKING

from transduce.system.errors import UserError
from transduce.text.formats import format_of
from transduce.text.languages import Direction, languages_of
from transduce.text.multilingual import is_multilingual
from transduce.text.pairs import read_pairs
from transduce.text.plain import read_lines, without_byte_order_mark

if TYPE_CHECKING:
    from transduce.config.schema import DataConfig
    from transduce.text.pairs import Pair


def read_routes(
    files: Sequence[str], data: "DataConfig", languages: tuple[str, str]
) -> "list[Pair]":
    """Read the pairs of a test set in all directions between the languages of a model."""
    from transduce.decoding.directions import directions_of

    sources, targets = zip(*directions_of(data), strict=True)
    known = [
        Direction(*pair)
        for pair in product(dict.fromkeys(sources), dict.fromkeys(targets))
        if len({*pair}) == 2
    ]
    return _read_directed(files, data, known, named_languages(languages, files), untrained=True)


def named_languages(languages: tuple[str, str], files: Sequence[str]) -> tuple[str, str]:
    """The languages of the command line; a missing one is read from the names of two files."""
    named = languages_of(files) or ("", "")
    return languages[0] or named[0], languages[1] or named[1]


def _read_directed(
    files: Sequence[str],
    data: "DataConfig",
    known: Sequence[Direction],
    languages: tuple[str, str],
    *,
    untrained: bool = False,
) -> "list[Pair]":
    """Read the pairs of files in several languages; raises UserError if none has a direction with these languages."""
    from transduce.decoding.directions import matching
    from transduce.preparation.aggregate import read_directed

    wanted = set(map(str, matching(known, *languages)))
    if pairs := [
        pair
        for pair in read_directed(files, data, untrained=untrained)
        if pair.direction in {"", *wanted}
    ]:
        return pairs
    raise UserError(
        f"{' '.join(files)} has no pairs in these directions: {', '.join(sorted(wanted))}."
    )


def read_test_set(
    files: Sequence[str], data: "DataConfig", languages: tuple[str, str]
) -> "list[Pair]":
    """Read the pairs of a test set for a model with the options `data` and the command line's `languages`."""
    from transduce.decoding.directions import choose_direction, directions_of

    if is_multilingual(files):
        return _read_directed(files, data, directions_of(data), languages)
    wanted = named_languages(languages, files) if data.directions else languages
    direction = choose_direction(directions_of(data), *wanted)
    name = str(direction) if data.directions else ""
    return [pair._replace(direction=name) for pair in read_pairs(files, direction)]


def read_translations(file: str) -> list[str]:
    """The lines of a file of translations or references. Raises UserError if the file is not plain text."""
    form = format_of(file)
    if form.is_bilingual or form.is_document:
        raise UserError(
            f"{file} is not plain text.",
            "With --hypothesis, name files with one translation per line.",
        )
    return list(without_byte_order_mark(read_lines(file)))
