"""German inflection: verbs by person; nouns, determiners and adjectives by gender and case.

Gender is m, f, n, or p for plurals. Tuples are in the order of the cases.
"""

import functools
import re

from phrasebook.lexicon import (
    ACCUSATIVE,
    ADJECTIVES,
    DATIVE,
    DETERMINERS,
    GENITIVE,
    NOMINATIVE,
    NOUNS,
    VERBS,
)

DEFINITE_ARTICLE = {
    "m": ("der", "den", "dem", "des"),
    "f": ("die", "die", "der", "der"),
    "n": ("das", "das", "dem", "des"),
    "p": ("die", "die", "den", "der"),
}
STRONG = {
    "m": ("er", "en", "em", "es"),
    "f": ("e", "e", "er", "er"),
    "n": ("es", "es", "em", "es"),
    "p": ("e", "e", "en", "er"),
}
# Where ein, kein and mein have no ending.
BARE_EIN = {("m", NOMINATIVE), ("n", NOMINATIVE), ("n", ACCUSATIVE)}


@functools.cache
def present(verb: str) -> tuple[str, ...]:
    """The present forms of ich, du, er, wir: lese, liest, liest, lesen."""
    infinitive = VERBS[verb].infinitive
    changed = VERBS[verb].changed
    if " " in changed:
        return tuple(changed.split())
    first, e = _stem(infinitive)
    stem, e = (changed, "") if changed else (first, e)
    du = stem + ("t" if stem[-1] in "sßz" else e + "st")
    er = stem if changed.endswith("t") else stem + e + "t"
    return (first[:-2] + "le" if infinitive.endswith("eln") else first + "e"), du, er, infinitive


@functools.cache
def preterite(verb: str) -> tuple[str, ...]:
    """The preterite forms of ich, du, er, wir: war, warst, war, waren; () if the verb uses the perfect."""
    form = VERBS[verb].preterite
    return (form, form + "st", form, form + ("n" if form.endswith("e") else "en")) if form else ()


@functools.cache
def imperative(verb: str) -> str:
    """The imperative of du: arbeite, lies, gib, but fahr, schlaf."""
    entry = VERBS[verb]
    stem, e = _stem(entry.infinitive)
    if "i" in entry.changed and "e" in stem:
        return entry.changed
    return present(verb)[0] if e or entry.participle.endswith(stem + "t") else stem


def _stem(infinitive: str) -> tuple[str, str]:
    """The stem of a verb, and the vowel before -st and -t: (arbeit, e)."""
    stem = infinitive.removesuffix("n").removesuffix("e")
    return stem, "e" if re.search(r"([td]|(ch|[^aeiouäöürlhmn])[mn])$", stem) else ""


@functools.cache
def noun(head: str, plural: bool, case: int) -> str:
    """The form of a noun: Kindern, Studenten, Annas."""
    entry = NOUNS[head]
    if plural:
        return entry.german_plural + (
            "n" if case == DATIVE and entry.german_plural[-1] not in "ns" else ""
        )
    if "weak" in entry.tags and case != NOMINATIVE:
        return entry.german_plural
    return entry.german + (_genitive(head) if case == GENITIVE else "")


def _genitive(head: str) -> str:
    """The genitive ending: Hauses, Lehrers, Kochs, Frau."""
    entry = NOUNS[head]
    if "name" in entry.tags:
        return "s"
    if entry.gender == "f":
        return ""
    short = len(re.findall("[aeiouäöüy]+", entry.german.lower())) == 1
    return "es" if (short or entry.german[-1] in "sßz") and not entry.german.endswith("ch") else "s"


@functools.cache
def determiner(english: str, gender: str, case: int) -> str:
    """The form of a determiner: der, einen, meinem, dieser, zwei."""
    if english == "the":
        return DEFINITE_ARTICLE[gender][case]
    return DETERMINERS[english].stem + (
        "" if _is_bare(english, gender, case) else STRONG[gender][case]
    )


def _is_bare(english: str, gender: str, case: int) -> bool:
    """Whether the determiner has no ending or is missing: zwei Hunde, ein Hund."""
    kind = DETERMINERS[english].kind if english else "none"
    return kind == "none" or (kind == "ein" and (gender, case) in BARE_EIN)


@functools.cache
def adjective(english: str, after: str, gender: str, case: int) -> str:
    """The form of an adjective after a determiner: strong if that doesn't show the case, as in `ein alter Mann`."""
    if _is_bare(after, gender, case) or DETERMINERS[after].kind == "few":
        ending = "en" if case == GENITIVE and gender in "mn" else STRONG[gender][case]
    else:
        direct = gender != "p" and (case == NOMINATIVE or (case == ACCUSATIVE and gender != "m"))
        ending = "e" if direct else "en"
    return ADJECTIVES[english].stem + ending
