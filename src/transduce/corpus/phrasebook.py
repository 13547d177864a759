"""The embedded language: a synchronous grammar of English and German, with trees and word alignments.

A sentence is derived once (`Sentence`, `Clause`, `NounPhrase`) and written down twice, by the paired rules of
`grammar.toml` over the words of `lexicon.toml` and `verbs.toml`. Nouns and verbs have classes, so that nobody drinks a
table; every English sentence has one German one ("you" is always `du`), so that translation is a function. Part of the
verb-noun and verb-adverb combinations are withheld from training: a held-out sentence has words that are all known, in
a combination that is new.
"""

import functools
import hashlib
import itertools
import random
import re
import tomllib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from importlib import resources
from typing import Any, NamedTuple

WITHHELD = 0.07  # of all combinations
FEW = 6  # nouns of a verb, or verbs of a noun: these are all needed in training
LONGEST = 16  # tokens on either side
NOMINATIVE, ACCUSATIVE, DATIVE, GENITIVE = range(4)
ROLES = ("subject", "object", "receiver", "place", "manner")
CASES = {"acc": ACCUSATIVE, "dat": DATIVE}
DEFINITE_ARTICLE = {"m": "der den dem des", "f": "die die der der", "n": "das das dem des", "p": "die die den der"}
STRONG = {
    "m": "er en em es",
    "f": "e e er er",
    "n": "es es em es",
    "p": "e e en er",
}  # by gender or plural, then by case
BARE_EIN = {("m", NOMINATIVE), ("n", NOMINATIVE), ("n", ACCUSATIVE)}  # where ein, kein and mein have no ending
CONTRACTIONS = {("in", "dem"): "im", ("an", "dem"): "am", ("in", "das"): "ins", ("von", "dem"): "vom"}
CONTRACTIONS |= {("zu", "dem"): "zum", ("zu", "der"): "zur"}
WEAK_PRONOUNS = ("mich", "mir", "dich", "dir", "ihn", "ihm", "ihr", "uns", "ihnen")  # sie could be the subject
POSSESSIVES = ("my", "your", "his", "her", "our", "their")
QUANTIFIERS = ("every", "no", "all", "some", "many")
NUMERALS = ("two", "three", "four", "five", "six", "seven", "ten")
DEFINITE = ("the", "this", "these", "every", "all", *POSSESSIVES)
FINITE = {
    "be": ("am", "is", "are"),
    "was": ("was", "was", "were"),
    "do": ("do", "does", "do"),
    "have": ("have", "has", "have"),
}
FINITE |= {"want": ("want", "wants", "want")}


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


class Example(NamedTuple):
    """A sentence pair; `alignment` pairs positions in the `tokens` of both, `tree` is bracketed Penn style."""

    english: str
    german: str
    tree: str
    alignment: tuple[tuple[int, int], ...]
    combinations: tuple[tuple[str, str], ...]  # (verb, noun) and (verb, adverb)
    derivation: Sentence


class Word(NamedTuple):
    """A token; words of the two languages that share a link are translations of each other."""

    text: str
    links: frozenset[str] = frozenset()


class Tree(NamedTuple):
    """A constituent."""

    label: str
    children: tuple["Tree | Word", ...]


class Noun(NamedTuple):
    """An entry of `[nouns]`."""

    plural: str
    german: str
    german_plural: str
    gender: str
    tags: frozenset[str]
    prepositions: tuple[str, ...]


class Verb(NamedTuple):
    """An entry of `verbs.toml`, inflected; German finite forms are those of ich, du, er, wir."""

    words: tuple[str, ...]
    frame: str
    forms: Mapping[str, str]  # English: base, s, d, en, ing
    infinitive: str
    particle: str
    participle: str
    auxiliary: str
    finite: tuple[str, ...]
    preterite: tuple[str, ...]
    imperative: str
    reflexive: bool
    preposition: str
    case: int
    classes: Mapping[str, frozenset[str]]  # of subject, object, receiver, place, manner
    state: bool
    willed: bool
    once: bool
    verbs: tuple[str, ...]  # of a dependent infinitive


def tokens(text: str) -> list[str]:
    """The words of a sentence; commas, the final mark and the English possessive 's are words of their own."""
    return re.findall(r"'s|[^\s.,?!']+|[.,?!]", text)


# -- the lexicon ----------------------------------------------------------------------------------------------------


@functools.cache
def _table(name: str) -> dict[str, Any]:
    """All tables of the grammar and the lexicon by name."""
    here = resources.files("transduce.corpus")
    tables = {"verbs": tomllib.loads(here.joinpath("verbs.toml").read_text("utf-8"))}
    for file in ("grammar.toml", "lexicon.toml"):
        tables |= tomllib.loads(here.joinpath(file).read_text("utf-8"))
    return tables[name]


@functools.cache
def _nouns() -> dict[str, Noun]:
    found = {}
    for group, entries in _table("nouns").items():
        for english, (plural, german, german_plural, tags, *prepositions) in entries.items():
            article, noun = german.split()
            of = {group, english, *tags.split()} | ({"adult"} if group == "person" and "minor" not in tags else set())
            gender = {"der": "m", "die": "f", "das": "n"}[article]
            found[english] = Noun(
                plural, noun, german_plural, gender, frozenset(of), tuple(" ".join(prepositions).split())
            )
    return found


@functools.cache
def _verbs() -> dict[str, Verb]:
    return {
        name: _verb(name, frame, entry) for frame, verbs in _table("verbs").items() for name, entry in verbs.items()
    }


def _verb(english: str, frame: str, entry: Mapping[str, Any]) -> Verb:
    match = re.fullmatch(r"(sich )?(?:(\S+)-)?(\w+)(?:\(([^)]+)\))? (\w+)( sein)?(?: /(\w+))?", entry["de"])
    assert match, entry["de"]
    reflexive, particle, infinitive, changed, participle, auxiliary, preterite = match.groups("")
    words, finite = tuple(english.split()), _present(infinitive, changed)
    *preposition, case = (entry.get("case") or _table("frames")[frame].get("case", "acc")).split()
    plural = preterite + ("n" if preterite.endswith("e") else "en")
    return Verb(
        words,
        frame,
        forms=dict(zip(("base", "s", "d", "en", "ing"), (words[0], *entry["en"].split()), strict=True)),
        infinitive=infinitive,
        particle=particle,
        participle=participle,
        auxiliary=auxiliary.strip() or "haben",
        finite=finite,
        preterite=(preterite, preterite + "st", preterite, plural) if preterite else (),
        imperative=_imperative(infinitive, changed, finite, weak=participle.endswith("".join(_stem(infinitive)) + "t")),
        reflexive=bool(reflexive),
        preposition=" ".join(preposition),
        case=CASES[case],
        classes={role: frozenset(entry.get(role, "").split()) for role in ROLES},
        state=entry.get("state", False),
        willed=entry.get("willed", True),
        once=entry.get("once", False),
        verbs=tuple(entry.get("verbs", "").split(", ")),
    )


# -- German forms ---------------------------------------------------------------------------------------------------


def _stem(infinitive: str) -> tuple[str, str]:
    """The stem of a verb and the vowel that it needs before -st and -t: (arbeit, e)."""
    stem = infinitive.removesuffix("n").removesuffix("e")
    return stem, "e" if re.search(r"([td]|(ch|[^aeiouäöürlhmn])[mn])$", stem) else ""


def _present(infinitive: str, changed: str) -> tuple[str, ...]:
    """ich, du, er, wir; `changed` is the stem of du and er (lies), or all four forms."""
    if " " in changed:
        return tuple(changed.split())
    stem, e = _stem(infinitive)
    stem, e, first = (changed, "", stem) if changed else (stem, e, stem)
    du = stem + ("t" if stem[-1] in "sßz" else e + "st")
    er = stem if changed.endswith("t") else stem + e + "t"
    return (stem[:-2] + "le" if infinitive.endswith("eln") else first + "e"), du, er, infinitive


def _imperative(infinitive: str, changed: str, finite: Sequence[str], weak: bool) -> str:
    stem, e = _stem(infinitive)
    if "i" in changed and "e" in stem:  # lies, gib, hilf; but fahr, schlaf
        return changed
    return finite[0] if weak or e else stem


def _noun(head: str, plural: bool, case: int) -> str:
    noun = _nouns()[head]
    if plural:
        return noun.german_plural + ("n" if case == DATIVE and noun.german_plural[-1] not in "ns" else "")
    if "weak" in noun.tags and case != NOMINATIVE:
        return noun.german_plural
    if case == GENITIVE and noun.gender != "f":
        short = len(re.findall("[aeiouäöüy]+", noun.german.lower())) == 1
        return noun.german + (
            "s"
            if "name" in noun.tags or noun.german.endswith("ch") or not (short or noun.german[-1] in "sßz")
            else "es"
        )
    return noun.german + ("s" if case == GENITIVE and "name" in noun.tags else "")


