"""What a fine-tuning repeats: pairs of the older model's corpus, in half of each epoch (data.remember)."""

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from corpora import reverse_texts
from transduce.config.schema import CorpusConfig, DataConfig
from transduce.preparation import replay as replaying
from transduce.preparation.prepare import prepare
from transduce.preparation.prepared import Prepared, read_general, store_path
from transduce.preparation.replay import Remembered
from transduce.system.errors import UserError
from transduce.tokens.store import TokenStore
from transduce.tokens.tokenizer import Tokenizer

PAIRS = list(zip(*reverse_texts(60, seed=3), strict=True))
NEW = [pair for pair in zip(*reverse_texts(40, seed=5), strict=True) if pair not in PAIRS][:30]


def write(folder: Path, name: str, rows: list[tuple[str, str]]) -> CorpusConfig:
    file = folder / name
    file.write_text("".join(f"{source}\t{target}\n" for source, target in rows))
    return CorpusConfig((str(file),))


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    """Two corpora of different weights, back-translations, and eight validation pairs."""
    folder = tmp_path_factory.mktemp("remember")
    corpora = (
        write(folder, "one.tsv", PAIRS[:10]),
        replace(write(folder, "two.tsv", PAIRS[10:40]), weight=2.0),
        replace(write(folder, "synthetic.tsv", PAIRS[40:52]), synthetic=True),
    )
    valid = write(folder, "valid.tsv", PAIRS[52:]).files
    data = DataConfig(source="en", target="de", corpora=corpora, valid=valid)
    return prepare(data, folder / "old", vocab_size=lambda _: 300)


def tune(old: Prepared, folder: Path, rows: list[tuple[str, str]]) -> Prepared:
    corpus = write(folder, "new.tsv", rows)
    valid = write(folder, "new-valid.tsv", NEW[:2]).files
    data = DataConfig(
        source="en", target="de", corpora=(corpus,), valid=valid, remember=str(old.folder)
    )
    return prepare(data, folder / "new", vocab_size=lambda _: 0, tokenizer=old.tokenizer)


def texts(store: TokenStore, tokenizer: Tokenizer) -> list[tuple[str, str]]:
    places = np.arange(len(store))
    sides = (store.source, tokenizer.source), (store.target, tokenizer.target)
    rows = [
        vocabulary.decode([row.tolist() for row in side.rows(places)]) for side, vocabulary in sides
    ]
    return list(zip(*rows, strict=True))


def test_an_epoch_repeats_the_old_corpora_without_back_translations(old, tmp_path):
    new = tune(old, tmp_path, NEW[2:])
    assert new.facts.corpora == [[str(tmp_path / "new.tsv")], *old.facts.corpora[:2]]
    stores = [TokenStore(store_path(new.folder, number)) for number in range(3)]
    assert texts(stores[1], old.tokenizer) == PAIRS[:10]
    assert texts(stores[2], old.tokenizer) == PAIRS[10:40]
    weights = new.facts.weights
    tokens = [
        weight * store.target.lengths.sum() for weight, store in zip(weights, stores, strict=True)
    ]
    assert tokens[1] + tokens[2] == pytest.approx(2 * tokens[0]), "two thirds of the tokens"
    assert weights[2] == 2 * weights[1], "as in the old corpus"
    assert (new.facts.pairs, new.facts.held_out) == (len(stores[0]), 2), "the new text only"
    assert new.facts.target_tokens == int(stores[0].target.lengths.sum()) + len(stores[0])
    assert new.origin(len(stores[0])) == f"{old.facts.corpora[0][0]}:1"


def test_old_validation_pairs_are_kept_apart(old, tmp_path):
    """A new pair with a sentence of the old validation pairs would make these too easy."""
    leak = (PAIRS[55][0], "zu fe zu fe zu fe")
    new = tune(old, tmp_path, [*NEW[2:], leak])
    assert [(pair.source, pair.target) for pair in read_general(new.folder)] == PAIRS[52:]
    assert [(pair.source, pair.target) for pair in new.valid()] == NEW[:2]
    assert new.facts.dropped == 1
    assert leak not in texts(TokenStore(store_path(new.folder, 0)), old.tokenizer)
    assert read_general(old.folder) == []


def test_a_second_fine_tuning_is_also_measured_on_the_text_of_the_first(old, tmp_path):
    first = tune(old, tmp_path, NEW[2:])
    again = Remembered.open(DataConfig(remember=str(first.folder)))
    assert [(pair.source, pair.target) for pair in again.valid] == [*NEW[:2], *PAIRS[52:]]


@pytest.mark.parametrize(("wanted", "sizes"), [(10_000, [10, 30]), (20, [5, 15]), (1, [1, 1])])
def test_few_pairs_of_a_large_corpus_are_copied(old, tmp_path, monkeypatch, wanted, sizes):
    """At equal distances, so that each part of the corpus is repeated."""
    monkeypatch.setattr(replaying, "MIN_REMEMBERED", wanted)
    remembered = Remembered.open(DataConfig(remember=str(old.folder)))
    remembered.write_stores(tmp_path, 4, 0)
    stores = [TokenStore(store_path(tmp_path, number)) for number in (4, 5)]
    assert [len(store) for store in stores] == sizes
    step = 10 // sizes[0]
    assert texts(stores[0], old.tokenizer) == PAIRS[:10:step][: sizes[0]]


def test_more_new_pairs_need_more_old_ones(old, tmp_path, monkeypatch):
    monkeypatch.setattr(replaying, "MIN_REMEMBERED", 4)
    remembered = Remembered.open(DataConfig(remember=str(old.folder)))
    remembered.write_stores(tmp_path, 0, pairs=1)
    assert len(TokenStore(store_path(tmp_path, 0))) == 5, "20 of 40 pairs"


def test_the_old_corpus_must_have_the_vocabulary_of_the_model(old, tmp_path):
    other = Tokenizer.train(["ka lo mi"] * 9, ["zu fe"] * 9, vocab_size=280)
    corpora = (write(tmp_path, "new.tsv", NEW),)
    data = DataConfig(source="en", target="de", corpora=corpora, remember=str(old.folder))
    for tokenizer in (other, None):
        with pytest.raises(UserError, match="another vocabulary than the model"):
            prepare(data, tmp_path / "out", vocab_size=lambda _: 0, tokenizer=tokenizer)
    shutil.copytree(old.folder, tmp_path / "damaged")
    (tmp_path / "damaged/valid.jsonl").write_text("{}\n")
    with pytest.raises(UserError, match="damaged"):
        Remembered.open(DataConfig(remember=str(tmp_path / "damaged")))


def test_a_multilingual_model_repeats_the_directions_that_are_fine_tuned(tmp_path):
    corpora = tuple(
        replace(write(tmp_path, f"{code}.tsv", rows), source="en", target=code)
        for code, rows in (("de", PAIRS[:30]), ("fr", PAIRS[30:50]))
    )
    files = {code: write(tmp_path, f"v-{code}.tsv", PAIRS[50:55]).files[0] for code in ("de", "fr")}
    valid = tuple(f"en,{code}={file}" for code, file in files.items())
    both = ("en-de", "de-en", "en-fr", "fr-en")
    data = DataConfig(source="en", target="de", directions=both, corpora=corpora, valid=valid)
    old = prepare(data, tmp_path / "old", vocab_size=lambda _: 300)
    wanted = DataConfig(remember=str(old.folder), directions=("fr-en",))
    found = Remembered.open(wanted)
    assert found.corpora == [1]
    assert {pair.direction for pair in found.valid} == {"fr-en"}
