"""The embedded language: a synchronous grammar of English and German, with trees and word alignments.

A sentence is derived once (`Sentence`, `Clause`, `NounPhrase`) and written down twice, by the paired rules of `grammar.toml` over
the words of `lexicon.toml` and `verbs.toml`. Nouns and verbs have classes, so that nobody drinks a table; every English word has one German
one, so that translation is a function ("you" is always `du`). Part of the verb-noun and verb-adverb combinations are withheld
from training: a held-out sentence has words that are all known in a combination that is new.
"""

import functools
import hashlib
import math
import random
import re
import tomllib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from importlib import resources
from typing import Any, NamedTuple, TypeVar

WITHHELD = 0.07  # of all combinations
LONGEST = 16  # tokens on either side
NOMINATIVE, ACCUSATIVE, DATIVE, GENITIVE = range(4)
CASES = {"acc": ACCUSATIVE, "dat": DATIVE}
DEFINITE_ARTICLE = {"m": "der den dem des", "f": "die die der der", "n": "das das dem des", "p": "die die den der"}
STRONG = {"m": "er en em es", "f": "e e er er", "n": "es es em es", "p": "e e en er"}  # by gender or plural, then by case
BARE_EIN = {("m", NOMINATIVE), ("n", NOMINATIVE), ("n", ACCUSATIVE)}  # where ein, kein and mein have no ending
CONTRACTIONS = {("in", "dem"): "im", ("an", "dem"): "am", ("in", "das"): "ins", ("von", "dem"): "vom"}
CONTRACTIONS |= {("zu", "dem"): "zum", ("zu", "der"): "zur"}
POSSESSIVES = ("my", "your", "his", "her", "our", "their")
NUMERALS = ("two", "three", "four", "five", "six", "seven", "ten")
DEFINITE = ("the", "this", "these", "every", "all", *POSSESSIVES)
FINITE = {"be": ("am", "is", "are"), "was": ("was", "was", "were"), "do": ("do", "does", "do"), "have": ("have", "has", "have")}
FINITE |= {"want": ("want", "wants", "want")}
T = TypeVar("T")


class NounPhrase(NamedTuple):
    """A noun, name or pronoun with what belongs to it; `rule` is found from the rest unless it is a pair or a possession."""

    head: str
    determiner: str = ""
    plural: bool = False
    adjective: str = ""
    rule: str = ""  # "names", "possessed", "part" or "pair", which have an owner
    owner: "NounPhrase | None" = None
    relative: "Clause | None" = None  # whose subject or object is None: the noun itself


class Clause(NamedTuple):
    """A verb and what it says; a subject or object that is None stands elsewhere (`who`, `which book`, a relative's noun)."""

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
    """A sentence pair; `alignment` pairs positions in `tokens(english)` and `tokens(german)`, `tree` is Penn Treebank style."""

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
            found[english] = Noun(plural, noun, german_plural, gender, frozenset(of), tuple(" ".join(prepositions).split()))
    return found


@functools.cache
def _verbs() -> dict[str, Verb]:
    return {english: _verb(english, frame, **entry) for frame, entries in _table("verbs").items() for english, entry in entries.items()}


def _verb(english: str, frame: str, en: str, de: str, case: str = "", state: bool = False, willed: bool = True, **classes: str) -> Verb:
    words = tuple(english.split())
    match = re.fullmatch(r"(sich )?(?:(\S+)-)?(\w+)(?:\(([^)]+)\))? (\w+)( sein)?(?: /(\w+))?", de)
    assert match, de
    reflexive, particle, infinitive, changed, participle, auxiliary, preterite = match.groups("")
    finite = _present(infinitive, changed)
    *preposition, case = (case or _table("frames")[frame].get("case", "acc")).split()
    e = preterite.endswith("e")
    past = (preterite, preterite + "st", preterite, preterite + ("n" if e else "en")) if preterite else ()
    return Verb(
        words, frame, dict(zip(("base", "s", "d", "en", "ing"), (words[0], *en.split()), strict=True)), infinitive, particle, participle,
        auxiliary.strip() or "haben", finite, past, _imperative(infinitive, changed, finite), bool(reflexive), " ".join(preposition),
        CASES[case], {role: frozenset(names.split()) for role, names in classes.items()}, state, willed,
    )  # fmt: skip


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
    return (first[:-2] + "le" if first.endswith("el") else first + "e"), du, er, infinitive


