"""Draw clauses: a verb, its tense and its complements, and sometimes time, place, manner and negation."""

import functools
import itertools
from collections.abc import Collection, Sequence

from phrasebook import lexicon
from phrasebook.derivation import Clause, NounPhrase
from phrasebook.draw_phrases import Dice, draw_counted, draw_noun_phrase
from phrasebook.grammar import TENSES
from phrasebook.sense import is_sound

REPORTING = ("that", "whether", "infinitive")
RARE_FRAMES = (
    *REPORTING,
    "dropped_preposition",
    "adverb_prepositional",
    "posture",
    "placing",
    "weather",
)
JOBS = frozenset({"job"})
RELATIVES_AND_FRIENDS = frozenset({"kin", "someone"})


# -- which verbs and tenses -----------------------------------------------------------------------------------------


@functools.cache
def verbs_of(kind: str) -> tuple[str, ...]:
    """The verbs of a kind: any (repeated by frequency), action, willed, or those of a question word."""
    if kind == "any":
        rare = [name for name, verb in lexicon.VERBS.items() if verb.frame in RARE_FRAMES]
        return (
            *lexicon.VERBS,
            *["be"] * 24,
            *["lie"] * 4,
            *rare,
            *("ask whether", "wonder whether") * 2,
        )
    return tuple(name for name, verb in lexicon.VERBS.items() if _is_of_kind(name, verb, kind))


def _is_of_kind(name: str, verb: lexicon.Verb, kind: str) -> bool:
    by_person = bool(verb.classes["subject"] & lexicon.PEOPLE)
    if kind == "who":
        return by_person
    if kind == "where_to":
        return verb.frame == "motion" and name != "come"
    if kind in ("whom", "whom_dative", "what", "which"):
        return _can_ask_for_object(verb, kind)
    acts = by_person and not verb.state and verb.frame not in ("infinitive", "posture", "dwelling")
    if kind == "where":
        return acts and bool(verb.classes["place"]) and verb.frame in ("intransitive", "transitive")
    return acts and (kind == "action" or (verb.willed and verb.frame != "motion"))


def _can_ask_for_object(verb: lexicon.Verb, kind: str) -> bool:
    """Whether a question word can stand for the object."""
    things = verb.classes["object"]
    if verb.frame not in ("transitive", "dative") or "game" in things:
        return False
    if kind == "what":
        return not things & {"person", "infant"}
    if kind == "which":
        return verb.case == lexicon.ACCUSATIVE and "place" not in things
    return "person" in things and verb.case == (
        lexicon.DATIVE if kind == "whom_dative" else lexicon.ACCUSATIVE
    )


@functools.cache
def tenses_of(verb: str) -> tuple[str, ...]:
    """The tenses of a verb, repeated by weight."""
    found = []
    for name, tense in TENSES.items():
        form = {"progressive": "ing", "past": "d", "perfect": "en"}.get(name, "base")
        if lexicon.VERBS[verb].forms[form] != "-" and _goes_with(lexicon.VERBS[verb], name):
            found += [name] * tense.weight
    return tuple(found)


def _goes_with(verb: lexicon.Verb, tense: str) -> bool:
    if verb.frame == "weather":
        return tense in ("progressive", "past", "future")
    if verb.state:
        return tense in ("present", "past")
    return verb.willed or not (TENSES[tense].modal or (verb.once and tense == "future"))


# -- a clause -------------------------------------------------------------------------------------------------------


def draw_clause(
    dice: Dice,
    verbs: Sequence[str],
    tenses: Collection[str] = tuple(TENSES),
    subject: NounPhrase | None = None,
    short: bool = False,
) -> Clause:
    """Draw a clause with one of the verbs in one of the tenses, until it makes sense."""
    while True:
        verb = dice.choice(verbs)
        allowed = [tense for tense in tenses_of(verb) if tense in tenses]
        if allowed:
            clause = (
                _draw_predicative(dice) if verb == "be" else draw_core(dice, verb, subject, short)
            )
            clause = modify(dice, clause._replace(tense=dice.choice(allowed)), short)
            if is_sound(clause):
                return clause


