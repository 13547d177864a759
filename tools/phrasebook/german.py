"""Write a derivation in German, as a list of words.

The parts of a clause are between the finite verb and the other verbs, in the order of `Field`. The `order` that a rule
requires is the position of the finite verb.
"""

from collections.abc import Iterator, Sequence
from enum import IntEnum, auto

from phrasebook import inflection, lexicon
from phrasebook.derivation import Clause, NounPhrase
from phrasebook.grammar import AUXILIARIES, FRAMES, NOUN_PHRASES, TENSES, Word, line, marked
from phrasebook.lexicon import ACCUSATIVE, DATIVE, ER, GENITIVE, NOMINATIVE, PRONOUNS

# Not sie: it may be the subject.
EARLY = (
    "mich",
    "mir",
    "dich",
    "dir",
    "ihn",
    "ihm",
    "ihr",
    "uns",
    "ihnen",
    "sich",
)


class Field(IntEnum):
    """The parts between the verbs, in order: known before new, the verb's own complements last."""

    REFLEXIVE = auto()
    PRONOUN = auto()
    KNOWN_RECEIVER = auto()
    KNOWN_OBJECT = auto()
    TIME = auto()
    RECEIVER = auto()
    MANNER_BEFORE_NEW = auto()
    OBJECT = auto()
    NOT = auto()
    MANNER = auto()
    PLACE = auto()
    OF_THE_VERB = auto()  # a required place, an object with a preposition, a game
    PREDICATE = auto()
    COMPARED = auto()


# -- noun phrases ---------------------------------------------------------------------------------------------------


def write_noun_phrase(phrase: NounPhrase, case: int, link: str, negation: str = "") -> list[Word]:
    """The words of a noun phrase, without its relative clause.

    With `negation`, the link of English `not`, `a` and the missing article become `kein`.
    """

    def slot(name: str) -> Sequence[Word]:
        if name == "owner" and phrase.owner:
            return write_noun_phrase(
                phrase.owner, case if phrase.rule == "pair" else GENITIVE, link + ".owner"
            )
        return [Word(_inflected(phrase, name, case, bool(negation)), (f"{link}/{name}",))]

    words = line(NOUN_PHRASES[phrase.pattern].german, link, slot)
    if negation and phrase.determiner:
        words[0] = Word(words[0].text, (*words[0].links, negation))
    elif negation:
        words.insert(0, Word(inflection.determiner("no", phrase.gender, case), (negation,)))
    return words


def _inflected(phrase: NounPhrase, name: str, case: int, negated: bool) -> str:
    """The determiner, adjective or head of a noun phrase."""
    if phrase.is_pronoun:
        return PRONOUNS[phrase.head].cases[case]
    article = "no" if negated else phrase.determiner
    if name == "determiner":
        return inflection.determiner(article, phrase.gender, case)
    if name == "adjective":
        return inflection.adjective(phrase.adjective, article, phrase.gender, case)
    return inflection.noun(phrase.head, phrase.plural, case)


def _relative(phrase: NounPhrase | None, link: str) -> list[Word]:
    """, der in Berlin wohnt ,"""
    if phrase is None or (relative := phrase.relative) is None:
        return []
    case = NOMINATIVE if relative.subject is None else relative.entry.case
    pronoun = (
        "denen"
        if (phrase.gender, case) == ("p", DATIVE)
        else inflection.DEFINITE_ARTICLE[phrase.gender][case]
    )

    def slot(name: str) -> Sequence[Word]:
        if name == "relative_pronoun":
            return [Word(pronoun, (link + "/r",))]
        return write_clause(relative, link + ".relative", "last", phrase)

    return line(NOUN_PHRASES[phrase.relative_pattern].german, link, slot)


# -- clauses --------------------------------------------------------------------------------------------------------


