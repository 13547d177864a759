"""What a model learns again while a language is added: its old corpora, with a longer vocabulary."""

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from corpora import reverse_texts
from transduce.config.schema import UNK, CorpusConfig, DataConfig
from transduce.preparation import replay as replaying
from transduce.preparation.prepare import prepare
from transduce.preparation.prepared import Prepared, store_path
from transduce.preparation.replay import Replay
from transduce.text.pairs import Origin, Pair
from transduce.tokens.imported_vocabulary import ImportedVocabulary
from transduce.tokens.store import TokenStore, write_store
from transduce.tokens.tokenizer import Tokenizer
from transduce.wings.pretrained.trimming import splitting

TEXTS = list(zip(*reverse_texts(30, seed=3), strict=True))


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    """Two corpora and back-translations of one direction."""
    folder = tmp_path_factory.mktemp("replay")
    corpora = []
    for name, rows in (("one", TEXTS[:8]), ("two", TEXTS[8:24]), ("synthetic", TEXTS[24:])):
        file = folder / f"{name}.tsv"
        file.write_text("".join(f"{source}\t{target}\n" for source, target in rows))
        corpora.append(CorpusConfig((str(file),), synthetic=name == "synthetic"))
    (folder / "valid.tsv").write_text("fa la\tti ta de\n")
    valid = (str(folder / "valid.tsv"),)
    data = DataConfig(source="en", target="de", corpora=tuple(corpora), valid=valid, holdout=0)
    return prepare(data, folder / "old", vocab_size=lambda _: 300)


def data_of(old: Prepared, *corpora: CorpusConfig) -> DataConfig:
    return DataConfig(corpora=corpora, replay=str(old.folder), directions=("en-it",))


def test_corpora_are_replayed_unless_named_again_or_back_translated(old, capsys):
    _, two, synthetic = old.facts.corpora
    found = Replay.open(data_of(old))
    assert (found.corpora, found.languages) == ([0, 1], {"en", "de"})
    assert "back-translated pairs of" in (said := capsys.readouterr().err)
    assert "taken from the new corpus" not in said
    assert [pair.direction for pair in found.valid] == ["en-de"]
    folder = Path(two[0]).parent
    named = CorpusConfig((f"{folder}/../{folder.name}/two.tsv",), source="de", target="en")
    assert Replay.open(data_of(old, named)).corpora == [0]
    assert f"{two[0]} is taken from the new corpus" in capsys.readouterr().err
    other = replace(named, source="it", target="en")
    assert Replay.open(data_of(old, other)).corpora == [0, 1]
    again = CorpusConfig(tuple(synthetic), synthetic=True, source="en", target="de")
    capsys.readouterr()
    found = Replay.open(data_of(old, again))
    assert (found.corpora, found.repeats) == ([0, 1], 1.0)
    assert "back-translated" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("weights", "repeats"), [([6.0, 3.0, 1.0], 3.0), ([0.5, 9.0, 1.0], 1.0), ([2.0, 7.0, 9.0], 2.0)]
)
def test_weights_do_not_balance_back_translations_that_are_gone(old, weights, repeats, monkeypatch):
    changed = replace(old, facts=replace(old.facts, weights=weights))
    monkeypatch.setattr(replaying, "open_prepared", lambda _: changed)
    found = Replay.open(data_of(old))
    assert found.repeats == repeats
    new = replace(
        old.facts, corpora=[["n"]], files=[["m"]], weights=[5.0], languages=[["en", "it"]]
    )
    extended = found.extend(new, [])
    assert extended.weights == [5.0, weights[0] / repeats, weights[1] / repeats]
    assert extended.corpora == [["n"], *old.facts.corpora[:2]]
    assert extended.files == [["m"], *old.facts.files[:2]]
    assert extended.languages == [["en", "it"], ["en", "de"], ["en", "de"]]
    assert extended.pairs == new.pairs
    one = CorpusConfig(tuple(old.facts.corpora[0]), source="en", target="de")
    assert Replay.open(data_of(old, one)).repeats == max(1, weights[1])
    both = (one, CorpusConfig(tuple(old.facts.corpora[1]), source="en", target="de"))
    assert Replay.open(data_of(old, *both)).repeats == 1


def test_old_directions_keep_their_validation_pairs(old, capsys):
    found = Replay.open(data_of(old))
    (known,) = found.valid
    capsys.readouterr()
    pairs = [Pair("a", "b", Origin("f", i), code) for i, code in enumerate(["en-it", "en-de"])]
    assert found.with_valid(pairs[:1]) == [known, pairs[0]]
    assert capsys.readouterr().err == ""
    assert found.with_valid(pairs) == [known, pairs[0]]
    assert "1 validation pairs are not used" in capsys.readouterr().err


def test_a_multilingual_model_keeps_the_directions_of_its_pairs(old, monkeypatch):
    options = old.facts.options | {"data.directions": ["en-de", "fr-en"]}
    facts = replace(old.facts, options=options, languages=[["en", "de"], ["en", "fr"], ["", ""]])
    monkeypatch.setattr(replaying, "open_prepared", lambda _: replace(old, facts=facts))
    pairs = [Pair("a", "b", Origin("f", 1), "fr-en"), Pair("b", "a", Origin("f", 1), "en-de")]
    monkeypatch.setattr(Prepared, "valid", lambda _: pairs)
    found = Replay.open(data_of(old))
    assert found.valid == pairs and found.languages == {"en", "de", "fr"}
    assert found.extend(replace(facts, languages=[]), []).languages == [["en", "de"], ["en", "fr"]]


