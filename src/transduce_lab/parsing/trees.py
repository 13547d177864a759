"""Constituency trees in Penn Treebank brackets: (S (NP (DT The) (NN dog)) (VP (VBZ runs)) (. .)).

Only ASCII white space and brackets separate words and labels, because words in treebanks may contain thin spaces. A
tree may span several lines, and its root may have no label: ( (S ...)).
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import count
from typing import NamedTuple

from transduce.system.errors import UserError
from transduce.text.formats import CorpusFile, TextPair
from transduce.text.plain import display_name, read_lines, without_byte_order_mark
from transduce.text.tree_symbols import CLOSE, OPEN, mark

TRACE = "-NONE-"
ROOTS = ("", "ROOT", "TOP", "S1")  # root labels without meaning
TOKEN = re.compile(r"[()]|[^ \t\n\r\f\v()]+")
CLOSING_SYMBOL = re.compile(r"\)[0-9]{0,9}")


class Tree(NamedTuple):
    """A node with children, or a leaf with a tag and a word."""

    label: str  # "" for a root without one
    children: tuple["Tree", ...] = ()
    word: str | None = None

    def walk(self) -> Iterator["Tree | None"]:
        """Yield the nodes in depth-first order, and None after the children of each node."""
        stack: list[Tree | None] = [self]  # no recursion: trees may be deeper than Python's stack
        while stack:
            node = stack.pop()
            yield node
            if node is not None and node.word is None:
                stack += [None, *reversed(node.children)]

    def leaves(self) -> Iterator["Tree"]:
        """The leaves, from left to right."""
        return (node for node in self.walk() if node is not None and node.word is not None)

    def words(self) -> list[str]:
        """The words, from left to right, including traces."""
        return [leaf.word for leaf in self.leaves() if leaf.word is not None]

    def __str__(self) -> str:
        """The tree in brackets, on one line."""
        parts = [
            ")"
            if node is None
            else f"({node.label}"
            if node.word is None
            else f"({node.label} {node.word})"
            for node in self.walk()
        ]
        return " ".join(parts).replace(" )", ")")


class MalformedTreeError(ValueError):
    """Raised for text that is not a tree; `line` is the faulty line's number, counted from 0."""

    def __init__(self, why: str, line: int = 0) -> None:
        super().__init__(why)
        self.line = line


def parse_trees(lines: Iterable[str], *, need_words: bool = False) -> Iterator[tuple[Tree, int]]:
    """Yield each tree and the number (from 0) of its first line; raises MalformedTreeError for a malformed tree.

    If `need_words` is true, each label needs a word or children.
    """
    open_nodes: list[tuple[str, list[Tree], list[str]]] = []  # label, children, at most one word
    first_line = 0
    fresh = False  # a bracket was just opened, and its label may follow
    number = -1
    for number, line in enumerate(lines):
        for token in TOKEN.findall(line):
            if token == "(":
                if not open_nodes:
                    first_line = number
                elif open_nodes[-1][2]:
                    raise MalformedTreeError(
                        f"a bracket follows the word '{open_nodes[-1][2][0]}'", number
                    )
                open_nodes.append(("", [], []))
                fresh = True
                continue
            if token == ")":
                if not open_nodes:
                    raise MalformedTreeError("a closing bracket has no opening bracket", number)
                label, children, words = open_nodes.pop()
                if need_words and label and not children and not words:
                    raise MalformedTreeError(f"'({label})' lacks a tag or a word", number)
                tree = Tree(label, tuple(children), words[0] if words else None)
                if open_nodes:
                    open_nodes[-1][1].append(tree)
                else:
                    yield tree, first_line
            elif not open_nodes:
                raise MalformedTreeError(f"'{token}' stands outside all brackets", number)
            elif fresh:
                open_nodes[-1] = (token, [], [])
            else:
                label, children, words = open_nodes[-1]
                if children or words:
                    raise MalformedTreeError(f"'{token}' has no tag of its own", number)
                words.append(token)
            fresh = False
    if open_nodes:
        raise MalformedTreeError("a bracket that opens here is never closed", first_line)


def read_trees(file: str, *, lenient: bool = False) -> Iterator[tuple[Tree, int]]:
    """Yield each tree of a file and the number (from 1) of its first line; raises UserError for a malformed tree.

    The file may be compressed or standard input. `lenient` is passed to `read_lines`.
    """
    lines = without_byte_order_mark(read_lines(file, lenient=lenient))
    try:
        for tree, line in parse_trees(lines, need_words=True):
            yield tree, line + 1
    except MalformedTreeError as error:
        raise UserError(
            f"{display_name(file)}, line {error.line + 1}: {error}.",
            "Write trees like (S (NP (PRP It)) (VP (VBZ is))).",
        ) from None


