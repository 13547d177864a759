"""Cleaning and encoding of a part of a corpus, by hand."""

import dataclasses
import os

import numpy as np
import pytest

from transduce.config.schema import (
    PLACEHOLDER_TOKENS,
    SYNTHETIC_TAG,
    CorpusConfig,
    DataConfig,
)
from transduce.preparation import passes
from transduce.preparation.passes import (
    check_rereadable,
    check_tags,
    check_vocabulary,
    checked,
    data_of,
    directed,
    encode_part,
    languages_in,
    read_corpus,
    read_part,
    reads_test,
    rules_of,
    text_files,
    with_normalised_texts,
    with_placeholders,
)
from transduce.system.errors import UserError
from transduce.text.clean import Cleaning
from transduce.text.holdout import Part
from transduce.text.languages import Direction
from transduce.text.pairs import Origin, Pair
from transduce.text.rules import (
    COPIED,
    DUPLICATE,
    EMPTY,
    IN_TEST_SET,
    NEAR_DUPLICATE,
    OTHERS,
    RATIO,
    Checker,
    Rules,
)
from transduce.text.tree_symbols import ALL_MARKS
from transduce.tokens.tokenizer import Tokenizer
from transduce.tokens.vocabulary import Vocabulary

WORDS = ["ka lo mi", "zu fe ga", "a b"] * 9


def data_of_files(*corpora: CorpusConfig, **options: object) -> DataConfig:
    return DataConfig(**{"source": "xx", "target": "yy", "corpora": corpora, **options})


@pytest.fixture
def file(tmp_path) -> str:
    (tmp_path / "a.tsv").write_text("a\tb\n")
    return str(tmp_path / "a.tsv")


def test_a_corpus_has_its_own_languages_or_those_of_the_model(file):
    own, other = CorpusConfig((file,), source="en", target="de"), CorpusConfig((file,), target="fr")
    data = data_of_files(own, other)
    assert languages_in(data, own) == ("en", "de") and languages_in(data, other) == ("xx", "fr")
    assert (data_of(data, other).source, data_of(data, other).target) == ("xx", "fr")
    assert [pair[:2] for pair in read_corpus(own, data)] == [("a", "b")]
    several = data_of_files(own, other, directions=("en-de", "fr-xx"), symbols=False)
    found = checked(several)
    assert [(each.source, each.target) for each in found.corpora] == [("en", "de"), ("xx", "fr")]
    unnamed = data_of_files(CorpusConfig((file,)), source="source", target="target")
    assert checked(unnamed) == unnamed
    near = data_of_files(
        CorpusConfig((file,), source="en-US", target="deu"), source="en", target="de"
    )
    assert checked(near) == near


@pytest.mark.parametrize(
    ("corpus", "options", "said"),
    [
        ({"source": "en"}, {}, "a.tsv is en to yy, but the model is xx"),
        ({"target": "en"}, {}, "a.tsv is xx to en, but the model is xx"),
        ({}, {"directions": ("en-de",)}, "has the languages 'xx' and 'yy', but"),
        (
            {"synthetic": True},
            {"directions": ("xx-yy",)},
            "a synthetic corpus needs a model with one direction",
        ),
        ({}, {"directions": ("xx-yy", "yy-zz")}, "No corpus has texts for the direction yy-zz"),
        ({}, {"directions": ("xx-yy",), "joint": False}, "has one vocabulary for all texts"),
        ({}, {"directions": ("xx-yy",), "symbols": True}, "has one vocabulary for all texts"),
        ({}, {"valid": ("missing.tsv",)}, "missing.tsv does not exist"),
        (
            {},
            {"valid": ("xx,yy=missing.tsv",), "directions": ("xx-yy",)},
            "missing.tsv does not exist",
        ),
    ],
)
def test_a_corpus_that_does_not_fit_the_model_is_refused(file, corpus, options, said):
    data = data_of_files(CorpusConfig((file,), **corpus), **options)
    with pytest.raises(UserError) as error:
        checked(data)
    assert said in str(error.value)