def write_clause(
    clause: Clause, link: str, order: str, gap: NounPhrase | None = None
) -> list[Word]:
    """The words of a clause; order: second, first or last (position of the finite verb), infinitive or imperative.

    `gap` is the noun of a relative clause, with which the verb agrees where it is the subject.
    """
    middle = [
        word
        for _, words in sorted(_middle(clause, link), key=lambda part: part[0])
        for word in words
    ]
    rest = [*_relative(clause.object, link + ".object"), *_complement(clause, link)]
    if order == "infinitive":
        return [*middle, *_infinitive_with_zu(clause, link), *rest]
    if order == "imperative":
        return [
            _verb(inflection.imperative(clause.verb), link),
            *middle,
            *_particle(clause, link),
            *rest,
        ]
    return [*_around_finite(clause, link, order, middle, clause.subject or gap), *rest]


def _around_finite(
    clause: Clause, link: str, order: str, middle: Sequence[Word], agrees_with: NounPhrase | None
) -> list[Word]:
    """The subject, the verbs and the words between them, with the finite verb in its position."""
    subject = _subject(clause, link)
    finite, end = _finite(clause, link, agrees_with.person if agrees_with else ER)
    if order == "last":
        joined = finite if end else Word(clause.entry.particle + finite.text, finite.links)
        return [*subject, *middle, *end, joined]
    end = end or _particle(clause, link)
    if order == "second":
        return [*subject, finite, *middle, *end]
    early = middle[:1] if _comes_early(clause, middle) else []
    return [finite, *early, *subject, *middle[len(early) :], *end]


def _comes_early(clause: Clause, middle: Sequence[Word]) -> bool:
    """Whether a pronoun precedes the subject: heute freut sich der Mann, but heute freut er sich."""
    return (
        clause.subject is not None
        and not clause.subject.is_pronoun
        and middle[:1] != []
        and middle[0].text in EARLY
    )


def _subject(clause: Clause, link: str) -> list[Word]:
    if clause.subject is None:
        return []
    link += ".subject"
    return [*write_noun_phrase(clause.subject, NOMINATIVE, link), *_relative(clause.subject, link)]


def _verb(text: str, link: str) -> Word:
    return Word(text, (link + "/verb",))


def _finite(clause: Clause, link: str, who: int) -> tuple[Word, list[Word]]:
    """The finite verb, and its infinitive or participle, if any."""
    verb = clause.entry
    german = TENSES[clause.tense].german
    if not german:
        return _verb(inflection.present(clause.verb)[who], link), []
    if clause.tense == "past" and verb.preterite:
        return _verb(inflection.preterite(clause.verb)[who], link), []
    auxiliary, form = german.split()
    if form == "participle":
        return _verb(AUXILIARIES[verb.auxiliary or "haben"][who], link), [
            _verb(verb.participle, link)
        ]
    helper = Word(AUXILIARIES[auxiliary][who], (link + "/helper",))
    return helper, [_verb(verb.particle + verb.infinitive, link)]


def _particle(clause: Clause, link: str) -> list[Word]:
    return [_verb(clause.entry.particle, link)] if clause.entry.particle else []


def _infinitive_with_zu(clause: Clause, link: str) -> list[Word]:
    """The infinitive: zu lesen, aufzustehen; `zu` is aligned with `to`, a word of the outer clause."""
    particle = clause.entry.particle
    infinitive = clause.entry.infinitive
    if particle:
        return [_verb(f"{particle}zu{infinitive}", link)]
    return [marked("zu/c", link.removesuffix(".complement")), _verb(infinitive, link)]


def _complement(clause: Clause, link: str) -> list[Word]:
    """The subordinate clause, behind the last verb."""
    if (inner := clause.complement) is None:
        return []

    def slot(name: str) -> Sequence[Word]:
        return write_clause(inner, link + ".complement", name.removeprefix("complement."))

    return line(FRAMES[clause.frame].rest, link, slot)


# -- between the verbs ----------------------------------------------------------------------------------------------