def _determiner(determiner: str, gender: str, case: int) -> str:
    if determiner == "the":
        return DEFINITE_ARTICLE[gender].split()[case]
    stem: str = _table("determiners")[determiner][0]
    return stem if _is_bare(determiner, gender, case) else stem + STRONG[gender].split()[case]


def _is_bare(determiner: str, gender: str, case: int) -> bool:
    """Whether the determiner has no ending: zwei Hunde, ein Hund."""
    kind = _table("determiners")[determiner][1] if determiner else "none"
    return kind == "none" or (kind == "ein" and (gender, case) in BARE_EIN)


def _adjective(adjective: str, determiner: str, gender: str, case: int) -> str:
    """The adjective ends strongly where no determiner shows the case."""
    stem: str = _table("adjectives")[adjective][2]
    if _is_bare(determiner, gender, case) or _table("determiners")[determiner][1] == "few":
        return stem + ("en" if case == GENITIVE and gender in "mn" else STRONG[gender].split()[case])
    return stem + ("e" if gender != "p" and (case == NOMINATIVE or (case == ACCUSATIVE and gender != "m")) else "en")


def _gender(phrase: NounPhrase) -> str:
    return "p" if phrase.plural else _nouns()[phrase.head].gender


def _person(phrase: NounPhrase | None) -> int:
    """Which of ich, du, er, wir: the form of a verb; without a subject er."""
    if phrase and phrase.head in _table("pronouns"):
        return ("ich", "du", "er", "wir").index(_table("pronouns")[phrase.head][7])
    return 3 if phrase and (phrase.plural or phrase.rule == "pair") else 2


# -- templates ------------------------------------------------------------------------------------------------------

Part = Tree | Word


@functools.cache
def _pieces(template: str) -> tuple[str, ...]:
    return tuple(re.findall(r"[()]|[^\s()]+", template))


def _word(text: str, link: str) -> Word:
    """`because/c` is the word `because`, linked as `<link>/c`."""
    text, _, mark = text.partition("/")
    return Word(text, frozenset({f"{link}/{mark}"} if mark else ()))


def _grow(template: str, link: str, slot: Callable[[str], Sequence[Part]]) -> list[Part]:
    """The trees of a template; `slot` says what stands in braces. A constituent without words disappears."""
    open_: list[list[Any]] = [[""]]
    for piece in _pieces(template):
        if piece == "(":
            open_.append([])
        elif piece == ")":
            label, *children = open_.pop()
            open_[-1].extend([Tree(label, tuple(children))] if children else [])
        elif piece[0] == "{":
            open_[-1].extend(slot(piece[1:-1]))
        else:
            open_[-1].append(_word(piece, link) if open_[-1] else piece)
    return open_[0][1:]


def _line(template: str, link: str, slot: Callable[[str], Sequence[Word]]) -> list[Word]:
    """The words of a German template."""
    return [
        word for piece in template.split() for word in (slot(piece[1:-1]) if piece[0] == "{" else [_word(piece, link)])
    ]


def _leaf(tag: str, text: str, *links: str) -> Tree:
    return Tree(tag, (Word(text, frozenset(links)),))


# -- English --------------------------------------------------------------------------------------------------------


def _rule(phrase: NounPhrase) -> str:
    """The rule of `[noun_phrases]` that a noun phrase follows, its relative clause apart."""
    if phrase.rule or phrase.head in _table("pronouns"):
        return phrase.rule or "pronoun"
    if "name" in _nouns()[phrase.head].tags:
        return "name"
    return (
        ("described" if phrase.determiner else "bare_described")
        if phrase.adjective
        else "plain"
        if phrase.determiner
        else "bare"
    )


def _relative_rule(phrase: NounPhrase) -> str:
    assert phrase.relative
    return (
        "that" if "person" not in _nouns()[phrase.head].tags else "who" if phrase.relative.subject is None else "whom"
    )


def _english_noun_phrase(phrase: NounPhrase, link: str, oblique: bool = False) -> list[Part]:
    def slot(name: str) -> Sequence[Part]:
        if name in ("owner", "owners"):
            assert phrase.owner
            owner = _english_noun_phrase(phrase.owner, link + ".owner")
            return (
                owner
                if name == "owner"
                else [part for tree in owner if isinstance(tree, Tree) for part in tree.children]
            )
        return [_english_word(phrase, name, link, oblique)]

    tree = _grow(_table("noun_phrases")[_rule(phrase)]["english"], link, slot)
    if phrase.relative is None:
        return tree

    def outer(name: str) -> Sequence[Part]:
        assert phrase.relative
        return tree if name == "noun" else _english_clause(phrase.relative, link + ".relative", "clause", phrase)

    return _grow(_table("noun_phrases")[_relative_rule(phrase)]["english"], link, outer)


def _english_word(phrase: NounPhrase, name: str, link: str, oblique: bool) -> Tree:
    """The head, determiner or adjective of a noun phrase."""
    if name == "determiner":
        text = phrase.determiner
        tag = (
            "PRP$"
            if text in POSSESSIVES
            else "CD"
            if text in NUMERALS
            else "WDT"
            if text == "which"
            else "JJ"
            if text == "many"
            else "DT"
        )
        return _leaf(tag, text, link + "/determiner")
    if name == "adjective":
        return _leaf("JJ", phrase.adjective, link + "/adjective")
    if phrase.head in _table("pronouns"):
        return _leaf("PRP", _table("pronouns")[phrase.head][0] if oblique else phrase.head, link + "/head")
    noun = _nouns()[phrase.head]
    words = (noun.plural if phrase.plural else phrase.head).split()
    if len(words) > 1:  # the living room
        return Tree("NML", tuple(_leaf("NN", word, link + "/head") for word in words))
    return _leaf("NNP" if "name" in noun.tags else "NNS" if phrase.plural else "NN", words[0], link + "/head")


def _verb_chain(clause: Clause, link: str, order: str, subject: NounPhrase | None) -> list[Tree]:
    """The finite verb and what depends on it: (does) (want) (to) (buy)."""
    forms, be = _verbs()[clause.verb].forms, clause.verb == "be"
    verb, tense = link + "/verb", _table("tenses")[clause.tense]
    helper = link + "/helper" if "infinitive" in tense["german"] else verb
    if order in ("command", "bare"):
        base = _leaf("VB", forms["base"], verb)
        return [_leaf("VB", "do", verb), base] if clause.negated else [base]
    person = {0: 0, 2: 1}.get(_person(subject), 2)
    tag = "VBZ" if person == 1 else "VBP"
    first, *others = tense["english"].split()
    rest = [_leaf({"en": "VBN", "ing": "VBG", "base": "VB"}[word], forms[word], verb) if word in forms else
            _leaf({"to": "TO", "allowed": "VBN"}.get(word, "VB"), word, helper) for word in others]  # fmt: skip
    plain, past = first.lstrip("*"), first in ("d", "*wanted", "*had")
    if (order == "inverted" or clause.negated) and (first[0] == "*" or (first in ("s", "d") and not be)):
        again = {"s": forms["base"], "d": forms["base"], "wanted": "want", "had": "have"}.get(plain, plain)
        do = _leaf("VBD", "did", helper) if past else _leaf(tag, FINITE["do"][person], helper)
        return [do, _leaf("VB", again, verb if first in ("s", "d") else helper), *rest]
    if first in ("s", "d"):
        present = FINITE["be"][person] if be else forms["s"] if person == 1 else forms["base"]
        return [_leaf("VBD", FINITE["was"][person] if be else forms["d"], verb) if past else _leaf(tag, present, verb)]
    text = FINITE[plain][person] if plain in FINITE else plain
    return [_leaf("VBD" if past else tag if plain in FINITE else "MD", text, helper), *rest]