def test_what_can_not_be_prepared_is_refused(tmp_path, file):
    with pytest.raises(UserError, match="nothing to train on"):
        checked(data_of_files())
    (tmp_path / "done").mkdir()
    (tmp_path / "done/preparation.json").touch()
    with pytest.raises(UserError, match="done is prepared already"):
        checked(data_of_files(CorpusConfig((str(tmp_path / "done"),))))
    replayed = data_of_files(CorpusConfig((file,)), directions=("xx-yy", "yy-zz"))
    assert checked(replayed, None, ["yy-zz"]).directions == ("xx-yy", "yy-zz")
    stdin = data_of_files(CorpusConfig(("-",)), valid=(file,))
    assert checked(stdin) == stdin and text_files(stdin) == ["-", file]
    labelled = data_of_files(
        CorpusConfig(("a", "b")), CorpusConfig(("c",)), valid=("en,de=v.tsv", "w")
    )
    assert text_files(labelled) == ["a", "b", "c", "v.tsv", "w"]


def test_pipes_are_read_only_once(tmp_path, file):
    check_rereadable([file, str(tmp_path), "missing"], "read twice")
    os.mkfifo(tmp_path / "pipe")
    for name, said in (
        ("-", "Standard input can't be read twice"),
        (str(tmp_path / "pipe"), "pipe can't be read"),
    ):
        with pytest.raises(UserError, match=said):
            check_rereadable([file, name], "read twice")


def test_a_vocabulary_must_fit(tmp_path, capsys):
    check_vocabulary({}, 300, tmp_path)
    check_vocabulary({"data.vocab_size": 300}, 300, tmp_path)
    with pytest.raises(UserError, match="has a vocabulary of 1,300 tokens already"):
        check_vocabulary({"data.vocab_size": 1299}, 1300, tmp_path)
    assert capsys.readouterr().err == ""
    check_vocabulary({"data.vocab_size": 1500}, 1300, tmp_path)
    said = " ".join(capsys.readouterr().err.split())
    assert said == (
        f"Warning: {tmp_path} has a vocabulary of 1,300 tokens. It does not grow to 1,500."
    )
    check_vocabulary({"data.vocab_size": 1500}, 1300, tmp_path, 1500)
    check_vocabulary({"data.vocab_size": 1200}, 1300, tmp_path, 1200)
    for wanted, asked in ((1500, 1400), (1200, 1400), (1500, 0)):
        with pytest.raises(UserError, match="has a vocabulary of 1,300 tokens already"):
            check_vocabulary({"data.vocab_size": wanted}, 1300, tmp_path, asked)
    assert capsys.readouterr().err == ""
    tokenizer = Tokenizer.train(WORDS, [], vocab_size=280, languages=["de"])
    data = DataConfig(directions=("en-de", "de-en"))
    check_tags(data, None)
    check_tags(DataConfig(directions=("en-de",)), tokenizer)
    with pytest.raises(
        UserError, match="has no tag for en, so it can't be used for the direction de-en"
    ):
        check_tags(data, tokenizer)


def test_placeholders_are_masked_in_documents_or_as_the_vocabulary_knows_them(file):
    plain, memory = (data_of_files(CorpusConfig((name,))) for name in (file, "a.po"))
    auto = {False: "kept", True: "masked"}
    for is_memory, data in enumerate((plain, memory)):
        assert with_placeholders(data, None).placeholders == auto[bool(is_memory)]
    for files in ((file, "a.po"), ("a.po", file)):
        both = data_of_files(*(CorpusConfig((name,)) for name in files))
        assert with_placeholders(both, None).placeholders == "masked"
    trees = data_of_files(CorpusConfig(("a.po",)), symbols=True)
    assert with_placeholders(trees, None).placeholders == "kept"
    chosen = dataclasses.replace(trees, placeholders="kept")
    assert with_placeholders(chosen, None) == chosen
    with pytest.raises(UserError, match="trees, which have no placeholders"):
        with_placeholders(dataclasses.replace(trees, placeholders="masked"), None)
    masked = Tokenizer.train(WORDS, [], vocab_size=400, placeholder_tokens=PLACEHOLDER_TOKENS)
    kept = Tokenizer.train(WORDS, [], vocab_size=290)
    assert with_placeholders(memory, kept).placeholders == "kept"
    assert with_placeholders(plain, masked).placeholders == "masked"
    for wrong, tokenizer in (("masked", kept), ("kept", masked)):
        data = data_of_files(CorpusConfig((file,)), placeholders=wrong)
        with pytest.raises(UserError, match=r"was learnt with data\.placeholders="):
            with_placeholders(data, tokenizer)
        assert with_placeholders(data, None) == data
    with pytest.raises(UserError, match="trees, which have no placeholders"):
        with_placeholders(data_of_files(symbols=True, placeholders="masked"), None)