def test_stores_are_written_again_with_the_longer_vocabulary(old, tmp_path):
    found = Replay.open(data_of(old))
    longer = old.tokenizer.extended(["pizza pasta fa"] * 9, 4, ["en", "de", "it"])
    store_path(tmp_path, 5).parent.mkdir(parents=True, exist_ok=True)
    found.write_stores(tmp_path, 5, longer)
    for number, corpus in ((5, 0), (6, 1)):
        before, after = (
            TokenStore(store_path(folder, n))
            for folder, n in ((old.folder, corpus), (tmp_path, number))
        )
        assert len(before) == len(after) == (8, 16)[corpus]
        places = np.arange(len(before))
        for side in ("source", "target"):
            texts = [
                getattr(tokenizer, side).decode(
                    [r.tolist() for r in getattr(store, side).rows(places)]
                )
                for tokenizer, store in ((old.tokenizer, before), (longer, after))
            ]
            assert texts[0] == texts[1] and len({*texts[0]}) > 5
        assert [after.origin(i) for i in places] == [before.origin(i) for i in places]


def test_the_texts_of_old_pairs_are_read_again(old):
    found = Replay.open(data_of(old))
    assert sorted(found.texts()) == sorted(text for pair in TEXTS[:24] for text in pair)


def test_a_corpus_without_pairs_is_not_back_translated_and_has_nothing_to_encode(old, tmp_path):
    empty = tmp_path / "old"
    shutil.copytree(old.folder, empty)
    shutil.rmtree(store_path(empty, 2))
    write_store(store_path(empty, 2), [])
    without = replace(old, folder=empty)
    assert [replaying._is_synthetic(old, corpus) for corpus in range(3)] == [False, False, True]
    assert not replaying._is_synthetic(without, 2)
    Replay([2], without, [], 1.0).write_stores(tmp_path, 7, old.tokenizer)
    assert len(TokenStore(store_path(tmp_path, 7))) == 0


def test_files_and_languages_both_tell_a_corpus(old):
    one, two, _ = old.facts.corpora
    for files, source, target, corpora in (
        (one, "en", "de", [1]),
        (one, "de", "en", [1]),
        (one, "en", "it", [0, 1]),
        ((*one, *two), "en", "de", [0, 1]),
        (("other.tsv",), "en", "de", [0, 1]),
    ):
        named = CorpusConfig(tuple(files), source=source, target=target)
        assert Replay.open(data_of(old, named)).corpora == corpora, (files, source, target)


def test_an_imported_vocabulary_keeps_the_ids_of_old_pairs(old, tmp_path):
    """Decoding would lose unknown pieces."""
    learnt = old.tokenizer.target
    listed = [piece for piece in learnt.all_pieces() if piece.strip("▁") not in ("a", "fa")]
    imported = Tokenizer(ImportedVocabulary(learnt.model, listed))
    corpora = (CorpusConfig(tuple(old.facts.corpora[1])),)
    data = DataConfig(source="en", target="de", corpora=corpora, holdout=0)
    small = prepare(data, tmp_path / "small", vocab_size=lambda _: 0, tokenizer=imported)
    found = Replay([0], small, [], 1.0)
    longer = imported.extended(["zuka"] * 15, 9, ["it"])
    assert "▁zuka" in longer.target.all_pieces()
    found.write_stores(tmp_path, 5, longer)
    stores = [TokenStore(store_path(tmp_path / "small", 0)), TokenStore(store_path(tmp_path, 5))]
    places = np.arange(len(stores[0]))
    for side in ("source", "target"):
        before, after = (
            [row.tolist() for row in getattr(store, side).rows(places)] for store in stores
        )
        assert before == after
        assert side == "target" or any(UNK in row for row in before)


def test_pieces_of_old_texts_are_left_out_of_an_imported_vocabulary(old, tmp_path):
    """The vocabulary lacks the old word ka, and the English side of the new pairs has the word nini."""
    learnt = old.tokenizer.target
    listed = [piece for piece in learnt.all_pieces() if piece != "▁ka"]
    model = splitting(learnt.model, listed).SerializeToString()
    imported = Tokenizer(ImportedVocabulary(model, listed))
    corpora = (CorpusConfig(tuple(old.facts.corpora[1])),)
    data = DataConfig(source="en", target="de", corpora=corpora, holdout=0)
    small = prepare(data, tmp_path / "small", vocab_size=lambda _: 0, tokenizer=imported)
    file = tmp_path / "new.tsv"
    lines = [
        f"{text} nini\tka nini zuka {text}\n"
        for text in reverse_texts(99, seed=5)[0]
        if "ka" not in text
    ]
    file.write_text("".join(lines))
    new = CorpusConfig((str(file),), source="en", target="it")
    found = prepare(
        replace(data_of(small, new), holdout=0),
        tmp_path / "new",
        vocab_size=lambda _: 999,
        tokenizer=imported,
    )
    added = found.tokenizer.target.all_pieces()[len(listed) :]
    assert "▁zuka" in added and not {"▁ka", "▁nini", "nini"} & {*added}
    assert {"▁ka", "▁nini"} <= {*imported.extended(["ka nini"] * 15, 999, []).target.all_pieces()}