def _english_clause(clause: Clause, link: str, order: str, gap: NounPhrase | None = None) -> list[Part]:
    """The children of S or SQ; order: clause, inverted, command or bare. `gap` is the noun of a relative clause."""
    subject = clause.subject or gap
    first, *others = _verb_chain(clause, link, order, subject)
    auxiliary = bool(others) or clause.verb == "be"
    adverb = _table("frequencies")[clause.frequency][0] if clause.frequency else ""
    frequency = _grow(adverb, link + ".time", lambda _: [])
    negation: list[Part] = [_leaf("RB", "not", link + "/not")] if clause.negated else []
    if clause.negated and order == "clause" and first.children == (Word("can", frozenset({link + "/helper"})),):
        first, negation = _leaf("MD", "cannot", link + "/helper", link + "/not"), []
    inner = _english_rest(clause, link)
    for word in reversed(others):
        inner = [Tree("VP", (word, *inner))]
        inner = [Tree("S", tuple(inner))] if word.label == "TO" else inner
    if order == "inverted":
        assert subject
        return [first, *_english_noun_phrase(subject, link + ".subject"), *negation, *frequency, *inner]
    phrase = Tree("VP", (first, *negation, *(frequency if auxiliary else []), *inner))
    before = [] if auxiliary else frequency
    spoken = clause.subject if order == "clause" else None
    return [*(_english_noun_phrase(spoken, link + ".subject") if spoken else []), *before, phrase]


def _english_rest(clause: Clause, link: str) -> list[Part]:
    """What follows the verb: the frame, then manner, place and time."""
    verb = _verbs()[clause.verb]
    frame = _frame(clause)

    def slot(name: str) -> Sequence[Part]:
        if name in "12":
            return [Word(verb.words[int(name)], frozenset({link + "/verb"}))]
        if name == "degree":
            return [_leaf("RB", clause.degree, link + "/degree")] if clause.degree else []
        if name == "adjective":
            return _english_predicate(clause, link)
        if name == "place" and frame == "motion":
            return _english_noun_phrase(clause.place, link + ".place", True) if clause.place else []
        if name == "place":
            return _english_place(clause, link)
        if name.startswith("complement"):
            assert clause.complement
            return _english_clause(clause.complement, link + ".complement", name.split(".")[1])
        phrase = clause.object if name == "object" else clause.receiver
        return _english_noun_phrase(phrase, f"{link}.{name}", True) if phrase else []

    found = _grow(_table("frames")[frame]["english"], link, slot)
    manner = [Tree("ADVP", (_leaf("RB", clause.manner, link + "/manner"),))] if clause.manner else []
    place = _english_place(clause, link) if clause.place and "{place}" not in _table("frames")[frame]["english"] else []
    time = _grow(_table("times")[clause.time][0], link + ".time", lambda _: []) if clause.time else []
    return [*found, *manner, *place, *time]


def _english_predicate(clause: Clause, link: str) -> list[Part]:
    """old, older or more famous."""
    if _frame(clause) == "copula":
        return [_leaf("JJ", clause.predicate, link + "/predicate")]
    words = _table("adjectives")[clause.predicate][0].split()
    tags = ("RBR", "JJ") if len(words) == 2 else ("JJR",)
    return [_leaf(tag, word, link + "/predicate") for tag, word in zip(tags, words, strict=True)]


def _english_place(clause: Clause, link: str) -> list[Part]:
    if not clause.place:
        return []
    phrase = _english_noun_phrase(clause.place, link + ".place", True)
    if clause.preposition:
        template = _table("prepositions")[clause.preposition][0]
    else:
        template = f"(PP (IN {_nouns()[clause.place.head].prepositions[0]}/p) {{place}})"
    return _grow(template, link, lambda _: phrase)


def _frame(clause: Clause) -> str:
    """The rule of `[frames]`: `be` has three."""
    if clause.verb != "be":
        frame = _verbs()[clause.verb].frame
        pronoun = clause.object is not None and clause.object.head in _table("pronouns")
        return "particle_pronoun" if frame == "particle_transitive" and pronoun else frame
    return "profession" if not clause.predicate else "comparison" if clause.object else "copula"


# -- German ---------------------------------------------------------------------------------------------------------


class Phrase(NamedTuple):
    """German words, and what of them comes after the end of the clause."""

    words: list[Word]
    tail: list[Word]


def _german_noun_phrase(phrase: NounPhrase, case: int, link: str, negation: str = "") -> Phrase:
    """With `negation`, the link of English `not`, `a` and the missing article become `kein`."""

    def slot(name: str) -> Sequence[Word]:
        if name == "owner":
            assert phrase.owner
            return _german_noun_phrase(phrase.owner, case if phrase.rule == "pair" else GENITIVE, link + ".owner").words
        return [Word(_german_word(phrase, name, case, negation), frozenset({f"{link}/{name}"}))]

    words = _line(_table("noun_phrases")[_rule(phrase)]["german"], link, slot)
    if negation and phrase.determiner:
        words[0] = Word(words[0].text, words[0].links | {negation})
    elif negation:
        words.insert(0, Word(_determiner("no", _gender(phrase), case), frozenset({negation})))
    return Phrase(words, _german_relative(phrase, link) if phrase.relative else [])


def _german_word(phrase: NounPhrase, name: str, case: int, negation: str) -> str:
    if phrase.head in _table("pronouns"):
        return str(_table("pronouns")[phrase.head][2 + case])
    determiner, gender = "no" if negation else phrase.determiner, _gender(phrase)
    if name == "determiner":
        return _determiner(determiner, gender, case)
    if name == "adjective":
        return _adjective(phrase.adjective, determiner, gender, case)
    return _noun(phrase.head, phrase.plural, case)


def _german_relative(phrase: NounPhrase, link: str) -> list[Word]:
    """, der in Berlin wohnt ,"""
    assert phrase.relative
    clause, gender = phrase.relative, _gender(phrase)
    case = NOMINATIVE if clause.subject is None else _verbs()[clause.verb].case
    pronoun = "denen" if (gender, case) == ("p", DATIVE) else DEFINITE_ARTICLE[gender].split()[case]
    german = _German(clause, link + ".relative", phrase)
    words = {"relative_pronoun": [Word(pronoun, frozenset({link + "/r"}))], "relative.last": german.order("last")}
    return _line(_table("noun_phrases")[_relative_rule(phrase)]["german"], link, words.__getitem__)


def _definite(phrase: NounPhrase) -> bool:
    return phrase.determiner in DEFINITE or _rule(phrase) in ("pronoun", "name", "names", "possessed", "pair")


