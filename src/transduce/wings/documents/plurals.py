"""The plural forms of a language in gettext: how many there are, and which one is for the number 1."""

import re
from functools import cache
from gettext import c2py
from typing import NamedTuple

from transduce.system.errors import UserError

CLDR_ORDER = ("zero", "one", "two", "few", "many", "other")
NUMBERS_TRIED = 200  # the forms of higher whole numbers are among those of lower ones, but for round millions


class Plurals(NamedTuple):
    """How many forms there are, and the number of the form for 1."""

    number: int
    singular: int | None  # None: every number has the same form


TWO_FORMS = Plurals(2, 0)  # of most languages


@cache
def plurals(header: str, language: str, name: str) -> Plurals:
    """The forms that the Plural-Forms of a file's header declare, else those that Babel knows of the language.

    Raises UserError that names the file if the header has none and Babel is not installed.
    """
    return _parse(header) or _of_language(language, name)


def _of_language(language: str, name: str) -> Plurals:
    """By Babel's table for gettext; it lacks languages, and has one form for some that have two: then by the CLDR."""
    try:
        from babel import Locale, UnknownLocaleError
        from babel.messages.plurals import PLURALS
    except ImportError:
        raise UserError(
            f"{name}: the header has no Plural-Forms. Add them, or install Babel, which knows them: "
            "pip install 'transduce[documents]'."
        ) from None
    try:
        locale = Locale.parse(language.replace("_", "-"), sep="-")
    except (UnknownLocaleError, ValueError):
        return TWO_FORMS
    number, rule = PLURALS.get(str(locale)) or PLURALS.get(locale.language) or (1, "")
    if number > 1:
        return _parse(f"nplurals={number}; plural={rule};") or TWO_FORMS
    used = {locale.plural_form(number) for number in range(NUMBERS_TRIED)}
    forms = [form for form in CLDR_ORDER if form in used]
    return Plurals(len(forms), forms.index(locale.plural_form(1)) if len(forms) > 1 else None)


def _parse(rule: str) -> Plurals | None:
    """What a rule says; None if it is not one, such as the template "nplurals=INTEGER; plural=EXPRESSION;"."""
    match = re.search(r"nplurals\s*=\s*(\d)\s*;\s*plural\s*=\s*([^;\n]+)", rule)
    if match is None or match[1] == "0":
        return None
    number = int(match[1])
    try:
        singular = c2py(match[2].strip())(1)
    except (ValueError, RecursionError, ZeroDivisionError):
        return None
    return Plurals(number, singular if number > 1 and 0 <= singular < number else None)