def test_rules_that_options_choose():
    data = data_of_files(max_ratio=3.0, deduplicate=False, rules=(COPIED,), test=("t",))
    assert rules_of(data) == Rules(3.0, False, (COPIED,), ("xx", "yy"), ("t",))
    assert rules_of(data_of_files(rules=("all", COPIED))).others == (
        COPIED,
        *(rule for rule in OTHERS if rule != IN_TEST_SET),
    )
    assert rules_of(data_of_files(rules=("all",), test=("t",))).others == OTHERS
    assert reads_test(["all"]) and reads_test([IN_TEST_SET]) and not reads_test([COPIED])


def numbered(*texts: tuple[str, str], file: str = "f") -> list[Pair]:
    return [Pair(*pair, Origin(file, line)) for line, pair in enumerate(texts, 1)]


def test_texts_are_normalised_as_the_vocabulary_has_them():
    pairs = numbered(("“a”  b\u00a0", "e\u0301  “x”\u00a0"), ("plain", "text"))
    [first, second] = with_normalised_texts(pairs, data_of_files(), None)
    assert first[:2] == ("“a” b", "\u00e9  “x”\u00a0") and second is pairs[1]
    assert first.origin == pairs[0].origin
    tokenizer = Tokenizer.train(WORDS, WORDS, vocab_size=280, quotes="")
    for texts, expected in (
        (("plain", "e\u0301"), ("plain", "\u00e9")),
        (("e\u0301", "plain"), ("\u00e9", "plain")),
    ):
        [changed] = with_normalised_texts(numbered(texts), data_of_files(), None)
        assert changed[:2] == expected
    [folded, _] = with_normalised_texts(pairs, data_of_files(), tokenizer)
    assert folded[:2] == ('"a" b', "\u00e9  “x”\u00a0")
    for options in ({"directions": ("xx-yy",)}, {"symbols": True}):
        [composed, _] = with_normalised_texts(pairs, data_of_files(**options), tokenizer)
        assert composed.source == "“a”  b\u00a0"


def test_pairs_are_staged_with_their_parts_and_rules(tmp_path):
    pairs = numbered(
        ("a {x}", "b {x}"),
        ("", "b"),
        ("a {x}", "b {x}"),
        ("A {x}", "b {x}"),
        ("a {x}", "b"),
        ("c", "d" * 40),
        ("copy", "copy"),
    )
    data = data_of_files(
        max_ratio=3.0, rules=(NEAR_DUPLICATE, COPIED), placeholders="masked", holdout=5
    )
    staged = read_part(iter(pairs), data, tmp_path / "0", tag=SYNTHETIC_TAG)
    assert staged.read == 7 and staged.tag == SYNTHETIC_TAG
    assert {rule: (out.number, out.first) for rule, out in staged.left_out.items()} == {
        EMPTY: (1, [(1, Origin("f", 2))]),
        DUPLICATE: (1, [(1, Origin("f", 3))]),
        RATIO: (1, [(3, Origin("f", 6))]),
        COPIED: (1, [(3, Origin("f", 7))]),
    }
    assert staged.parts.tolist() == [Part.TRAIN, Part.TRAIN, Part.PLACEHOLDERS_DIFFER]
    assert [pair[:2] for pair in staged.pairs()] == [
        (f"{SYNTHETIC_TAG}a \ufdd0", "b \ufdd0"),
        (f"{SYNTHETIC_TAG}A \ufdd0", "b \ufdd0"),
    ]
    near = staged.hashes(NEAR_DUPLICATE).tolist()
    assert near[0] == near[1] != near[2] and len(set(staged.hashes(DUPLICATE).tolist())) == 3
    assert sum(len(block) for block in staged.sentences()) == 2
    kept = read_part(
        iter(pairs),
        data_of_files(deduplicate=False, placeholders="kept", holdout=0),
        tmp_path / "1",
    )
    assert [pair.source for pair in kept.pairs()] == [
        "a {x}",
        "a {x}",
        "A {x}",
        "a {x}",
        "c",
        "copy",
    ]
    assert not len(kept.hashes(DUPLICATE)) and not [*(tmp_path / "1/sentences").read_bytes()]
    valid = data_of_files(placeholders="kept", holdout=5, valid=("v",))
    assert not (read_part(iter(pairs), valid, tmp_path / "2").folder / "sentences").read_bytes()


