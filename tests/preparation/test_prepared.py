"""Prepared corpora: facts, stores, directions and damage, by hand."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from corpora import blocks, reverse_texts
from transduce.config.schema import CorpusConfig, DataConfig, RunConfig
from transduce.preparation import prepared
from transduce.preparation.prepare import prepare
from transduce.preparation.prepared import (
    Facts,
    Prepared,
    _multilingual,
    check_pairs,
    is_prepared,
    open_prepared,
    prepared_corpora,
    read_facts,
    read_valid,
    store_path,
    write_facts,
    write_valid,
)
from transduce.system.errors import UserError
from transduce.system.files import verify, write_folder
from transduce.text.clean import Cleaning
from transduce.text.pairs import Origin, Pair
from transduce.tokens.mixture import SampledMixture
from transduce.tokens.store import TokenStore, write_store
from transduce.tokens.tokenizer import Tokenizer

TEXTS = list(zip(*reverse_texts(60, seed=1), strict=True))


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    folder = tmp_path_factory.mktemp("prepared")
    for name, rows in (("a.tsv", TEXTS[:40]), ("b.tsv", [*TEXTS[40:], TEXTS[40], ("x", "")])):
        (folder / name).write_text("".join(f"{source}\t{target}\n" for source, target in rows))
    corpora = tuple(
        CorpusConfig((str(folder / name),), weight=weight)
        for name, weight in (("a.tsv", 1.0), ("b.tsv", 2.5))
    )
    data = DataConfig(source="xx", target="y-y", holdout=5, corpora=corpora)
    return prepare(data, folder / "data", vocab_size=lambda pairs: 240 + pairs)


def test_the_facts_of_a_corpus(corpus):
    facts = corpus.facts
    assert (facts.pairs, facts.held_out, facts.dropped) == (55, 5, 0)
    assert facts.left_out == {"duplicate": 1, "empty": 1} and facts.weights == [1.0, 2.5]
    names = [[corpus.folder.parent.as_posix() + f"/{name}"] for name in ("a.tsv", "b.tsv")]
    assert facts.corpora == facts.files == names
    assert facts.options["data.holdout"] == 5 and facts.options["data.joint"] is True
    assert facts.directions == ["xx-y_y"] and facts.pair_languages == [["xx", "y_y"]] * 2
    sides = corpus.mixture.sources(np.arange(55)), corpus.mixture.targets(np.arange(55))
    counts = [sum(len(row) + 1 for row in side) for side in sides]
    assert [facts.source_tokens, facts.target_tokens] == counts
    assert corpus.tokenizer.source.size <= 240 + 55 and 0 < facts.seconds < 60
    lines = [
        json.loads(line) for line in (corpus.folder / "left-out.jsonl").read_text().splitlines()
    ]
    assert [(line["rule"], line["line"]) for line in lines] == [("duplicate", 21), ("empty", 22)]
    assert not (corpus.folder / "staged").exists()
    for index in (0, 39, 54):
        file, _, line = corpus.origin(index).rpartition(":")
        [row] = corpus.mixture.targets(np.array([index]))
        text = Path(file).read_text().splitlines()[int(line) - 1]
        assert text.split("\t")[1] == corpus.tokenizer.decode([row.tolist()])[0]
    assert len(corpus.mixture.stores) == 2 and corpus.mixture.weights == [1.0, 2.5]
    assert read_facts(corpus.folder) == facts and open_prepared(corpus.folder).facts == facts


def test_prepared_corpora_are_recognised(corpus, tmp_path):
    folder = str(corpus.folder)
    assert is_prepared([folder]) and not is_prepared([folder, folder])
    assert not is_prepared([str(tmp_path)]) and not is_prepared([])
    data = DataConfig(corpora=(CorpusConfig((folder,)), CorpusConfig(("x", "y"))))
    assert prepared_corpora(tmp_path, data) == [corpus.folder]
    assert prepared_corpora(corpus.folder, data) == [corpus.folder] * 2


def test_validation_pairs_are_written_and_read(tmp_path):
    pairs = [
        Pair("a", "ä", Origin("f", 9), "en-de"),
        Pair("", "b", Origin("f", 9)),
        Pair("c", "d\u2028e", Origin("f", 9)),
    ]
    write_valid(tmp_path, pairs)
    place = str(tmp_path / "valid.jsonl")
    assert read_valid(tmp_path) == [
        Pair("a", "ä", Origin(place, 1), "en-de"),
        Pair("c", "d\u2028e", Origin(place, 3)),
    ]
    assert "direction" not in (tmp_path / "valid.jsonl").read_text().splitlines()[1]
    for damaged in (
        '{"source": "a"}\n',
        "[]\n",
        "{\n",
        '{"source": 1, "target": "b"}\n',
        "[" * 99_999,
    ):
        (tmp_path / "valid.jsonl").write_text(damaged)
        with pytest.raises(UserError, match=r"valid.jsonl is damaged\. Prepare the corpus again"):
            read_valid(tmp_path)
    for damaged in ("{}", "[]", "{", "[" * 99_999):
        (tmp_path / "preparation.json").write_text(damaged)
        with pytest.raises(UserError, match=r"preparation.json is damaged"):
            read_facts(tmp_path)


def test_ids_beyond_the_vocabulary_and_large_corpora_are_noticed(corpus, monkeypatch, capsys):
    open_prepared(corpus.folder)
    assert "for damage" not in capsys.readouterr().err
    monkeypatch.setattr(prepared, "LARGE_BYTES", 10)
    open_prepared(corpus.folder, hashes=False)
    assert "for damage" not in capsys.readouterr().err
    open_prepared(corpus.folder)
    assert f"Checking {corpus.folder} for damage (" in " ".join(capsys.readouterr().err.split())
    verify(corpus.folder, hashes=True)

    def smaller(_: Path) -> Tokenizer:
        loaded = corpus.tokenizer
        loaded.target.size = max(int(s.source.ids.max()) for s in corpus.mixture.stores)
        return loaded

    size = corpus.tokenizer.target.size
    with monkeypatch.context() as patch:
        patch.setattr(Tokenizer, "load", smaller)
        with pytest.raises(UserError, match="has token ids that are not in its vocabulary"):
            open_prepared(corpus.folder)
        open_prepared(corpus.folder, hashes=False)
    corpus.tokenizer.target.size = size


def test_what_is_left_out_is_said_if_nothing_is_left():
    corpora = CorpusConfig(("a", "b")), CorpusConfig(("c",))
    one, several = DataConfig(corpora=corpora), DataConfig(corpora=corpora, directions=("x-y",))
    cleaning = Cleaning(read=3)
    cleaning.count("empty", Origin("a", 2))
    for data, pairs, counted, said in (
        (one, [0, 0], Cleaning(), "The corpus is empty: there are no lines in a, b."),
        (
            one,
            [0, 0],
            cleaning,
            "No training pairs are left in a, b. Left out 1 of 3 pairs because",
        ),
        (several, [1, 0], cleaning, "No training pairs are left in c. Left out 1 of 3"),
    ):
        with pytest.raises(UserError) as error:
            check_pairs(data, pairs, counted)
        assert str(error.value).startswith(said)
    check_pairs(one, [0, 1], cleaning)
    check_pairs(several, [2, 1], cleaning)


@pytest.mark.parametrize(
    ("temperature", "weights"),
    # Two corpora of 8 and 2 pairs; en-de and de-en have 8, fr-en has 2 of weight 2: 4.
    [(1.0, [1.0, 2.0, 1.0]), (1e9, [20 / 3 / 8, 20 / 3 / 2, 20 / 3 / 8])],
)
def test_the_directions_of_a_multilingual_corpus(tmp_path, temperature, weights):
    for number, count in enumerate((8, 2)):
        rows = (([10, n], [20, n], 0, n) for n in range(1, count + 1))
        write_store(store_path(tmp_path, number), blocks(rows))
    tokenizer = Tokenizer.train(["a b"] * 9, [], vocab_size=280, languages=["de", "en"])
    options = {"data.directions": ["en-de", "de-en", "fr-en"], "data.temperature": temperature}
    counts = dict.fromkeys(("pairs", "held_out", "dropped", "source_tokens", "target_tokens"), 0)
    facts = Facts(
        source="en",
        target="de",
        options=options,
        corpora=[["a"], ["b"]],
        files=[["a"], ["b"]],
        weights=[1.0, 2.0],
        left_out={},
        seconds=1.0,
        languages=[["en", "de"], ["en", "fr"]],
        **counts,
    )
    stores = [TokenStore(store_path(tmp_path, number)) for number in (0, 1)]
    mixture, numbers = _multilingual(stores, facts, tokenizer)
    # In the order of the stores: en-de, then backwards de-en and fr-en.
    assert numbers == [0, 0, 1] and facts.directions == options["data.directions"]
    assert [weights[0], weights[2], weights[1]] == pytest.approx(mixture.weights)
    assert sum(
        w * s.pairs for w, s in zip(mixture.weights, mixture.stores, strict=True)
    ) == pytest.approx(20)
    found = Prepared(tmp_path, facts, tokenizer, mixture, numbers)
    assert [found.origin(at) for at in (0, 7, 8, 15, 16, 17)] == [
        *("a:1", "a:8", "a:1", "a:8", "b:1", "b:2")
    ]
    tags = [tokenizer.into(code).tags[0] for code in ("de", "en", "en")]
    firsts = [int(mixture.sources(np.array([at]))[0][0]) for at in (0, 8, 16)]
    assert firsts == tags
    assert [row.tolist()[1:] for row in mixture.sources(np.array([0, 8, 16]))] == [
        [10, 1],
        [20, 1],
        [20, 1],
    ]
    assert [row.tolist() for row in mixture.targets(np.array([0, 8, 16]))] == [
        [20, 1],
        [10, 1],
        [10, 1],
    ]


def test_corpora_of_one_direction_are_weighted_together(tmp_path):
    """12 pairs and 3: their square roots are as 2 to 1, so of 15 pairs, 10 are drawn from the 12, and 5 from the 3."""
    stores = []
    for number, count in enumerate((8, 4, 3)):
        write_store(tmp_path / str(number), blocks(([9], [9], 0, n) for n in range(1, count + 1)))
        stores.append(TokenStore(tmp_path / str(number)))
    tokenizer = Tokenizer.train(["a b"] * 9, [], vocab_size=280, languages=["de", "fr"])
    facts = facts_of(
        options={"data.directions": ["en-de", "en-fr"], "data.temperature": 2.0},
        weights=[1.0, 1.0, 1.0],
        languages=[["en", "de"], ["en", "de"], ["en", "fr"]],
    )
    mixture, numbers = _multilingual(stores, facts, tokenizer)
    assert numbers == [0, 1, 2] and mixture.weights == pytest.approx([10 / 12, 10 / 12, 5 / 3])


def test_a_corpus_of_one_way_is_read_in_no_other(tmp_path):
    write_store(tmp_path / "store", blocks(([9, n], [5], 0, n) for n in range(1, 4)))
    tokenizer = Tokenizer.train(["a b"] * 9, [], vocab_size=280, languages=["de", "en"])
    for way, swapped in ((["one-way"], [False]), ([], [False, True])):
        facts = facts_of(
            options={"data.directions": ["en-de", "de-en"], "data.temperature": 1.0},
            weights=[1.0],
            languages=[["en", "de", *way]],
        )
        mixture, numbers = _multilingual([TokenStore(tmp_path / "store")], facts, tokenizer)
        assert [view.swapped for view in mixture.stores] == swapped
        assert numbers == [0] * len(swapped)
        assert facts.pair_languages == [["en", "de", *way]]


def test_training_draws_changed_pairs_only_if_an_option_asks_for_them(corpus):
    config = RunConfig()
    plain = replace(config, train=replace(config.train, sample_source=0.0, sample_target=0.0))
    assert corpus.drawn(plain) is corpus.mixture
    for options in ({"sample_source": 0.5}, {"sample_target": 0.5}):
        drawn = corpus.drawn(replace(plain, train=replace(plain.train, **options)))
        assert isinstance(drawn, SampledMixture) and len(drawn) == len(corpus.mixture)


def facts_of(**options: object) -> Facts:
    counts = dict.fromkeys(("pairs", "held_out", "dropped", "source_tokens", "target_tokens"), 0)
    fields = {"source": "en-GB", "target": "de", "options": {}, "corpora": [], "files": []}
    return Facts(**(fields | counts | {"weights": [], "left_out": {}, "seconds": 1.0} | options))


def test_a_corpus_has_the_languages_of_the_model_unless_it_has_its_own():
    facts = facts_of(languages=[["", ""], ["fr", ""], ["", "it"], ["pl", "cs"]])
    assert facts.pair_languages == [["en_GB", "de"], ["fr", "de"], ["en_GB", "it"], ["pl", "cs"]]
    assert facts.directions == ["en_GB-de"] and facts_of().pair_languages == []
    assert facts_of(options={"data.directions": ["fr-de"]}).directions == ["fr-de"]


def test_facts_are_counted_over_all_stores_and_extended(corpus, tmp_path):
    folder = tmp_path / "more"
    shutil.copytree(corpus.folder, folder)
    rows = [([5, 6], [7], 0, 1), ([5], [7, 8, 9], 0, 2)]
    write_store(store_path(folder, 2), blocks(rows))  # of a replayed corpus
    cleaning = Cleaning()
    for line in (3, 4):
        cleaning.count("empty", Origin("f", line))
    cleaning.count("ratio", Origin("ä", 1))
    data = DataConfig(
        source="xx",
        target="yy",
        corpora=(
            CorpusConfig(("a", "b"), weight=2.0, source="xx"),
            CorpusConfig(("c",), target="zz"),
        ),
    )
    options = {"files": [["ä"], ["c"]], "held_out": 4, "dropped": 2, "seconds": 1.23456}
    write_facts(folder, data, cleaning=cleaning, **options)
    facts = read_facts(folder)
    old = corpus.facts
    assert (facts.pairs, facts.held_out, facts.dropped, facts.seconds) == (57, 4, 2, 1.235)
    assert facts.source_tokens == old.source_tokens + 5
    assert facts.target_tokens == old.target_tokens + 6
    assert (facts.source, facts.target, facts.weights) == ("xx", "yy", [2.0, 1.0])
    assert (facts.corpora, facts.files) == ([["a", "b"], ["c"]], [["ä"], ["c"]])
    assert '"ä"' in (folder / "preparation.json").read_text(encoding="utf-8")
    assert facts.languages == [["xx", ""], ["", "zz"]] and facts.left_out == {
        "empty": 2,
        "ratio": 1,
    }
    names = {name.removeprefix("data.") for name in facts.options}
    assert names == {
        *(
            "tokenizer",
            "joint",
            "source_kind",
            "symbols",
            "placeholders",
            "max_length",
            "max_ratio",
            "deduplicate",
        ),
        *("rules", "holdout", "directions", "temperature", "translation_memory", "terms"),
    }
    lines = (folder / "left-out.jsonl").read_text(encoding="utf-8").splitlines()
    assert lines == [
        '{"rule": "empty", "file": "f", "line": 3}',
        '{"rule": "empty", "file": "f", "line": 4}',
        '{"rule": "ratio", "file": "ä", "line": 1}',
    ]
    write_facts(
        folder, data, cleaning=cleaning, extend=lambda its, _: replace(its, pairs=9), **options
    )
    assert read_facts(folder) == replace(facts, pairs=9)
    write_facts(folder, replace(data, licence="mit"), cleaning=cleaning, **options)
    assert read_facts(folder).options == facts.options | {"data.licence": "mit"}
    # Whether pairs are left is asked of the own corpora alone.
    for number in (0, 1):
        shutil.rmtree(store_path(folder, number))
        write_store(store_path(folder, number), [])
    with pytest.raises(UserError, match=r"The corpus is empty: there are no lines in a, b"):
        write_facts(folder, data, cleaning=cleaning, **options)


def test_ids_beyond_either_vocabulary_are_noticed(tmp_path):
    """Also in the second of two corpora."""
    rows = [(source, target) for source, target in TEXTS[:8]]
    names = [tmp_path / f"{number}.tsv" for number in range(2)]
    for name in names:
        name.write_text("".join(f"{source}\t{target}\n" for source, target in rows))
    corpora = tuple(CorpusConfig((str(name),)) for name in names)
    data = DataConfig(source="xx", target="yy", holdout=0, corpora=corpora, joint=False)
    whole = prepare(data, tmp_path / "data", vocab_size=lambda _: 290)
    again = replace(data, joint=True)
    reused = prepare(again, tmp_path / "reused", vocab_size=len, tokenizer=whole.tokenizer)
    assert reused.facts.options["data.joint"] is whole.facts.options["data.joint"] is False
    with write_folder(tmp_path / "empty") as aside:
        shutil.copytree(whole.folder, aside, dirs_exist_ok=True)
        shutil.rmtree(store_path(aside, 1))
        write_store(store_path(aside, 1), [])
        (aside / "manifest.json").unlink()
    assert len(open_prepared(tmp_path / "empty").mixture) == 8
    for side in ("source", "target"):
        size = getattr(whole.tokenizer, side).size
        ids = ([size], [5]) if side == "source" else ([5], [size])
        folder = tmp_path / side
        with write_folder(folder) as aside:
            shutil.copytree(whole.folder, aside, dirs_exist_ok=True)
            shutil.rmtree(store_path(aside, 1))
            write_store(store_path(aside, 1), blocks([(*ids, 0, 1)]))
            (aside / "manifest.json").unlink()
        with pytest.raises(UserError, match="has token ids that are not in its vocabulary"):
            open_prepared(folder)
        assert len(open_prepared(folder, hashes=False).mixture) == 9
