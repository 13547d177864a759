"""Fixtures for the tests in this folder."""

import random
from pathlib import Path

import pytest

import transduce
from corpora import WORD_BY_WORD, texts_in_order
from transduce.wings.phrasebook.examples import examples


@pytest.fixture(scope="session")
def sentences() -> list[tuple[str, str]]:
    """English and German, of lengths that vary as in a book, and none is there twice."""
    choice, parts = (
        random.Random(1),
        [(each.english, each.german) for each in examples("train", 3000)],
    )
    drawn = [choice.choices(parts, k=choice.randint(1, 4)) for _ in range(1600)]
    different = dict.fromkeys(
        (" ".join(a for a, _ in some), " ".join(b for _, b in some)) for some in drawn
    )
    return list(different)[:1500]


@pytest.fixture(scope="session")
def word_by_word(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that has learnt to translate word by word, from src to tgt."""
    folder = tmp_path_factory.mktemp("word-by-word")
    corpus = folder / "train.tsv"
    lines = (f"{source}\t{target}\n" for source, target in texts_in_order(600, 3))
    corpus.write_text("".join(lines), encoding="utf-8")
    return transduce.train(folder / "model", train=corpus, options=WORD_BY_WORD).folder


@pytest.fixture
def corpus(tmp_path: Path, sentences: list[tuple[str, str]]) -> Path:
    """A table with some faults, and columns and blanks that are nobody's business."""
    rows = [f"{source}\t{target}\tkept \t" for source, target in sentences[:300]]
    rows[20], rows[30], rows[40], rows[50] = rows[10], "A dog\t\tx", "A {0} dog\tEin Hund", "A dog"
    (tmp_path / "corpus.tsv").write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")
    return tmp_path / "corpus.tsv"
