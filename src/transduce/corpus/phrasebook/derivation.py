"""What a sentence is before it has words in either language: its noun phrases, clauses and rule.

The fields hold English names of the lexicon and the grammar. The functions say what both languages need to know.
"""

from typing import NamedTuple

from transduce.corpus.phrasebook.lexicon import NOUNS, PERSONS, POSSESSIVES, PRONOUNS, QUANTIFIERS, VERBS

DEFINITE = ("the", "this", "these", "every", "all", *POSSESSIVES)


class NounPhrase(NamedTuple):
    """A noun, name or pronoun with what belongs to it; `rule` says which owner it has, if it has one."""

    head: str
    determiner: str = ""
    plural: bool = False
    adjective: str = ""
    rule: str = ""  # "names", "possessed", "part" or "pair", which have an owner
    owner: "NounPhrase | None" = None
    relative: "Clause | None" = None  # whose subject or object is None: the noun itself


class Clause(NamedTuple):
    """A verb and what it says; a subject or object that is None stands elsewhere (`who`, a relative's noun)."""

    verb: str
    tense: str = "present"
    subject: NounPhrase | None = None
    object: NounPhrase | None = None
    receiver: NounPhrase | None = None
    place: NounPhrase | None = None
    preposition: str = ""  # of the place, if it is not the place's own
    time: str = ""
    frequency: str = ""
    manner: str = ""
    negated: bool = False
    predicate: str = ""  # an adjective, after `be`
    degree: str = ""
    complement: "Clause | None" = None


class Sentence(NamedTuple):
    """A rule of `[sentences]` with its one or two clauses, and the time or noun phrase that it starts with."""

    rule: str
    main: Clause
    other: Clause | None = None
    time: str = ""
    topic: NounPhrase | None = None

    def clauses(self) -> list[Clause]:
        """The main clause, and the other one if there is one."""
        return [self.main, self.other] if self.other else [self.main]


def tags(phrase: NounPhrase) -> frozenset[str]:
    """The tags of the noun; a pronoun has none."""
    return NOUNS[phrase.head].tags if phrase.head in NOUNS else frozenset()


def is_pronoun(phrase: NounPhrase | None) -> bool:
    """Whether there is a phrase and it is a pronoun."""
    return phrase is not None and phrase.head in PRONOUNS


def is_person(phrase: NounPhrase) -> bool:
    """Whether somebody is meant, by a noun, a name or a pronoun."""
    return is_pronoun(phrase) or bool(tags(phrase) & {"person", "someone"})


def is_alive(phrase: NounPhrase) -> bool:
    """Whether it is a person or an animal."""
    return is_person(phrase) or "animal" in tags(phrase)


def is_definite(phrase: NounPhrase) -> bool:
    """Whether it is known who or what is meant."""
    return phrase.determiner in DEFINITE or noun_phrase_rule(phrase) in (
        "pronoun", "name", "names", "possessed", "pair",
    )  # fmt: skip


def is_quantified(phrase: NounPhrase | None) -> bool:
    """Whether there is a phrase and it says how many: every, no, all, some, many."""
    return phrase is not None and phrase.determiner in QUANTIFIERS


def person(phrase: NounPhrase | None) -> int:
    """Which of PERSONS the verb agrees with; er without a subject."""
    if phrase and phrase.head in PRONOUNS:
        return PRONOUNS[phrase.head].person
    return PERSONS.index("wir" if phrase and (phrase.plural or phrase.rule == "pair") else "er")


def gender(phrase: NounPhrase) -> str:
    """The German gender, p in the plural."""
    return "p" if phrase.plural else NOUNS[phrase.head].gender


def noun_phrase_rule(phrase: NounPhrase) -> str:
    """The rule of `[noun_phrases]` that a noun phrase follows, its relative clause apart."""
    if phrase.rule or is_pronoun(phrase):
        return phrase.rule or "pronoun"
    if "name" in tags(phrase):
        return "name"
    if phrase.adjective:
        return "described" if phrase.determiner else "bare_described"
    return "plain" if phrase.determiner else "bare"


def relative_rule(phrase: NounPhrase, relative: Clause) -> str:
    """The rule of `[noun_phrases]` for a noun with a relative clause: that, who or whom."""
    if "person" not in tags(phrase):
        return "that"
    return "who" if relative.subject is None else "whom"


def frame(clause: Clause) -> str:
    """The rule of `[frames]` that a clause follows: that of its verb, but `be` has three."""
    if clause.verb == "be":
        return "profession" if not clause.predicate else "comparison" if clause.object else "copula"
    found = VERBS[clause.verb].frame
    return "particle_pronoun" if found == "particle_transitive" and is_pronoun(clause.object) else found


def requires_place(clause: Clause) -> bool:
    """Whether the verb is incomplete without a place: where one lives, goes or puts something."""
    return VERBS[clause.verb].frame in ("motion", "dwelling", "posture", "placing")
