"""Tests of transduce/wings/memories/judging.py, with a model that translates word by word."""

import copy
import dataclasses
import random
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from corpora import texts_in_order

pytest.importorskip("rapidfuzz", reason="pip install 'transduce[serve]'")
import transduce
from transduce.wings.memories.judging import DOUBTS, TYPICAL, Evidence, Judge, evidence_of

DRAW = random.Random(2)


@pytest.fixture(scope="module")
def pairs() -> list[tuple[str, str]]:
    return [pair for pair in texts_in_order(200, 7) if len(pair[0].split()) > 3]


@pytest.fixture(scope="module")
def judge(word_by_word: Path, pairs: list[tuple[str, str]]) -> Judge:
    translator = transduce.load(word_by_word, engine="torch")
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
    assert sum(map(bool, held)) >= 34


def test_translations_of_other_lines_are_held_back(
    judge: Judge, pairs: list[tuple[str, str]]
) -> None:
    held = [
        judge.doubt(source, other, target) for (source, target), (_, other) in pairwise(pairs[:41])
    ]
    assert sum(map(bool, held)) >= 26  # other lines have many of the same words


def test_good_corrections_are_accepted(judge: Judge, pairs: list[tuple[str, str]]) -> None:
    held = [judge.doubt(source, target, target) for source, target in pairs[:40]]
    assert sum(map(bool, held)) <= 2


def test_the_source_is_no_translation_unless_the_model_copies_it_too(judge: Judge) -> None:
    german = "Der Hund läuft schnell über die Straße."
    assert judge.doubt(german, german, german) == ""
    assert judge.doubt("Hund", "Hund", "dog") == ""


def test_a_text_that_the_engine_cannot_score_is_held_back(word_by_word: Path) -> None:
    translator = transduce.load(word_by_word, engine="torch")
    engine = copy.copy(translator.engine)
    engine.max_positions = 8
    judge = Judge(dataclasses.replace(translator, engine=engine), [])
    long = "ka lo mi nu ka lo mi nu ka lo"
    assert "too long" in judge.doubt(long, f"{long} ka", long)


def test_without_known_pairs_only_what_is_clearly_bad_is_held_back(
    word_by_word: Path, pairs: list[tuple[str, str]]
) -> None:
    judge = Judge(transduce.load(word_by_word, engine="torch"), [])
    held = [judge.doubt(source, target, target) for source, target in pairs[:40]]
    assert sum(map(bool, held)) <= 2
    held = [judge.doubt(source, half(target), target) for source, target in pairs[:40]]
    assert sum(map(bool, held)) >= 30


def test_what_is_better_than_typical_excuses_nothing() -> None:
    """The score is that of a typical translation at best, and falls with each piece of evidence."""
    for name in Evidence._fields:
        worse = TYPICAL._replace(**{name: getattr(TYPICAL, name) - 2})
        assert worse.score < TYPICAL.score and worse.doubt == DOUBTS[name]
    row = np.array([-0.01] * 8)
    assert evidence_of(("a b. c.", "d ee f."), row, np.array([row - 9] * 2), 0.0) == TYPICAL


def test_placeholders_are_read_as_the_model_was_trained_on_them() -> None:
    """A model with placeholder tokens would find `:class:` very unlikely."""
    tokenizer = SimpleNamespace(has_placeholder_tokens=True)
    judge = Judge(SimpleNamespace(tokenizer=tokenizer), [])  # type: ignore[arg-type]
    source, target = judge.masked("See :class:`int` and {0}.", "Voir {0} et :class:`int`.")
    assert source.split() == ["See", target.split()[3].rstrip("."), "and", f"{target.split()[1]}."]
    changed = judge.masked("See :class:`int`.", "Voir :class:`!int` et {1}.")
    assert not any(mark in text for text in changed for mark in (":class:", "{1}"))
