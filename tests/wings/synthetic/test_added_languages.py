"""A language that is added to an imported model, which repeats text that it translates or pairs."""

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

import transduce
from command_line import run
from corpora import TINY, reverse_texts, spelt
from models import make_model
from transduce import model_folder
from transduce.config.schema import DataConfig
from transduce.config.settings import CALLER, Settings
from transduce.preparation.aggregate import extend_vocabulary
from transduce.preparation.prepared import Prepared, open_prepared
from transduce.system.errors import UserError
from transduce.text.languages import Direction
from transduce.tokens.tokenizer import Tokenizer
from transduce.wings.synthetic import remembering
from transduce.wings.synthetic.remembering import _sorted, remembered_directions, with_remembered

OPTIONS = {name: value for name, value in TINY.items() if name.startswith(("train.", "decode."))}
OPTIONS |= {"train.steps": 4, "train.save_every": 2, "train.validate_every": 2}
OPTIONS |= {"data.max_tokens": 256, "data.holdout": 20, "train.select_by": "chrf"}
KNOWN = [Direction.parse(each) for each in ("en-de", "de-en", "en-fr")]
COUNT = 60


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, imported: Path) -> Path:
    """Text to repeat; new.en and new.cs; and `model`, the imported model, whose directions are those of KNOWN."""
    folder = tmp_path_factory.mktemp("added")
    english, german = reverse_texts(COUNT, seed=9)
    new, czech = reverse_texts(100, seed=10)
    for name, lines in {
        "general.en": english,
        "general.de": german,
        "general.fr": german,
        "general.txt": english,
        "news.de": german[:7],
        "new.en": new,
        "new.cs": [f"{line} ř" for line in czech],
    }.items():
        (folder / name).write_text("".join(f"{line}\n" for line in lines))
    pairs = (f"{one}\t{two}\n" for one, two in zip(english, german, strict=True))
    (folder / "pairs.tsv").write_text("".join(pairs))
    shutil.copytree(imported, folder / "model")
    return folder


def command(place: Path, out: Path, *more: object) -> list[object]:
    files = [place / "new.en", place / "new.cs"]
    return ["train", "--init", place / "model", "--train", *files, "--out", out, *more]


def texts_of(prepared: Prepared, number: int) -> list[tuple[str, str]]:
    """The training pairs of a corpus."""
    store = prepared.mixture.stores[number]
    rows = (side.rows(np.arange(store.pairs)) for side in (store.source, store.target))
    sides = (prepared.tokenizer.decode([row.tolist() for row in its]) for its in rows)
    return [*zip(*sides, strict=True)]


def repeated(
    place: Path, out: Path, *files: str, init: Path | None = None, new: str = "en-cs"
) -> Prepared:
    """The corpus that is repeated."""
    named = [file if "=" in file else str(place / file) for file in files]
    corpora = [{"files": [str(place / "new.en"), str(place / "new.cs")]}]
    settings = Settings(CALLER, {"data.corpora": corpora})
    model = init or place / "model"
    return remembered_directions(settings, out, model, named, [new])


@pytest.fixture(scope="module")
def added(place: Path) -> Path:
    """The model with Czech, whose tag began as that of German."""
    transduce.train(
        place / "added",
        train=[place / "new.en", place / "new.cs"],
        init=place / "model",
        remember=[place / "general.en"],
        like="de",
        options=OPTIONS | {"train.learning_rate": 1e-30},
    )
    return place / "added"


def test_the_new_model_has_all_directions_and_the_old_ids(place, added, capsys):
    config = model_folder.read_config(added)
    assert config.data.directions == ("en-de", "de-en", "en-fr", "en-cs")
    old, new = (model_folder.load(each) for each in (place / "model", added))
    size = old.tokenizer.target.size
    pieces = new.tokenizer.target.all_pieces()
    assert pieces[:size] == old.tokenizer.target.all_pieces()
    assert pieces[size:] == ["<<cs>>"], "ř is spelt in bytes"
    weights, before = new.model.state_dict(), old.model.state_dict()
    [name] = [name for name, weight in weights.items() if len(weight) != len(before[name])]
    tag = old.tokenizer.source.tags["<<de>>"]
    torch.testing.assert_close(weights[name][:size], before[name])
    torch.testing.assert_close(weights[name][size], before[name][tag])
    assert "en-cs" in run(capsys, "info", added)[1]
    lines = ["ka lo mi", "re so"]
    for language in ("de", "fr"):
        was, now = (
            transduce.load(each, engine="torch").translate(lines, source="en", target=language)
            for each in (place / "model", added)
        )
        assert [each.text for each in was] == [each.text for each in now]


@pytest.mark.parametrize("engine", ["torch", "ctranslate2"])
def test_without_an_update_the_new_language_is_the_one_that_it_is_like(added, engine):
    translator = transduce.load(added, engine=engine)
    lines = reverse_texts(12, seed=11)[0]
    czech, german = (
        [each.text for each in translator.translate(lines, source="en", target=code)]
        for code in ("cs", "de")
    )
    assert czech == german and len({*czech}) > 3
    assert translator.engine.name.lower().startswith(engine)


