"""A training on a prepared corpus: which options and models fit it, and what follows from it."""

import shutil
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from corpora import reverse_texts
from transduce.config.schema import CorpusConfig, DataConfig, ModelConfig, RunConfig
from transduce.config.settings import CORPUS, FROM_SIZES, MODEL, Settings
from transduce.preparation.prepare import prepare
from transduce.preparation.prepared import Prepared
from transduce.system.errors import UserError
from transduce.text.pairs import Origin, Pair
from transduce.tokens.tokenizer import Tokenizer
from transduce.training.corpus import (
    check_positions,
    check_prepared,
    check_size,
    prepare_corpus,
    with_corpus,
)

TEXTS = list(zip(*reverse_texts(30, seed=3), strict=True))


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    folder = tmp_path_factory.mktemp("corpus")
    (folder / "a.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in TEXTS))
    corpora = (CorpusConfig((str(folder / "a.tsv"),)),)
    data = DataConfig(source="en", target="de", corpora=corpora, holdout=5, max_length=99)
    return prepare(data, folder / "data", vocab_size=lambda _: 300)


def settings_of(prepared: Prepared, **options: object) -> Settings:
    corpus = {"data.corpora": [{"files": [str(prepared.folder)]}]}
    return Settings.of(corpus | {name.replace("__", "."): value for name, value in options.items()})


def test_other_options_than_those_of_the_preparation_are_refused(prepared):
    check_prepared(prepared, settings_of(prepared, data__max_length=99), None)
    for options, said in (
        ({"data__max_length": 98}, "was prepared with data.max_length = 99. Leave data.max_length"),
        ({"data__source": "fr"}, "was prepared with data.source = en"),
        ({"data__vocab_size": 270}, "tokens already. Leave data.vocab_size out"),
        ({"data__valid": ["v.tsv"]}, "has its own validation text"),
    ):
        with pytest.raises(UserError) as error:
            check_prepared(prepared, settings_of(prepared, **options), None)
        assert said in str(error.value)
    for more in ({"weight": 2.0}, {"synthetic": True}):
        settings = Settings.of({"data.corpora": [{"files": [str(prepared.folder)], **more}]})
        with pytest.raises(UserError, match=r"is prepared already\. Leave out the weight"):
            check_prepared(prepared, settings, None)


def test_a_model_learns_further_from_a_corpus_with_its_vocabulary_and_languages(prepared):
    own = prepared.tokenizer
    check_prepared(prepared, settings_of(prepared), own)
    other = Tokenizer.train(["a"], ["b"], vocab_size=280)
    with pytest.raises(UserError, match="has another vocabulary than the model to continue from"):
        check_prepared(prepared, settings_of(prepared), other)
    tags = own.extended(["ka"], 0, ["de"])
    known = replace(prepared, tokenizer=tags)
    with pytest.raises(UserError, match=r"The model reads language tags, but .* has none"):
        check_prepared(known, settings_of(prepared), tags)
    of_model = {"data.source": "en", "data.target": "fr"}
    for target, has_origin, is_refused in (
        ("fr", True, True),
        ("de_AT", True, False),
        ("tgt", True, False),
        ("fr", False, False),
    ):
        settings = settings_of(prepared).over(MODEL, of_model | {"data.target": target})
        if is_refused:
            with pytest.raises(UserError, match=r"has data.target = de, but the model has fr"):
                check_prepared(prepared, settings, own)
        else:
            check_prepared(prepared, settings, own if has_origin else None)


def test_sizes_and_options_come_from_the_corpus(prepared):
    out = prepared.folder.parent
    size = prepared.tokenizer.target.size
    for settings, folder, has_origin, source in (
        (settings_of(prepared), out, False, FROM_SIZES),
        (settings_of(prepared, data__vocab_size=size), out, False, CORPUS),
        (settings_of(prepared), out / "other", False, CORPUS),
        (settings_of(prepared), out, True, MODEL),
    ):
        found = with_corpus(settings, prepared, folder, has_origin=has_origin)
        assert (found["model.vocab_size"], found["model.source_vocab_size"]) == (size, 0)
        assert (found["data.max_length"], found["data.source"]) == (99, "en")
        [corpus] = found["data.corpora"]
        assert corpus["files"] == [str(prepared.folder.resolve())]
        assert found.source("model.vocab_size") == source


def test_separate_vocabularies_have_two_sizes_and_a_corpus_elsewhere_has_its_place(
    prepared, tmp_path, monkeypatch
):
    sides = Tokenizer.train(["ka lo mi"] * 9, ["b"], vocab_size=280, joint=False)
    monkeypatch.chdir(prepared.folder.parent)
    moved = replace(prepared, folder=Path("data"), tokenizer=sides)
    text = Settings.of({"data.corpora": [{"files": ["a.tsv"]}]})
    elsewhere = with_corpus(text, moved, tmp_path, has_origin=False)
    assert elsewhere["data.corpora"] == [{"files": [str(prepared.folder.resolve())]}]
    assert with_corpus(text, moved, Path(), has_origin=False)["data.corpora"] == [
        {"files": ["a.tsv"]}
    ]
    assert elsewhere["data.vocab_size"] == elsewhere["model.vocab_size"] == sides.target.size
    assert elsewhere["model.source_vocab_size"] == sides.source.size != sides.target.size


def test_a_small_corpus_needs_a_number_of_updates(prepared):
    few = settings_of(prepared)
    with pytest.raises(UserError, match=r"has 19 pairs .* at least 20, .* about 10,000\."):
        check_size(few, 19)
    check_size(few, 20)
    with pytest.raises(UserError, match="has 9 pairs to train on, too few"):
        check_size(few, 9)
    check_size(settings_of(prepared, train__steps=3), 9)
    check_size(few, 10_000)


def test_sentences_have_positions(prepared):
    _, longest = prepared.mixture.longest()
    for limit, positions, is_refused in (
        (longest, "learned", True),
        (longest + 1, "learned", False),
        (longest, "sinusoidal", False),
    ):
        model = replace(ModelConfig(), positions=positions, max_positions=limit)
        config = RunConfig(model=model)
        short = SimpleNamespace(
            mixture=prepared.mixture, origin=prepared.origin, valid=list, tokenizer=None
        )
        place = prepared.origin(prepared.mixture.longest()[0])
        if is_refused:
            with pytest.raises(
                UserError,
                match=rf"^{place} has {longest} tokens. Raise model.max_positions \({limit}\), or "
                rf"lower data.max_length to {limit - 1}\.",
            ):
                check_positions(short, config)
        else:
            check_positions(short, config)


def test_a_prepared_corpus_is_opened_and_text_is_prepared(prepared, tmp_path):
    found = prepare_corpus(settings_of(prepared), tmp_path / "out", None, 1)
    assert found.facts == prepared.facts and not (tmp_path / "out").exists()
    text = {"data.corpora": [{"files": list(prepared.facts.corpora[0])}], "data.vocab_size": 290}
    text |= {"data.source": "en", "data.target": "de", "data.holdout": 5}
    made = prepare_corpus(Settings.of(text), tmp_path, None, 1)
    assert made.folder == tmp_path / "data" and made.tokenizer.target.size <= 290
    # Of a first start that was killed.
    (tmp_path / "data" / "rest").touch()
    made = prepare_corpus(Settings.of(text), tmp_path, prepared.tokenizer, 1)
    assert not (made.folder / "rest").exists() and [*map(str, tmp_path.iterdir())] == [
        str(tmp_path / "data")
    ]
    assert made.tokenizer.models == prepared.tokenizer.models


@pytest.mark.parametrize("side", ["source", "target"])
def test_validation_pairs_have_positions_with_their_tags(side, prepared):
    own = prepared.tokenizer.extended(["ka"], 0, ["de"])
    text = {"source": "ka", "target": "zu"} | {side: " ".join(["ka lo"] * 20)}
    pair = Pair(**text, origin=Origin("v", 1), direction="en-de")
    rows = own.encode_source([pair.source]) + own.encode_target([pair.target])
    longest = max(len(row) for row in rows) + (side == "source")  # a tag stands before the source
    for limit, is_refused in ((longest, True), (longest + 1, False)):
        model = replace(ModelConfig(), positions="learned", max_positions=limit)
        longer = SimpleNamespace(
            mixture=prepared.mixture, origin=prepared.origin, valid=lambda: [pair], tokenizer=own
        )
        if is_refused:
            said = (
                f"A pair of the validation set has {longest} tokens: '{pair.source}'. Raise "
                f"model.max_positions ({limit}), or remove the pair."
            )
            with pytest.raises(UserError) as refused:
                check_positions(longer, RunConfig(model=model))
            assert str(refused.value) == said
        else:
            check_positions(longer, RunConfig(model=model))


def test_the_size_of_the_vocabulary_follows_from_the_corpus_or_the_model(
    prepared, tmp_path, capsys
):
    """Without a chosen size, 2,000 tokens are wanted of a small corpus, which supports fewer."""
    text = {"data.corpora": [{"files": list(prepared.facts.corpora[0])}], "data.holdout": 5}
    sizes = {"all": (0, None), "chosen": (281, None), "given": (0, prepared.tokenizer)}
    found = {}
    for name, (size, tokenizer) in sizes.items():
        options = text | ({"data.vocab_size": size} if size else {})
        made = prepare_corpus(Settings.of(options), tmp_path / name, tokenizer, 1)
        found[name] = made.tokenizer.target.size
        said = (
            "Reading the corpus …" if tokenizer else "Reading the corpus, learning the vocabulary …"
        )
        assert capsys.readouterr().err.startswith(f"{said}\n")
    assert found["chosen"] == 281 < found["all"] and found["given"] == 300


def test_a_corpus_left_by_an_earlier_start_is_kept_if_it_is_the_given_one(prepared, tmp_path):
    out = tmp_path / "out"
    shutil.copytree(prepared.folder, out / "data")
    own = {"data.corpora": [{"files": [str(out / "data")]}]}
    assert prepare_corpus(Settings.of(own), out, None, 1).folder == out / "data"
    assert (out / "data").is_dir()
    other = prepare_corpus(settings_of(prepared), out, None, 1)
    assert other.folder == prepared.folder and not [*out.iterdir()]
    with pytest.raises(UserError, match=r"was prepared with data\.max_length"):
        prepare_corpus(settings_of(prepared, data__max_length=98), out, None, 1)
    both = [{"files": [str(prepared.folder)]}, {"files": list(prepared.facts.corpora[0])}]
    with pytest.raises(UserError):
        prepare_corpus(Settings.of({"data.corpora": both}), out, None, 1)


def test_options_that_a_preparation_does_not_fix_are_free(prepared):
    free = {"data__max_tokens": 9, "data__augment": "default", "data__placeholders": "auto"}
    check_prepared(prepared, settings_of(prepared, **free), None)
    inherited = settings_of(prepared).over(MODEL, {"data.max_length": 98})
    check_prepared(prepared, inherited, None)
    with pytest.raises(UserError, match=r"was prepared with data\.placeholders"):
        check_prepared(prepared, settings_of(prepared, data__placeholders="masked"), None)


def test_the_licences_of_the_corpus_and_of_the_model_to_continue_from_are_kept(prepared):
    """data.licence of the corpus is that of the teacher that made it."""
    options = {**prepared.facts.options, "data.licence": "cc-by-nc-4.0"}
    taught = replace(prepared, facts=replace(prepared.facts, options=options))
    for corpus, model, kept in (
        (prepared, "", ""),
        (prepared, "mit", "mit"),
        (taught, "", "cc-by-nc-4.0"),
        (taught, "cc-by-nc-4.0", "cc-by-nc-4.0"),
        (taught, "mit", "mit and cc-by-nc-4.0"),
        (taught, "cc-by-nc-4.0 and mit", "cc-by-nc-4.0 and mit"),
    ):
        settings = settings_of(prepared).under(MODEL, {"data.licence": model})
        found = with_corpus(settings, corpus, Path("out"), has_origin=bool(model))
        assert found["data.licence"] == kept
    with pytest.raises(UserError, match=r"was prepared with data\.licence = cc-by-nc-4\.0"):
        check_prepared(taught, settings_of(prepared, data__licence="mit"), None)
    check_prepared(prepared, settings_of(prepared, data__licence="mit"), None)
