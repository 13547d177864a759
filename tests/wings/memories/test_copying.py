"""Tests of transduce/wings/memories/copying.py: pairs with the translation of a similar source."""

from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("rapidfuzz", reason="pip install 'transduce[serve]'")
from transduce.config.schema import CorpusConfig, DataConfig
from transduce.preparation.prepare import prepare
from transduce.preparation.prepared import Prepared
from transduce.system.errors import UserError
from transduce.tokens.tokenizer import Tokenizer
from transduce.wings.memories.similarity import similarity, tokens

NAMES = {"dog": "hund", "cat": "katze", "cow": "kuh", "bird": "vogel", "fish": "fisch"}
VERBS = {"runs": "rennt", "sits": "sitzt", "eats": "isst", "sings": "singt"}
PAIRS = [
    (f"the {a} {v} and the {b} {w}", f"der {NAMES[a]} {VERBS[v]} und der {NAMES[b]} {VERBS[w]}")
    for a, v, b, w in product(NAMES, VERBS, NAMES, VERBS)
    if a < b and v < w
]


def prepared(folder: Path, pairs: list[tuple[str, str]], **options: object) -> Prepared:
    folder.mkdir(exist_ok=True)
    file = folder / "a.tsv"
    file.write_text("".join(f"{one}\t{other}\n" for one, other in pairs))
    given = {"source": "en", "target": "de", "holdout": 5, "translation_memory": True, **options}
    corpus = CorpusConfig((str(file),), source="en", target="de")
    data = DataConfig(**given, corpora=(corpus,))
    return prepare(data, folder / "data", vocab_size=lambda _: 320)


def copies(found: Prepared, store: int = 1) -> list[tuple[str, str, str]]:
    """Source, translation of a similar source, and target of each copy."""
    mark = found.tokenizer.source.match_mark
    its = found.mixture.stores[store]
    texts = []
    for source, target in zip(
        *(side.rows(np.arange(its.pairs)) for side in (its.source, its.target)), strict=True
    ):
        [place] = np.flatnonzero(source == mark)
        parts = [source[:place].tolist(), source[place + 1 :].tolist(), target.tolist()]
        texts.append(tuple(found.tokenizer.target.decode(parts)))
    return texts


def test_a_copy_has_the_translation_of_the_most_similar_other_source(tmp_path: Path) -> None:
    found = prepared(tmp_path, PAIRS)
    held_out = {pair.source for pair in found.valid()}
    trained = {source: target for source, target in PAIRS if source not in held_out}
    made = copies(found)
    assert len(made) > 0.9 * len(trained)
    by_target = {target: source for source, target in trained.items()}
    assert len(by_target) == len(trained)
    for source, similar, target in made:
        assert trained[source] == target != similar
        other = by_target[similar]  # never one of the held-out text
        its = tokens(source)
        best = max(similarity(its, tokens(each)) for each in trained if each != source)
        assert similarity(its, tokens(other)) == best >= 0.5
    again = prepared(tmp_path / "again", PAIRS)
    assert copies(again) == made


def test_duplicates_and_unlike_texts_are_no_matches(tmp_path: Path) -> None:
    pairs = [("the dog runs", "der hund rennt"), ("the  dog runs", "der hund läuft")]
    others = [(f"{name} {number}x", f"{number}x {name}") for number, name in enumerate("abcdefg")]
    found = prepared(tmp_path, [*pairs, *others], holdout=0)
    assert copies(found) == []


def test_long_copies_are_not_made(tmp_path: Path) -> None:
    found = prepared(tmp_path, PAIRS)
    size = int(found.mixture.stores[1].source.lengths.max())
    short = prepared(tmp_path / "short", PAIRS, max_length=size - 1)
    lengths = short.mixture.stores[1].source.lengths
    assert 0 < len(lengths) < len(found.mixture.stores[1].source.lengths) and lengths.max() < size
    assert short.facts.pairs == found.facts.pairs


def test_each_direction_has_its_copies(tmp_path: Path) -> None:
    found = prepared(tmp_path, PAIRS, directions=("en-de", "de-en"))
    assert found.facts.languages == [["en", "de"], ["en", "de", "one-way"], ["de", "en", "one-way"]]
    assert len(found.mixture.stores) == 4
    tags = [view.tags for view in found.mixture.stores]
    to_german, to_english = (found.tokenizer.toward(way).tags for way in ("en-de", "de-en"))
    assert tags == [to_german, to_english, to_german, to_english]
    source, similar, target = copies(found, 3)[0]
    assert source.startswith("der") and similar.startswith("the") and target.startswith("the")


def test_augmentation_keeps_the_marks(tmp_path: Path) -> None:
    found = prepared(tmp_path, PAIRS)
    from transduce.config.parse import configure

    drawn = found.drawn(configure({"data.augment": "default"}))
    drawn.plan(0, 0, budget=500, accumulate=1, seed=1)
    mark = found.tokenizer.source.match_mark
    plain = found.mixture.stores[0].pairs
    places = np.arange(len(drawn))
    has_mark = [mark in ids for ids in drawn.sources(places)]
    assert has_mark == [False] * plain + [True] * (len(places) - plain)


@pytest.mark.parametrize("option", ["translation_memory", "terms"])
def test_a_vocabulary_without_the_marks_is_refused(tmp_path: Path, option: str) -> None:
    file = tmp_path / "a.tsv"
    file.write_text("a\tb\n")
    data = DataConfig(
        **{option: True}, source="en", target="de", corpora=(CorpusConfig((str(file),)),)
    )
    tokenizer = Tokenizer.train(["a"], ["b"], vocab_size=280)
    with pytest.raises(UserError, match=rf"lacks the marks of data\.{option}: <"):
        prepare(data, tmp_path / "data", vocab_size=lambda _: 280, tokenizer=tokenizer)
    with pytest.raises(UserError, match=rf"data\.symbols does not support data\.{option}"):
        prepare(
            replace(data, symbols=True, joint=False), tmp_path / "data", vocab_size=lambda _: 280
        )
