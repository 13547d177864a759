"""Draw two related clauses: cause and effect, condition, simultaneous or consecutive actions."""

from collections.abc import Callable, Sequence

from phrasebook.derivation import Clause, NounPhrase
from phrasebook.draw_clauses import draw_clause, known, verbs_of
from phrasebook.draw_phrases import Dice, draw_noun_phrase, draw_pronoun
from phrasebook.lexicon import ADJECTIVES, NOUNS, VERBS

ADULTS = frozenset({"adult"})
FEELINGS = [name for name, adjective in ADJECTIVES.items() if adjective.reactions]
ACTING = [verb for verb in verbs_of("willed") if verb != "hurry"]


def draw_two_clauses(dice: Dice, rule: str) -> tuple[Clause, Clause]:
    """Draw the main clause and the other one for a rule of `[sentences]`, with different verbs and nouns."""
    while True:
        main, other = _draw_related(dice, rule)
        subjects = [clause.subject for clause in (main, other) if clause.subject]
        heads = [subject.head for subject in subjects if subject.head in NOUNS]
        distinct = main.verb != other.verb and len(set(heads)) == len(heads)
        if distinct and not any(subject.is_quantified for subject in subjects):
            return main, other


def _draw_related(dice: Dice, rule: str) -> tuple[Clause, Clause]:
    if rule in ("because", "although", "although_first"):
        return _draw_cause(dice, rule)
    if rule in ("if", "if_first"):
        return _draw_condition(dice, rule)
    if rule == "before":
        return _draw_sequence(dice)
    tense = dice.choice(
        ("progressive", "past") if rule == "while" else ("progressive", "past", "future")
    )
    main, other = (draw_clause(dice, ACTING, (tense,), short=True) for _ in range(2))
    return main._replace(negated=False), other._replace(negated=other.negated and rule == "but")


def _draw_cause(dice: Dice, rule: str) -> tuple[Clause, Clause]:
    """Draw a feeling and its cause, or a feeling and what somebody does because or in spite of it."""
    tense = dice.choice(("present", "past"))
    if rule == "because" and dice.chance(0.5):
        happened = ("past", "perfect") if tense == "present" else ("past",)
        feeling = dice.choice(("happy", "sad", "angry", "nervous"))
        main = _feels(dice, feeling, tense)(_draw_someone(dice))
        return main, draw_clause(dice, verbs_of("action"), happened, short=True)
    feeling = dice.choice(FEELINGS if rule == "because" else ("tired", "sad", "sick", "nervous"))
    verbs: Sequence[str] = ADJECTIVES[feeling].reactions
    if rule != "because":
        verbs = [verb for verb in verbs_of("willed") if verb not in verbs]
    return _acts_and_feels(
        dice, rule, (verbs, "progressive" if tense == "present" else "past"), (feeling, tense)
    )


def _draw_condition(dice: Dice, rule: str) -> tuple[Clause, Clause]:
    """Draw what somebody will do, and the weather or feeling that is the condition."""
    tense = dice.choice(("future", "future", "can", "must"))
    if dice.chance(0.5):
        time = dice.choice(("", "today", "tomorrow"))
        weather = Clause(dice.choice(("rain", "snow")), subject=NounPhrase("it"), time=time)
        main = draw_clause(dice, VERBS[weather.verb].verbs, (tense,), short=True)
        return main._replace(negated=False), weather
    feeling = dice.choice(FEELINGS)
    return _acts_and_feels(
        dice, rule, (ADJECTIVES[feeling].reactions, "future"), (feeling, "present")
    )


def _draw_sequence(dice: Dice) -> tuple[Clause, Clause]:
    """Draw two past actions of one person."""

    def acted(who: NounPhrase | None = None) -> Clause:
        return draw_clause(dice, ACTING, ("past",), who, short=True)._replace(negated=False)

    return _about_one(dice, acted(), acted)


def _acts_and_feels(
    dice: Dice, rule: str, act: tuple[Sequence[str], str], feeling: tuple[str, str]
) -> tuple[Clause, Clause]:
    """Draw an action (verbs and tense) and a feeling (with its tense) of one person."""
    verbs, tense = act

    def acts(who: NounPhrase) -> Clause:
        return draw_clause(dice, verbs, (tense,), who, short=True)._replace(negated=False)

    if rule.endswith("_first"):
        other, main = _about_one(dice, _feels(dice, *feeling)(_draw_someone(dice)), acts)
        return main, other
    return _about_one(dice, acts(_draw_someone(dice)), _feels(dice, *feeling))


def _draw_someone(dice: Dice) -> NounPhrase:
    return known(draw_noun_phrase(dice, ADULTS, "subject", plain=True))


def _feels(dice: Dice, feeling: str, tense: str) -> Callable[[NounPhrase], Clause]:
    degree = "very" if dice.chance(0.25) else ""
    return lambda who: Clause("be", tense, who, predicate=feeling, degree=degree)


def _about_one(
    dice: Dice, first: Clause, second: Callable[[NounPhrase], Clause]
) -> tuple[Clause, Clause]:
    """Two clauses about one person; with pronouns in both if the German noun's gender is not the person's."""
    subject = first.subject
    assert subject
    if subject.is_pronoun:
        return first, second(subject)
    if subject.plural or subject.rule == "pair":
        return first, second(NounPhrase("they"))
    if subject.tags & {"he", "she"} and subject.determiner not in ("a", "every", "no"):
        return first, second(NounPhrase("he" if "he" in subject.tags else "she"))
    pronoun = draw_pronoun(dice)
    return first._replace(subject=pronoun), second(pronoun)
