"""Write a derivation in English, as trees."""

from collections.abc import Mapping, Sequence

from phrasebook import lexicon
from phrasebook.derivation import Clause, NounPhrase
from phrasebook.grammar import FRAMES, NOUN_PHRASES, TENSES, Part, Tree, Word, grow, grow_one, leaf
from phrasebook.lexicon import ER, NOUNS, NUMERALS, POSSESSIVES, PRONOUNS, VERBS

FINITE_FORMS = {  # by person; other verbs have one form, or a third person in -s
    "be": ("am", "are", "is", "are"),
    "was": ("was", "were", "was", "were"),
    "do": ("do", "do", "does", "do"),
    "have": ("have", "have", "has", "have"),
    "want": ("want", "want", "wants", "want"),
}
PAST = ("d", "wanted", "had")
MODALS = ("will", "can", "must", "should", "would")
BASE_FORMS = {"wanted": "want", "had": "have"}
DEPENDENT_TAGS = {"en": "VBN", "ing": "VBG", "to": "TO", "allowed": "VBN"}  # VB otherwise
DETERMINER_TAGS = (
    {"which": "WDT", "many": "JJ"}
    | dict.fromkeys(POSSESSIVES, "PRP$")
    | dict.fromkeys(NUMERALS, "CD")
)


def write_noun_phrase(phrase: NounPhrase, link: str, oblique: bool = False) -> Tree:
    """An NP; `oblique`: not a subject, so me, him, them."""

    def slot(name: str) -> Sequence[Part]:
        if name in ("owner", "owners") and phrase.owner:
            owner = write_noun_phrase(phrase.owner, link + ".owner")
            return [owner] if name == "owner" else owner.children
        return [_word(phrase, name, link, oblique)]

    tree = grow_one(NOUN_PHRASES[phrase.pattern].english, link, slot)
    if (relative := phrase.relative) is None:
        return tree

    def around(name: str) -> Sequence[Part]:
        return (
            [tree]
            if name == "noun"
            else write_clause(relative, link + ".relative", "clause", phrase)
        )

    return grow_one(NOUN_PHRASES[phrase.relative_pattern].english, link, around)


def _word(phrase: NounPhrase, name: str, link: str, oblique: bool) -> Tree:
    """The determiner, adjective or head of a noun phrase."""
    link = f"{link}/{name}"
    if name == "determiner":
        return leaf(DETERMINER_TAGS.get(phrase.determiner, "DT"), phrase.determiner, link)
    if name == "adjective":
        return leaf("JJ", phrase.adjective, link)
    if phrase.is_pronoun:
        return leaf("PRP", PRONOUNS[phrase.head].oblique if oblique else phrase.head, link)
    words = (NOUNS[phrase.head].plural if phrase.plural else phrase.head).split()
    if len(words) > 1:  # the living room
        return Tree("NML", tuple(leaf("NN", word, link) for word in words))
    return leaf(
        "NNP" if "name" in phrase.tags else "NNS" if phrase.plural else "NN", words[0], link
    )


def write_clause(
    clause: Clause, link: str, order: str, gap: NounPhrase | None = None
) -> list[Part]:
    """The children of S or SQ; the order is clause, inverted, command or bare.

    `gap` is the noun of a relative clause, with which the verb agrees where it is the subject.
    """
    subject = clause.subject or gap
    first, *others = _verbs(clause, link, order, subject)
    inner = [*_frame(clause, link), *_adverbials(clause, link)]
    for word in reversed(others):
        inner = [Tree("VP", (word, *inner))]
        if word.label == "TO":
            inner = [Tree("S", tuple(inner))]
    often = (
        grow(lexicon.FREQUENCIES[clause.frequency].english, link + ".time")
        if clause.frequency
        else []
    )
    denied = (
        [leaf("RB", "not", link + "/not")]
        if clause.negated and not _says_cannot(clause, order)
        else []
    )
    if order == "inverted" and subject:
        return [first, write_noun_phrase(subject, link + ".subject"), *denied, *often, *inner]
    spoken = (
        [write_noun_phrase(clause.subject, link + ".subject")]
        if clause.subject and order == "clause"
        else []
    )
    if others or clause.verb == "be":  # he has often slept, he is often tired; but he often sleeps
        return [*spoken, Tree("VP", (first, *denied, *often, *inner))]
    return [*spoken, *often, Tree("VP", (first, *inner))]


