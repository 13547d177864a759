"""Tests of transduce/wings/memories/judging.py, with a model that reverses words."""

import random
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from corpora import reverse_texts

pytest.importorskip("rapidfuzz", reason="pip install 'transduce[serve]'")
import transduce
from transduce.wings.memories.judging import Judge

DRAW = random.Random(2)


@pytest.fixture(scope="module")
def pairs() -> list[tuple[str, str]]:
    both = zip(*reverse_texts(200, 7), strict=True)
    return [(source, target) for source, target in both if len(source.split()) > 3]


@pytest.fixture(scope="module")
def judge(trained: Path, pairs: list[tuple[str, str]]) -> Judge:
    translator = transduce.load(trained, engine="torch")
    return Judge(translator, pairs[40:])


def half(target: str) -> str:
    return " ".join(target.split()[: len(target.split()) // 2])


def garbage(target: str) -> str:
    return "".join(DRAW.choice("qxyzw ") for _ in target)


def insulted(target: str) -> str:
    return f"{target} qwx yzq"


@pytest.mark.parametrize("spoil", [half, garbage, insulted])
def test_garbage_is_held_back(
    judge: Judge, pairs: list[tuple[str, str]], spoil: Callable[[str], str]
) -> None:
    held = [judge.doubt(source, spoil(target), target) for source, target in pairs[:40]]
    assert sum(map(bool, held)) >= 38


def test_translations_of_other_lines_are_held_back(
    judge: Judge, pairs: list[tuple[str, str]]
) -> None:
    held = [
        judge.doubt(source, other, target) for (source, target), (_, other) in pairwise(pairs[:41])
    ]
    assert sum(map(bool, held)) >= 36


def test_good_corrections_are_accepted(judge: Judge, pairs: list[tuple[str, str]]) -> None:
    held = [judge.doubt(source, target, target) for source, target in pairs[:40]]
    assert sum(map(bool, held)) <= 2


def test_the_source_is_no_translation_unless_the_model_copies_it_too(judge: Judge) -> None:
    german = "Der Hund läuft schnell über die Straße."
    assert judge.doubt(german, german, german) == ""
    assert judge.doubt("Hund", "Hund", "dog") == ""


def test_a_text_that_the_model_cannot_read_is_held_back(judge: Judge) -> None:
    long = "ka " * 5000
    assert "too long" in judge.doubt(long, long + "lo", long)


def test_without_known_pairs_only_what_is_clearly_bad_is_held_back(
    trained: Path, pairs: list[tuple[str, str]]
) -> None:
    judge = Judge(transduce.load(trained, engine="torch"), [])
    held = [judge.doubt(source, target, target) for source, target in pairs[:40]]
    assert sum(map(bool, held)) <= 2
    held = [judge.doubt(source, garbage(target), target) for source, target in pairs[:40]]
    assert sum(map(bool, held)) >= 8
