"""Draw noun phrases: noun, number, determiner or owner, and adjective."""

import functools
import itertools
import random

from phrasebook import lexicon
from phrasebook.derivation import NounPhrase

OWNED = {"thing", "clothing", "private", "pet", "house", "mail"}
WITH_PARTS = frozenset({"owner", "house", "castle"})
OWNERS = frozenset({"adult"})


class Dice(random.Random):
    """Python's random generator, which is the same on every machine, with `chance`."""

    def chance(self, probability: float) -> bool:
        """True with this probability."""
        return self.random() < probability


def draw_noun_phrase(
    dice: Dice, kinds: frozenset[str], role: str = "object", plain: bool = False
) -> NounPhrase:
    """Draw a noun phrase of one of the kinds; `plain`: short; role: subject, object, or known (definite)."""
    if (
        kinds & lexicon.PEOPLE
        and role != "known"
        and dice.chance(0.3 if role == "subject" else 0.2)
    ):
        return draw_pronoun(dice)
    if kinds & lexicon.PEOPLE and dice.chance(0.12):
        first, second = dice.sample(lexicon.members(lexicon.SOMEONE), 2)
        pair = role == "subject" and not plain and dice.chance(0.25)
        return (
            NounPhrase(second, rule="pair", owner=NounPhrase(first)) if pair else NounPhrase(first)
        )
    phrase = draw_counted(
        dice, dice.choices(lexicon.members(kinds), cum_weights=lexicon.rarity(kinds))[0], role
    )
    if not plain and not phrase.rule and dice.chance(0.3):
        phrase = phrase._replace(adjective=_draw_adjective(dice, phrase.head))
    return phrase


def draw_pronoun(dice: Dice) -> NounPhrase:
    """Draw a personal pronoun."""
    return NounPhrase(dice.choice(("I", "you", "he", "she", "we", "they")))


def draw_counted(dice: Dice, head: str, role: str) -> NounPhrase:
    """Draw the number of a noun, and its determiner or owner."""
    tags = lexicon.NOUNS[head].tags
    if tags & {"name", "bare"}:
        return NounPhrase(head)
    if "kin" in tags:
        plural = "single" not in tags and dice.chance(0.25)
        return NounPhrase(
            head, dice.choice(lexicon.POSSESSIVES) if plural or dice.chance(0.85) else "the", plural
        )
    if "mass" in tags:
        known = role == "known" or dice.chance(0.4)
        return NounPhrase(head, "the" if known else "this" if dice.chance(0.15) else "")
    if "single" in tags:
        return NounPhrase(head, "this" if dice.chance(0.12) else "the")
    if (phrase := _draw_owned(dice, head)) is not None:
        return phrase
    plural = dice.chance(0.75 if "several" in tags else 0.28)
    return NounPhrase(head, _draw_determiner(dice, plural, role, "unowned" not in tags), plural)


def _draw_determiner(dice: Dice, plural: bool, role: str, can_be_owned: bool) -> str:
    """Draw a determiner for a countable noun: the, my, a, two, no."""
    new = ["two", "some", "many", dice.choice(lexicon.NUMERALS), ""] if plural else ["a", "a", "a"]
    if role == "subject":
        new = [*new[:-1], "all", "no", "some"] if plural else ["a", "every", "no"]
    known = ["the", "the", "these"] * 2 if plural else ["the", "the", "the", "this"] * 2
    if can_be_owned:
        known += [dice.choice(lexicon.POSSESSIVES), dice.choice(lexicon.POSSESSIVES)]
    return dice.choice(known if role == "known" or dice.chance(0.55) else new)


def _draw_owned(dice: Dice, head: str) -> NounPhrase | None:
    """Draw an owner, sometimes: Anna's key, the teacher's key, the door of the house."""
    tags = lexicon.NOUNS[head].tags
    if "part" in tags and dice.chance(0.35):
        return NounPhrase(
            head,
            "the",
            rule="part",
            owner=NounPhrase(dice.choice(lexicon.members(WITH_PARTS)), "the"),
        )
    if not tags & OWNED or dice.chance(0.88):
        return None
    if dice.chance(0.5):
        return NounPhrase(
            head, rule="names", owner=NounPhrase(dice.choice(lexicon.members(lexicon.SOMEONE)))
        )
    return NounPhrase(
        head, "the", rule="possessed", owner=NounPhrase(dice.choice(lexicon.members(OWNERS)), "the")
    )


def _draw_adjective(dice: Dice, head: str) -> str:
    found = lexicon.adjectives_of(head)
    return dice.choices(found, cum_weights=_specificity(head))[0] if found else ""


@functools.cache
def _specificity(head: str) -> list[float]:
    """Cumulative weights of a noun's adjectives: those that go with few nouns are drawn more often."""
    return list(
        itertools.accumulate(1 / lexicon.breadth(name) for name in lexicon.adjectives_of(head))
    )
