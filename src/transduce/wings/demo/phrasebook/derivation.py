"""What a sentence is before it has words in either language: its noun phrases, its clauses and its rule.

The fields hold English names of the lexicon and the grammar; the properties say what both languages need to know.
"""

from typing import NamedTuple

from transduce.wings.demo.phrasebook.lexicon import ER, NOUNS, POSSESSIVES, PRONOUNS, VERBS, WIR, Verb

QUANTIFIERS = ("every", "no", "all", "some", "many")
DEFINITE = ("the", "this", "these", "every", "all", *POSSESSIVES)
DEFINITE_PATTERNS = ("pronoun", "name", "names", "possessed", "pair")


class NounPhrase(NamedTuple):
    """A noun, name or pronoun with what belongs to it; `rule` says which owner it has, if it has one."""

    head: str
    determiner: str = ""
    plural: bool = False
    adjective: str = ""
    rule: str = ""  # "names", "possessed", "part" or "pair", which have an owner
    owner: "NounPhrase | None" = None
    relative: "Clause | None" = None  # whose subject or object is None: the noun itself

    @property
    def pattern(self) -> str:
        """The rule of `[noun_phrases]` that it follows, its relative clause apart."""
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
        """The tags of the noun; a pronoun has none."""
        return NOUNS[self.head].tags if self.head in NOUNS else frozenset()

    @property
    def gender(self) -> str:
        """The German gender, p in the plural."""
        return "p" if self.plural else NOUNS[self.head].gender

    @property
    def person(self) -> int:
        """Which of PERSONS the verb agrees with."""
        if self.is_pronoun:
            return PRONOUNS[self.head].person
        return WIR if self.plural or self.rule == "pair" else ER

    @property
    def is_pronoun(self) -> bool:
        """Whether it is I, you, he …"""
        return self.head in PRONOUNS

    @property
    def is_person(self) -> bool:
        """Whether somebody is meant, by a noun, a name or a pronoun."""
        return self.is_pronoun or not self.tags.isdisjoint(("person", "someone"))

    @property
    def is_alive(self) -> bool:
        """Whether it is a person or an animal."""
        return self.is_person or "animal" in self.tags

    @property
    def is_definite(self) -> bool:
        """Whether it is clear who or what is meant."""
        return self.determiner in DEFINITE or self.pattern in DEFINITE_PATTERNS

    @property
    def is_quantified(self) -> bool:
        """Whether it says of how many something is true."""
        return self.determiner in QUANTIFIERS


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

    @property
    def entry(self) -> Verb:
        """What the lexicon says of its verb."""
        return VERBS[self.verb]

    @property
    def frame(self) -> str:
        """The rule of `[frames]` that it follows: that of its verb, but `be` has three."""
        if self.verb == "be":
            return "profession" if not self.predicate else "comparison" if self.object else "copula"
        found = self.entry.frame
        turned = found == "particle_transitive" and self.object and self.object.is_pronoun  # picks it up
        return "particle_pronoun" if turned else found

    @property
    def requires_place(self) -> bool:
        """Whether the verb is incomplete without a place: where one lives, goes or puts something."""
        return self.entry.frame in ("motion", "dwelling", "posture", "placing")


class Sentence(NamedTuple):
    """A rule of `[sentences]` with its one or two clauses, and the time or noun phrase that it starts with."""

    rule: str
    main: Clause
    other: Clause | None = None
    time: str = ""
    topic: NounPhrase | None = None

    @property
    def clauses(self) -> tuple[Clause, ...]:
        """The main clause, and the other one if there is one."""
        return (self.main, self.other) if self.other else (self.main,)
