"""Finds the column of a language by the names in the first row of a table."""

from collections.abc import Sequence

from transduce.system.errors import UserError
from transduce.text.languages import language_name, nearest_code

# Names of columns, if none is named by its language.
SOURCE_COLUMNS = ("source", "src")
TARGET_COLUMNS = ("target", "tgt", "translation")


def find_column(
    names: Sequence[str], others: Sequence[str], language: str, file: str, *, is_needed: bool = True
) -> int:
    """The index of the column for a language, or else for one of the names `others`.

    If there is none, the index behind the last column; raises UserError if the column is needed.
    """
    folded = [name.strip().casefold() for name in names]
    nearest = nearest_code(language, filter(None, names)) or language
    for wanted in (nearest, language_name(language), *others):
        if wanted.casefold() in folded:
            return folded.index(wanted.casefold())
    if is_needed:
        raise UserError(
            f"{file}: no column is named {language!r}. The first row has: {', '.join(map(repr, names))}.",
            f"Name the column by the language's code ({language}) or English name, or name the columns source "
            "and target.",
        )
    return len(names)
