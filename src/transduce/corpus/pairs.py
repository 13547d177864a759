"""Parallel text: pairs of a source and its translation, each with the place it comes from."""

from collections.abc import Iterator, Sequence
from itertools import count, repeat, zip_longest
from pathlib import Path
from typing import NamedTuple

from transduce.corpus.jsonl import read_jsonl
from transduce.corpus.plain import STANDARD_INPUT, display_name, read_lines, suffixes, without_byte_order_mark
from transduce.corpus.trees import linearise, marked_tags, marked_words, read_trees, simplify
from transduce.corpus.tsv import read_tsv
from transduce.errors import UserError

__all__ = ["Origin", "Pair", "read_lines", "read_pairs"]

TREES = ".mrg"
DOCUMENTS = (".po", ".tmx", ".xlf", ".xliff", ".html", ".htm", ".xhtml", ".srt", ".vtt")
SUPPORTED = ".tsv (also .txt or .tab), .jsonl or .mrg (trees), each also compressed as .gz, .xz, .bz2 or .zst"


class Origin(NamedTuple):
    """Where a pair stands: in which file (of two, the source's), in which line, counted from 1."""

    file: str
    line: int


class Pair(NamedTuple):
    """Two texts that mean the same."""

    source: str
    target: str
    origin: Origin


def read_pairs(files: Sequence[str], languages: tuple[str, str] = ("source", "target")) -> Iterator[Pair]:
    """The pairs of two line-aligned text files, or of one bilingual file, whose format its suffix names.

    "-" is standard input; alone, it holds TAB-separated pairs. Objects in .jsonl files may use the
    codes of the `languages` as keys. Nothing is left out: an empty line is an empty text. A byte
    order mark at the start of a file is not text and is removed.
    Raises UserError for an unknown suffix, unequal numbers of lines, and what the readers refuse.
    """
    match list(files):
        case [file] if suffixes(file)[0] == TREES:
            return _read_trees(file)
        case [file]:
            return map(_pair, _read_bilingual(file, languages), map(Origin, repeat(display_name(file)), count(1)))
        case [source, target] if source in STANDARD_INPUT and target in STANDARD_INPUT:
            raise UserError("Both sides cannot come from standard input; give one of them as a file.")
        case [source, target]:
            for file in files:
                if suffixes(file)[0] in (".tsv", ".jsonl", TREES):
                    raise UserError(
                        f"{file} is a bilingual file by its suffix; give it alone, or rename it if it is not."
                    )
            return map(_pair, _read_aligned(source, target), map(Origin, repeat(display_name(source)), count(1)))
        case _:
            raise UserError(f"A corpus is two text files or one bilingual file, not {len(files)} files.")


def _pair(texts: tuple[str, str], origin: Origin) -> Pair:
    return Pair(*texts, origin)


def _read_trees(file: str) -> Iterator[Pair]:
    """The words of every tree, and the tree itself without them, marked; two empty texts for a tree of traces alone."""
    for tree, line in read_trees(file):
        simple = simplify(tree)
        words, symbols = (simple.words(), linearise(simple)) if simple else ([], [])
        yield Pair(marked_words(words), marked_tags(symbols), Origin(display_name(file), line))


def _read_bilingual(file: str, languages: tuple[str, str]) -> Iterator[tuple[str, str]]:
    match ".tsv" if file in STANDARD_INPUT else suffixes(file)[0]:
        case ".tsv" | ".tab" | ".txt":
            return read_tsv(file)
        case ".jsonl":
            return read_jsonl(file, languages)
        case _:
            if not Path(file).is_file():
                next(iter(read_lines(file)), None)  # which says so
            raise UserError(
                f"{file}: its suffix does not say how it holds two languages. One bilingual file is {SUPPORTED}; "
                "two line-aligned text files may have any names."
            )


def _read_aligned(source_file: str, target_file: str) -> Iterator[tuple[str, str]]:
    sources = without_byte_order_mark(read_lines(source_file))
    targets = without_byte_order_mark(read_lines(target_file))
    for number, (source, target) in enumerate(zip_longest(sources, targets)):
        if source is None or target is None:
            rest = 1 + sum(1 for _ in (targets if source is None else sources))
            lines = (number, number + rest) if source is None else (number + rest, number)
            raise UserError(
                f"{display_name(source_file)} has {lines[0]:,} lines and {display_name(target_file)} has {lines[1]:,}; "
                "they must be line-aligned: line i of one is the translation of line i of the other."
            )
        yield source, target
