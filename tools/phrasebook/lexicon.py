"""The words of lexicon.toml and verbs.toml by English name, as named tuples.

Nouns have tags: their class, their own name, and others. Verbs and adjectives name the tags that they go with, so
nobody drinks a table.
"""

import functools
import itertools
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from phrasebook.grammar import FRAMES, read

NOMINATIVE, ACCUSATIVE, DATIVE, GENITIVE = range(4)
CASES = {"acc": ACCUSATIVE, "dat": DATIVE}
GENDERS = {"der": "m", "die": "f", "das": "n"}  # "p" is the plural
# Forms of a verb; ihr is not used, sie (they) equals wir.
PERSONS = {
    "ich": 0,
    "du": 1,
    "er": 2,
    "wir": 3,
}
ER, WIR = PERSONS["er"], PERSONS["wir"]
# sich and a separable particle, the infinitive with its changed forms, the participle, the auxiliary, the preterite:
# `auf-stehen aufgestanden sein`, `lesen(lies) gelesen`, `denken gedacht /dachte`.
GERMAN_VERB = re.compile(
    r"((?P<reflexive>sich) )?((?P<particle>\S+)-)?(?P<infinitive>\w+)(\((?P<changed>[^)]+)\))? (?P<participle>\w+)"
    r"( (?P<auxiliary>sein))?( /(?P<preterite>\w+))?"
)
ROLES = ("subject", "object", "receiver", "place", "manner")
POSSESSIVES = ("my", "your", "his", "her", "our", "their")
NUMERALS = ("two", "three", "four", "five", "six", "seven", "ten")
PEOPLE = frozenset({"person", "adult"})
SOMEONE = frozenset({"someone"})  # who has a name


class Noun(NamedTuple):
    """An entry of `[nouns]`; a place has three prepositions: English at, German at, German to."""

    plural: str
    german: str
    german_plural: str
    gender: str
    tags: frozenset[str]
    prepositions: tuple[str, ...]


class Pronoun(NamedTuple):
    """An entry of `[pronouns]`: two English forms, then German; `cases` are nominative, accusative, dative."""

    oblique: str
    possessive: str
    cases: tuple[str, ...]
    reflexive: str
    person: int  # of PERSONS


class Determiner(NamedTuple):
    """An entry of `[determiners]`; the kind says how it inflects."""

    stem: str
    kind: str


class Adjective(NamedTuple):
    """An entry of `[adjectives]`; `reactions`: verbs for what a feeling makes people do."""

    comparative: str  # "" for none
    german: str
    stem: str
    german_comparative: str
    kinds: tuple[str, ...]  # tags of nouns that it describes
    unfit: tuple[str, ...]  # tags of nouns that it doesn't describe
    reactions: tuple[str, ...]


class Adverb(NamedTuple):
    """An entry of `[times]`, `[frequencies]`, `[manners]`, `[degrees]` or `[prepositions]`."""

    english: str  # its template; of a manner or degree its name is enough
    german: str
    # Tenses, tenses, classes of verbs, adjectives, tags of what has such a side.
    goes_with: frozenset[str]
    verbs: tuple[str, ...] = ()  # of a time, if it does not go with all


class Verb(NamedTuple):
    """An entry of verbs.toml; of the German columns those that do not apply are empty."""

    words: tuple[str, ...]
    frame: str
    forms: Mapping[str, str]  # English: base, s, d, en, ing
    preposition: str  # of the object
    case: int  # of the object
    classes: Mapping[str, frozenset[str]]  # by role
    state: bool
    willed: bool
    once: bool
    verbs: tuple[str, ...]  # of a dependent infinitive, or of what people do in such weather
    reflexive: str  # sich
    particle: str  # auf
    infinitive: str  # stehen
    changed: str  # the present stem of du and er, or all four finite forms
    participle: str  # aufgestanden
    auxiliary: str  # sein, if not haben
    preterite: str  # of ich, for a verb that uses it in place of the perfect


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _listed(text: str) -> tuple[str, ...]:
    return tuple(text.split(", ")) if text else ()


