"""The preparation of a corpus with a new and with an existing vocabulary."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from corpora import reverse_texts
from transduce.config.schema import CorpusConfig, DataConfig
from transduce.preparation.prepare import prepare
from transduce.preparation.prepared import Prepared
from transduce.system.errors import UserError
from transduce.tokens.tokenizer import Tokenizer
from transduce.tokens.vocabulary import Vocabulary

TEXTS = list(zip(*reverse_texts(60, seed=1), strict=True))


def write(path: Path, rows: list[tuple[str, str]]) -> CorpusConfig:
    path.write_text("".join(f"{source}\t{target}\n" for source, target in rows))
    return CorpusConfig((str(path),), synthetic="synthetic" in path.name)


def learnt(found: Prepared) -> list[tuple[str, str]]:
    places = np.arange(len(found.mixture))
    sources = found.tokenizer.source.decode([row.tolist() for row in found.mixture.sources(places)])
    targets = found.tokenizer.target.decode([row.tolist() for row in found.mixture.targets(places)])
    return list(zip(sources, targets, strict=True))


def data_of(*corpora: CorpusConfig, **options: object) -> DataConfig:
    return DataConfig(
        **{"source": "xx", "target": "yy", "holdout": 0, "corpora": corpora, **options}
    )


def test_a_new_vocabulary_has_the_size_for_the_number_of_training_pairs(tmp_path):
    asked = []
    rows = [*TEXTS, TEXTS[0], ("", "x")]
    data = data_of(write(tmp_path / "a.tsv", rows), holdout=5, max_length=4)
    for threads in (1, 2):
        found = prepare(
            data,
            tmp_path / str(threads),
            vocab_size=lambda pairs: asked.append(pairs) or 280,
            threads=threads,
        )
        assert asked.pop() == 55 and 270 < found.tokenizer.target.size <= 280
        facts = found.facts.left_out
        assert facts["duplicate"] == facts["empty"] == 1 and facts["too-long"] > 0
        assert found.facts.pairs == 55 - facts["too-long"] == len(learnt(found))


def test_an_existing_vocabulary_encodes_a_corpus(tmp_path):
    tokenizer = Tokenizer.train(
        [a for a, _ in TEXTS], [b for _, b in TEXTS], vocab_size=300, quotes=""
    )
    corpus = write(tmp_path / "a.tsv", [("“ka”  lo", "“zu”  fe"), ("mi", "ga")])

    def never(_: int) -> int:
        raise AssertionError("the vocabulary is there")

    found = prepare(data_of(corpus), tmp_path / "data", vocab_size=never, tokenizer=tokenizer)
    assert found.tokenizer.models == tokenizer.models and found.tokenizer.quotes == ""
    assert learnt(found) == [('"ka" lo', "“zu”  fe"), ("mi", "ga")]
    multilingual = data_of(
        CorpusConfig(corpus.files, source="xx", target="yy"), directions=("xx-yy",)
    )
    with pytest.raises(UserError, match="The vocabulary has no tag for yy"):
        prepare(multilingual, tmp_path / "no", vocab_size=never, tokenizer=tokenizer)
    assert not (tmp_path / "no").exists()


def test_only_a_corpus_with_a_new_language_replays_another(tmp_path):
    corpus = write(tmp_path / "a.tsv", TEXTS)
    old = prepare(data_of(corpus), tmp_path / "old", vocab_size=lambda _: 290)
    replay = {"replay": str(old.folder), "directions": ("xx-yy", "xx-zz")}
    same = data_of(CorpusConfig(corpus.files, source="xx", target="yy"), **replay)
    with pytest.raises(UserError, match=r"data.replay is for a corpus with a new language"):
        prepare(same, tmp_path / "new", vocab_size=lambda _: 300, tokenizer=old.tokenizer)
    other = data_of(CorpusConfig(corpus.files, source="xx", target="zz"), **replay)
    for tokenizer in (None, Tokenizer.train(["a"], ["b"], vocab_size=280)):
        with pytest.raises(
            UserError, match=r"has another vocabulary than the model to continue from"
        ):
            prepare(other, tmp_path / "new", vocab_size=lambda _: 300, tokenizer=tokenizer)


def test_a_new_language_is_prepared_with_the_corpora_of_another_one(tmp_path):
    """The old validation pairs stay, and no new pair shares a sentence with them."""
    (tmp_path / "valid.tsv").write_text("ka ka ka\tzu zu zu\n")
    rows = {
        "german": [(f"k {n}", f"z {n}") for n in range(40)],
        "french": [("KA ka  ka", "öö"), *((f"k {n}", f"éé {n}") for n in range(150))],
        "italian": [(f"k {n}", f"òò {n}") for n in range(150)],
    }
    corpora = {name: write(tmp_path / f"{name}.tsv", its) for name, its in rows.items()}
    valid = (str(tmp_path / "valid.tsv"),)
    old = prepare(
        DataConfig(source="en", target="de", valid=valid, corpora=(corpora["german"],)),
        tmp_path / "old",
        vocab_size=lambda _: 290,
    )
    multilingual = Tokenizer(Vocabulary(old.tokenizer.target.model))  # without normalised sources
    data = DataConfig(
        corpora=tuple(
            replace(corpora[name], source="en", target=code)
            for name, code in (("french", "fr"), ("italian", "it"))
        ),
        directions=("en-de", "en-fr", "fr-en", "en-it"),
        replay=str(old.folder),
        holdout=20,
    )
    sizes = []
    found = prepare(
        data,
        tmp_path / "new",
        vocab_size=lambda pairs: sizes.append(pairs) or 320,
        tokenizer=multilingual,
    )
    facts = found.facts
    directions = [pair.direction for pair in found.valid()]
    assert directions[0] == "en-de" and found.valid()[0].source == "ka ka ka"
    assert {*directions[1:]} == {"en-fr", "fr-en", "en-it"}
    assert facts.held_out == len(directions) and facts.dropped > 0
    assert facts.corpora == [
        [str(tmp_path / f"{name}.tsv")] for name in ("french", "italian", "german")
    ]
    assert facts.files == facts.corpora and facts.weights == [1.0] * 3
    assert facts.pair_languages == [["en", "fr"], ["en", "it"], ["en", "de"]]
    trained = sum(len(store.store) for store in found.mixture.stores if not store.swapped)
    assert facts.pairs == trained == sizes[0] + 40
    pieces = found.tokenizer.target.all_pieces()
    assert pieces[: old.tokenizer.target.size] == old.tokenizer.target.all_pieces()
    assert {">>de<<", ">>fr<<", ">>en<<", ">>it<<", "é", "ò"} <= {*pieces} and len(pieces) <= 320
    assert [*found.tokenizer.target.tags] == [">>de<<", ">>fr<<", ">>en<<", ">>it<<"]
    texts = learnt(found)
    assert texts.count(("k 3", "z 3")) == 1 and not any("öö" in target for _, target in texts)
    held_out = {pair.target for pair in found.valid() if pair.direction == "en-it"}
    assert held_out and not held_out & {target for _, target in texts}
