"""The rules of grammar.toml, and how to fill in their templates: trees for English, lists of words for German.

A word of a template may have a mark (`because/c`). Braces contain a slot, which a part of the sentence fills. A word
has links, made of the path of its part in the derivation and its role there, such as `0.object.owner/head`. An English
and a German word that share a link are aligned.
"""

import functools
import re
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple


class Word(NamedTuple):
    """A token and its links."""

    text: str
    links: tuple[str, ...] = ()


class Tree(NamedTuple):
    """A constituent with its label in the Penn treebank's style."""

    label: str
    children: tuple["Tree | Word", ...]


Part = Tree | Word


class Rule(NamedTuple):
    """The templates of a sentence or a noun phrase, with the same slots in both languages; sentences have a weight."""

    english: str
    german: str
    weight: float = 0


class Frame(NamedTuple):
    """The template behind an English verb, the one behind the last German verb, and the case of the German object."""

    english: str
    rest: str = ""
    case: str = "acc"


class Tense(NamedTuple):
    """Verb forms of a tense; `modal`: for people and animals only; `polarity`: + or - clauses only."""

    english: str
    german: str
    weight: int
    modal: bool = False
    polarity: str = ""


def read(file: str) -> dict[str, Any]:
    """Read a TOML file of this folder."""
    return tomllib.loads(Path(__file__).with_name(file).read_text(encoding="utf-8"))


_TABLES = read("grammar.toml")
SENTENCE_RULES = {name: Rule(**rule) for name, rule in _TABLES["sentences"].items()}
FRAMES = {name: Frame(**rule) for name, rule in _TABLES["frames"].items()}
TENSES = {name: Tense(**rule) for name, rule in _TABLES["tenses"].items()}
NOUN_PHRASES = {name: Rule(**rule) for name, rule in _TABLES["noun_phrases"].items()}
AUXILIARIES: dict[str, list[str]] = {
    name: forms.split() for name, forms in _TABLES["auxiliaries"].items()
}


def leaf(tag: str, text: str, *links: str) -> Tree:
    """A tree of one word under its part of speech."""
    return Tree(tag, (Word(text, links),))


def grow(
    template: str, link: str, slot: Callable[[str], Sequence[Part]] = lambda _: ()
) -> list[Part]:
    """The trees of an English template; `slot` fills braces. Constituents without words are dropped."""
    return _grown(_parsed(template), link, slot)


def grow_one(template: str, link: str, slot: Callable[[str], Sequence[Part]]) -> Tree:
    """The only tree of an English template."""
    (tree,) = grow(template, link, slot)
    assert isinstance(tree, Tree)
    return tree


def line(
    template: str, link: str, slot: Callable[[str], Sequence[Word]] = lambda _: ()
) -> list[Word]:
    """The words of a German template; `slot` fills braces."""
    words: list[Word] = []
    for piece in template.split():
        words += slot(piece[1:-1]) if piece[0] == "{" else [marked(piece, link)]
    return words


def marked(piece: str, link: str) -> Word:
    """`because/c` is the word `because` with the link `<link>/c`; a word without a mark has no link."""
    text, _, mark = piece.partition("/")
    return Word(text, (f"{link}/{mark}",) if mark else ())


@functools.cache
def _parsed(template: str) -> tuple[Part, ...]:
    """The trees of a template, whose words are still slots in braces or words with marks."""
    open_: list[tuple[str, list[Part]]] = [("", [])]
    for piece in re.findall(r"\(\S+|\)|[^\s()]+", template):
        if piece[0] == "(":
            open_.append((piece[1:], []))
        elif piece == ")":
            label, children = open_.pop()
            open_[-1][1].append(Tree(label, tuple(children)))
        else:
            open_[-1][1].append(Word(piece))
    return tuple(open_[0][1])


def _grown(parts: Sequence[Part], link: str, slot: Callable[[str], Sequence[Part]]) -> list[Part]:
    grown: list[Part] = []
    for part in parts:
        if isinstance(part, Word):
            grown += slot(part.text[1:-1]) if part.text[0] == "{" else [marked(part.text, link)]
        elif children := _grown(part.children, link, slot):
            grown.append(Tree(part.label, tuple(children)))
    return grown