class _German:
    """A clause in German: its parts once, then in any order."""

    def __init__(self, clause: Clause, link: str, gap: NounPhrase | None = None):
        self.clause, self.link = clause, link
        self.verb = _verbs()[clause.verb]
        self.person = _person(clause.subject or gap)
        subject = clause.subject
        phrase = _german_noun_phrase(subject, NOMINATIVE, link + ".subject") if subject else Phrase([], [])
        self.subject = phrase.words + phrase.tail
        self.nominal = bool(subject) and subject is not None and subject.head not in _table("pronouns")
        pronouns = _table("pronouns").values()
        mine = next(entry[5] for entry in pronouns if entry[7] == ("ich", "du", "er", "wir")[self.person])
        if subject and subject.head in _table("pronouns"):
            mine = _table("pronouns")[subject.head][5]
        elif self.person == 3:
            mine = "sich"
        self.reflexive = [Word(mine, frozenset({link + "/verb"}))] if self.verb.reflexive else []
        self.tail: list[Word] = []
        self.middle = [word for _, words in sorted(self._middle(), key=lambda item: item[0]) for word in words]
        self.tail += self._rest()

    def order(self, name: str) -> list[Word]:
        """second, first, last: where the finite verb stands; or infinitive (with zu), imperative."""
        if name == "infinitive":
            return [*self.reflexive, *self.middle, *self._with_zu(), *self.tail]
        particle = [self._linked(self.verb.particle)] if self.verb.particle else []
        if name == "imperative":
            return [self._linked(self.verb.imperative), *self.reflexive, *self.middle, *particle, *self.tail]
        finite, end = self._finite()
        if name == "second":
            return [*self.subject, finite, *self.reflexive, *self.middle, *(end or particle), *self.tail]
        if name == "first" and self.nominal and self.middle and self.middle[0].text in WEAK_PRONOUNS:
            return [finite, self.middle[0], *self.subject, *self.middle[1:], *(end or particle), *self.tail]
        if name == "first":  # Heute freut sich der Mann; heute freut er sich
            early = [*self.reflexive, *self.subject] if self.nominal else [*self.subject, *self.reflexive]
            return [finite, *early, *self.middle, *(end or particle), *self.tail]
        joined = finite if end else Word(self.verb.particle + finite.text, finite.links)
        return [*self.subject, *self.reflexive, *self.middle, *end, joined, *self.tail]

    def _linked(self, text: str) -> Word:
        return Word(text, frozenset({self.link + "/verb"}))

    def _finite(self) -> tuple[Word, list[Word]]:
        """The finite verb, and the infinitive or participle if there is one."""
        verb, german = self.verb, _table("tenses")[self.clause.tense]["german"]
        if not german or (self.clause.tense == "past" and verb.preterite):
            return self._linked((verb.preterite if german else verb.finite)[self.person]), []
        auxiliary, form = german.split()
        if form == "participle":
            finite = _table("auxiliaries")[verb.auxiliary].split()[self.person]
            return self._linked(finite), [self._linked(verb.participle)]
        finite = _table("auxiliaries")[auxiliary].split()[self.person]
        return Word(finite, frozenset({self.link + "/helper"})), [self._linked(verb.particle + verb.infinitive)]

    def _with_zu(self) -> list[Word]:
        if self.verb.particle:
            return [self._linked(f"{self.verb.particle}zu{self.verb.infinitive}")]
        return [
            Word("zu", frozenset({self.link.removesuffix(".complement") + "/c"})),
            self._linked(self.verb.infinitive),
        ]

    def _middle(self) -> Iterator[tuple[float, list[Word]]]:
        """What stands between the verbs, with ranks: pronouns, known things, time, new things, not, manner, place."""
        clause, link = self.clause, self.link
        late = bool(clause.frequency) and "late" in _table("frequencies")[clause.frequency][2]
        kein = self._says_kein()
        for name, phrase in (("receiver", clause.receiver), ("object", clause.object)):
            if phrase:
                yield self._rank(name, phrase, clause.negated or late), self._object(name, phrase, kein)
        adverb = (
            _table("times")[clause.time]
            if clause.time
            else _table("frequencies")[clause.frequency]
            if clause.frequency
            else None
        )
        if adverb:
            yield 4, _line(adverb[1], link + ".time", lambda _: [])
        if clause.negated and not kein:
            yield 7, [Word("nicht", frozenset({link + "/not"}))]
        if clause.manner:
            new = clause.object and not self.verb.preposition and not _definite(clause.object)
            yield 5.5 if new else 8, [Word(_table("manners")[clause.manner][0], frozenset({link + "/manner"}))]
        if clause.place:
            yield (9 if "{place}" in _table("frames")[_frame(clause)]["english"] else 8.5), self._place(clause.place)
        if clause.predicate:
            yield 10, self._predicate()

    def _says_kein(self) -> bool:
        """Whether the negation is in the object's article: not a book, kein Buch."""
        what = self.clause.object
        if not self.clause.negated or what is None or _frame(self.clause) == "comparison":
            return False
        return not _definite(what) and not self.verb.preposition

    def _rank(self, name: str, phrase: NounPhrase, negated: bool) -> float:
        if _frame(self.clause) in ("comparison", "profession"):
            return 10.5
        if self.verb.preposition:
            return 9
        if phrase.head in _table("pronouns"):
            return 1
        if _definite(phrase):
            return 2 if name == "receiver" else 2.5 if negated or self.verb.case == DATIVE else 6
        return 5 if name == "receiver" else 6

    def _object(self, name: str, phrase: NounPhrase, kein: bool) -> list[Word]:
        case = DATIVE if name == "receiver" else self.verb.case
        before: list[Word] = []
        if self.verb.preposition:
            before = [self._linked(self.verb.preposition)]
        if (frame := _frame(self.clause)) in ("comparison", "profession"):
            case = NOMINATIVE
            before = [Word("als", frozenset({self.link + "/c"}))] if frame == "comparison" else []
            if frame == "profession" and not phrase.adjective and not kein and not phrase.plural:  # er ist Lehrer
                phrase = phrase._replace(determiner="")
        negation = self.link + "/not" if kein and name == "object" else ""
        found = _german_noun_phrase(phrase, case, f"{self.link}.{name}", negation)
        self.tail += found.tail
        return before + found.words

    def _predicate(self) -> list[Word]:
        _, german, _, comparative, *_ = _table("adjectives")[self.clause.predicate]
        compared = _frame(self.clause) == "comparison"
        degree = self.clause.degree
        before = [Word(_table("degrees")[degree][0], frozenset({self.link + "/degree"}))] if degree else []
        return [*before, Word(comparative if compared else german, frozenset({self.link + "/predicate"}))]

    def _place(self, place: NounPhrase) -> list[Word]:
        """Where (dative) or where to (accusative, but zu and nach with dative)."""
        if self.clause.preposition:
            preposition = _table("prepositions")[self.clause.preposition][1].removesuffix("/p")
            case = ACCUSATIVE if self.verb.frame == "placing" else DATIVE
        else:
            motion = self.verb.frame == "motion"
            preposition = _nouns()[place.head].prepositions[2 if motion else 1]
            case = ACCUSATIVE if motion and preposition == "in" else DATIVE
        return [_word(preposition + "/p", self.link), *_german_noun_phrase(place, case, self.link + ".place").words]

    def _rest(self) -> list[Word]:
        rest = _table("frames")[_frame(self.clause)].get("rest", "")
        inner = self.clause.complement and _German(self.clause.complement, self.link + ".complement")
        return _line(rest, self.link, lambda name: inner.order(name.split(".")[1]) if inner else [])


# -- pairs ----------------------------------------------------------------------------------------------------------


def build(sentence: Sentence) -> Example:
    """The two sentences, the tree, the alignment and the combinations of a derivation."""
    clauses = {"0": sentence.main, "1": sentence.other}

    def english(name: str) -> Sequence[Part]:
        if name == "time":
            return _grow(_table("times")[sentence.time][0], "time", lambda _: [])
        if name == "topic":
            assert sentence.topic
            return [
                tree._replace(label="WHNP")
                for tree in _english_noun_phrase(sentence.topic, "topic")
                if isinstance(tree, Tree)
            ]
        clause = clauses[name[0]]
        assert clause
        return _english_clause(clause, name[0], name[2:])

    def german(name: str) -> Sequence[Word]:
        if name == "time":
            return _line(_table("times")[sentence.time][1], "time", lambda _: [])
        if name == "topic":
            assert sentence.topic
            return _german_noun_phrase(sentence.topic, _verbs()[sentence.main.verb].case, "topic").words
        clause = clauses[name[0]]
        assert clause
        return _German(clause, name[0]).order(name[2:])

    rule = _table("sentences")[sentence.rule]
    (root,) = _grow(rule["english"], "", english)
    source = _spell_english(list(_leaves(root)))
    target = _spell_german(_line(rule["german"], "", german))
    texts = iter([word.text for word in source])
    alignment = [(i, j) for i, one in enumerate(source) for j, two in enumerate(target) if one.links & two.links]
    combinations = dict.fromkeys(_combinations(sentence.main, sentence.time, sentence.topic))
    combinations |= dict.fromkeys(_combinations(sentence.other) if sentence.other else ())
    return Example(_join(source), _join(target), _bracket(root, texts), tuple(alignment), tuple(combinations), sentence)


def _leaves(part: Part) -> Iterator[Word]:
    if isinstance(part, Word):
        yield part
    else:
        for child in part.children:
            yield from _leaves(child)


def _bracket(part: Part, texts: Iterator[str]) -> str:
    if isinstance(part, Word):
        return next(texts)
    return f"({part.label} {' '.join([_bracket(child, texts) for child in part.children])})"


def _capitalize(words: list[Word]) -> list[Word]:
    return [words[0]._replace(text=words[0].text[0].upper() + words[0].text[1:]), *words[1:]]


def _spell_english(words: list[Word]) -> list[Word]:
    """a or an, and the capital."""
    for i, (word, following) in enumerate(itertools.pairwise(words)):
        if word.text == "a" and following.text[0] in "aeiou":
            words[i] = word._replace(text="an")
    return _capitalize(words)


def _spell_german(words: list[Word]) -> list[Word]:
    """im, am, zum; one comma where two meet, none before the end; the capital."""
    found: list[Word] = []
    for word in words:
        last = found[-1].text if found else ""
        if (last, word.text) in CONTRACTIONS:
            found[-1] = Word(CONTRACTIONS[last, word.text], found[-1].links | word.links)
        elif last == "," and word.text in ",.?!":
            found[-1] = word
        else:
            found.append(word)
    return _capitalize(found)


def _join(words: Sequence[Word]) -> str:
    return re.sub(r" ([.,?!]|'s\b)", r"\1", " ".join([word.text for word in words]))


