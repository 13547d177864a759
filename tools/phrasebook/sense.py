"""Checks that a clause makes sense: nobody sees himself, or builds the same house every day."""

from phrasebook.derivation import Clause, NounPhrase
from phrasebook.grammar import TENSES
from phrasebook.lexicon import ACCUSATIVE, NOUNS, NUMERALS, PRONOUNS, adjectives_of


def is_sound(clause: Clause) -> bool:
    """Whether a clause makes sense."""
    if TENSES[clause.tense].modal and clause.subject and not clause.subject.is_alive:
        return False
    parts = _names_everybody_once(clause) and _suits(clause) and _counts_well(clause)
    return parts and (not clause.negated or _is_deniable(clause)) and _reports_well(clause)


def _names_everybody_once(clause: Clause) -> bool:
    """Whether every noun occurs once, and no child has wine."""
    phrases = [
        phrase
        for phrase in (clause.subject, clause.object, clause.receiver, clause.place)
        if phrase
    ]
    phrases += [phrase.owner for phrase in phrases if phrase.owner]
    heads = {phrase.head for phrase in phrases}
    if len(heads) < len(phrases) or heads >= {"I", "we"}:
        return False
    tags = {tag for phrase in phrases for tag in phrase.tags}
    return not tags >= {"minor", "alcohol"}


def _suits(clause: Clause) -> bool:
    """Whether adjectives and possessives fit: nobody cleans clean windows or steals his own things."""
    subject = clause.subject
    what = clause.object
    if (
        clause.predicate
        and subject
        and subject.head in NOUNS
        and clause.predicate not in adjectives_of(subject.head)
    ):
        return False
    if what is None:
        return True
    if clause.receiver and what.rule == "names" and clause.receiver.pattern == "name":
        return False  # he lends Peter Anna's book
    if clause.verb == what.adjective:
        return False
    return clause.verb != "steal" or subject is None or what.determiner not in _own(subject)


def _own(phrase: NounPhrase) -> tuple[str, ...]:
    """The possessives that may refer to a phrase."""
    return (
        (PRONOUNS[phrase.head].possessive,) if phrase.head in PRONOUNS else ("his", "her", "their")
    )


def _counts_well(clause: Clause) -> bool:
    """Whether quantifiers fit the tense and the adverbs."""
    if clause.subject and clause.subject.determiner == "no":
        return (
            not clause.frequency
            and not clause.time
            and clause.tense in ("progressive", "past", "can")
        )
    if clause.frequency and clause.subject and clause.subject.is_quantified:
        return False
    happens = not clause.entry.willed and clause.tense in ("present", "past")
    if happens and (clause.tense == "past") == bool(clause.frequency):
        return False  # laughed once, but often laughs
    if (
        clause.frequency
        and clause.object
        and clause.object.determiner in ("some", "many", *NUMERALS)
    ):
        return False
    return clause.tense != "present" or not (clause.time or clause.frequency) or _is_habit(clause)


def _is_habit(clause: Clause) -> bool:
    """Whether the clause can be a habit of somebody known; the same house is not built every day."""
    verb = clause.entry
    if not _is_known(clause.subject):
        return False
    if clause.time and (not verb.willed or clause.negated or verb.frame in ("posture", "dwelling")):
        return False
    return not (verb.once and clause.object and clause.object.determiner)


def _is_known(phrase: NounPhrase | None) -> bool:
    """Whether the phrase refers to somebody in particular."""
    return phrase is None or (phrase.is_definite and not phrase.is_quantified)


def _is_deniable(clause: Clause) -> bool:
    """Whether the clause can be negated, in exactly one way in German."""
    if not _is_known(clause.subject) or clause.time == "now":
        return False
    if clause.frame in ("comparison", "infinitive", "whether"):
        return False
    if clause.receiver and not clause.receiver.is_definite:
        return False
    if clause.object is None or clause.object.is_definite:
        return True
    verb = clause.entry
    direct = verb.case == ACCUSATIVE and not verb.preposition and verb.frame != "placing"
    return direct and clause.object.determiner in ("", "a") and "bare" not in clause.object.tags


def _reports_well(clause: Clause) -> bool:
    """Whether reported speech has the tense of its verb, and another subject."""
    inner = clause.complement
    if inner is None or clause.frame == "infinitive":
        return True
    if inner.subject and inner.subject.determiner == "no":
        return False
    same = clause.subject and inner.subject and clause.subject.head == inner.subject.head
    return not same and (clause.tense != "past" or inner.tense == "past")