def _imperative(infinitive: str, changed: str, finite: Sequence[str]) -> str:
    stem, e = _stem(infinitive)
    if "i" in changed and "e" in stem:  # lies, gib, hilf; but fahr, schlaf
        return changed
    return finite[0] if stem.endswith(("el", "er")) else stem + e


def _noun(head: str, plural: bool, case: int) -> str:
    noun = _nouns()[head]
    if plural:
        return noun.german_plural + ("n" if case == DATIVE and noun.german_plural[-1] not in "ns" else "")
    if "weak" in noun.tags and case != NOMINATIVE:
        return noun.german_plural
    if case == GENITIVE and noun.gender != "f":
        short = len(re.findall("[aeiouäöüy]+", noun.german.lower())) == 1
        return noun.german + ("s" if "name" in noun.tags or not (short or noun.german[-1] in "sßz") else "es")
    return noun.german + ("s" if case == GENITIVE and "name" in noun.tags else "")


def _determiner(determiner: str, gender: str, case: int) -> str:
    stem, kind, *_ = ("kein", "ein") if determiner == "kein" else ("welch", "der") if determiner == "which" else _table("determiners")[determiner]
    if determiner == "the":
        return DEFINITE_ARTICLE[gender].split()[case]
    bare = kind == "none" or (kind == "ein" and (gender, case) in BARE_EIN)
    return stem if bare else stem + STRONG[gender].split()[case]


def _adjective(adjective: str, determiner: str, gender: str, case: int) -> str:
    """The adjective ends strongly where no determiner shows the case."""
    stem = _table("adjectives")[adjective][2]
    kind = {"": "none", "kein": "ein", "which": "der"}.get(determiner) or _table("determiners")[determiner][1]
    if kind in ("none", "few") or (kind == "ein" and (gender, case) in BARE_EIN):
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
    return [word for piece in template.split() for word in (slot(piece[1:-1]) if piece[0] == "{" else [_word(piece, link)])]


def _leaf(tag: str, text: str, *links: str) -> Tree:
    return Tree(tag, (Word(text, frozenset(links)),))


# -- English --------------------------------------------------------------------------------------------------------


def _rule(phrase: NounPhrase) -> str:
    """The rule of `[noun_phrases]` that a noun phrase follows, its relative clause apart."""
    if phrase.rule or phrase.head in _table("pronouns"):
        return phrase.rule or "pronoun"
    if "name" in _nouns()[phrase.head].tags:
        return "name"
    return ("described" if phrase.determiner else "bare_described") if phrase.adjective else "plain" if phrase.determiner else "bare"


def _relative_rule(phrase: NounPhrase) -> str:
    assert phrase.relative
    return "that" if "person" not in _nouns()[phrase.head].tags else "who" if phrase.relative.subject is None else "whom"


def _english_noun_phrase(phrase: NounPhrase, link: str, oblique: bool = False) -> list[Part]:
    def slot(name: str) -> Sequence[Part]:
        if name in ("owner", "owners"):
            assert phrase.owner
            owner = _english_noun_phrase(phrase.owner, link + ".owner")
            return owner if name == "owner" else [part for tree in owner if isinstance(tree, Tree) for part in tree.children]
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
        tag = "PRP$" if text in POSSESSIVES else "CD" if text in NUMERALS else "WDT" if text == "which" else "JJ" if text == "many" else "DT"
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
            words = (_table("adjectives")[clause.predicate][0] if frame == "comparison" else clause.predicate).split()
            return [_leaf("RBR" if word == "more" else "JJR" if frame == "comparison" else "JJ", word, link + "/predicate")
                    for word in words[:-1]] + [_leaf("JJR" if frame == "comparison" and len(words) == 1 else "JJ", words[-1], link + "/predicate")]  # fmt: skip
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
        return _verbs()[clause.verb].frame
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
        words.insert(0, Word(_determiner("kein", _gender(phrase), case), frozenset({negation})))
    return Phrase(words, _german_relative(phrase, link) if phrase.relative else [])