def draw_core(dice: Dice, verb: str, subject: NounPhrase | None, short: bool) -> Clause:
    """Draw the subject, unless given, and the complements of the verb."""
    entry = lexicon.VERBS[verb]
    kinds = entry.classes
    if not kinds["subject"]:
        return Clause(verb, subject=NounPhrase("it"))
    subject = subject or draw_noun_phrase(dice, kinds["subject"], "subject", short)
    clause = Clause(verb, subject=subject)
    if entry.frame == "posture":
        return _put_beside(dice, clause, kinds["object"])
    if kinds["object"]:
        clause = clause._replace(object=draw_noun_phrase(dice, kinds["object"], plain=short))
    if kinds["receiver"]:
        clause = clause._replace(receiver=draw_noun_phrase(dice, kinds["receiver"], plain=True))
    if entry.frame == "placing":
        return _put_beside(dice, clause, kinds["place"])._replace(preposition="on")
    if entry.frame in ("motion", "dwelling"):
        return clause._replace(
            place=draw_noun_phrase(dice, kinds["place"], "known", plain=not dice.chance(0.3))
        )
    return _with_complement(dice, clause) if entry.frame in REPORTING else clause


def _with_complement(dice: Dice, clause: Clause) -> Clause:
    """Add the subordinate clause of what is said, known or tried."""
    verb = clause.entry
    if verb.frame == "infinitive":
        who = known(clause.subject) if clause.subject else None
        inner = draw_clause(dice, verb.verbs, ("future",), who, short=True)
        inner = inner._replace(negated=False, time="", frequency="", tense="present")
        return clause._replace(subject=who, complement=inner)
    tenses = (
        ("future",) if clause.verb == "hope that" else ("past", "progressive", "future", "perfect")
    )
    inner = draw_clause(dice, verbs_of("action"), tenses, short=True)
    return clause._replace(
        complement=inner._replace(negated=inner.negated and verb.frame == "that")
    )


def known(phrase: NounPhrase) -> NounPhrase:
    """Replace a quantifier by `the`."""
    return phrase._replace(determiner="the") if phrase.is_quantified else phrase


def _put_beside(dice: Dice, clause: Clause, kinds: frozenset[str]) -> Clause:
    """Draw a place with a preposition that fits it: on, under, behind or next to."""
    place = draw_noun_phrase(dice, kinds, "known", plain=dice.chance(0.6))
    sides = [name for name, entry in lexicon.PREPOSITIONS.items() if place.tags & entry.goes_with]
    if clause.verb in ("sit", "stand") and clause.subject and clause.subject.is_person:
        fitting = ("next to", "on" if clause.verb == "sit" else "behind")
        sides = [side for side in sides if side in fitting]
    return clause._replace(place=place, preposition=dice.choice(sides))


# -- to be ----------------------------------------------------------------------------------------------------------


def _draw_predicative(dice: Dice) -> Clause:
    """Draw a clause with be: he is a teacher, the dog is tired, the dog is bigger than the cat."""
    if dice.chance(0.12):
        return _draw_profession(dice)
    name = dice.choices(list(lexicon.ADJECTIVES), cum_weights=_adjective_weights())[0]
    adjective = lexicon.ADJECTIVES[name]
    kinds = frozenset({dice.choice(adjective.kinds)})
    comparable = adjective.comparative and not adjective.reactions and kinds != {"place"}
    if comparable and dice.chance(0.5):
        first, second = (draw_noun_phrase(dice, kinds, "known", plain=True) for _ in range(2))
        return Clause("be", subject=first, object=second, predicate=name)
    degrees = [degree for degree, entry in lexicon.DEGREES.items() if name in entry.goes_with]
    degree = dice.choice(degrees) if degrees and dice.chance(0.3) else ""
    subject = draw_noun_phrase(
        dice, kinds, "subject" if adjective.reactions else "known", plain=True
    )
    return Clause("be", subject=subject, predicate=name, degree=degree)