def _noun(group: str, english: str, row: list[str]) -> Noun:
    plural, german, german_plural, tags, *places = row
    article, noun = german.split()
    of = {group, english, *tags.split()} | (
        {"adult"} if group == "person" and "minor" not in tags else set()
    )
    return Noun(
        plural,
        noun,
        german_plural,
        GENDERS[article],
        frozenset(of),
        tuple(" ".join(places).split()),
    )


def _adjective(
    comparative: str, german: str, stem: str, compared: str, kinds: str, reactions: str
) -> Adjective:
    fit = tuple(kind for kind in kinds.split() if kind[0] != "-")
    unfit = tuple(kind[1:] for kind in kinds.split() if kind[0] == "-")
    return Adjective(comparative.strip("-"), german, stem, compared, fit, unfit, _listed(reactions))


def _adverb(english: str, german: str, goes_with: str, verbs: str = "") -> Adverb:
    return Adverb(english, german, _words(goes_with), _listed(verbs))


def _verb(english: str, frame: str, entry: Mapping[str, Any]) -> Verb:
    german = GERMAN_VERB.fullmatch(entry["de"])
    assert german, entry["de"]
    words = tuple(english.split())
    *preposition, case = entry.get("case", FRAMES[frame].case).split()
    return Verb(
        words,
        frame,
        dict(zip(("base", "s", "d", "en", "ing"), (words[0], *entry["en"].split()), strict=True)),
        " ".join(preposition),
        CASES[case],
        {role: _words(entry.get(role, "")) for role in ROLES},
        entry.get("state", False),
        entry.get("willed", True),
        entry.get("once", False),
        _listed(entry.get("verbs", "")),
        **german.groupdict(""),
    )


_TABLES = read("lexicon.toml")
NOUNS = {
    name: _noun(group, name, row)
    for group, rows in _TABLES["nouns"].items()
    for name, row in rows.items()
}
PRONOUNS = {
    name: Pronoun(oblique, possessive, tuple(cases), reflexive, PERSONS[person])
    for name, (oblique, possessive, *cases, reflexive, person) in _TABLES["pronouns"].items()
}
DETERMINERS = {name: Determiner(*row) for name, row in _TABLES["determiners"].items()}
ADJECTIVES = {name: _adjective(*row) for name, row in _TABLES["adjectives"].items()}
MANNERS, DEGREES = (
    {name: Adverb("", german, _words(of)) for name, (german, of) in _TABLES[table].items()}
    for table in ("manners", "degrees")
)
FREQUENCIES, PREPOSITIONS, TIMES = (
    {name: _adverb(*row) for name, row in _TABLES[table].items()}
    for table in ("frequencies", "prepositions", "times")
)
VERBS = {
    name: _verb(name, frame, row)
    for frame, rows in read("verbs.toml").items()
    for name, row in rows.items()
}


@functools.cache
def members(tags: frozenset[str]) -> tuple[str, ...]:
    """The nouns that have one of the tags."""
    return tuple(name for name, noun in NOUNS.items() if noun.tags & tags)


@functools.cache
def uses(head: str) -> int:
    """In how many places of how many verbs a noun can stand."""
    return sum(
        bool(tags & NOUNS[head].tags) for verb in VERBS.values() for tags in verb.classes.values()
    )


@functools.cache
def rarity(tags: frozenset[str]) -> list[float]:
    """The cumulative weights of the members: a noun of few verbs is drawn more often with them."""
    return list(itertools.accumulate(1 / uses(name) for name in members(tags)))


@functools.cache
def adjectives_of(head: str) -> tuple[str, ...]:
    """The adjectives that can describe a noun."""
    tags = NOUNS[head].tags
    return tuple(
        name
        for name, entry in ADJECTIVES.items()
        if tags & {*entry.kinds} and not tags & {*entry.unfit}
    )


@functools.cache
def breadth(adjective: str) -> int:
    """How many nouns an adjective goes with."""
    return sum(adjective in adjectives_of(head) for head in NOUNS)
