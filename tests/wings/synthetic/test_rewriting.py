"""Pairs that a function rewrites become a corpus, in each direction on its own."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from corpora import reverse_texts
from transduce.config.schema import SYNTHETIC_TAG, CorpusConfig, DataConfig
from transduce.preparation.prepared import Prepared
from transduce.preparation.replay import Replay
from transduce.system.errors import UserError
from transduce.text.clean import Cleaning
from transduce.text.holdout import normalised
from transduce.text.pairs import Pair
from transduce.tokens.tokenizer import Tokenizer
from transduce.wings.synthetic.rewriting import prepare_rewritten

TEXTS = list(zip(*reverse_texts(60, seed=1), strict=True))
BOTH = ("en-de", "de-en")


def write(path: Path, rows: list[tuple[str, str]], **more: str) -> CorpusConfig:
    path.write_text("".join(f"{source}\t{target}\n" for source, target in rows))
    return CorpusConfig((str(path),), synthetic="synthetic" in path.name, **more)


def learnt(found: Prepared) -> list[tuple[str, str]]:
    places = np.arange(len(found.mixture))
    sources = found.tokenizer.source.decode([row.tolist() for row in found.mixture.sources(places)])
    targets = found.tokenizer.target.decode([row.tolist() for row in found.mixture.targets(places)])
    return list(zip(sources, targets, strict=True))


def tags(found: Prepared) -> list[str]:
    """The first piece of each source."""
    rows = found.mixture.sources(np.arange(len(found.mixture)))
    return found.tokenizer.source.pieces([int(row[0]) for row in rows])


def data_of(*corpora: CorpusConfig, **options: object) -> DataConfig:
    return DataConfig(
        **{"source": "xx", "target": "yy", "holdout": 0, "corpora": corpora, **options}
    )


def spelt(name: str) -> dict[str, object]:
    """A rewriting whose targets name the direction and the source."""

    def rewrite(pairs: Iterator[Pair], _: Cleaning) -> Iterator[Pair]:
        return (pair._replace(target=f"{name} {pair.source}") for pair in pairs)

    return {name: rewrite}


def test_each_direction_has_targets_of_its_own(tmp_path):
    """en-de and de-en share the files; fr-en reads its file from the second column to the first."""
    both = write(tmp_path / "a.tsv", TEXTS[:40], source="en", target="de")
    other = write(tmp_path / "b.tsv", TEXTS[40:], source="en", target="fr")
    names = (*BOTH, "fr-en")
    data = data_of(both, other, directions=names, temperature=1.0)
    rewrites = {key: each for name in names for key, each in spelt(name).items()}
    found = prepare_rewritten(data, tmp_path / "data", rewrites, vocab_size=lambda _: 300)
    sides = {
        "en-de": [en for en, _ in TEXTS[:40]],
        "de-en": [de for _, de in TEXTS[:40]],
        "fr-en": [fr for _, fr in TEXTS[40:]],
    }
    assert found.facts.languages == [[*name.split("-"), "one-way"] for name in names]
    assert found.facts.directions == [*names] and found.facts.pairs == len(found.mixture) == 100
    expected = [(name, text) for name, texts in sides.items() for text in texts]
    assert learnt(found) == [(text, f"{name} {text}") for name, text in expected]
    assert tags(found) == [f">>{name[3:]}<<" for name, _ in expected]
    assert found.mixture.weights == [1.0] * 3
    assert [found.origin(place) for place in (0, 40, 80)] == [
        f"{tmp_path}/{name}.tsv:1" for name in ("a", "a", "b")
    ]
    # What a vocabulary learns from the targets is in it, too.
    assert "-" in "".join(found.tokenizer.target.all_pieces())


def test_lines_of_a_text_are_sources_of_their_direction(tmp_path):
    """A line that is held out, and a blank line, are not learnt."""
    corpus = write(tmp_path / "a.tsv", TEXTS * 2, source="en", target="de")
    data = data_of(corpus, directions=BOTH, holdout=5)
    more = ["new one", "", TEXTS[0][0].upper(), *(en for en, _ in TEXTS)]
    (tmp_path / "more.en").write_text("\ufeff" + "".join(f"{line}\n" for line in more))
    rewrites = spelt("en-de") | spelt("de-en")
    texts = {str(tmp_path / "more.en"): "en"}
    given = {"vocab_size": lambda _: 300, "texts": texts}
    found = prepare_rewritten(data, tmp_path / "data", rewrites, **given)
    held_out = {pair.source for pair in found.valid() if pair.direction == "en-de"}
    wanted = [line for line in more if line and line.lower() not in held_out]
    view = next(each for each in found.mixture.stores if each.pairs == len(wanted))
    rows = [row.tolist() for row in view.source.rows(np.arange(view.pairs))]
    assert found.tokenizer.decode(rows) == wanted
    assert {each.tags for each in found.mixture.stores[:1]} == {view.tags}
    assert found.facts.languages[2] == ["en", "de", "one-way"]
    assert found.facts.files[2] == found.facts.corpora[2] == [*texts]


def test_held_out_pairs_keep_their_texts_in_each_direction(tmp_path):
    corpus = write(tmp_path / "a.tsv", TEXTS * 2, source="en", target="de")
    data = data_of(corpus, directions=BOTH, holdout=5)
    rewrites = spelt("en-de") | spelt("de-en")
    found = prepare_rewritten(data, tmp_path / "data", rewrites, vocab_size=lambda _: 300)
    valid = found.valid()
    assert {pair.direction for pair in valid} == {*BOTH} and len(valid) == 2 * len(valid[::2])
    pairs = {(pair.source, pair.target) for pair in valid if pair.direction == "en-de"}
    assert pairs <= {*TEXTS}
    assert {(pair.target, pair.source) for pair in valid if pair.direction == "de-en"} == pairs
    known = {text for pair in pairs for text in pair}
    assert known.isdisjoint(source for source, _ in learnt(found))


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
    found = prepare_rewritten(data, tmp_path / "data", {"": rewrite}, vocab_size=lambda _: 290)
    assert seen == [[source for source, _ in rows] for rows in (TEXTS[:40], TEXTS[40:])]
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
        prepare_rewritten(
            data,
            tmp_path / "data",
            {"": lambda pairs, _: (pair._replace(target="") for pair in pairs)},
            vocab_size=lambda _: 290,
            tokenizer=Tokenizer.train(["ka"], ["zu"], vocab_size=290),
        )


def test_placeholders_of_rewritten_pairs_are_masked_after_they_are_cleaned(tmp_path):
    rows = [*TEXTS[:20], ("ka {x} lo", "zu {x}"), ("mi \ue000", "ga")]
    data = data_of(write(tmp_path / "a.tsv", rows), rules=("characters",), placeholders="masked")
    found = prepare_rewritten(
        data, tmp_path / "data", {"": lambda pairs, _: pairs}, vocab_size=lambda _: 330
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

    found = prepare_rewritten(data, tmp_path / "masked", {"": rewrite}, vocab_size=lambda _: 330)
    assert found.facts.left_out == {"copied": 1, "ratio": 1, "characters": 1}
    assert found.facts.pairs == 18


def test_placeholders_of_held_out_pairs_are_masked(tmp_path):
    rows = [(f"{source} {{0}}", f"{{0}} {target}") for source, target in TEXTS * 2]
    data = data_of(write(tmp_path / "a.tsv", rows), holdout=5, placeholders="masked")
    plain = {"": lambda pairs, _: pairs}
    found = prepare_rewritten(data, tmp_path / "data", plain, vocab_size=lambda _: 330)
    assert found.valid()
    for pair in found.valid():
        source, target = (text.replace("\ufdd0", "{0}") for text in pair[:2])
        assert (source, target) in rows and "\ufdd0" in pair.source


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

    found = prepare_rewritten(data, tmp_path / "data", {"": rewrite}, vocab_size=lambda _: 290)
    number = 0 if has_valid else 12
    assert len(held_out) == number == found.facts.dropped
    assert found.facts.pairs == 150 - 2 * number and learnt(found)[0][1] == "new"
    assert found.facts.held_out == len(found.valid()) == (1 if has_valid else 12)


def test_a_teacher_teaches_no_held_out_target(tmp_path):
    """Each target is the next pair's target, also of the pairs that are held out."""
    pairs = list(zip(*reverse_texts(300, seed=1), strict=True))
    nexts = dict(zip((s for s, _ in pairs), (t for _, t in pairs[1:] + pairs[:1]), strict=True))

    def rewrite(staged: Iterator[Pair], _: object) -> Iterator[Pair]:
        return (pair._replace(target=nexts[pair.source]) for pair in staged)

    data = data_of(write(tmp_path / "a.tsv", pairs), holdout=20)
    found = prepare_rewritten(data, tmp_path / "data", {"": rewrite}, vocab_size=lambda _: 300)
    held_out = {normalised(text) for pair in found.valid() for text in (pair.source, pair.target)}
    assert len(found.valid()) == 20 and 0 < found.facts.dropped <= 20
    assert held_out.isdisjoint(normalised(text) for pair in learnt(found) for text in pair)


