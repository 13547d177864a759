"""Draw sentences: a rule of `[sentences]` by weight, then its clauses."""

import itertools
from collections.abc import Callable
from typing import NamedTuple

from phrasebook.derivation import Clause, NounPhrase, Sentence
from phrasebook.draw_clauses import REPORTING, draw_clause, draw_core, modify, tenses_of, verbs_of
from phrasebook.draw_phrases import Dice
from phrasebook.draw_two_clauses import draw_two_clauses
from phrasebook.grammar import SENTENCE_RULES
from phrasebook.lexicon import NOUNS, TIMES, VERBS
from phrasebook.sense import is_sound

RULE_NAMES = list(SENTENCE_RULES)
RULE_WEIGHTS = list(itertools.accumulate(rule.weight for rule in SENTENCE_RULES.values()))
COMMANDED = [name for name, time in TIMES.items() if "command" in time.goes_with]


class Question(NamedTuple):
    """The verbs and tenses that go with a question word, and the part of the clause that it replaces."""

    verbs: str
    tenses: tuple[str, ...] = ("present", "progressive", "past", "can", "future")
    gap: str = ""


QUESTIONS = {
    "who": Question("who", gap="subject"),
    "whom": Question("whom", gap="object"),
    "whom_dative": Question("whom_dative", gap="object"),
    "what": Question("what", gap="object"),
    "which": Question("which", gap="object"),
    "where": Question("where", ("progressive", "past", "future"), gap="place"),
    "where_to": Question("where_to", ("progressive", "past", "future"), gap="place"),
    "when": Question("action", ("past", "future")),
    "why": Question("action", ("past", "progressive")),
}


def draw_sentence(dice: Dice) -> Sentence:
    """Draw a sentence."""
    rule = dice.choices(RULE_NAMES, cum_weights=RULE_WEIGHTS)[0]
    if rule in QUESTIONS:
        return _draw_question(dice, rule)
    if (draw := ONE_CLAUSE.get(rule)) is not None:
        return draw(dice, rule)
    return Sentence(rule, *draw_two_clauses(dice, rule))


def _draw_statement(dice: Dice, rule: str) -> Sentence:
    clause = draw_clause(dice, verbs_of("any"))
    if dice.chance(0.7):
        clause = (
            _with_relative_of_subject(dice, clause)
            or _with_relative_of_object(dice, clause)
            or clause
        )
    return Sentence(rule, clause)


def _draw_fronted(dice: Dice, rule: str) -> Sentence:
    """Draw a statement that begins with its time."""
    while not (clause := draw_clause(dice, verbs_of("any"))).time:
        pass
    return Sentence(rule, clause._replace(time=""), time=clause.time)


def _draw_yes_no(dice: Dice, rule: str) -> Sentence:
    """Draw a yes-no question, without `rarely` and without `no` as the determiner of its subject."""
    while True:
        clause = draw_clause(dice, verbs_of("any"))
        if not clause.subject or clause.subject.determiner != "no":
            tense = "must" if clause.tense == "must_not" else clause.tense
            frequency = "" if clause.frequency == "rarely" else clause.frequency
            return Sentence(rule, clause._replace(tense=tense, negated=False, frequency=frequency))


def _draw_command(dice: Dice, rule: str) -> Sentence:
    while True:
        clause = draw_clause(dice, verbs_of("willed"), ("present",), NounPhrase("you"))
        clause = clause._replace(frequency="", time="")
        if not clause.negated and dice.chance(0.2):
            clause = clause._replace(time=dice.choice(COMMANDED))
        if is_sound(clause._replace(tense="future")):
            return Sentence(rule, clause)


ONE_CLAUSE: dict[str, Callable[[Dice, str], Sentence]] = {
    "statement": _draw_statement,
    "fronted": _draw_fronted,
    "question": _draw_yes_no,
    "command": _draw_command,
    "please": _draw_command,
}