def _combinations(clause: Clause, time: str = "", gap: NounPhrase | None = None) -> Iterator[tuple[str, str]]:
    """Each verb (or predicate adjective) with its nouns and adverbs, also in relative and dependent clauses."""
    verb = clause.predicate or clause.verb
    phrases = [clause.subject, clause.object, clause.receiver, clause.place, gap]
    phrases += [phrase.owner for phrase in phrases if phrase and phrase.rule == "pair"]
    for phrase in phrases:
        if phrase and phrase.head in _nouns():
            yield verb, phrase.head
        if phrase and phrase.relative:
            yield from _combinations(phrase.relative, gap=NounPhrase(phrase.head))
    yield from ((verb, adverb) for adverb in (clause.time, clause.frequency, clause.manner, time) if adverb)
    if clause.complement:
        named = (
            clause.complement
            if _verbs()[clause.verb].frame != "infinitive"
            else clause.complement._replace(subject=None)
        )
        yield from _combinations(named)


# -- drawing --------------------------------------------------------------------------------------------------------

PRESENT, PAST, HABIT = ("progressive", "perfect"), ("past",), ("present",)
PEOPLE = frozenset({"person", "adult"})
RARE_FRAMES = (
    "that",
    "whether",
    "infinitive",
    "dropped_preposition",
    "adverb_prepositional",
    "posture",
    "placing",
    "weather",
)
GAPS = {"who": "subject", "whom": "object", "whom_dative": "object", "what": "object", "which": "object"}
GAPS |= {"where": "place", "where_to": "place"}
ASKED = ("present", "progressive", "past", "can", "future")
QUESTIONS: Mapping[str, tuple[str, Sequence[str]]] = {  # the kind of verb and its tenses
    "who": ("who", ASKED),
    "whom": ("whom", ASKED),
    "whom_dative": ("whom_dative", ASKED),
    "what": ("what", ASKED),
    "which": ("which", ASKED),
    "where": ("where", ("progressive", "past", "future")),
    "where_to": ("where_to", ("progressive", "past", "future")),
    "when": ("action", ("past", "future")),
    "why": ("action", ("past", "progressive")),
}


def _chance(draw: random.Random, probability: float) -> bool:
    return draw.random() < probability


@functools.cache
def _members(classes: frozenset[str]) -> tuple[str, ...]:
    return tuple(name for name, noun in _nouns().items() if noun.tags & classes)


@functools.cache
def _weighted(table: str) -> tuple[list[str], list[float]]:
    """The rules of a table and their weights, summed up."""
    rules = _table(table)
    total, weights = 0.0, []
    for rule in rules.values():
        total += rule["weight"]
        weights.append(total)
    return list(rules), weights


@functools.cache
def _uses(head: str) -> int:
    """In how many places of how many verbs a noun can stand."""
    tags = _nouns()[head].tags
    return sum(bool(classes & tags) for verb in _verbs().values() for classes in verb.classes.values())


@functools.cache
def _rarity(classes: frozenset[str]) -> list[float]:
    """The weights of the members of a class: a noun of few verbs is drawn more often with them."""
    weights = [1 / _uses(name) if _uses(name) else 1.0 for name in _members(classes)]
    return [sum(weights[: i + 1]) for i in range(len(weights))]


def _noun_phrase(draw: random.Random, classes: frozenset[str], role: str = "object", plain: bool = False) -> NounPhrase:
    """A noun phrase of one of the classes; `plain`: short; role: subject, object, or known (definite)."""
    if classes & PEOPLE and role != "known" and _chance(draw, 0.3 if role == "subject" else 0.2):
        return NounPhrase(draw.choice(("I", "you", "he", "she", "we", "they")))
    if classes & PEOPLE and _chance(draw, 0.12):
        first, second = draw.sample(_members(frozenset({"someone"})), 2)
        pair = role == "subject" and not plain and _chance(draw, 0.25)
        return NounPhrase(second, rule="pair", owner=NounPhrase(first)) if pair else NounPhrase(first)
    phrase = _counted(draw, draw.choices(_members(classes), cum_weights=_rarity(classes))[0], role)
    if not plain and not phrase.rule and _chance(draw, 0.3):
        phrase = phrase._replace(adjective=_describing(draw, phrase.head))
    return phrase


def _counted(draw: random.Random, head: str, role: str) -> NounPhrase:
    """A noun with its number and its determiner, or its owner."""
    tags = _nouns()[head].tags
    if tags & {"name", "bare"}:
        return NounPhrase(head)
    if "kin" in tags:
        plural = "single" not in tags and _chance(draw, 0.25)
        return NounPhrase(head, draw.choice(POSSESSIVES) if plural or _chance(draw, 0.85) else "the", plural)
    if "mass" in tags:
        return NounPhrase(
            head, "the" if role == "known" or _chance(draw, 0.4) else "this" if _chance(draw, 0.15) else ""
        )
    if "single" in tags:
        return NounPhrase(head, "this" if _chance(draw, 0.12) else "the")
    if (phrase := _owned(draw, head)) is not None:
        return phrase
    plural = _chance(draw, 0.75 if "several" in tags else 0.28)
    common = ("the", "the", "these") if plural else ("the", "the", "the", "this")
    new: tuple[str, ...] = ("two", "some", "many", draw.choice(NUMERALS), "") if plural else ("a", "a", "a")
    if role == "subject":
        new = (*new[:-1], "all", "no", "some") if plural else ("a", "every", "no")
    mine = () if "unowned" in tags else (draw.choice(POSSESSIVES), draw.choice(POSSESSIVES))
    old = (*common, *common, *mine)
    return NounPhrase(head, draw.choice(old if role == "known" or _chance(draw, 0.55) else new), plural)


def _owned(draw: random.Random, head: str) -> NounPhrase | None:
    """Anna's key, the teacher's key, the door of the house; not always."""
    tags = _nouns()[head].tags
    if "part" in tags and _chance(draw, 0.35):
        return NounPhrase(
            head,
            "the",
            rule="part",
            owner=NounPhrase(draw.choice(_members(frozenset({"owner", "house", "castle"}))), "the"),
        )
    if not tags & {"thing", "clothing", "private", "pet", "house", "mail"} or _chance(draw, 0.88):
        return None
    if _chance(draw, 0.5):
        return NounPhrase(head, rule="names", owner=NounPhrase(draw.choice(_members(frozenset({"someone"})))))
    return NounPhrase(
        head, "the", rule="possessed", owner=NounPhrase(draw.choice(_members(PEOPLE - {"person"})), "the")
    )


@functools.cache
def _adjectives_of(head: str) -> tuple[str, ...]:
    tags, table = _nouns()[head].tags, _table("adjectives")
    unfit = {"-" + tag for tag in tags}
    return tuple(name for name in table if (kinds := set(table[name][4].split())) & tags and not kinds & unfit)


def _describing(draw: random.Random, head: str) -> str:
    found = _adjectives_of(head)
    return draw.choices(found, [1 / _breadth(name) for name in found])[0] if found else ""


@functools.cache
def _breadth(adjective: str) -> int:
    """How many nouns an adjective goes with."""
    return sum(adjective in _adjectives_of(head) for head in _nouns())


@functools.cache
def _tenses_of(verb: str) -> tuple[str, ...]:
    """The tenses that a verb is used in, as often as they weigh."""
    entry = _verbs()[verb]
    forms = {"progressive": "ing", "past": "d", "perfect": "en"}
    found = {name: rule for name, rule in _table("tenses").items() if entry.forms[forms.get(name, "base")] != "-"}
    if entry.frame == "weather":
        found = {name: found[name] for name in ("progressive", "past", "future")}
    elif entry.state:
        found = {name: rule for name, rule in found.items() if name in ("present", "past")}
    elif not entry.willed:
        found = {
            name: rule for name, rule in found.items() if "modal" not in rule and not (entry.once and name == "future")
        }
    return tuple(name for name, rule in found.items() for _ in range(rule["weight"]))


@functools.cache
def _kind(kind: str) -> tuple[str, ...]:
    """The verbs of a kind: any (as often as they are drawn), action, willed, those of question words."""
    verbs = _verbs()
    if kind == "any":
        rare = [name for name, verb in verbs.items() if verb.frame in RARE_FRAMES]
        return (*verbs, *["be"] * 24, *["lie"] * 4, *rare, *("ask whether", "wonder whether") * 2)
    return tuple(name for name, verb in verbs.items() if _is_of_kind(name, verb, kind))