def test_a_text_is_repeated_in_each_direction_from_its_language(place, added):
    prepared = open_prepared(added / "remembered" / "data")
    assert prepared.facts.directions == ["en-de", "de-en", "en-fr"]
    assert prepared.facts.pair_languages == [["en", "de"], ["en", "fr"]]
    whole = open_prepared(added / "data")
    assert whole.facts.pair_languages == [["en", "cs"], ["en", "de"], ["en", "fr"]]
    assert {pair.direction for pair in whole.valid()} == {"en-de", "de-en", "en-fr", "en-cs"}
    lines = (place / "general.en").read_text().splitlines()
    for direction in ("en-de", "en-fr"):
        file = added / "remembered" / f"{direction}.jsonl"
        found = {(its["source"], its["target"]) for its in map(json.loads, file.open())}
        source, target = direction.split("-")
        translator = transduce.load(place / "model")
        translations = translator.translate(lines, source=source, target=target)
        assert found == {
            (line, each.text)
            for line, each in zip(lines, translations, strict=True)
            if each.text and not {"cut", "loop"} & {*each.flags}
        }
        number = whole.facts.pair_languages.index([source, target])
        pairs = {*texts_of(whole, whole.numbers.index(number))}
        valid = {pair[:2] for pair in whole.valid() if pair.direction == direction}
        assert pairs <= found - valid, (
            "pairs that share a sentence with those of the validation are left out"
        )
        assert len(pairs) > len(found) / 2


def test_pairs_are_repeated_as_they_are_and_lost_directions_are_named(place, tmp_path, capsys):
    expected = {*zip(*reverse_texts(COUNT, seed=9), strict=True)}
    for number, files in enumerate(
        (("general.en", "general.de"), ("general.de", "general.en"), (f"en,de={place}/pairs.tsv",))
    ):
        prepared = repeated(place, tmp_path / str(number), *files)
        assert prepared.facts.directions == ["en-de", "de-en"]
        assert "will lack the directions en-fr," in capsys.readouterr().err
        pairs = {*texts_of(prepared, 0), *texts_of(prepared, 1)}
        turned = {pair[::-1] for pair in expected}
        assert pairs <= expected | turned and len(pairs) > COUNT
        assert not {*(tmp_path / str(number)).glob("remembered/*.jsonl")}


def test_a_direction_of_the_new_corpus_is_not_lost(place, tmp_path, capsys):
    repeated(place, tmp_path, "general.en", "general.de", new="en-fr")
    assert "will lack" not in capsys.readouterr().err


def test_a_model_with_one_direction_gets_a_corpus_with_one(place, tmp_path):
    model = make_model(tmp_path / "model", {})
    prepared = repeated(place, tmp_path / "out", "pairs.tsv", init=model)
    assert prepared.facts.directions == ["en-de"]
    assert not prepared.facts.options["data.directions"]


@pytest.mark.slow
def test_a_model_that_translates_nothing_is_named(place, tmp_path):
    model = make_model(tmp_path / "model", {}, updates=0)
    with pytest.raises(UserError, match=r"model translates no line of .*general\.en without"):
        repeated(place, tmp_path / "out", "general.en", init=model)


def test_separate_vocabularies_are_refused_before_a_text_is_translated(place, tmp_path):
    model = make_model(tmp_path / "model", {}, joint=False)
    with pytest.raises(UserError, match="only to a model with one vocabulary"):
        repeated(place, tmp_path / "out", "general.en", init=model)
    assert not (tmp_path / "out").exists()


def test_a_new_corpus_is_read_twice(place, tmp_path):
    settings = Settings(CALLER, {"data.corpora": [{"files": ["-"]}]})
    files = [str(place / "general.en")]
    with pytest.raises(UserError, match="can't be read twice"):
        remembered_directions(settings, tmp_path, place / "model", files, [])


def test_a_new_source_language_has_a_tag_too(place):
    tokenizer = Tokenizer.load(place / "model")
    data = DataConfig(directions=("en-de", "cs-en"))
    extended = extend_vocabulary(data, [], tokenizer, 0, {"en", "de"})
    assert extended.target.all_pieces()[tokenizer.target.size :] == ["<<cs>>"]


