"""The plural forms of languages in gettext, and their categories in the CLDR."""

import re
from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache
from gettext import c2py
from typing import NamedTuple

from transduce.inline.placeholders import intact
from transduce.system.errors import UserError
from transduce.text.formats import MESSAGE

CLDR_ORDER = ("zero", "one", "two", "few", "many", "other")
OTHER = "other"  # the category that every language has
# The numbers below this one need all plural forms, except forms for round millions.
NUMBERS_TRIED = 200


class Plurals(NamedTuple):
    number: int  # number of forms
    singular: int | None  # index of the form for the number 1; None: every number has the same form
    # Whether the form for 1 is used only for 1; in Russian, it is also used for 21.
    is_singular: bool = True


TWO_FORMS = Plurals(2, 0)  # the most common case
TWO_FORMS_RULE = "nplurals=2; plural=(n != 1);"


@lru_cache
def plurals(header: str, language: str, name: str) -> Plurals:
    """The plural forms from a file's header or else from Babel; raises UserError if both are missing."""
    return _parse(header) or _parse(plural_rule(language, name)) or TWO_FORMS


def has_plurals(header: str) -> bool:
    """Whether a file's header has a valid rule for plural forms."""
    return _parse(header) is not None


def plural_rule(language: str, name: str) -> str:
    """A language's rule as in a header, from Babel's gettext table or else from the CLDR.

    Raises UserError if Babel is not installed; `name` is the file's.
    """
    try:
        from babel import Locale, UnknownLocaleError
        from babel.messages.plurals import PLURALS
        from babel.plural import to_gettext
    except ImportError:
        raise UserError(
            f"{name}: the header has no Plural-Forms.",
            "Add this field, or install Babel, which knows the forms: pip install 'transduce[documents]'.",
        ) from None
    try:
        locale = Locale.parse(language.replace("_", "-"), sep="-")
    except (UnknownLocaleError, ValueError):
        return TWO_FORMS_RULE
    number, rule = PLURALS.get(str(locale)) or PLURALS.get(locale.language) or (1, "")
    if number == 1:
        rule = to_gettext(locale.plural_form).replace("plural=(0);", "plural=0;")
        # For some languages, Babel's rule is not valid C.
        return rule if has_plurals(rule) else TWO_FORMS_RULE
    return f"nplurals={number}; plural={rule};"


def categories(language: str, *, ordinal: bool) -> tuple[bool, list[str]]:
    """Whether the category "one" is used for no number above 1, and the categories of a language for ICU messages.

    Raises ValueError if Babel is missing or does not know the language.
    """
    try:
        from babel import Locale, UnknownLocaleError
    except ImportError as error:
        raise ValueError("no Babel") from error
    try:
        locale = Locale.parse(language.replace("_", "-"), sep="-")
    except UnknownLocaleError as error:
        raise ValueError(language) from error
    rule = locale.ordinal_form if ordinal else locale.plural_form
    used = [rule(number) for number in range(NUMBERS_TRIED)]
    present = [category for category in CLDR_ORDER if category in {*used, OTHER}]
    return "one" not in used[2:], present


def in_categories(texts: Mapping[str, str], language: str, *, ordinal: bool) -> dict[str, str]:
    """The text to translate for each category of plurals that a language has or that `texts` has.

    `texts` must have the category "other". For an unknown language, or without Babel, no category is added.
    """
    other = texts[OTHER]
    one = texts.get("one", other)
    wanted = {*texts}
    with suppress(ValueError):
        is_singular, used = categories(language, ordinal=ordinal)
        wanted.update(used)
        if not (is_singular or intact(one, other, MESSAGE)):
            one = other  # "one" is also for 21, so its text can't be used
    return {
        category: one if category == "one" else texts.get(category, other)
        for category in CLDR_ORDER
        if category in wanted
    }


def _parse(rule: str) -> Plurals | None:
    """Parse a rule for plural forms; returns None for an invalid rule."""
    match = re.search(r"nplurals\s*=\s*(\d)\s*;\s*plural\s*=\s*([^;\n]+)", rule)
    if match is None or match[1] == "0":
        return None
    number = int(match[1])
    try:
        _, singular, *larger = map(c2py(match[2].strip()), range(NUMBERS_TRIED))
    except (
        ValueError,
        SyntaxError,
        RecursionError,
        ZeroDivisionError,
    ):  # c2py passes some mistakes on to Python
        return None
    return Plurals(
        number, singular if number > 1 and 0 <= singular < number else None, singular not in larger
    )