def _is_of_kind(name: str, verb: Verb, kind: str) -> bool:
    things, direct = (
        verb.classes["object"],
        verb.frame in ("transitive", "dative") and not verb.classes["object"] & {"game"},
    )
    if kind in ("whom", "whom_dative"):
        return direct and "person" in things and (verb.case == DATIVE) == (kind == "whom_dative")
    if kind == "what":
        return direct and not things & {"person", "infant"}
    if kind == "which":
        return direct and verb.case == ACCUSATIVE and "place" not in things
    if kind == "where_to":
        return verb.frame == "motion" and name != "come"
    if kind == "who":
        return bool(verb.classes["subject"] & PEOPLE)
    acts = bool(verb.classes["subject"] & PEOPLE) and not verb.state
    acts = acts and verb.frame not in ("infinitive", "posture", "dwelling")
    if kind == "where":
        return acts and bool(verb.classes["place"]) and verb.frame in ("intransitive", "transitive")
    return acts and (kind == "action" or (verb.willed and verb.frame != "motion"))


def _clause(
    draw: random.Random,
    verbs: Sequence[str],
    tenses: Collection[str] = (),
    subject: NounPhrase | None = None,
    short: bool = False,
) -> Clause:
    """A clause with one of the verbs in one of the tenses (any); tries until it is sound."""
    while True:
        verb = draw.choice(verbs)
        allowed = [tense for tense in _tenses_of(verb) if not tenses or tense in tenses]
        if allowed:
            clause = _predicative(draw) if verb == "be" else _with_parts(draw, verb, subject, short)
            clause = _modified(draw, clause._replace(tense=draw.choice(allowed)), short)
            if _sound(clause):
                return clause


def _with_parts(draw: random.Random, verb: str, subject: NounPhrase | None, short: bool) -> Clause:
    """The subject and what the frame asks for."""
    entry = _verbs()[verb]
    classes = entry.classes
    subject = (
        subject or _noun_phrase(draw, classes["subject"], "subject", short) if classes["subject"] else NounPhrase("it")
    )
    subject = _known(subject) if entry.frame == "infinitive" else subject
    clause = Clause(verb, subject=subject)
    if entry.frame == "posture":
        return _beside(draw, clause, classes["object"])
    if classes["object"]:
        clause = clause._replace(object=_noun_phrase(draw, classes["object"], plain=short))
    if classes["receiver"]:
        clause = clause._replace(receiver=_noun_phrase(draw, classes["receiver"], plain=True))
    if entry.frame == "placing":
        return _beside(draw, clause, classes["place"])._replace(preposition="on")
    if entry.frame in ("motion", "dwelling"):
        return clause._replace(place=_noun_phrase(draw, classes["place"], "known", plain=not _chance(draw, 0.3)))
    if entry.frame in ("that", "whether"):
        tenses = ("future",) if verb == "hope that" else ("past", "progressive", "future", "perfect")
        inner = _clause(draw, _kind("action"), tenses, short=True)
        return clause._replace(complement=inner._replace(negated=inner.negated and entry.frame == "that"))
    if entry.frame == "infinitive":
        inner = _clause(draw, entry.verbs, ("future",), subject, short=True)
        return clause._replace(complement=inner._replace(negated=False, time="", frequency="", tense="present"))
    return clause


def _beside(draw: random.Random, clause: Clause, classes: frozenset[str]) -> Clause:
    """On, under, behind or next to something that has such a side."""
    place = _noun_phrase(draw, classes, "known", plain=_chance(draw, 0.6))
    tags = _nouns()[place.head].tags
    sides = [name for name, entry in _table("prepositions").items() if tags & set(entry[2].split())]
    if clause.verb in ("sit", "stand") and clause.subject and _is_person(clause.subject):
        sides = [side for side in sides if side == "next to" or side == ("on" if clause.verb == "sit" else "behind")]
    return clause._replace(place=place, preposition=draw.choice(sides))


def _is_person(phrase: NounPhrase) -> bool:
    return phrase.head not in _nouns() or bool(_nouns()[phrase.head].tags & {"person", "someone"})


def _is_alive(phrase: NounPhrase) -> bool:
    return _is_person(phrase) or "animal" in _nouns()[phrase.head].tags


def _predicative(draw: random.Random) -> Clause:
    """He is a teacher; the dog is tired; the dog is bigger than the cat."""
    if _chance(draw, 0.12):
        gender = draw.choice(("he", "she"))
        jobs = [name for name in _members(frozenset({"job"})) if gender in _nouns()[name].tags]
        names = [name for name in _members(frozenset({"kin", "someone"})) if gender in _nouns()[name].tags]
        subject = (
            NounPhrase(gender)
            if _chance(draw, 0.3)
            else _counted(draw, draw.choice(names), "known")._replace(plural=False)
        )
        job = draw.choice(jobs)
        adjective = draw.choice(("", "", "famous", "rich", "young", "friendly", "patient"))
        return Clause("be", "present", subject, NounPhrase(job, "a", adjective=adjective))
    adjectives = list(_table("adjectives"))
    adjective = draw.choices(adjectives, [_breadth(name) ** -0.3 for name in adjectives])[0]
    comparative, *_, kinds, feeling = _table("adjectives")[adjective]
    classes = frozenset({draw.choice([kind for kind in kinds.split() if kind[0] != "-"])})
    if comparative != "-" and not feeling and classes != {"place"} and _chance(draw, 0.5):
        first, second = _noun_phrase(draw, classes, "known", True), _noun_phrase(draw, classes, "known", True)
        return Clause("be", "present", first, second, predicate=adjective)
    degrees = [name for name, entry in _table("degrees").items() if adjective in entry[1].split()]
    degree = draw.choice(degrees) if degrees and _chance(draw, 0.3) else ""
    subject = _noun_phrase(draw, classes, "subject" if feeling else "known", True)
    return Clause("be", "present", subject, predicate=adjective, degree=degree)


def _modified(draw: random.Random, clause: Clause, short: bool) -> Clause:
    """With time, place and manner, and negated, now and then."""
    entry, tense = _verbs()[clause.verb], _table("tenses")[clause.tense]
    feeling = bool(clause.predicate and clause.subject and _is_alive(clause.subject))
    feeling = feeling and bool(_table("adjectives")[clause.predicate][5])
    timed = feeling if clause.verb == "be" else not entry.state and entry.frame not in ("that", "whether")
    if timed and not short and _chance(draw, 0.4):
        clause = clause._replace(time=_time(draw, clause.tense, clause.verb))
    if timed and not clause.time and (clause.tense == "perfect" or not short):
        fitting = [name for name, rule in _table("frequencies").items() if clause.tense in rule[2].split()]
        if fitting and _chance(draw, 0.15 if clause.tense == "past" else 0.55):
            clause = clause._replace(frequency=draw.choice(fitting))
    if entry.classes["place"] and not clause.place and _chance(draw, 0.15 if short else 0.3):
        clause = clause._replace(place=_noun_phrase(draw, entry.classes["place"], "known", plain=_chance(draw, 0.85)))
    if entry.classes["manner"] and not clause.frequency and _chance(draw, 0.08 if short else 0.3):
        fitting = [name for name, rule in _table("manners").items() if rule[1] in entry.classes["manner"]]
        clause = clause._replace(manner=draw.choice(fitting))
    polarity = tense.get("polarity", "")
    if polarity == "-" or (not polarity and not clause.manner and not clause.frequency and _chance(draw, 0.38)):
        what = clause.object
        if what and what.determiner == "the" and _can_be_new(what) and _chance(draw, 0.5):
            clause = clause._replace(object=what._replace(determiner="a"))
        return clause._replace(negated=True, manner="", frequency="")
    return clause


def _can_be_new(phrase: NounPhrase) -> bool:
    """Whether `a` can stand for `the`."""
    return not phrase.plural and not phrase.rule and not _nouns()[phrase.head].tags & {"mass", "kin", "single"}


def _time(draw: random.Random, tense: str, verb: str) -> str:
    """An adverbial that goes with a tense and a verb, or none."""
    fitting = [
        name
        for name, (_, _, tenses, *verbs) in _table("times").items()
        if _tense_kind(tense) in tenses.split() and (not verbs or verb in verbs[0].split(", "))
    ]
    return draw.choices(fitting, [6 if len(_table("times")[name]) > 3 else 1 for name in fitting])[0] if fitting else ""


def _tense_kind(tense: str) -> str:
    return "past" if tense in ("wanted", "had_to") else "modal" if "modal" in _table("tenses")[tense] else tense