def test_a_teacher_that_always_says_a_held_out_sentence_is_refused(tmp_path):
    rows = [(f"s {n}", f"t {n}") for n in range(120)]

    def rewrite(pairs: Iterator[Pair], _: object) -> Iterator[Pair]:
        return (pair._replace(target=held_out.target) for pair in pairs)

    corpus = write(tmp_path / "a.tsv", rows)
    given = {"vocab_size": lambda _: 290}
    plain = {"": lambda pairs, _: pairs}
    data = data_of(corpus, holdout=10)
    held_out = prepare_rewritten(data, tmp_path / "plain", plain, **given).valid()[0]
    with pytest.raises(UserError, match="each new pair shares a sentence with a held-out pair"):
        prepare_rewritten(data, tmp_path / "data", {"": rewrite}, **given)
    assert not (tmp_path / "data").exists()


def test_a_language_is_added_to_a_student(tmp_path):
    """Its corpora stay in their directions, and a new corpus of the same files takes their place."""
    corpus = write(tmp_path / "a.tsv", TEXTS, source="en", target="de")
    data = data_of(corpus, directions=BOTH)
    rewrites = spelt("en-de") | spelt("de-en")
    found = prepare_rewritten(data, tmp_path / "data", rewrites, vocab_size=lambda _: 300)
    new = replace(data, replay=str(found.folder))
    assert Replay.open(new).corpora == []
    other = write(tmp_path / "b.tsv", TEXTS, source="en", target="fr")
    replay = Replay.open(replace(new, corpora=(other,)))
    assert replay.corpora == [0, 1]
    languages = replay.extend(replace(found.facts, languages=[["en", "fr"]]), []).languages
    assert languages == [["en", "fr"], ["en", "de", "one-way"], ["de", "en", "one-way"]]
