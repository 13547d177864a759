"""The derivation of a sentence, which both languages are written from: its rule, clauses and noun phrases.

Fields hold English names of the lexicon and the grammar; properties hold what both languages need.
"""

from typing import NamedTuple

from phrasebook.lexicon import ER, NOUNS, POSSESSIVES, PRONOUNS, VERBS, WIR, Verb

QUANTIFIERS = ("every", "no", "all", "some", "many")
DEFINITE = ("the", "this", "these", "every", "all", *POSSESSIVES)
DEFINITE_PATTERNS = ("pronoun", "name", "names", "possessed", "pair")


class NounPhrase(NamedTuple):
    """A noun, name or pronoun with its dependents; `rule` is the kind of its owner, or ""."""

    head: str
    determiner: str = ""
    plural: bool = False
    adjective: str = ""
    rule: str = ""  # "names", "possessed", "part" or "pair", which have an owner
    owner: "NounPhrase | None" = None
    relative: "Clause | None" = None  # its subject or object is None, which stands for this noun

    @property
    def pattern(self) -> str:
        """Its rule of `[noun_phrases]`, without the relative clause."""
        if self.rule or self.is_pronoun:
            return self.rule or "pronoun"
        if "name" in self.tags:
            return "name"
        if self.adjective:
            return "described" if self.determiner else "bare_described"
        return "plain" if self.determiner else "bare"

    @property
    def relative_pattern(self) -> str:
        """The rule of `[noun_phrases]` for its relative clause: that, who or whom."""
        if "person" not in self.tags:
            return "that"
        return "who" if self.relative and self.relative.subject is None else "whom"

    @property
    def tags(self) -> frozenset[str]:
        """The tags of the noun; none for a pronoun."""
        return NOUNS[self.head].tags if self.head in NOUNS else frozenset()

    @property
    def gender(self) -> str:
        """The German gender, p in the plural."""
        return "p" if self.plural else NOUNS[self.head].gender

    @property
    def person(self) -> int:
        """The index in PERSONS that the verb agrees with."""
        if self.is_pronoun:
            return PRONOUNS[self.head].person
        return WIR if self.plural or self.rule == "pair" else ER

    @property
    def is_pronoun(self) -> bool:
        """Whether it is I, you, he …"""
        return self.head in PRONOUNS

    @property
    def is_person(self) -> bool:
        """Whether it is a noun, a name or a pronoun for a person."""
        return self.is_pronoun or not self.tags.isdisjoint(("person", "someone"))

    @property
    def is_alive(self) -> bool:
        """Whether it is a person or an animal."""
        return self.is_person or "animal" in self.tags

    @property
    def is_definite(self) -> bool:
        """Whether it refers to something known: the, this, my, a name …"""
        return self.determiner in DEFINITE or self.pattern in DEFINITE_PATTERNS

    @property
    def is_quantified(self) -> bool:
        """Whether it has a quantifier: every, no, some …"""
        return self.determiner in QUANTIFIERS


class Clause(NamedTuple):
    """A verb with its parts; a subject or object of None is outside (`who`, the noun of a relative clause)."""

    verb: str
    tense: str = "present"
    subject: NounPhrase | None = None
    object: NounPhrase | None = None
    receiver: NounPhrase | None = None
    place: NounPhrase | None = None
    preposition: str = ""  # if not the one that the place's noun has
    time: str = ""
    frequency: str = ""
    manner: str = ""
    negated: bool = False
    predicate: str = ""  # an adjective, after `be`
    degree: str = ""
    complement: "Clause | None" = None

    @property
    def entry(self) -> Verb:
        """The entry of its verb in the lexicon."""
        return VERBS[self.verb]

    @property
    def frame(self) -> str:
        """Its rule of `[frames]`: that of its verb; `be` has three."""
        if self.verb == "be":
            return "profession" if not self.predicate else "comparison" if self.object else "copula"
        frame = self.entry.frame
        # Picks it up.
        turned = frame == "particle_transitive" and self.object and self.object.is_pronoun
        return "particle_pronoun" if turned else frame

    @property
    def requires_place(self) -> bool:
        """Whether the verb needs a place: live, go, put."""
        return self.entry.frame in ("motion", "dwelling", "posture", "placing")


class Sentence(NamedTuple):
    """A rule of `[sentences]` with one or two clauses, and a time or noun phrase at the beginning."""

    rule: str
    main: Clause
    other: Clause | None = None
    time: str = ""
    topic: NounPhrase | None = None

    @property
    def clauses(self) -> tuple[Clause, ...]:
        """The main clause, and the other one, if any."""
        return (self.main, self.other) if self.other else (self.main,)
