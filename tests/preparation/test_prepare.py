"""The preparation of a corpus that another function rewrites, and with an existing vocabulary."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from corpora import reverse_texts
from transduce.config.schema import SYNTHETIC_TAG, CorpusConfig, DataConfig
from transduce.preparation.prepare import prepare
from transduce.preparation.prepared import Prepared
from transduce.system.errors import UserError
from transduce.text.clean import Cleaning
from transduce.text.pairs import Pair
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


def test_pairs_are_rewritten_corpus_by_corpus_and_cleaned_again(tmp_path):
    """The last word of each target is doubled; some targets vanish, some repeat others, some are twice there."""
    real = write(tmp_path / "real.tsv", TEXTS[:40])
    synthetic = write(tmp_path / "synthetic.tsv", TEXTS[40:])
    seen: list[list[str]] = []

    def rewrite(pairs: Iterator[Pair], cleaning: Cleaning) -> Iterator[Pair]:
        seen.append([])
        for number, pair in enumerate(pairs):
            seen[-1].append(pair.source)
            if number == 3:
                cleaning.count("cut-off", pair.origin)
                continue
            target = "" if number == 4 else f"{pair.target} {pair.target.split()[-1]}"
            yield pair._replace(target=target)
            if number == 5:
                yield pair._replace(target=target)

    data = data_of(real, synthetic, max_length=16)
    found = prepare(data, tmp_path / "data", vocab_size=lambda _: 290, rewrite=rewrite)
    tagged = [SYNTHETIC_TAG + source for source, _ in TEXTS[40:]]
    assert seen == [[source for source, _ in TEXTS[:40]], tagged]
    expected = [
        (tag + source, f"{target} {target.split()[-1]}")
        for tag, rows in (("", TEXTS[:40]), (SYNTHETIC_TAG, TEXTS[40:]))
        for number, (source, target) in enumerate(rows)
        if number not in (3, 4)
    ]
    long = found.facts.left_out.pop("too-long", 0)
    assert found.facts.left_out == {"cut-off": 2, "empty": 2, "duplicate": 2}
    made = learnt(found)
    assert len(made) == len(expected) - long and [pair for pair in expected if pair in made] == made
    assert sum(source.startswith(SYNTHETIC_TAG) for source, _ in made) > 9
    assert (found.facts.pairs, found.facts.dropped) == (len(made), 0)
    assert {path.name for path in found.folder.iterdir()} == {
        *("corpus-0", "corpus-1", "tokenizer.model", "tokenizer.normalization.json"),
        *("valid.jsonl", "left-out.jsonl", "preparation.json", "manifest.json"),
    }


def test_what_is_left_out_is_counted_among_the_pairs_that_were_read(tmp_path):
    data = data_of(write(tmp_path / "a.tsv", [*TEXTS, ("", "x")]))
    with pytest.raises(
        UserError, match=r"left in .*a\.tsv\. Left out 61 of 61 pairs because of a blank"
    ):
        prepare(
            data,
            tmp_path / "data",
            vocab_size=lambda _: 290,
            rewrite=lambda pairs, _: (pair._replace(target="") for pair in pairs),
            tokenizer=Tokenizer.train(["ka"], ["zu"], vocab_size=290),
        )


def test_placeholder_tokens_of_rewritten_pairs_are_no_damage(tmp_path):
    rows = [*TEXTS[:20], ("ka {x} lo", "zu {x}"), ("mi \ue000", "ga")]
    data = data_of(write(tmp_path / "a.tsv", rows), rules=("characters",), placeholders="masked")
    found = prepare(
        data, tmp_path / "data", vocab_size=lambda _: 330, rewrite=lambda pairs, _: pairs
    )
    assert learnt(found)[20:] == [("ka \ufdd0 lo", "zu \ufdd0")]
    assert found.facts.left_out == {"characters": 1}


def test_rewritten_pairs_are_cleaned_by_the_other_rules_again(tmp_path):
    data = data_of(
        write(tmp_path / "a.tsv", [*TEXTS[:20], ("ka {x} lo", "zu {x}")]),
        rules=("characters", "copied"),
        placeholders="masked",
        max_ratio=3.0,
    )

    def rewrite(pairs: Iterator[Pair], _: Cleaning) -> Iterator[Pair]:
        targets = {0: lambda pair: pair.source, 1: lambda _: "zu " * 40, 2: lambda _: "x \ue000"}
        for number, pair in enumerate(pairs):
            yield pair._replace(target=targets.get(number, lambda its: its.target)(pair))

    found = prepare(data, tmp_path / "masked", vocab_size=lambda _: 330, rewrite=rewrite)
    assert found.facts.left_out == {"copied": 1, "ratio": 1} and found.facts.pairs == 19
    kept = replace(data, placeholders="kept")
    found = prepare(kept, tmp_path / "kept", vocab_size=lambda _: 330, rewrite=rewrite)
    assert found.facts.left_out == {"copied": 1, "ratio": 1, "characters": 1}


@pytest.mark.parametrize("has_valid", [True, False])
def test_a_rewritten_pair_with_a_held_out_sentence_is_dropped(tmp_path, has_valid):
    """Validation files are not compared with the corpus."""
    rows = [(f"s {n}", f"t {n}") for n in range(150)]
    (tmp_path / "valid.tsv").write_text("S  3\tt 4\n")
    options = {"valid": (str(tmp_path / "valid.tsv"),)} if has_valid else {"holdout": 12}
    data = data_of(write(tmp_path / "a.tsv", rows), **options)
    held_out = []

    def rewrite(pairs: Iterator[Pair], _: Cleaning) -> Iterator[Pair]:
        some = [*pairs]
        held_out.extend({source for source, _ in rows} - {pair.source for pair in some})
        new = iter([*(s.upper() for s in held_out[:6]), *(f"T {s[2:]} " for s in held_out[6:])])
        return (
            pair._replace(target=next(new, pair.target) if number else "new")
            for number, pair in enumerate(some)
        )

    found = prepare(data, tmp_path / "data", vocab_size=lambda _: 290, rewrite=rewrite)
    number = 0 if has_valid else 12
    assert len(held_out) == number == found.facts.dropped
    assert found.facts.pairs == 150 - 2 * number and learnt(found)[0][1] == "new"
    assert found.facts.held_out == len(found.valid()) == (1 if has_valid else 12)


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
