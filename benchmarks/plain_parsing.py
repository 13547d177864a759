"""Parsing without the numbers, the closing symbols and the restricted search of transduce's parsers.

    python benchmarks/plain_parsing.py write craft-a.mrg train       # writes train.words and train.symbols
    transduce train craft-parsing --train train.words train.symbols --valid valid.words valid.symbols --out MODEL
    transduce translate MODEL --input test.words --output parses.symbols
    python benchmarks/plain_parsing.py score craft-dev.mrg parses.symbols

The symbols are those of Vinyals & Kaiser et al. (2014): "(NP", ")NP", and XX instead of each tag. A parse that is not a
tree over the words of its sentence counts as the words without brackets. All words have the tags of the gold tree, so
EVALB leaves out no parse.
"""

import argparse
from pathlib import Path

from transduce.text.plain import read_lines
from transduce_lab.parsing.brackets import score_brackets
from transduce_lab.parsing.trees import MalformedTreeError, Tree, parse_trees, read_trees, simplify

TAG = "XX"


def symbols_of(tree: Tree) -> list[str]:
    """The symbols of a tree, from left to right."""
    symbols = list[str]()
    labels = list[str]()
    for node in tree.walk():
        if node is None:
            symbols.append(f"){labels.pop()}")
        elif node.word is None:
            symbols.append(f"({node.label}")
            labels.append(node.label)
        else:
            symbols.append(TAG)
    return symbols


def tree_of(symbols: list[str], leaves: list[Tree]) -> Tree | None:
    """The tree of these symbols over the leaves; None if there is none."""
    labels = list[str]()
    parts = list[str]()
    rest = iter(leaves)
    for symbol in symbols:
        if symbol.startswith("("):
            labels.append(symbol[1:])
            parts.append(symbol)
        elif symbol.startswith(")"):
            if not labels or labels.pop() != symbol[1:]:
                return None
            parts.append(")")
        else:
            parts.append(str(next(rest, "")))
    try:
        trees = [tree for tree, _ in parse_trees([" ".join(parts)])]
    except MalformedTreeError:
        return None
    return trees[0] if len(trees) == 1 and list(trees[0].leaves()) == leaves else None


def main() -> None:
    """Write the training texts of trees, or score parses."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("write", "score"))
    parser.add_argument("trees")
    parser.add_argument("other", help="begin of the written names, or the file of parses")
    given = parser.parse_args()
    trees = [simple for tree, _ in read_trees(given.trees) if (simple := simplify(tree))]
    if given.what == "write":
        for name, of in ("words", Tree.words), ("symbols", symbols_of):
            lines = [" ".join(of(tree)) + "\n" for tree in trees]
            Path(f"{given.other}.{name}").write_text("".join(lines), encoding="utf-8")
        return
    leaves = [list(tree.leaves()) for tree in trees]
    parses = [
        tree_of(line.split(" "), each)
        for line, each in zip(read_lines(given.other), leaves, strict=True)
    ]
    scored = [parse or Tree("", tuple(each)) for parse, each in zip(parses, leaves, strict=True)]
    scores = score_brackets(map(str, trees), map(str, scored))
    print(f"{parses.count(None):,} of {len(trees):,} parses are not trees over the words.")
    print(
        ", ".join(
            f"{name} {value:.2f}" for name, value in scores.all.figures.items() if name != "tagging"
        )
    )


if __name__ == "__main__":
    main()
