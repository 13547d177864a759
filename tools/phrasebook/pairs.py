"""Sentence pairs from derivations, with tree, word alignment and combinations of words."""

import itertools
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from phrasebook import english, german
from phrasebook.derivation import Clause, NounPhrase, Sentence
from phrasebook.grammar import SENTENCE_RULES, Part, Tree, Word, grow, grow_one, line
from phrasebook.lexicon import NOUNS, TIMES

CONTRACTIONS = {
    ("in", "dem"): "im",
    ("in", "das"): "ins",
    ("an", "dem"): "am",
    ("von", "dem"): "vom",
    ("zu", "dem"): "zum",
    ("zu", "der"): "zur",
}


class Example(NamedTuple):
    """A sentence pair; `alignment` pairs positions in the `tokens` of both, `tree` has Penn Treebank brackets."""

    english: str
    german: str
    tree: str
    alignment: tuple[tuple[int, int], ...]
    combinations: tuple[tuple[str, str], ...]  # (verb, noun) and (verb, adverb)
    derivation: Sentence


def tokens(text: str) -> list[str]:
    """The words of a sentence; commas, the final mark and the English possessive 's are words of their own."""
    return re.findall(r"'s|[^\s.,?!']+|[.,?!]", text)


def build(sentence: Sentence) -> Example:
    """The two sentences, the tree, the alignment and the combinations of a derivation."""
    rule = SENTENCE_RULES[sentence.rule]
    tree = grow_one(rule.english, "", lambda name: _english_part(sentence, name))
    source = _spell_english(_leaves(tree))
    target = _spell_german(line(rule.german, "", lambda name: _german_part(sentence, name)))
    combinations = list(_combinations(sentence.main, sentence.topic, sentence.time))
    if sentence.other:
        combinations += _combinations(sentence.other)
    return Example(
        _joined(source),
        _joined(target),
        _bracketed(tree, iter(source)),
        _alignment(source, target),
        tuple(dict.fromkeys(combinations)),
        sentence,
    )


def _english_part(sentence: Sentence, name: str) -> Sequence[Part]:
    """The English part for a slot: time, topic, or a clause by number and word order, such as 0.inverted."""
    if name == "time":
        return grow(TIMES[sentence.time].english, "time")
    if name == "topic" and sentence.topic:
        return [english.write_noun_phrase(sentence.topic, "topic")._replace(label="WHNP")]
    number, order = name.split(".")
    return english.write_clause(sentence.clauses[int(number)], number, order)


def _german_part(sentence: Sentence, name: str) -> Sequence[Word]:
    if name == "time":
        return line(TIMES[sentence.time].german, "time")
    if name == "topic" and sentence.topic:
        return german.write_noun_phrase(sentence.topic, sentence.main.entry.case, "topic")
    number, order = name.split(".")
    return german.write_clause(sentence.clauses[int(number)], number, order)


def _spell_english(words: list[Word]) -> list[Word]:
    """Choose between a and an, and capitalise the first word."""
    for i, (word, following) in enumerate(itertools.pairwise(words)):
        if word.text == "a" and following.text[0] in "aeiou":
            words[i] = word._replace(text="an")
    return _capitalized(words)


def _spell_german(words: list[Word]) -> list[Word]:
    """Contract in dem to im, drop doubled commas and those before the end, and capitalise the first word."""
    found: list[Word] = []
    for word in words:
        last = found[-1].text if found else ""
        if (last, word.text) in CONTRACTIONS:
            found[-1] = Word(CONTRACTIONS[last, word.text], found[-1].links + word.links)
        elif last == "," and word.text in ",.?!":
            found[-1] = word
        else:
            found.append(word)
    return _capitalized(found)


def _capitalized(words: list[Word]) -> list[Word]:
    return [words[0]._replace(text=words[0].text[0].upper() + words[0].text[1:]), *words[1:]]


def _joined(words: Sequence[Word]) -> str:
    return re.sub(r" ([.,?!]|'s\b)", r"\1", " ".join([word.text for word in words]))


def _leaves(tree: Tree) -> list[Word]:
    words: list[Word] = []
    for child in tree.children:
        words += [child] if isinstance(child, Word) else _leaves(child)
    return words


def _bracketed(tree: Tree, spelled: Iterator[Word]) -> str:
    """The tree in brackets, such as (NP (DT the) (NN dog)), with the spelled leaves."""
    children = [
        next(spelled).text if isinstance(each, Word) else _bracketed(each, spelled)
        for each in tree.children
    ]
    return f"({tree.label} {' '.join(children)})"


def _alignment(source: Sequence[Word], target: Sequence[Word]) -> tuple[tuple[int, int], ...]:
    """The pairs of positions whose words share a link."""
    places: dict[str, list[int]] = {}
    for j, word in enumerate(target):
        for link in word.links:
            places.setdefault(link, []).append(j)
    found = {
        (i, j) for i, word in enumerate(source) for link in word.links for j in places.get(link, ())
    }
    return tuple(sorted(found))


def _combinations(
    clause: Clause, gap: NounPhrase | None = None, time: str = ""
) -> Iterator[tuple[str, str]]:
    """Every verb (or predicate adjective) with its nouns and adverbs, also in subordinate clauses."""
    said = clause.predicate or clause.verb
    phrases = [clause.subject, clause.object, clause.receiver, clause.place, gap]
    phrases += [phrase.owner for phrase in phrases if phrase and phrase.rule == "pair"]
    for phrase in phrases:
        if phrase and phrase.head in NOUNS:
            yield said, phrase.head
        if phrase and phrase.relative:
            yield from _combinations(phrase.relative, gap=NounPhrase(phrase.head))
    yield from (
        (said, adverb) for adverb in (clause.time, clause.frequency, clause.manner, time) if adverb
    )
    if inner := clause.complement:  # an infinitive has no spoken subject
        yield from _combinations(inner._replace(subject=None) if clause.entry.verbs else inner)