def _german_word(phrase: NounPhrase, name: str, case: int, negation: str) -> str:
    if phrase.head in _table("pronouns"):
        return _table("pronouns")[phrase.head][2 + case]
    determiner, gender = "kein" if negation else phrase.determiner, _gender(phrase)
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
        return [Word("zu", frozenset({self.link.removesuffix(".complement") + "/c"})), self._linked(self.verb.infinitive)]

    def _middle(self) -> Iterator[tuple[float, list[Word]]]:
        """The parts between the verbs with their ranks: pronouns, known things, time, new things, not, manner, place."""
        clause, link = self.clause, self.link
        late = bool(clause.frequency) and "late" in _table("frequencies")[clause.frequency][2]
        kein = self._says_kein()
        for name, phrase in (("receiver", clause.receiver), ("object", clause.object)):
            if phrase:
                yield self._rank(name, phrase, clause.negated or late), self._object(name, phrase, kein)
        adverb = _table("times")[clause.time] if clause.time else _table("frequencies")[clause.frequency] if clause.frequency else None
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
        return self.clause.negated and bool(self.clause.object) and _frame(self.clause) != "comparison" and not (
            self.clause.object is not None and (_definite(self.clause.object) or self.verb.preposition)
        )  # fmt: skip

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
        before = [Word(_table("degrees")[degree], frozenset({self.link + "/degree"}))] if degree else []
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
            return [tree._replace(label="WHNP") for tree in _english_noun_phrase(sentence.topic, "topic") if isinstance(tree, Tree)]
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
    source = _spell_english([word for word in _leaves(root)])
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
    for i, (word, following) in enumerate(zip(words, words[1:], strict=False)):
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
            yield from _combinations(phrase.relative, gap=phrase)
    yield from ((verb, adverb) for adverb in (clause.time, clause.frequency, clause.manner, time) if adverb)
    if clause.complement:
        named = clause.complement if _verbs()[clause.verb].frame != "infinitive" else clause.complement._replace(subject=None)
        yield from _combinations(named)


# -- drawing --------------------------------------------------------------------------------------------------------

PRESENT, PAST, HABIT = ("progressive", "perfect"), ("past",), ("present",)
PEOPLE = frozenset({"person", "adult"})


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


def _noun_phrase(draw: random.Random, classes: frozenset[str], role: str = "object", plain: bool = False) -> NounPhrase:
    """A noun phrase of one of the classes; `plain`: short; role: subject, object, or known (definite)."""
    if classes & PEOPLE and role != "known" and _chance(draw, 0.3 if role == "subject" else 0.2):
        return NounPhrase(draw.choice(("I", "you", "he", "she", "we", "they")))
    if classes & PEOPLE and _chance(draw, 0.12):
        first, second = draw.sample(_members(frozenset({"someone"})), 2)
        pair = role == "subject" and not plain and _chance(draw, 0.25)
        return NounPhrase(second, rule="pair", owner=NounPhrase(first)) if pair else NounPhrase(first)
    phrase = _counted(draw, draw.choice(_members(classes)), role)
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
        return NounPhrase(head, "the" if role == "known" or _chance(draw, 0.4) else "this" if _chance(draw, 0.15) else "")
    if "single" in tags:
        return NounPhrase(head, "this" if _chance(draw, 0.12) else "the")
    if (phrase := _owned(draw, head)) is not None:
        return phrase
    plural = _chance(draw, 0.3)
    common = ("the", "the", "these") if plural else ("the", "the", "the", "this")
    new: tuple[str, ...] = ("two", "some", "many", draw.choice(NUMERALS), "") if plural else ("a", "a", "a")
    if role == "subject":
        new = (*new[:-1], "all", "no", "some") if plural else ("a", "every", "no")
    old = (*common, *common, draw.choice(POSSESSIVES), draw.choice(POSSESSIVES))
    return NounPhrase(head, draw.choice(old if role == "known" or _chance(draw, 0.55) else new), plural)


def _owned(draw: random.Random, head: str) -> NounPhrase | None:
    """Anna's key, the teacher's key, the door of the house; not always."""
    tags = _nouns()[head].tags
    if "part" in tags and _chance(draw, 0.35):
        return NounPhrase(head, "the", rule="part", owner=NounPhrase(draw.choice(_members(frozenset({"owner", "house", "castle"}))), "the"))
    if not tags & {"thing", "clothing", "private", "pet", "house", "mail"} or _chance(draw, 0.88):
        return None
    if _chance(draw, 0.5):
        return NounPhrase(head, rule="names", owner=NounPhrase(draw.choice(_members(frozenset({"someone"})))))
    return NounPhrase(head, "the", rule="possessed", owner=NounPhrase(draw.choice(_members(PEOPLE - {"person"})), "the"))


@functools.cache
def _adjectives_of(head: str) -> tuple[str, ...]:
    tags = _nouns()[head].tags
    return tuple(name for name, entry in _table("adjectives").items() if tags & set(entry[4].split()))


def _describing(draw: random.Random, head: str) -> str:
    found = _adjectives_of(head)
    return draw.choice(found) if found else ""