def test_long_pairs_are_left_out_and_files_are_numbered(tmp_path):
    tokenizer = Tokenizer.train(WORDS, WORDS, vocab_size=280)
    pairs = [
        *numbered(("ka lo", "zu"), ("ka", "zu " * 9), file="g"),
        *numbered(("mi " * 9, "ga"), ("fe", "ga"), file="h"),
    ]
    data = data_of_files(max_ratio=0, deduplicate=False, placeholders="kept", holdout=0)
    staged = read_part(iter(pairs), data, tmp_path / "0")
    longest = max(len(row) for row in tokenizer.encode_source(["ka lo", "fe", "ka"]))
    cleaning = Cleaning()
    [encoded] = encode_part(staged, ["f", "h", "g"], tokenizer, longest, cleaning)
    assert encoded.source.lists() == tokenizer.encode_source(["ka lo", "fe"])
    assert encoded.target.lists() == tokenizer.encode_target(["zu", "ga"])
    assert encoded.files.tolist() == [2, 1] and encoded.lines.tolist() == [1, 2]
    assert cleaning.lines == {"too-long": [Origin("g", 2), Origin("h", 1)]}
    [fewer] = encode_part(staged, ["f", "h", "g"], tokenizer, longest - 1, Cleaning())
    assert len(fewer.source.lengths) < 2 and isinstance(tokenizer.source, Vocabulary)
    assert np.array_equal(fewer.files, fewer.files)


def test_labels_that_a_parser_does_not_know_are_named(tmp_path):
    known, new = (f"(S (NP{label} 0) NN )" for label in ("", "-X"))
    trees = [f"(S (NP {ALL_MARKS} NN )", "(S )"]
    parser = Tokenizer.train(WORDS, trees, vocab_size=330, joint=False, symbols=True)
    data = data_of_files(symbols=True, joint=False, placeholders="kept", holdout=0, max_ratio=0)
    good = read_part(iter(numbered(("ka lo", known), ("mi", "(S )"))), data, tmp_path / "0")
    [encoded] = encode_part(good, ["f"], parser, 99, Cleaning())
    assert len(encoded.target.lists()) == 2
    closed = read_part(iter(numbered(("ka lo", known.replace("0)", ")7")))), data, tmp_path / "2")
    assert list(encode_part(closed, ["f"], parser, 99, Cleaning())), "a number is no label"
    bad = read_part(iter(numbered(("ka", "(S )"), ("lo", new))), data, tmp_path / "1")
    with pytest.raises(UserError, match=r"f, line 2: the label 'NP-X' is not in the parser's"):
        list(encode_part(bad, ["f"], parser, 99, Cleaning()))
    flat = Tokenizer.train(WORDS, ["(S )"], vocab_size=330, joint=False, symbols=True)
    assert list(encode_part(bad, ["f"], flat, 99, Cleaning())), "its symbols are no trees"


def test_pairs_get_the_directions_that_the_model_has():
    pairs = numbered(("a", "b"), ("c", "d"))
    both = DataConfig(directions=("en-de", "de-en", "en-fr"))
    found = list(directed(pairs, Direction("en", "de"), both))
    assert [(pair.source, pair.direction) for pair in found] == [
        ("a", "en-de"),
        ("b", "de-en"),
        ("c", "en-de"),
        ("d", "de-en"),
    ]
    assert [pair.origin for pair in found] == [pairs[0].origin] * 2 + [pairs[1].origin] * 2
    backward = list(directed(pairs, Direction("de", "en"), DataConfig(directions=("en-de",))))
    assert [(pair.source, pair.target, pair.direction) for pair in backward] == [
        ("b", "a", "en-de"),
        ("d", "c", "en-de"),
    ]
    assert list(directed(pairs, Direction("en", "de"), DataConfig())) == pairs
    assert list(directed(pairs, Direction("en", "it"), both)) == []


TREE = "(S (NN a))\n"


@pytest.fixture
def trees(tmp_path) -> str:
    (tmp_path / "trees.mrg").write_text(TREE)
    return str(tmp_path / "trees.mrg")


