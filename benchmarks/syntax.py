"""Which heads of the encoder follow the syntax of a sentence, and pronouns (appendix of the paper).

    python benchmarks/syntax.py MODEL trees.mrg
    python benchmarks/syntax.py MODEL benchmarks/pronouns.txt

The trees are constituency trees in English. Head rules turn them into pairs of a word and its head. In a text file,
each line is a sentence in words, with one *pronoun* and its [antecedent].

For each relation, a head of the model guesses for each word that other word to which it gives most of its attention.
So does a fixed relative position, such as the next word. The best head and the best position are chosen on the even
sentences, and counted on the odd ones; so neither of them is lucky.
"""

import argparse
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from transduce import model_folder
from transduce.model.recording import recording
from transduce.model.seq2seq import make_batch
from transduce_lab.parsing.trees import Tree, read_trees, simplify

MAX_WORDS, MIN_PAIRS = 40, 50  # of a sentence; of a relation
OFFSETS = [offset for offset in range(-8, 9) if offset]  # relative positions
CLAUSES = ("S", "SQ", "SINV", "SBAR")
HEADS = dict.fromkeys(CLAUSES, ("VP", *CLAUSES)) | {  # labels of the children that may be the head
    "VP": ("VP", "VB", "VBD", "VBZ", "VBP", "VBN", "VBG", "MD"),
    "NP": ("NP", "NN", "NNS", "NNP", "NNPS", "PRP"),
    "PP": ("NP", *CLAUSES),
}
RELATIONS = {
    ("DT", "NP"): "article",
    ("JJ", "NP"): "adjective",
    ("PRP$", "NP"): "possessive",
    ("PP", "NP"): "phrase in a noun phrase",
    ("PP", "VP"): "phrase in a verb phrase",
    ("NP", "VP"): "object",
    ("RB", "VP"): "adverb",
    ("MD", "VP"): "auxiliary",
} | {("NP", clause): "subject" for clause in CLAUSES}
MARKS = {"-LRB-": "(", "-RRB-": ")", "``": '"', "''": '"'}
NO_SPACE = re.compile(r"[.,;:!?)%]|'|n't|'\w+")  # words without a space before them


class Sentence(NamedTuple):
    """Words, and pairs of a word and the word that it belongs to, by relation."""

    words: list[str]
    pairs: list[tuple[str, int, int]]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", type=Path)
    parser.add_argument("sentences", type=Path)
    arguments = parser.parse_args()
    bundle = model_folder.load(arguments.model)
    found: dict[str, list[list[Tensor]]] = defaultdict(lambda: [[], []])
    names: list[str] = []
    for number, sentence in enumerate(read(arguments.sentences)):
        names, weights = look(bundle, sentence.words)
        positions = torch.arange(len(sentence.words)) + torch.tensor(OFFSETS)[:, None]
        guesses = torch.cat((weights.argmax(-1), positions))  # (heads and positions, words)
        for relation, word, head in sentence.pairs:
            for name, query, key in (
                (f"{relation} → head", word, head),
                (f"{relation} ← head", head, word),
            ):
                found[name][number % 2].append(guesses[:, query] == key)
    print(f"| relation | pairs | best position | | best head | |\n|{' --- |' * 6}")
    for name, (even, odd) in found.items():
        if len(odd) >= MIN_PAIRS // 2:
            choice = torch.stack(even).float().mean(0)
            counted = torch.stack(odd).float().mean(0)
            head, position = (int(each.argmax()) for each in choice.tensor_split([len(names)]))
            share = f"{counted[len(names) + position]:.0%}"
            print(
                f"| {name} | {len(odd)} | {OFFSETS[position]:+d} | {share} | {names[head]} | {counted[head]:.0%} |"
            )


@torch.no_grad()
def look(bundle: model_folder.Bundle, words: list[str]) -> tuple[list[str], Tensor]:
    """The names of the encoder's heads, and their attention from word to other word (heads, words, words)."""
    text = ""
    spans = list[tuple[int, int]]()
    for word in words:
        text += "" if not text or NO_SPACE.fullmatch(word) else " "
        spans.append((len(text), len(text) + len(word)))
        text += word
    (ids,) = bundle.tokenizer.encode_source([text])
    places = bundle.tokenizer.source.spans_in(text, ids)
    owner = torch.zeros(len(words), len(ids) + 1)  # with EOS
    for piece, (begin, end) in enumerate(places):
        middle = (begin + end) / 2
        word = next((i for i, span in enumerate(spans) if middle <= span[1]), len(words) - 1)
        owner[word, piece] = 1
    batch = make_batch([ids], [ids[:1]])
    with recording() as record:
        bundle.model.eval()(batch.src, batch.tgt_in)
    layers = {
        name: record.of(module)[0][0]
        for name, module in bundle.model.named_modules()
        if name.startswith("encoder.") and name.endswith(".attention") and record.of(module)
    }
    names = [
        f"{name.split('.')[1]}.{head + 1}"
        for name, each in layers.items()
        for head in range(len(each))
    ]
    weights = (
        owner
        @ torch.cat(list(layers.values())).float()
        @ owner.T
        / owner.sum(1, keepdim=True).clamp(min=1)
    )
    return names, weights * (1 - torch.eye(len(words)))


def read(path: Path) -> Iterator[Sentence]:
    """The sentences of a file of trees, or of a file with marked pronouns."""
    if path.suffix == ".txt":
        for line in path.read_text("utf-8").splitlines():
            words = line.split()
            pronoun, antecedent = (
                next(i for i, each in enumerate(words) if each[0] == mark) for mark in "*["
            )
            yield Sentence(
                [each.strip("*[]") for each in words], [("pronoun", pronoun, antecedent)]
            )
        return
    for tree, _ in read_trees(str(path)):
        words = list[str]()
        pairs = list[tuple[str, int, int]]()
        if (
            (plain := simplify(tree))
            and find_pairs(plain, words, pairs)
            and 2 < len(words) <= MAX_WORDS
        ):
            yield Sentence(words, pairs)


def find_pairs(tree: Tree, words: list[str], pairs: list[tuple[str, int, int]]) -> int:
    """Add the words and the pairs of a tree. Returns the number of the word that is its head, counted from 1."""
    if tree.word is not None:
        words.append(MARKS.get(tree.word, tree.word))
        return len(words)
    children = [(child.label, find_pairs(child, words, pairs)) for child in tree.children]
    wanted = [i for i, (label, _) in enumerate(children) if label in HEADS.get(tree.label, ())]
    # Content words are heads, as in Universal Dependencies.
    phrases = [i for i in wanted if children[i][0] in HEADS]
    nouns = wanted[-1:] if tree.label == "NP" else wanted[:1]
    (place,) = phrases[:1] or nouns or [len(children) - 1]
    head = children[place][1]
    for i, (label, word) in enumerate(children):
        if i != place and (label, tree.label) in RELATIONS:
            pairs.append((RELATIONS[label, tree.label], word - 1, head - 1))
    return head


if __name__ == "__main__":
    main()