@functools.cache
def _adjective_weights() -> list[float]:
    return list(itertools.accumulate(lexicon.breadth(name) ** -0.3 for name in lexicon.ADJECTIVES))


def _draw_profession(dice: Dice) -> Clause:
    """Draw a profession whose German noun has the gender of the person."""
    pronoun = dice.choice(("he", "she"))
    jobs, names = (
        [name for name in lexicon.members(kinds) if pronoun in lexicon.NOUNS[name].tags]
        for kinds in (JOBS, RELATIVES_AND_FRIENDS)
    )
    if dice.chance(0.3):
        subject = NounPhrase(pronoun)
    else:
        subject = draw_counted(dice, dice.choice(names), "known")._replace(plural=False)
    job = dice.choice(jobs)
    adjective = dice.choice(("", "", "famous", "rich", "young", "friendly", "patient"))
    return Clause("be", subject=subject, object=NounPhrase(job, "a", adjective=adjective))


# -- time, place, manner, not ---------------------------------------------------------------------------------------


def modify(dice: Dice, clause: Clause, short: bool) -> Clause:
    """Sometimes add time, place and manner, and negate; less often if the clause is to be short."""
    clause = _add_time(dice, clause, short) if _happens(clause) else clause
    kinds = clause.entry.classes
    if kinds["place"] and not clause.place and dice.chance(0.15 if short else 0.3):
        clause = clause._replace(
            place=draw_noun_phrase(dice, kinds["place"], "known", plain=dice.chance(0.85))
        )
    if kinds["manner"] and not clause.frequency and dice.chance(0.08 if short else 0.3):
        fitting = [
            name for name, manner in lexicon.MANNERS.items() if manner.goes_with & kinds["manner"]
        ]
        clause = clause._replace(manner=dice.choice(fitting))
    polarity = TENSES[clause.tense].polarity
    adverb = clause.manner or clause.frequency
    negated = polarity == "-" or (not polarity and not adverb and dice.chance(0.38))
    return _negate(dice, clause) if negated else clause


def _happens(clause: Clause) -> bool:
    """Whether a clause can have a time: actions and feelings."""
    if clause.predicate and clause.subject:
        return bool(lexicon.ADJECTIVES[clause.predicate].reactions) and clause.subject.is_alive
    return not clause.entry.state and clause.entry.frame not in ("that", "whether")


def _add_time(dice: Dice, clause: Clause, short: bool) -> Clause:
    """Sometimes add a time or a frequency."""
    if not short and dice.chance(0.4) and (times := _times_for(clause.verb, clause.tense)):
        weights = [6 if lexicon.TIMES[name].verbs else 1 for name in times]
        return clause._replace(time=dice.choices(times, weights)[0])
    if clause.tense == "perfect" or not short:
        fitting = [
            name
            for name, frequency in lexicon.FREQUENCIES.items()
            if clause.tense in frequency.goes_with
        ]
        if fitting and dice.chance(0.15 if clause.tense == "past" else 0.55):
            return clause._replace(frequency=dice.choice(fitting))
    return clause


@functools.cache
def _times_for(verb: str, tense: str) -> tuple[str, ...]:
    """The adverbials of time that go with a verb and a tense; `wanted` and `had to` count as past."""
    kind = "past" if tense in ("wanted", "had_to") else "modal" if TENSES[tense].modal else tense
    return tuple(
        name
        for name, time in lexicon.TIMES.items()
        if kind in time.goes_with and verb in (time.verbs or lexicon.VERBS)
    )


def _negate(dice: Dice, clause: Clause) -> Clause:
    what = clause.object
    if what and what.determiner == "the" and _can_be_new(what) and dice.chance(0.5):
        clause = clause._replace(object=what._replace(determiner="a"))
    return clause._replace(negated=True, manner="", frequency="")


def _can_be_new(phrase: NounPhrase) -> bool:
    """Whether `a` can replace `the`."""
    return not phrase.plural and not phrase.rule and not phrase.tags & {"mass", "kin", "single"}