def _verbs(clause: Clause, link: str, order: str, subject: NounPhrase | None) -> list[Tree]:
    """The finite verb and its dependent verbs: (does) (want) (to) (buy)."""
    forms = clause.entry.forms
    tense = TENSES[clause.tense]
    verb = link + "/verb"
    helper = link + ("/helper" if "infinitive" in tense.german else "/verb")
    if order in ("command", "bare"):
        return [
            leaf("VB", word, verb) for word in (*(["do"] if clause.negated else []), forms["base"])
        ]
    first, *others = tense.english.split()
    word = first.removeprefix("*")
    who = subject.person if subject else ER
    tag = "VBD" if word in PAST else "MD" if word in MODALS else "VBZ" if who == ER else "VBP"
    rest = [_dependent(other, forms, verb if other in forms else helper) for other in others]
    if _says_cannot(clause, order):
        return [leaf(tag, "cannot", helper, link + "/not"), *rest]
    takes_do = first[0] == "*" or (word in forms and clause.verb != "be")
    if takes_do and (order == "inverted" or clause.negated):
        base = forms["base"] if word in forms else BASE_FORMS.get(word, word)
        return [
            leaf(tag, "did" if word in PAST else FINITE_FORMS["do"][who], helper),
            leaf("VB", base, helper),
            *rest,
        ]
    return [leaf(tag, _finite(clause.verb, word, who), helper), *rest]


def _dependent(word: str, forms: Mapping[str, str], link: str) -> Tree:
    """A verb after the finite one, in the form that the tense requires."""
    return leaf(DEPENDENT_TAGS.get(word, "VB"), forms.get(word, word), link)


def _says_cannot(clause: Clause, order: str) -> bool:
    return clause.tense == "can" and clause.negated and order == "clause"


def _finite(verb: str, word: str, who: int) -> str:
    """The finite form of a tense's first word, by person."""
    if verb == "be":
        word = {"s": "be", "d": "was"}.get(word, word)
    if word in FINITE_FORMS:
        return FINITE_FORMS[word][who]
    if word == "s" and who != ER:
        word = "base"
    return VERBS[verb].forms.get(word, word)


def _frame(clause: Clause, link: str) -> list[Part]:
    """The complements of the verb: a particle, objects, a place, another clause."""

    def slot(name: str) -> Sequence[Part]:
        if name in "12":
            return [Word(clause.entry.words[int(name)], (link + "/verb",))]
        if name == "degree":
            return [leaf("RB", clause.degree, link + "/degree")] if clause.degree else []
        if name == "adjective":
            return _predicate(clause, link)
        if name == "place":
            return _place(clause, link)
        if name.startswith("complement.") and clause.complement:
            return write_clause(
                clause.complement, link + ".complement", name.removeprefix("complement.")
            )
        phrases = {"object": clause.object, "receiver": clause.receiver, "goal": clause.place}
        part = "place" if name == "goal" else name
        return (
            [write_noun_phrase(phrase, f"{link}.{part}", oblique=True)]
            if (phrase := phrases[name])
            else []
        )

    return grow(FRAMES[clause.frame].english, link, slot)


def _predicate(clause: Clause, link: str) -> list[Part]:
    """The predicate adjective: old, older or more famous."""
    link += "/predicate"
    if not clause.object:
        return [leaf("JJ", clause.predicate, link)]
    words = lexicon.ADJECTIVES[clause.predicate].comparative.split()
    return [
        leaf(tag, word, link)
        for tag, word in zip(["RBR", "JJ"] if len(words) == 2 else ["JJR"], words, strict=True)
    ]


def _place(clause: Clause, link: str) -> list[Part]:
    """The place: in the garden, next to the table."""
    if not clause.place:
        return []
    place = write_noun_phrase(clause.place, link + ".place", oblique=True)
    if clause.preposition:
        template = lexicon.PREPOSITIONS[clause.preposition].english
    else:
        template = f"(PP (IN {NOUNS[clause.place.head].prepositions[0]}/p) {{place}})"
    return grow(template, link, lambda _: [place])


def _adverbials(clause: Clause, link: str) -> list[Part]:
    """Manner, place and time, in this order."""
    manner = [Tree("ADVP", (leaf("RB", clause.manner, link + "/manner"),))] if clause.manner else []
    place = [] if clause.requires_place else _place(clause, link)
    time = grow(lexicon.TIMES[clause.time].english, link + ".time") if clause.time else []
    return [*manner, *place, *time]
