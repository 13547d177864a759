"""The words of lexicon.toml and verbs.toml, by English name, as rows with named columns.

Nouns have tags (their class, their own name, and what else they are); verbs and adjectives say which tags they go with,
so that nobody drinks a table.
"""

import functools
import itertools
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from transduce.corpus.phrasebook.grammar import FRAMES, read

NOMINATIVE, ACCUSATIVE, DATIVE, GENITIVE = range(4)
CASES = {"acc": ACCUSATIVE, "dat": DATIVE}
GENDERS = {"der": "m", "die": "f", "das": "n"}  # "p" is the plural
PERSONS = ("ich", "du", "er", "wir")  # the finite forms of a verb: nobody is addressed as ihr, and sie has wir's form
ROLES = ("subject", "object", "receiver", "place", "manner")
POSSESSIVES = ("my", "your", "his", "her", "our", "their")
QUANTIFIERS = ("every", "no", "all", "some", "many")
NUMERALS = ("two", "three", "four", "five", "six", "seven", "ten")
PEOPLE = frozenset({"person", "adult"})
SOMEONE = frozenset({"someone"})  # who has a name


class Noun(NamedTuple):
    """An entry of `[nouns]`; the prepositions of a place: English at, German at, German to."""

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
    """An entry of `[adjectives]`; `reactions` are the verbs of what a feeling makes people do."""

    comparative: str  # "" if there is none
    german: str
    stem: str
    german_comparative: str
    kinds: tuple[str, ...]  # tags of what it describes
    unfit: tuple[str, ...]  # and of what it does not
    reactions: tuple[str, ...]


class Frequency(NamedTuple):
    """An entry of `[frequencies]`; a German object that is known comes before a `late` one."""

    english: str
    german: str
    tenses: frozenset[str]
    late: bool


class Time(NamedTuple):
    """An entry of `[times]`; `verbs` are those that it goes with, if not all."""

    english: str
    german: str
    tenses: frozenset[str]
    verbs: tuple[str, ...]


class Manner(NamedTuple):
    """An entry of `[manners]`; verbs ask for the class."""

    german: str
    kind: str


class Degree(NamedTuple):
    """An entry of `[degrees]` with the adjectives that it goes with."""

    german: str
    adjectives: frozenset[str]


class Preposition(NamedTuple):
    """An entry of `[prepositions]`; the tags are of what has such a side."""

    english: str
    german: str
    tags: frozenset[str]


class Verb(NamedTuple):
    """An entry of verbs.toml."""

    words: tuple[str, ...]
    frame: str
    forms: Mapping[str, str]  # English: base, s, d, en, ing
    reflexive: bool
    particle: str
    infinitive: str
    changed: str  # the present stem of du and er, or all four finite forms
    participle: str
    auxiliary: str  # of the perfect
    preterite: str  # of ich, for a verb that uses it in place of the perfect
    preposition: str
    case: int
    classes: Mapping[str, frozenset[str]]  # by role
    state: bool
    willed: bool
    once: bool
    verbs: tuple[str, ...]  # of a dependent infinitive, or of what people do in such weather


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _listed(text: str) -> tuple[str, ...]:
    return tuple(text.split(", ")) if text else ()


def _noun(group: str, english: str, row: list[str]) -> Noun:
    plural, german, german_plural, tags, *places = row
    article, noun = german.split()
    of = {group, english, *tags.split()} | ({"adult"} if group == "person" and "minor" not in tags else set())
    return Noun(plural, noun, german_plural, GENDERS[article], frozenset(of), tuple(" ".join(places).split()))


def _adjective(comparative: str, german: str, stem: str, compared: str, kinds: str, reactions: str) -> Adjective:
    fit = tuple(kind for kind in kinds.split() if kind[0] != "-")
    unfit = tuple(kind[1:] for kind in kinds.split() if kind[0] == "-")
    return Adjective(comparative.strip("-"), german, stem, compared, fit, unfit, _listed(reactions))


def _verb(english: str, frame: str, entry: Mapping[str, Any]) -> Verb:
    match = re.fullmatch(r"(sich )?(?:(\S+)-)?(\w+)(?:\(([^)]+)\))? (\w+)( sein)?(?: /(\w+))?", entry["de"])
    assert match, entry["de"]
    reflexive, particle, infinitive, changed, participle, auxiliary, preterite = match.groups("")
    words = tuple(english.split())
    *preposition, case = entry.get("case", FRAMES[frame].case if frame in FRAMES else "acc").split()
    return Verb(
        words,
        frame,
        dict(zip(("base", "s", "d", "en", "ing"), (words[0], *entry["en"].split()), strict=True)),
        bool(reflexive),
        particle,
        infinitive,
        changed,
        participle,
        auxiliary.strip() or "haben",
        preterite,
        " ".join(preposition),
        CASES[case],
        {role: _words(entry.get(role, "")) for role in ROLES},
        entry.get("state", False),
        entry.get("willed", True),
        entry.get("once", False),
        _listed(entry.get("verbs", "")),
    )


_TABLES = read("lexicon.toml")
NOUNS = {name: _noun(group, name, row) for group, rows in _TABLES["nouns"].items() for name, row in rows.items()}
PRONOUNS = {
    name: Pronoun(oblique, possessive, tuple(cases), reflexive, PERSONS.index(person))
    for name, (oblique, possessive, *cases, reflexive, person) in _TABLES["pronouns"].items()
}
DETERMINERS = {name: Determiner(*row) for name, row in _TABLES["determiners"].items()}
ADJECTIVES = {name: _adjective(*row) for name, row in _TABLES["adjectives"].items()}
MANNERS = {name: Manner(*row) for name, row in _TABLES["manners"].items()}
FREQUENCIES = {
    name: Frequency(english, german, _words(tenses), "late" in tenses)
    for name, (english, german, tenses) in _TABLES["frequencies"].items()
}
DEGREES = {name: Degree(german, _words(of)) for name, (german, of) in _TABLES["degrees"].items()}
PREPOSITIONS = {
    name: Preposition(english, german, _words(tags))
    for name, (english, german, tags) in _TABLES["prepositions"].items()
}
TIMES = {
    name: Time(english, german, _words(tenses), _listed(", ".join(verbs)))
    for name, (english, german, tenses, *verbs) in _TABLES["times"].items()
}
VERBS = {name: _verb(name, frame, row) for frame, rows in read("verbs.toml").items() for name, row in rows.items()}


@functools.cache
def members(tags: frozenset[str]) -> tuple[str, ...]:
    """The nouns that have one of the tags."""
    return tuple(name for name, noun in NOUNS.items() if noun.tags & tags)


@functools.cache
def uses(head: str) -> int:
    """In how many places of how many verbs a noun can stand."""
    return sum(bool(tags & NOUNS[head].tags) for verb in VERBS.values() for tags in verb.classes.values())


@functools.cache
def rarity(tags: frozenset[str]) -> list[float]:
    """The cumulative weights of the members: a noun of few verbs is drawn more often with them."""
    return list(itertools.accumulate(1 / uses(name) if uses(name) else 1.0 for name in members(tags)))


@functools.cache
def adjectives_of(head: str) -> tuple[str, ...]:
    """The adjectives that can describe a noun."""
    tags = NOUNS[head].tags
    return tuple(name for name, entry in ADJECTIVES.items() if tags & {*entry.kinds} and not tags & {*entry.unfit})


@functools.cache
def breadth(adjective: str) -> int:
    """How many nouns an adjective goes with."""
    return sum(adjective in adjectives_of(head) for head in NOUNS)