def _draw_question(dice: Dice, rule: str) -> Sentence:
    """Draw a question with a question word."""
    question = QUESTIONS[rule]
    while True:
        asker = NounPhrase("he") if rule == "who" else None  # only its verb form is used
        clause = draw_clause(dice, verbs_of(question.verbs), question.tenses, asker)
        clause = clause._replace(frequency="", negated=clause.negated and rule == "why")
        if rule in ("when", "why"):
            clause = clause._replace(time="")
        topic = _asked(clause.object) if rule == "which" else None
        if _is_askable(clause, rule) and (topic or rule != "which"):
            return Sentence(rule, _without(clause, question.gap), topic=topic)


def _asked(phrase: NounPhrase | None) -> NounPhrase | None:
    """Replace the determiner by `which`, if the noun is countable."""
    if (
        phrase is None
        or phrase.head not in NOUNS
        or phrase.tags & {"name", "mass", "kin", "single"}
    ):
        return None
    return phrase._replace(determiner="which", rule="", owner=None)


def _is_askable(clause: Clause, rule: str) -> bool:
    if clause.subject and clause.subject.is_quantified:
        return False
    if clause.tense == "progressive" and clause.subject and clause.subject.head in ("I", "we"):
        return False  # nobody asks where or why he is doing something
    if rule in ("who", "when", "why"):
        return True
    return not clause.manner and (clause.tense != "present" or clause.entry.state)


def _without(clause: Clause, gap: str) -> Clause:
    return clause._replace(
        subject=None if gap == "subject" else clause.subject,
        object=None if gap == "object" else clause.object,
        place=None if gap == "place" else clause.place,
    )


def _with_relative_of_subject(dice: Dice, clause: Clause) -> Clause | None:
    """The clause with a relative clause on its subject, or None if it takes none."""
    if (
        clause.complement
        or not (subject := clause.subject)
        or not _takes_relative(subject)
        or not dice.chance(0.5)
    ):
        return None
    relative = _draw_relative(dice, subject.head, clause.verb)
    return (
        clause._replace(subject=subject._replace(adjective="", relative=relative))
        if relative
        else None
    )


def _with_relative_of_object(dice: Dice, clause: Clause) -> Clause | None:
    """The clause with a relative clause on its object, or None if something follows the object."""
    follows = (
        clause.place
        or clause.time
        or clause.manner
        or clause.frequency
        or clause.negated
        or clause.complement
    )
    if follows or clause.verb == "be" or not (what := clause.object) or not _takes_relative(what):
        return None
    relative = _draw_relative(dice, what.head, clause.verb)
    return (
        clause._replace(object=what._replace(adjective="", relative=relative)) if relative else None
    )


def _takes_relative(phrase: NounPhrase) -> bool:
    return phrase.determiner in ("the", "a", "two", "some", "many") and not phrase.rule


def _draw_relative(dice: Dice, head: str, taken: str) -> Clause | None:
    """Draw a clause with the noun as its subject or object and another verb than `taken`, or None."""
    gap = dice.choice(("subject", "object"))
    verbs = [name for name in _relative_verbs(head, gap) if name != taken]
    for verb in dice.sample(verbs, min(3, len(verbs))):
        clause = draw_core(
            dice, verb, NounPhrase(head, "the") if gap == "subject" else None, short=True
        )
        if gap == "object":
            clause = clause._replace(object=NounPhrase(head, "the"))
        usual = ("present" if VERBS[verb].state else "progressive", "past")
        if tenses := [tense for tense in tenses_of(verb) if tense in usual]:
            clause = modify(dice, clause._replace(tense=dice.choice(tenses)), short=True)
            if is_sound(clause):
                return _without(clause, gap)._replace(negated=False, frequency="")
    return None


def _relative_verbs(head: str, gap: str) -> list[str]:
    """The verbs that take the noun as subject (without a subordinate clause) or as direct object."""
    direct = (*verbs_of("which"), *verbs_of("whom_dative"))
    return [
        name
        for name, verb in VERBS.items()
        if verb.classes[gap] & NOUNS[head].tags
        and verb.classes["subject"]
        and (name in direct if gap == "object" else verb.frame not in REPORTING)
    ]