def read_tree_pairs(file: CorpusFile) -> Iterator[TextPair]:
    """Yield the source text, target text and line of each tree; both texts are empty if the tree has only traces."""
    for tree, line in read_trees(file.path, lenient=file.lenient):
        simple = simplify(tree)
        words, symbols = (simple.words(), linearise(simple)) if simple else ([], [])
        yield marked_words(words), marked_tags(symbols), line


def simplify(tree: Tree) -> Tree | None:
    """Remove traces, constituents that hold only traces, and function tags; returns None if nothing remains.

    The labels NP-SBJ and NP=2 become NP. If a root has a label in ROOTS and its only child is a constituent, the child
    becomes the root. A single leaf gets a root.
    """
    labels = list[str]()  # label of each open node
    done = [list[Tree]()]  # the complete children of each open node
    for node in tree.walk():
        if node is None:
            label = labels.pop()
            children = done.pop()
            if children:
                done[-1].append(Tree(category(label), tuple(children)))
        elif node.word is None:
            labels.append(node.label)
            done.append([])
        elif node.label != TRACE:
            done[-1].append(node)
    if not done[0]:
        return None
    root = done[0][0]
    if root.word is not None:
        return Tree("", (root,))
    while root.label in ROOTS and len(root.children) == 1 and root.children[0].word is None:
        root = root.children[0]
    return root


def category(label: str) -> str:
    """A label without the function tags after the first - or =."""
    return re.split("[-=]", label, maxsplit=1)[0]


def linearise(tree: Tree) -> list[str]:
    """A tree's opening brackets such as "(NP", closing brackets and tags, from left to right.

    If more brackets close than remain open, one symbol closes them all, so that a parser need not count many brackets.
    """
    # As in Vinyals et al. (2015), but closing brackets have no label, and tags are kept.
    symbols = list[str]()
    depth = 0
    closed = 0  # closed: number of brackets that close after the last symbol
    for node in tree.walk():
        if node is None:
            depth = depth - 1
            closed = closed + 1
            continue
        symbols += _closing(closed, depth)
        symbols.append(OPEN + node.label if node.word is None else node.label)
        depth = depth + (node.word is None)
        closed = 0
    return symbols + _closing(closed, depth)


def _closing(closed: int, depth: int) -> list[str]:
    return [f"{CLOSE}{depth}"] if closed > depth else [CLOSE] * closed


def delinearise(symbols: Sequence[str], words: Sequence[str]) -> Tree:
    """Build a tree from symbols and words; raises MalformedTreeError if they don't form a tree."""
    if sum(map(is_tag, symbols)) != len(words):
        raise MalformedTreeError("the numbers of tags and words differ")
    rest = iter(words)
    parts = list[str]()
    depth = 0
    for symbol in symbols:
        if is_tag(symbol):
            parts.append(f"({symbol} {next(rest)})")
        elif symbol.startswith(OPEN):
            parts.append(symbol)
            depth += 1
        else:
            left = symbol.removeprefix(CLOSE)
            # A model can spell other symbols than those it was trained on.
            if not CLOSING_SYMBOL.fullmatch(symbol):
                raise MalformedTreeError(f"'{symbol}' is no symbol")
            closed = max(0, depth - int(left)) if left else 1
            parts += [CLOSE] * closed
            depth -= closed
    trees = [tree for tree, _ in parse_trees([" ".join(parts)])]
    if len(trees) != 1:
        raise MalformedTreeError("a tree must have exactly one root")
    return trees[0]


def marked_words(words: Iterable[str]) -> str:
    """The source text of a sentence, with each word after its mark (see `mark`)."""
    return " ".join(f"{mark(index)} {word}" for index, word in enumerate(words))


def marked_tags(symbols: Iterable[str]) -> str:
    """The target text of a tree, with each tag after its word's mark."""
    index = count()
    return " ".join(
        f"{mark(next(index))} {symbol}" if is_tag(symbol) else symbol for symbol in symbols
    )


def is_tag(symbol: str) -> bool:
    return not symbol.startswith((OPEN, CLOSE))


def without_marks(text: str) -> list[str]:
    """The symbols of a target text, without the marks."""
    return [symbol for symbol in text.split(" ") if symbol == CLOSE or not symbol.endswith(CLOSE)]