def _sound(clause: Clause) -> bool:
    """Whether the parts of a clause go together."""
    subject = clause.subject
    parts = [phrase for phrase in (subject, clause.object, clause.receiver, clause.place) if phrase]
    heads = [head for phrase in parts for head in (phrase.head, *([phrase.owner.head] if phrase.owner else []))]
    if len(set(heads)) < len(heads) or len({"I", "we"} & set(heads)) == 2:  # nobody sees himself
        return False
    tags = [_nouns()[head].tags for head in heads if head in _nouns()]
    if any("minor" in tag for tag in tags) and any("alcohol" in tag for tag in tags):
        return False
    if "modal" in _table("tenses")[clause.tense] and subject and not _is_alive(subject):
        return False
    if clause.predicate and heads[0] in _nouns() and clause.predicate not in _adjectives_of(heads[0]):
        return False
    if clause.receiver and clause.object and clause.object.rule == "names" and _rule(clause.receiver) == "name":
        return False  # he lends Peter Anna's book
    if clause.object and clause.verb == clause.object.adjective:
        return False  # nobody cleans clean windows
    if clause.verb == "steal" and subject and clause.object and clause.object.determiner in _own(subject):
        return False
    return _counts_well(clause) and (not clause.negated or _deniable(clause)) and _reports_well(clause)


def _own(phrase: NounPhrase) -> tuple[str, ...]:
    """The possessive of somebody's own things; of a noun all that it could be."""
    return (_table("pronouns")[phrase.head][1],) if phrase.head in _table("pronouns") else ("his", "her", "their")


def _counts_well(clause: Clause) -> bool:
    """Whether the quantities agree with the tense and the adverbs: `no` is rare, habits are of known people."""
    if clause.subject and clause.subject.determiner == "no":
        return not clause.frequency and not clause.time and clause.tense in ("progressive", "past", "can")
    if clause.frequency and clause.subject and clause.subject.determiner in QUANTIFIERS:
        return False
    entry = _verbs()[clause.verb]
    if not entry.willed and clause.tense in ("present", "past") and (clause.tense == "past") == bool(clause.frequency):
        return False
    if clause.frequency and clause.object and clause.object.determiner in ("some", "many", *NUMERALS):
        return False
    return clause.tense != "present" or not (clause.time or clause.frequency) or _habitual(clause)


def _reports_well(clause: Clause) -> bool:
    """Whether what is said is past where the saying is, and about somebody else."""
    if clause.complement is None or _frame(clause) == "infinitive":
        return True
    if clause.complement.subject and clause.complement.subject.determiner == "no":
        return False
    same = clause.subject and clause.complement.subject and clause.subject.head == clause.complement.subject.head
    return not same and (clause.tense != "past" or clause.complement.tense == "past")


def _habitual(clause: Clause) -> bool:
    """Whether somebody known does it again and again: not the same house is built every day."""
    entry = _verbs()[clause.verb]
    if clause.subject and (not _definite(clause.subject) or clause.subject.determiner in QUANTIFIERS):
        return False
    if clause.time and (not entry.willed or clause.negated or entry.frame in ("posture", "dwelling")):
        return False
    return not (entry.once and clause.object and clause.object.determiner)


def _deniable(clause: Clause) -> bool:
    if clause.subject and (not _definite(clause.subject) or clause.subject.determiner in QUANTIFIERS):
        return False
    if _frame(clause) in ("comparison", "infinitive", "whether") or clause.time == "now":
        return False
    if clause.receiver and not _definite(clause.receiver):
        return False
    if clause.object is None or _definite(clause.object):
        return True
    entry = _verbs()[clause.verb]
    direct = entry.case == ACCUSATIVE and not entry.preposition and entry.frame != "placing"
    return direct and clause.object.determiner in ("", "a") and "bare" not in _nouns()[clause.object.head].tags


def _sentence(draw: random.Random) -> Sentence:
    """A sentence by a rule drawn by weight."""
    rules, weights = _weighted("sentences")
    rule = draw.choices(rules, cum_weights=weights)[0]
    if rule in ("statement", "fronted", "question"):
        return _plain_sentence(draw, rule)
    if rule in ("command", "please"):
        return _command(draw, rule)
    if rule in ("who", "whom", "whom_dative", "what", "which", "where", "where_to", "when", "why"):
        return _question(draw, rule)
    return _joined(draw, rule)


def _command(draw: random.Random, rule: str) -> Sentence:
    while True:
        clause = _clause(draw, _kind("willed"), ("present",), NounPhrase("you"))._replace(frequency="", time="")
        if not clause.negated and _chance(draw, 0.2):
            clause = clause._replace(time=draw.choice(("today", "tomorrow", "this evening")))
        if _sound(clause._replace(tense="future")):
            return Sentence(rule, clause)


def _plain_sentence(draw: random.Random, rule: str) -> Sentence:
    clause = _clause(draw, _kind("any"))
    if rule == "fronted":
        while not clause.time:
            clause = _clause(draw, _kind("any"))
        return Sentence(rule, clause._replace(time=""), time=clause.time)
    if rule == "question":
        tense = "must" if clause.tense == "must_not" else clause.tense
        frequency = "" if clause.frequency == "rarely" else clause.frequency
        clause = clause._replace(tense=tense, negated=False, frequency=frequency)
    if clause.subject and clause.subject.determiner == "no" and rule == "question":
        return _plain_sentence(draw, rule)
    if rule == "statement" and _chance(draw, 0.7):
        clause = _with_relative(draw, clause, "subject") or _with_relative(draw, clause, "object") or clause
    return Sentence(rule, clause)


def _with_relative(draw: random.Random, clause: Clause, role: str) -> Clause | None:
    """The clause with a relative clause on its subject, or on its object where nothing follows it, or None."""
    phrase: NounPhrase | None = clause.subject if role == "subject" else clause.object
    follows = clause.place or clause.time or clause.manner or clause.frequency or clause.negated
    if role == "object" and (follows or clause.verb == "be"):
        return None
    if (
        phrase is None
        or phrase.determiner not in ("the", "a", "two", "some", "many")
        or phrase.rule
        or clause.complement
    ):
        return None
    relative = _relative(draw, phrase.head, clause.verb) if role == "object" or _chance(draw, 0.5) else None
    if relative is None:
        return None
    phrase = phrase._replace(adjective="", relative=relative)
    return clause._replace(subject=phrase) if role == "subject" else clause._replace(object=phrase)


def _relative(draw: random.Random, head: str, taken: str) -> Clause | None:
    """A clause about a noun, its subject or object, with another verb than `taken`; None where there is none."""
    tags, gap = _nouns()[head].tags, draw.choice(("subject", "object"))
    verbs = {name: verb for name, verb in _verbs().items() if verb.classes[gap] & tags and verb.classes["subject"]}
    direct = {*_kind("which"), *_kind("whom_dative")}
    reporting = ("that", "whether", "infinitive")
    kinds = [
        name for name, verb in verbs.items() if (name in direct if gap == "object" else verb.frame not in reporting)
    ]
    kinds = [name for name in kinds if name != taken]
    for verb in draw.sample(kinds, min(3, len(kinds))):
        subject = NounPhrase(head, "the") if gap == "subject" else None
        clause = _with_parts(draw, verb, subject, short=True)
        tenses = [
            tense
            for tense in _tenses_of(verb)
            if tense in ("present" if _verbs()[verb].state else "progressive", "past")
        ]
        if gap == "object" and clause.object and clause.subject:
            clause = clause._replace(object=NounPhrase(head, "the"))
        if tenses and _sound(clause := _modified(draw, clause._replace(tense=draw.choice(tenses)), short=True)):
            return _without(clause, gap)._replace(negated=False, frequency="")
    return None


def _question(draw: random.Random, rule: str) -> Sentence:
    """Questions with a question word; what it asks for is missing in the clause."""
    while True:
        kind, tenses = QUESTIONS[rule]
        clause = _clause(draw, _kind(kind), tenses, NounPhrase("he") if rule == "who" else None)
        clause = clause._replace(frequency="", negated=clause.negated and rule == "why")
        if rule in ("when", "why"):
            clause = clause._replace(time="")
        topic = _asked(clause.object) if rule == "which" else None
        if _askable(clause, rule) and (topic or rule != "which"):
            return Sentence(rule, _without(clause, GAPS.get(rule, "")), topic=topic)


def _asked(phrase: NounPhrase | None) -> NounPhrase | None:
    """`which` for the determiner, if the noun can be counted."""
    if phrase is None or phrase.head not in _nouns() or _nouns()[phrase.head].tags & {"name", "mass", "kin", "single"}:
        return None
    return phrase._replace(determiner="which", rule="", owner=None)


def _askable(clause: Clause, rule: str) -> bool:
    if clause.subject and clause.subject.determiner in QUANTIFIERS:
        return False
    if clause.tense == "progressive" and clause.subject and clause.subject.head in ("I", "we"):
        return False  # who is doing something knows where and why
    if rule == "who" or rule in ("when", "why"):
        return True
    return not clause.manner and (clause.tense != "present" or _verbs()[clause.verb].state)