def test_trees_and_other_texts_are_not_mixed(file, trees, capsys):
    parsing = {"symbols": True, "joint": False}
    corpus, texts = CorpusConfig((trees,)), CorpusConfig((file,))
    good = data_of_files(corpus, valid=(trees,), **parsing)
    assert checked(good) == good and capsys.readouterr().err == ""
    with pytest.raises(UserError, match=r"trees.mrg holds trees\. Train with a recipe for parsers"):
        checked(data_of_files(corpus))
    for corpora, valid, odd in (
        ((corpus, texts), (), "a.tsv holds no trees, unlike .*trees.mrg"),
        ((corpus,), (file,), "a.tsv holds no trees, unlike .*trees.mrg"),
        ((texts,), (trees,), "a.tsv holds no trees, unlike .*trees.mrg"),
    ):
        with pytest.raises(UserError, match=odd):
            checked(data_of_files(*corpora, valid=valid, **parsing))
    checked(data_of_files(texts, **parsing))
    said = " ".join(capsys.readouterr().err.split())
    assert said == f"{file} holds no trees, so the model will not be a parser."
    parser, other = (
        Tokenizer.train(WORDS, [symbols], vocab_size=330, joint=False, symbols=True)
        for symbols in (f"(S {ALL_MARKS} )", "(S )")
    )
    assert checked(good, parser) == good and checked(data_of_files(texts, **parsing), other)
    for data, tokenizer, what in (
        (good, other, "trees.mrg holds trees"),
        (data_of_files(texts, **parsing), parser, "a.tsv holds no trees"),
    ):
        with pytest.raises(UserError, match=f"{what}, unlike the corpus of the model"):
            checked(data, tokenizer)


def test_texts_of_any_model_but_a_parser_may_be_augmented(file, trees):
    texts = data_of_files(CorpusConfig((file,)), augment="default")
    assert checked(texts) == texts
    parsing = data_of_files(CorpusConfig((trees,)), augment="default", symbols=True, joint=False)
    with pytest.raises(UserError, match=r"data\.symbols does not support data\.augment"):
        checked(parsing)


def test_chunks_are_cleaned_like_one_part(tmp_path, monkeypatch):
    texts = [
        ("a b", "c"),
        ("", "x"),
        ("a b", "c"),
        ("e\u0301", "“f”"),
        ("a b", "c"),
        ("g", "h" * 40),
    ]
    data = data_of_files(max_ratio=3.0, rules=(NEAR_DUPLICATE, COPIED), holdout=5)
    found = []
    for size in (1, 2, 5, 6, 10_000):
        monkeypatch.setattr(passes, "CHUNK", size)
        pairs = with_normalised_texts(iter(numbered(*texts)), data, None)
        staged = read_part(pairs, data, tmp_path / str(size))
        left_out = {rule: (out.number, out.first) for rule, out in staged.left_out.items()}
        found.append(
            (staged.read, list(staged.pairs()), left_out, staged.hashes(DUPLICATE).tolist())
        )
        assert found[-1] == found[0]
    assert found[0][0] == 6 and [pair[:2] for pair in found[0][1]] == [("a b", "c"), ("é", "“f”")]
    assert found[0][2] == {
        EMPTY: (1, [(1, Origin("f", 2))]),
        DUPLICATE: (2, [(1, Origin("f", 3)), (2, Origin("f", 5))]),
        RATIO: (1, [(2, Origin("f", 6))]),
    }


def test_a_later_part_is_checked_like_the_first(tmp_path):
    data = data_of_files(max_ratio=3.0)
    pairs = numbered(("a", "b" * 20))
    for number, max_ratio in enumerate((3.0, 0.0)):
        checker = Checker(Rules(max_ratio, deduplicate=True))
        staged = read_part(iter(pairs), data, tmp_path / str(number), checker)
        assert (len(staged), *staged.left_out) == ((0, RATIO) if max_ratio else (1,))


def test_sentences_are_hashed_if_pairs_are_held_out_or_replayed(tmp_path):
    for number, (options, is_hashed) in enumerate(
        (
            ({"holdout": 5}, True),
            ({"holdout": 0}, False),
            ({"holdout": 5, "valid": ("v",)}, False),
            ({"holdout": 0, "replay": "old"}, True),
            ({"holdout": 5, "valid": ("v",), "replay": "old"}, True),
        )
    ):
        pairs = numbered(("a", "b"), ("c", "d"))
        staged = read_part(iter(pairs), data_of_files(**options), tmp_path / str(number))
        assert (staged.folder / "sentences").stat().st_size == 2 * 2 * 8 * is_hashed


def test_only_side_by_side_languages_are_compared_with_those_of_the_model(file):
    swapped = CorpusConfig((file,), source="de", target="en")
    with pytest.raises(UserError, match=r"a\.tsv is de to en, but the model is"):
        checked(data_of_files(swapped, source="en", target="de"))
    unnamed = DataConfig()
    for source, target in ((unnamed.source, "de"), ("en", unnamed.target)):
        own = CorpusConfig((file,), source="en", target="de")
        data = data_of_files(own, source=source, target=target)
        assert checked(data) == data
