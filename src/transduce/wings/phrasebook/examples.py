"""Reads the phrasebook, which `tools/write_phrasebook.py` generates, and selects pairs for comparing engines.

The validation and test examples contain word combinations that do not occur in the training examples.
"""

import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from transduce import model_folder
from transduce.preparation.prepared import VALID_FILE
from transduce.text.pairs import Origin, Pair, read_pairs
from transduce.text.plain import read_lines

PHRASEBOOK = "the phrasebook"
LEAF = re.compile(r" ([^ ()]+)\)")  # a word of a tree in brackets
NO_SPACE_BEFORE = re.compile(r" ([.,?!]|'s\b)")


class Example(NamedTuple):
    """An English sentence, its German translation, and its parse tree in the brackets of the Penn Treebank."""

    english: str
    german: str
    tree: str


def examples(part: str, count: int | None = None) -> Iterator[Example]:
    """The first `count` examples (default: all) of the train (40,000), valid (300) or test (500) part."""
    for line in islice(read_lines(str(Path(__file__).with_name(f"{part}.tsv.bz2"))), count):
        tree, german = line.split("\t")
        yield Example(NO_SPACE_BEFORE.sub(r"\1", " ".join(LEAF.findall(tree))), german, tree)


def held_out(folder: Path, count: int) -> list[Pair]:
    """The first `count` validation pairs of a model folder; if it has none, training pairs of the phrasebook."""
    file = folder / model_folder.DATA / VALID_FILE
    if file.is_file() and file.stat().st_size:
        return list(islice(read_pairs([str(file)]), count))
    return phrases(count)


def phrases(count: int) -> list[Pair]:
    """The first `count` training examples of the phrasebook, as English-German pairs."""
    return [
        Pair(example.english, example.german, Origin(PHRASEBOOK, line))
        for line, example in enumerate(examples("train", count), 1)
    ]