def test_lines_are_shared_among_the_directions(place, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(remembering, "MIN_TRANSLATED", 10)
    monkeypatch.setattr(remembering, "read_corpus", lambda *_: range(3 * 17))
    prepared = repeated(place, tmp_path, "general.en", "news.de")
    assert prepared.facts.directions == ["en-de", "de-en", "en-fr"]
    said = capsys.readouterr().err
    assert said.count("Translating 17 lines") == 2 and "Translating 7 lines" in said
    assert "will lack" not in said
    assert [each[:2] for each in prepared.facts.pair_languages] == [
        ["en", "de"],
        ["de", "en"],
        ["en", "fr"],
    ]


def test_a_fine_tuning_in_several_directions_repeats_text_in_each(place, tmp_path):
    files = [str(place / "general.en"), str(place / "general.de")]
    corpora = [{"files": files, "source": "en", "target": "de"}]
    settings = Settings(CALLER, {"data.corpora": corpora, "data.directions": ("en-de", "de-en")})
    texts = [str(place / "new.en"), str(place / "news.de")]
    tuned = with_remembered(settings, tmp_path, place / "model", texts)
    prepared = open_prepared(Path(tuned["data.remember"]))
    assert prepared.facts.directions == ["en-de", "de-en"]
    assert prepared.facts.pair_languages == [["en", "de"], ["de", "en"]]


@pytest.mark.parametrize(
    ("files", "pairs", "texts"),
    [
        (["a.en"], [], {"en": ["a.en"]}),
        (["a.en.gz", "b.en-GB", "c.de"], [], {"en": ["a.en.gz", "b.en-GB"], "de": ["c.de"]}),
        (["a.en", "a.de", "b.de"], ["en-de a.en a.de"], {"de": ["b.de"]}),
        (["a.fr", "a.en"], ["en-fr a.en a.fr"], {}),
        (["a.en", "a.de", "a.fr"], ["en-de a.en a.de", "en-fr a.en a.fr"], {}),
        (["fr,en=x.tsv", "a.txt"], ["fr-en x.tsv"], {"de": ["a.txt"]}),
        (["en,de,fr=x.tmx"], ["en-de x.tmx", "en-fr x.tmx"], {}),
    ],
)
def test_names_tell_pairs_from_texts(files, pairs, texts, capsys):
    corpora, plain = _sorted(files, KNOWN, "de")
    assert [" ".join([str(way), *its]) for its, way in corpora] == pairs and plain == texts
    assert ("no direction de-fr" in capsys.readouterr().err) == (len(pairs) == 2)


def test_a_table_of_a_model_with_two_languages_needs_no_label():
    corpora, _ = _sorted(["x.tsv"], [Direction("en", "de")], "")
    assert [tuple(each) for each in corpora] == [(("x.tsv",), ("en", "de"))]


@pytest.mark.parametrize(
    ("files", "default", "said"),
    [
        (["a.txt"], "", "language of a.txt is unknown.*text.en"),
        (["a.txt"], "cs", "a.txt: text to repeat in 'cs', which is none of .* en, de"),
        (["a.fr"], "en", "text to repeat in 'fr', which is none of the model's languages en, de"),
        (["x.tsv"], "en", "language of x.tsv is unknown.*en,de="),
        (["en,cs=x.tsv"], "", "no pair is in a direction of the model"),
        (["de,fr=x.tsv"], "", "no pair is in a direction of the model.*en-de, de-en, en-fr"),
        (["a.html"], "en", "not plain text"),
    ],
)
def test_other_files_are_refused(files, default, said):
    with pytest.raises(UserError, match=said):
        _sorted(files, KNOWN, default)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--like", "sk"], "no tag of the language 'sk'; it has <<en>>, <<de>>, <<fr>>"),
        ([], "is missing.*name text in its languages.*--remember"),
        (["--remember", "general.fr"], "text to repeat in 'fr'"),
    ],
)
def test_what_a_new_language_lacks_is_said_before_anything_is_made(
    place, tmp_path, capsys, more, said
):
    more = [place / each if each.startswith("general") else each for each in more]
    status, _, printed = run(capsys, *command(place, tmp_path / "out", *more))
    assert status == 2 and re.search(said, printed.replace("\n", " "))
    assert not (tmp_path / "out").exists()


def test_a_tag_is_like_another_only_in_a_model_with_a_new_language(place, tmp_path, capsys):
    files = [place / "general.en", place / "general.de"]
    for more in ([], ["--init", place / "model"]):
        named = ["train", "--train", *files, *more, "--out", tmp_path / "x", "--like", "de"]
        status, _, said = run(capsys, *named)
        assert status == 2 and "only if a language is added" in said and "--like" in said
    named = [
        "train",
        "--train",
        *files,
        "--init",
        tmp_path,
        "--out",
        tmp_path / "x",
        "--like",
        "de",
    ]
    assert "only if a language" not in run(capsys, *named)[2]


@pytest.mark.slow
def test_a_training_resumes_without_translating_again(place, tmp_path, capsys):
    more = ["--remember", place / "general.en", "--like", "de", *spelt(OPTIONS)]
    first = command(place, tmp_path / "out", *more)
    assert run(capsys, *first, "train.steps=2")[0] == 0
    status, _, said = run(capsys, *first)
    assert status == 0 and "Translating 60 lines" not in said
    assert model_folder.read_metrics(tmp_path / "out")["training"]["steps"] == 4
    assert model_folder.read_config(tmp_path / "out").data.like == "de"


@pytest.mark.slow
def test_the_new_model_is_exported(added, tmp_path, capsys):
    to = ["--to", "ctranslate2", "--out", tmp_path / "export"]
    status, printed, _ = run(capsys, "export", added, *to)
    assert (
        status == 0 and "identical tokens" in printed and (tmp_path / "export/model.bin").exists()
    )