def _without(clause: Clause, part: str) -> Clause:
    return clause._replace(
        subject=None if part == "subject" else clause.subject,
        object=None if part == "object" else clause.object,
        place=None if part == "place" else clause.place,
    )


def _joined(draw: random.Random, rule: str) -> Sentence:
    """Two clauses that go together, with different verbs."""
    while True:
        main, other = _two_clauses(draw, rule)
        subjects = [clause.subject.determiner for clause in (main, other) if clause.subject]
        heads = [clause.subject.head for clause in (main, other) if clause.subject and clause.subject.head in _nouns()]
        twice = len(set(heads)) < len(heads)
        if main.verb != other.verb and not set(subjects) & set(QUANTIFIERS) and not twice:
            return Sentence(rule, main, other)


def _two_clauses(draw: random.Random, rule: str) -> tuple[Clause, Clause]:
    acting = [verb for verb in _kind("willed") if verb != "hurry"]
    if rule in ("because", "although", "although_first"):
        return _cause(draw, rule)
    if rule == "before":
        first = _clause(draw, acting, ("past",), short=True)._replace(negated=False)
        main, other = _same(draw, first, lambda who: _clause(draw, acting, ("past",), who, True))
        return main._replace(frequency=""), other._replace(frequency="", negated=False)
    if rule in ("if", "if_first"):
        return _condition(draw, rule)
    tense = draw.choice(("progressive", "past") if rule == "while" else ("progressive", "past", "future"))
    main, other = (_clause(draw, acting, (tense,), short=True) for _ in range(2))
    return main._replace(negated=False), other._replace(negated=other.negated and rule == "but")


def _condition(draw: random.Random, rule: str) -> tuple[Clause, Clause]:
    """What somebody will do if it rains, or if he feels so."""
    tense = (draw.choice(("future", "future", "can", "must")),)
    if _chance(draw, 0.5):
        time = draw.choice(("", "today", "tomorrow"))
        weather = Clause(draw.choice(("rain", "snow")), "present", NounPhrase("it"), time=time)
        main = _clause(draw, _verbs()[weather.verb].verbs, tense, short=True)
        return main._replace(negated=False), weather
    feeling = draw.choice(_feelings())

    def acts(who: NounPhrase) -> Clause:
        return _clause(draw, _reactions(feeling), ("future",), who, True)._replace(negated=False)

    if rule == "if":
        return _same(draw, acts(_someone(draw)), _feels(draw, feeling, "present"))
    other, main = _same(draw, _feels(draw, feeling, "present")(_someone(draw)), acts)
    return main, other


def _cause(draw: random.Random, rule: str) -> tuple[Clause, Clause]:
    """Because and although: what somebody does and how he feels."""
    tense = draw.choice(("present", "past"))
    doing = ("progressive",) if tense == "present" else ("past",)
    if rule == "because" and _chance(draw, 0.5):
        done = ("past", "perfect") if tense == "present" else ("past",)
        feeling = draw.choice(("happy", "sad", "angry", "nervous"))
        return _feels(draw, feeling, tense)(_someone(draw)), _clause(draw, _kind("action"), done, short=True)
    feeling = draw.choice(_feelings() if rule == "because" else ("tired", "sad", "sick", "nervous"))
    verbs = (
        _reactions(feeling)
        if rule == "because"
        else [verb for verb in _kind("willed") if verb not in _reactions(feeling)]
    )

    def acts(who: NounPhrase) -> Clause:
        return _clause(draw, verbs, doing, who, True)._replace(negated=False, frequency="")

    if rule == "although_first":
        other, main = _same(draw, _feels(draw, feeling, tense)(_someone(draw)), acts)
        return main, other
    return _same(draw, acts(_someone(draw)), _feels(draw, feeling, tense))


def _feelings() -> list[str]:
    return [name for name, entry in _table("adjectives").items() if entry[5]]


def _reactions(feeling: str) -> list[str]:
    """The verbs of what people do when they feel so."""
    return list(_table("adjectives")[feeling][5].split(", "))


def _someone(draw: random.Random) -> NounPhrase:
    return _known(_noun_phrase(draw, frozenset({"adult"}), "subject", plain=True))


def _known(phrase: NounPhrase) -> NounPhrase:
    """With `the` for a quantifier."""
    return phrase._replace(determiner="the") if phrase.determiner in QUANTIFIERS else phrase


def _feels(draw: random.Random, feeling: str, tense: str) -> Callable[[NounPhrase], Clause]:
    degree = "very" if _chance(draw, 0.25) else ""
    return lambda who: Clause("be", tense, who, predicate=feeling, degree=degree)


def _same(draw: random.Random, first: Clause, second: Callable[[NounPhrase], Clause]) -> tuple[Clause, Clause]:
    """Two clauses about one person; in both a pronoun where the German noun's gender is not the person's."""
    subject = first.subject
    assert subject
    tags = _nouns()[subject.head].tags if subject.head in _nouns() else frozenset()
    if subject.head in _table("pronouns"):
        return first, second(subject)
    if subject.plural or subject.rule == "pair":
        return first, second(NounPhrase("they"))
    if tags & {"he", "she"} and subject.determiner not in ("a", "every", "no"):
        return first, second(NounPhrase("he" if "he" in tags else "she"))
    pronoun = NounPhrase(draw.choice(("I", "you", "he", "she", "we", "they")))
    return first._replace(subject=pronoun), second(pronoun)


# -- what is given out ----------------------------------------------------------------------------------------------


def withheld(combination: tuple[str, str]) -> bool:
    """Whether a combination is kept out of training: by its SHA-256, so the same everywhere.

    A verb with few nouns, or a noun with few verbs, keeps all of them: each word alone must be known.
    """
    digest = hashlib.sha256("\t".join(combination).encode()).digest()
    return int.from_bytes(digest[:8], "big") < WITHHELD * 2**64 and _dispensable(*combination)


@functools.cache
def _dispensable(verb: str, other: str) -> bool:
    if other not in _nouns() or verb not in _verbs():
        return True
    tags = _nouns()[other].tags
    roles = [_members(classes) for classes in _verbs()[verb].classes.values() if classes & tags]
    return _uses(other) >= FEW and all(len(members) >= FEW for members in roles)


def stream(seed: int) -> Iterator[Example]:
    """Endless distinct examples, the same for the same seed."""
    draw, seen = random.Random(seed), set()
    while True:
        example = build(_sentence(draw))
        words = max(len(tokens(example.english)), len(tokens(example.german)))
        if words <= LONGEST and example.english not in seen:
            seen.add(example.english)
            yield example


def sentences(count: int, seed: int) -> list[Example]:
    """`count` distinct examples, the same for the same seed."""
    examples = stream(seed)
    return [next(examples) for _ in range(count)]


def split(train: int, held_out: int, seed: int) -> tuple[list[Example], list[Example]]:
    """Training and held-out examples: each held-out one has a withheld combination, none in training has."""
    known: list[Example] = []
    new: list[Example] = []
    examples = stream(seed)
    while len(known) < train or len(new) < held_out:
        example = next(examples)
        if any(map(withheld, example.combinations)):
            new.append(example)
        else:
            known.append(example)
    return known[:train], new[:held_out]


def lemmas() -> list[str]:
    """Every entry of the lexicon, once per English word or phrase and kind."""
    flat = ("pronouns", "determiners", "adjectives", "manners", "frequencies", "degrees", "prepositions", "times")
    return [*_nouns(), *_verbs(), *(name for table in flat for name in _table(table))]


def rules() -> list[str]:
    """Every rule of the grammar by its dotted name."""
    return [f"{table}.{rule}" for table in ("sentences", "frames", "tenses", "noun_phrases") for rule in _table(table)]


def distinct_sentences() -> int:
    """A lower bound: "The <adjective> <person> <past tense> the <adjective> <noun> <time>." with transitive verbs.

    Each choice is read back from its own place in the English sentence, so no two of these are the same.
    """
    times = sum("past" in entry[2].split() for entry in _table("times").values())
    people = [name for name in _members(PEOPLE) if "kin" not in _nouns()[name].tags]
    subjects = {name: len(_adjectives_of(name)) for name in people}
    total = 0
    for name, verb in _verbs().items():
        if verb.frame == "transitive" and not verb.state and "past" in _tenses_of(name):
            ours = [who for who in subjects if _nouns()[who].tags & verb.classes["subject"]]
            things = [
                what
                for what in _members(verb.classes["object"])
                if not _nouns()[what].tags & {"person", "bare", "alcohol"}
            ]
            total += sum(subjects[who] for who in ours) * sum(len(_adjectives_of(what)) for what in things) * times
    return total