def _middle(clause: Clause, link: str) -> Iterator[tuple[Field, list[Word]]]:
    """The parts between the verbs with their fields."""
    if clause.entry.reflexive:
        mine = clause.subject and PRONOUNS.get(clause.subject.head)
        yield Field.REFLEXIVE, [_verb(mine.reflexive if mine else clause.entry.reflexive, link)]
    yield from _adverbs(clause, link)
    kein = _says_kein(clause)
    if clause.receiver:
        yield (
            _receiver_field(clause.receiver),
            write_noun_phrase(clause.receiver, DATIVE, link + ".receiver"),
        )
    if clause.object:
        yield _object_field(clause, clause.object), _object(clause, clause.object, link, kein)
    if clause.negated and not kein:
        yield Field.NOT, [Word("nicht", (link + "/not",))]
    if clause.place:
        yield (
            Field.OF_THE_VERB if clause.requires_place else Field.PLACE,
            _place(clause, clause.place, link),
        )
    if clause.predicate:
        yield Field.PREDICATE, _predicate(clause, link)


def _adverbs(clause: Clause, link: str) -> Iterator[tuple[Field, list[Word]]]:
    if adverb := lexicon.TIMES.get(clause.time) or lexicon.FREQUENCIES.get(clause.frequency):
        yield Field.TIME, line(adverb.german, link + ".time")
    if clause.manner:
        yield (
            _manner_field(clause),
            [Word(lexicon.MANNERS[clause.manner].german, (link + "/manner",))],
        )


def _manner_field(clause: Clause) -> Field:
    what = clause.object
    if what is None or what.is_definite or clause.entry.preposition:
        return Field.MANNER
    # Im Park gut Schach spielen.
    return Field.OF_THE_VERB if "bare" in what.tags else Field.MANNER_BEFORE_NEW


def _says_kein(clause: Clause) -> bool:
    """Whether the object's article is the negation: not a book, kein Buch."""
    if not clause.negated or clause.object is None or clause.frame == "comparison":
        return False
    return not clause.object.is_definite and not clause.entry.preposition


def _receiver_field(receiver: NounPhrase) -> Field:
    if receiver.is_pronoun:
        return Field.PRONOUN
    return Field.KNOWN_RECEIVER if receiver.is_definite else Field.RECEIVER


def _object_field(clause: Clause, what: NounPhrase) -> Field:
    verb = clause.entry
    if clause.verb == "be":
        return Field.COMPARED
    if verb.preposition or "bare" in what.tags:
        return Field.OF_THE_VERB
    if what.is_pronoun:
        return Field.PRONOUN
    late = bool(clause.frequency) and "late" in lexicon.FREQUENCIES[clause.frequency].goes_with
    early = clause.negated or late or verb.case == DATIVE
    return Field.KNOWN_OBJECT if early and what.is_definite else Field.OBJECT


def _object(clause: Clause, what: NounPhrase, link: str, kein: bool) -> list[Word]:
    """The object with its preposition and case; of be: the profession or the noun compared with."""
    before = []
    case = NOMINATIVE
    if clause.verb != "be":
        before = [_verb(word, link) for word in clause.entry.preposition.split()]
        case = clause.entry.case
    elif clause.predicate:
        before = [marked("als/c", link)]
    elif not what.adjective and not kein:  # er ist Lehrer
        what = what._replace(determiner="")
    return [
        *before,
        *write_noun_phrase(what, case, link + ".object", link + "/not" if kein else ""),
    ]


def _predicate(clause: Clause, link: str) -> list[Word]:
    """The predicate adjective: sehr alt, älter."""
    entry = lexicon.ADJECTIVES[clause.predicate]
    before = (
        [Word(lexicon.DEGREES[clause.degree].german, (link + "/degree",))] if clause.degree else []
    )
    text = entry.german_comparative if clause.object else entry.german
    return [*before, Word(text, (link + "/predicate",))]


def _place(clause: Clause, place: NounPhrase, link: str) -> list[Word]:
    """The place, in the dative, or of motion in the accusative (zu and nach: dative)."""
    verb_frame = clause.entry.frame
    if clause.preposition:
        preposition = lexicon.PREPOSITIONS[clause.preposition].german
        case = ACCUSATIVE if verb_frame == "placing" else DATIVE
    else:
        preposition = lexicon.NOUNS[place.head].prepositions[2 if verb_frame == "motion" else 1]
        case = ACCUSATIVE if verb_frame == "motion" and preposition == "in" else DATIVE
    return [marked(preposition + "/p", link), *write_noun_phrase(place, case, link + ".place")]
