"""Models with several languages: corpora, held-out pairs, tags, batches, training, translation, exports, server."""

import io
import json
import re
import shutil
import sys
from dataclasses import replace
from itertools import permutations, product
from pathlib import Path

import numpy as np
import pytest
from sacrebleu.metrics.chrf import CHRF
from safetensors.torch import load_file
from starlette.testclient import TestClient

import transduce
from command_line import run
from corpora import TINY, WORDS, changed, reverse_texts, spelt
from models import publish_model
from servers import store_of
from transduce import model_folder
from transduce.commands.recipes import gather, with_direction
from transduce.config.schema import DataConfig
from transduce.config.settings import Settings
from transduce.decoding.types import TERM
from transduce.evaluation.routes import measure_routes
from transduce.preparation.aggregate import read_directed
from transduce.preparation.prepare import prepare
from transduce.preparation.prepared import Prepared, open_prepared
from transduce.system.errors import UserError
from transduce.text.holdout import sentences
from transduce.text.languages import Direction, language_of, languages_of
from transduce.text.multilingual import bilingual_corpora, directions_in, is_multilingual
from transduce.text.pairs import by_direction, first_of_each_direction, read_pairs
from transduce.tokens.tokenizer import LANGUAGE_TAG
from transduce.wings.learning.versions import Versions
from transduce.wings.phrasebook.examples import examples
from transduce.wings.serving.api import application
from transduce.wings.serving.keys import Keys
from transduce.wings.serving.limits import Limits
from transduce_lab.comparing.command import _text
from transduce_lab.comparing.definition import read

LANGUAGES = "en", "de", "fr"
DIRECTIONS = [f"{a}-{b}" for a, b in permutations(LANGUAGES, 2)]
FRENCH = {german: f"{german}n" for german in WORDS.values()}


def texts(count: int, seed: int) -> dict[str, list[str]]:
    """The same texts in three toy languages: German reverses the order of the words, French keeps it."""
    english, german = reverse_texts(count, seed, 4)
    french = [" ".join(FRENCH[WORDS[word]] for word in text.split()) for text in english]
    return {"en": english, "de": german, "fr": french}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with train.en, train.de, train.fr and the same for valid and test."""
    folder = tmp_path_factory.mktemp("multilingual")
    for seed, (name, count) in enumerate({"train": 400, "valid": 30, "test": 20}.items()):
        for language, lines in texts(count, seed).items():
            (folder / f"{name}.{language}").write_text(
                "".join(f"{line}\n" for line in lines), encoding="utf-8"
            )
    return folder


def files(place: Path, name: str, languages: tuple[str, ...] = LANGUAGES) -> list[str]:
    return [str(place / f"{name}.{language}") for language in languages]


SHAPE = {
    "model.d_model": 32,
    "model.d_ff": 64,
    "model.num_heads": 4,
    "model.dropout": 0.0,
    "data.max_tokens": 1024,
}
STEPS = {
    "train.steps": 450,
    "train.warmup": 75,
    "train.save_every": 225,
    "train.validate_every": 225,
}
STEPS |= {
    "train.learning_rate": 0.3,
    "train.average": 1,
    "train.cooldown": 150,
    "decode.max_extra_tokens": 8,
}


@pytest.fixture(scope="module")
def model(place: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model for six directions, trained by the command; not to be changed."""
    out = tmp_path_factory.mktemp("models") / "three"
    options = spelt(TINY | SHAPE | STEPS)
    valid, test = files(place, "valid"), files(place, "test")
    transduce.cli.main(
        [
            "train",
            "--out",
            str(out),
            "--train",
            *files(place, "train"),
            "--valid",
            *valid,
            "--test",
            *test,
            *options,
        ]
    )
    return out


def data(place: Path, **options: object) -> DataConfig:
    from transduce.config.parse import configure

    corpora = [
        {
            "files": list(corpus.files),
            "source": corpus.languages.source,
            "target": corpus.languages.target,
        }
        for corpus in bilingual_corpora(files(place, "train"))
    ]
    return configure(
        changed(
            {
                "data.corpora": corpora,
                "data.directions": tuple(DIRECTIONS),
                "data.placeholders": "kept",
            },
            **options,
        )
    ).data


def prepared(place: Path, folder: Path, **options: object) -> Prepared:
    return prepare(data(place, **options), folder, vocab_size=lambda _: 300)


def test_files_of_several_languages_are_bilingual_corpora(tmp_path):
    corpora = bilingual_corpora(["a/x.en.gz", "a/x.de.gz", "b.fr", "b.pt-BR", "a/x.fr.gz"])
    assert [(corpus.files, str(corpus.languages)) for corpus in corpora] == [
        (("a/x.en.gz", "a/x.de.gz"), "en-de"),
        (("a/x.en.gz", "a/x.fr.gz"), "en-fr"),
        (("a/x.de.gz", "a/x.fr.gz"), "de-fr"),
        (("b.fr", "b.pt-BR"), "fr-pt_BR"),
    ]
    assert [str(each) for each in directions_in(corpora, ["fr"])] == ["fr-en", "fr-de", "fr-pt_BR"]
    assert [str(each) for each in directions_in(corpora, ["en", "fr"], ["de"])] == [
        "en-de",
        "fr-de",
    ]
    labelled = bilingual_corpora(["en,de=one.tsv", "en,fr,de=two.tmx"])
    assert [str(corpus.languages) for corpus in labelled] == ["en-de", "en-fr", "en-de", "fr-de"]
    for code in ("de", "fr"):
        (tmp_path / code / "LC_MESSAGES").mkdir(parents=True)
        (tmp_path / code / "LC_MESSAGES" / "app.po").write_text('msgid "a"\nmsgstr "b"\n')
    locale = bilingual_corpora([f"en,de,fr={tmp_path}"])
    assert [(corpus.files, corpus.languages.target) for corpus in locale] == [
        ((str(tmp_path / code / "LC_MESSAGES" / "app.po"),), code) for code in ("de", "fr")
    ]


def test_a_folder_of_packed_files_has_the_languages_of_their_names(tmp_path):
    for name in ("de.tsv.gz", "fr.tsv.gz", "more.de.tsv"):
        (tmp_path / name).touch()
    [corpus] = bilingual_corpora([f"en,de={tmp_path}"])
    assert corpus.files == (str(tmp_path / "de.tsv.gz"), str(tmp_path / "more.de.tsv"))


def test_codes_have_three_letters_or_a_numeric_region():
    [corpus] = bilingual_corpora(["train.fil.gz", "train.es-419.gz"])
    assert str(corpus.languages) == "fil-es_419"
    assert languages_of(["train.eng_Latn", "train.de"]) == ("eng_Latn", "de")
    assert is_multilingual(["train.en", "train.fil", "train.es-419"])
    for name in (
        "x.txt",
        "x.tok",
        "x.tsv",
        "x.src",
        "x.tgt",
        "x.raw",
        "x.min",
        "x.bpe",
        "x.ref",
        "x.en-1",
        "x.es-4190",
    ):
        assert not language_of(name)


def test_a_validation_text_of_other_languages_is_not_ignored():
    asked = {"train": ["a.en", "a.de", "b.en", "b.fr"], "test": [], "languages": ("en", "de")}
    with pytest.raises(UserError, match=r"v\.en v\.fr: there is no text from en to de"):
        gather(None, valid=["v.en", "v.fr"], **asked)
    assert gather(None, valid=["v.en", "v.de"], **asked)["data.valid"] == ("v.en", "v.de")


def test_the_corpora_of_a_recipe_get_the_direction_of_a_multilingual_model(place):
    recipe = place / "corpora.toml"
    recipe.write_text(
        '[[data.corpora]]\nfiles = ["a.tsv"]\n[[data.corpora]]\nfiles = ["b.tsv"]\nsource = "fr"\n'
    )
    settings = gather(str(recipe), train=[], valid=[], test=[], languages=("en", "de"))
    found = with_direction(settings, [], ["en-de", "de-en", "fr-de"])
    assert found["data.directions"] == ("en-de",)
    assert [(each["source"], each["target"]) for each in found["data.corpora"]] == [
        ("en", "de"),
        ("fr", "de"),
    ]


def test_a_corpus_without_languages_gets_no_direction_by_chance():
    settings = gather(None, train=["a.tsv"], valid=[], test=[], languages=("", ""))
    with pytest.raises(UserError, match=r"has the directions en-de, de-en.* Name them") as error:
        with_direction(settings, ["a.tsv"], ["en-de", "de-en"])
    assert error.value.hint.options == ("data.source", "data.target")
    assert with_direction(settings, ["a.tsv"], ["en-de"])["data.directions"] == ("en-de",)
    tables = [{"files": [f"{code}.tsv"], "source": code, "target": "de"} for code in ("en", "fr")]
    labelled = Settings.of({"data.corpora": tables})
    assert with_direction(labelled, [], ["en-de", "fr-de"]) == labelled


def test_ordinary_corpora_are_not_multilingual():
    bilingual = (
        ["a.de-en.tmx", "b.de-en.tmx", "c.de-en.tmx"],
        ["a.de.po", "b.de.po", "c.de.po"],
        3 * ["x.en-de.tsv"],
    )
    for names in (
        ["train.en", "train.de"],
        ["a.tsv"],
        ["a.tmx", "b.tmx"],
        ["a.txt", "b.txt"],
        [],
        *bilingual,
    ):
        assert not is_multilingual(names)
    assert is_multilingual(["train.en", "train.de", "train.fr"])
    assert is_multilingual(["en,de=a.tsv"])


@pytest.mark.parametrize(
    ("names", "languages", "said"),
    [
        (
            ["x.en", "x.de", "y.fr"],
            ("", ""),
            "y.fr: there is no file of the same text in another language",
        ),
        (["x.en", "x.de", "x.de"], ("", ""), "same text and language"),
        (
            ["x.en", "x.de", "x.fr"],
            ("en", "it"),
            "No corpus has the language 'it'. Choose one of en, de, fr.\n",
        ),
        (["en,en=x.tsv"], ("", ""), "names a language twice"),
        (["x.en", "x.de", "x.fr"], ("en", "en"), "No corpus has a pair from en to en"),
        (
            ["x.tsv"],
            ("en,de", "de,en"),
            "The language of x.tsv is unknown. Write its language codes first, such as en,de=",
        ),
        (
            ["x", "x.de"],
            ("en,de", "de,en"),
            "The language of x is unknown. The name of a text file must have",
        ),
    ],
)
def test_a_mistake_in_the_languages_is_one_sentence(names, languages, said, capsys, tmp_path):
    options = ["--from", languages[0], "--to", languages[1]] if any(languages) else []
    status, _, error = run(capsys, "train", "--out", tmp_path / "out", "--train", *names, *options)
    assert status and said in error and "Traceback" not in error
    assert not (tmp_path / "out").exists()


def test_texts_in_another_language_than_their_label_are_refused(tmp_path, capsys):
    english = [example.english for example in examples("train", 80)]
    german = [example.german for example in examples("train", 80)]
    for name, texts in {"a.en": english, "a.de": german, "b.en": german, "b.fr": english}.items():
        (tmp_path / name).write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    names = [str(tmp_path / name) for name in ("a.en", "a.de", "b.en", "b.fr")]
    status, _, error = run(capsys, "prepare", "--out", tmp_path / "out", "--train", *names)
    assert status == 2 and "% of the texts in en look like another language of the model" in error
    assert f"{names[2]} + {names[3]}: " in error and not (tmp_path / "out").exists()
    swapped = [str(tmp_path / name) for name in ("a.en", "b.en")]
    status, _, error = run(
        capsys, "prepare", "--out", tmp_path / "out", "--train", *swapped, "--from=de", "--to=en"
    )
    assert status == 2 and "% of the texts in de look like another language of the model" in error
    both = [str(tmp_path / name) for name in ("a.en", "b.fr")]  # both are English
    status, _, error = run(
        capsys, "prepare", "--out", tmp_path / "out", "--train", *both, "--from=en", "--to=de"
    )
    assert (
        status == 0
        and "Warning: " in error
        and "100% of the texts in de look like another" in error
    )


@pytest.mark.parametrize("direction", ["de-en", "en-de", "de-fr", "fr-de"])
def test_one_direction_of_a_corpus_makes_an_ordinary_model(place, direction):
    source, target = direction.split("-")
    sets = {
        "train": files(place, "train"),
        "valid": files(place, "valid"),
        "test": files(place, "test"),
    }
    settings = gather(None, **sets, languages=(source, target), assignments=[])
    assert "data.directions" not in settings and settings["data.source"] == source
    [table] = settings["data.corpora"]
    assert [Path(file).suffix for file in table["files"]] == [f".{source}", f".{target}"]
    for name in ("valid", "test"):
        assert list(settings[f"data.{name}"]) == files(place, name, (source, target))


def test_several_validation_corpora_are_all_read(place, tmp_path):
    for name, code in product("ab", ("en", "de")):
        shutil.copy(place / f"valid.{code}", tmp_path / f"{name}.{code}")
    valid = [str(tmp_path / f"{name}.{code}") for name, code in product("ab", ("en", "de"))]
    settings = gather(
        None,
        train=files(place, "train"),
        valid=valid,
        test=[],
        languages=("de", "en"),
        assignments=["data.max_tokens=9"],
    )
    corpus = prepare(settings.config().data, tmp_path / "corpus", vocab_size=lambda _: 300)
    assert (
        len(corpus.valid()) == 60
        and corpus.valid()[0].source == (place / "valid.de").read_text().split("\n")[0]
    )


def test_a_validation_file_may_have_a_label(place, tmp_path):
    pairs = zip(
        *(Path(file).read_text().splitlines() for file in files(place, "valid", ("en", "de"))),
        strict=True,
    )
    (tmp_path / "valid.tsv").write_text(
        "".join(f"{source}\t{target}\n" for source, target in pairs)
    )
    labelled = {"data__valid": (f"en,de={tmp_path / 'valid.tsv'}",)}
    assert len(prepared(place, tmp_path / "corpus", **labelled).valid()) == 60


def test_several_languages_need_files(capsys, tmp_path):
    status, _, error = run(
        capsys, "train", "phrasebook", "--out", tmp_path / "m", "--from", "en,fr", "--to", "de"
    )
    assert status == 2 and "Several languages need corpus files" in error


def test_a_bilingual_file_is_read_backwards_with_a_tag(tmp_path):
    (tmp_path / "a.tsv").write_text("ka\tzu\nlo\tfe\n")
    settings = gather(
        None,
        train=[f"en,de={tmp_path}/a.tsv"],
        valid=[],
        test=[],
        languages=("de", "en"),
        assignments=[],
    )
    assert settings["data.directions"] == ("de-en",)
    assert settings["data.corpora"] == [
        {"files": [f"{tmp_path}/a.tsv"], "source": "en", "target": "de"}
    ]


@pytest.mark.parametrize(
    ("directions", "target", "said"),
    [
        (
            ["en-de", "de-en"],
            "ge",
            "has the languages 'en' and 'ge', but the directions of the model are en-de, de-en",
        ),
        (["en-de", "en-fr"], "de", "No corpus has texts for the direction en-fr"),
    ],
)
def test_a_recipe_whose_corpora_do_not_fit_its_directions_is_refused(
    directions, target, said, place, tmp_path
):
    corpora = [{"files": files(place, "train", ("en", "de")), "source": "en", "target": target}]
    with pytest.raises(UserError, match=said):
        prepared(
            place, tmp_path / "corpus", data__corpora=corpora, data__directions=tuple(directions)
        )


def test_a_vocabulary_without_the_tag_is_refused(place, tmp_path):
    tokenizer = prepared(place, tmp_path / "corpus", data__holdout=20).tokenizer
    tokenizer.source.tags = {
        tag: token for tag, token in tokenizer.source.tags.items() if tag != ">>fr<<"
    }
    with pytest.raises(UserError, match="The vocabulary has no tag for fr"):
        prepare(data(place), tmp_path / "other", vocab_size=lambda _: 300, tokenizer=tokenizer)


@pytest.mark.parametrize("lines", [0, 30])
def test_languages_without_pairs_are_refused_and_with_few_are_warned_of(lines, tmp_path, capsys):
    for code, text in texts(200, 7).items():
        kept = text[:lines] + [""] * (200 - lines) if code == "fr" else text
        (tmp_path / f"a.{code}").write_text("".join(f"{line}\n" for line in kept))
    names = files(tmp_path, "a")
    command = ["prepare", "--out", tmp_path / "out", "data.vocab_size=300", "data.holdout=0"]
    status, _, said = run(capsys, *command, "--train", *names)
    if lines:
        assert status == 0 and f"{names[2]} has only 30 pairs from en to fr." in said, said
        assert "from de to fr." in said and "from en to de" not in said
    else:
        left = f"No training pairs are left in {names[0]}, {names[2]}. "
        assert status == 2 and left in said and "a blank side" in said


def test_a_small_corpus_keeps_nine_tenths_of_its_pairs(place, tmp_path):
    for name, language, lines in (("large", "de", 400), ("small", "fr", 60)):
        for code in ("en", language):
            texts = (place / f"train.{code}").read_text().splitlines(keepends=True)
            (tmp_path / f"{name}.{code}").write_text(
                "".join(texts[-lines:] if name == "small" else texts[: 400 - 60])
            )
    names = {"large": "de", "small": "fr"}
    corpora = [
        {
            "files": [str(tmp_path / f"{name}.en"), str(tmp_path / f"{name}.{code}")],
            "source": "en",
            "target": code,
        }
        for name, code in names.items()
    ]
    options = {"data__corpora": corpora, "data__directions": ("en-de", "en-fr")}
    corpus = prepared(place, tmp_path / "corpus", **options)
    assert corpus.mixture.stores[1].pairs >= 54
    assert by_direction(corpus.valid()).keys() == {"en-de", "en-fr"}


def test_samples_have_all_directions(place, tmp_path):
    valid = prepared(place, tmp_path / "corpus", data__holdout=40).valid()
    for count in (6, 13, 30):
        sample = by_direction(first_of_each_direction(valid, count))
        assert sample.keys() == set(DIRECTIONS) and {len(pairs) for pairs in sample.values()} == {
            count // 6
        }


def test_no_held_out_sentence_of_any_direction_is_trained_on(place, tmp_path):
    corpus = prepared(place, tmp_path / "corpus", data__holdout=20)
    valid = by_direction(corpus.valid())
    assert sorted(valid) == sorted(DIRECTIONS)
    counts = {name: len(pairs) for name, pairs in valid.items()}
    assert min(counts.values()) >= 5, counts
    held_out = sentences(pair for pairs in valid.values() for pair in pairs).ravel()
    trained: set[str] = set()
    for store in corpus.mixture.stores:
        for column in (store.source, store.target):
            trained |= set(
                corpus.tokenizer.decode(
                    [row.tolist() for row in column.rows(np.arange(store.pairs))]
                )
            )
    assert trained and not set(held_out.tolist()) & set(
        sentences(transduce.text.pairs.Pair(text, text, None) for text in trained).ravel().tolist()
    )


def test_sentences_of_the_test_set_are_left_out_of_all_directions(place, tmp_path):
    test = tmp_path / "three.en", tmp_path / "three.de", tmp_path / "three.fr"
    for path in test:
        path.write_text((place / f"train{path.suffix}").read_text().partition("\n")[0] + "\n")
    for number, named in enumerate((test, test[:2], test[1::-1])):
        options = {
            "data__rules": ("test",),
            "data__test": tuple(map(str, named)),
            "data__holdout": 0,
        }
        corpus = prepared(place, tmp_path / f"corpus-{number}", **options)
        assert corpus.facts.left_out == {"test": 3} and corpus.facts.pairs == 3 * 399


def test_a_table_tests_multilingual_models_in_one_direction(place):
    table = place / "table.toml"
    table.write_text('[rows]\nbase = ""\nfast = "train.warmup=10"\n')
    own = {"data.directions": tuple(DIRECTIONS), "data.source": "en", "data.target": "de"}
    text = _text(read(table, own | {"data.test": tuple(files(place, "test", ("fr", "de")))}))
    assert str(text.direction) == "fr-de" and {pair.direction for pair in text.pairs} == {"fr-de"}


def test_both_directions_of_a_pair_share_a_store(place, tmp_path):
    corpus = prepared(place, tmp_path / "corpus", data__valid=tuple(files(place, "valid")))
    assert len(list((tmp_path / "corpus").glob("corpus-*"))) == 3
    assert len(corpus.mixture.stores) == 6
    assert corpus.origin(0) == f"{place / 'train.en'}:1"


def test_each_source_begins_with_the_tag_of_its_target(place, tmp_path):
    corpus = prepared(place, tmp_path / "corpus", data__valid=tuple(files(place, "valid")))
    train = transduce.config.parse.configure(
        {"train.sample_source": 0.2, "data.augment": "default"}
    )
    tags = {corpus.tokenizer.into(language).tags[0]: language for language in LANGUAGES}
    assert len(tags) == 3
    expected = {
        pair[:2]
        for name in DIRECTIONS
        for pair in read_pairs(files(place, "train", tuple(name.split("-"))))
    }
    for mixture in (corpus.mixture, corpus.drawn(train)):
        seen = set()
        for update in mixture.plan(0, 0, budget=500, accumulate=1, seed=1):
            for batch in update:
                rows, targets, lengths = (
                    mixture.sources(batch),
                    mixture.targets(batch),
                    mixture.lengths(batch),
                )
                assert [len(row) for row in rows] == lengths[0].tolist()
                assert [len(row) for row in targets] == lengths[1].tolist()
                for index, row, target in zip(batch.tolist(), rows, targets, strict=True):
                    seen.add((index, *corpus.tokenizer.decode([row[1:].tolist(), target.tolist()])))
                    language = tags[int(row[0])]
                    if mixture is corpus.mixture:  # else the text may be augmented
                        words = corpus.tokenizer.decode([target.tolist()])[0].split()
                        assert language == (
                            "fr" if words[0].endswith("n") else "en" if words[0] in WORDS else "de"
                        )
        assert len({index for index, *_ in seen}) == len(mixture) == len(seen)
        if mixture is corpus.mixture:
            assert {pair[1:] for pair in seen} == expected


def test_a_tag_is_never_read_from_a_text(place, tmp_path):
    tokenizer = prepared(
        place, tmp_path / "corpus", data__valid=tuple(files(place, "valid"))
    ).tokenizer
    tags = set(tokenizer.source.tags.values())
    for text in (">>de<< ka lo", "ka >>de<<", ">>de<<"):
        [ids] = tokenizer.encode_source([text])
        assert not tags & set(ids)
        assert tokenizer.decode([ids]) == [text]
        assert tokenizer.into("fr").encode_source([text, ""]) == [
            [tokenizer.source.tags[LANGUAGE_TAG.format("fr")], *ids],
            [],
        ]


@pytest.mark.parametrize("temperature", [1.0, 2.0, 5.0])
def test_the_temperature_decides_how_often_a_small_corpus_is_read(place, tmp_path, temperature):
    small = tmp_path / "small.fr"
    small.write_text("".join((place / "train.fr").read_text().splitlines(keepends=True)[:50]))
    shutil.copy(place / "train.en", tmp_path / "large.en")
    (tmp_path / "small.en").write_text(
        "".join((place / "train.en").read_text().splitlines(keepends=True)[:50])
    )
    shutil.copy(place / "train.de", tmp_path / "large.de")
    corpora = [
        {
            "files": [str(tmp_path / f"{name}.en"), str(tmp_path / f"{name}.{code}")],
            "source": "en",
            "target": code,
        }
        for name, code in (("large", "de"), ("small", "fr"))
    ]
    corpus = (
        prepared(
            place,
            tmp_path / "corpus",
            data__corpora=corpora,
            data__directions=("en-de", "en-fr"),
            data__temperature=temperature,
            data__valid=("en,de=" + str(tmp_path / "v.tsv"),),
        )
        if (tmp_path / "v.tsv").write_text("ka\tzu\n")
        else None
    )
    assert corpus
    sizes = np.array([400, 50])
    shares = sizes ** (1 / temperature)
    assert np.allclose(
        np.array(corpus.mixture.weights) * sizes, shares / shares.sum() * sizes.sum()
    )
    assert abs(corpus.mixture.pairs_per_epoch - 450) <= 1


def test_model_learns_every_direction(model, place):
    translator, known = transduce.load(model, engine="torch"), texts(400, 0)
    for name in DIRECTIONS:
        source, target = name.split("-")
        pairs = list(read_pairs(files(place, "test", (source, target))))
        found = translator.translate([pair.source for pair in pairs], source=source, target=target)
        assert set(" ".join(each.text for each in found).split()) <= set(
            " ".join(known[target]).split()
        )
        words = sum(
            len({*each.text.split()} & {*pair.target.split()})
            for each, pair in zip(found, pairs, strict=True)
        )
        assert words > 0.6 * sum(len({*pair.target.split()}) for pair in pairs), name


def test_the_metrics_have_scores_of_each_direction(model, capsys):
    metrics = model_folder.read_metrics(model)
    assert sorted(metrics["directions"]) == sorted(DIRECTIONS)
    for scores in metrics["directions"].values():
        assert scores["validation"]["chrf"] > 35
        assert scores["test"]["sentences"] == 20
    _, said, _ = run(capsys, "info", model)
    assert "languages" in said and all(name in said for name in DIRECTIONS)
    card = (model / model_folder.CARD).read_text()
    assert "--from en --to de" in card and "target='de'" in card


def test_translation_depends_on_neither_engine_nor_other_directions(model, place):
    english = (place / "test.en").read_text().splitlines()
    alone = transduce.load(model, engine="torch", source="en", target="fr").translate(english)
    chosen = transduce.load(model, engine="torch")
    chosen.translate(english, target="de")
    assert chosen.translate(english, target="fr") == alone
    fast = transduce.load(model, engine="ctranslate2", source="en", target="fr").translate(english)
    # In int8, this processor or that may decide a near tie otherwise.
    same = sum(one.text == other.text for one, other in zip(fast, alone, strict=True))
    assert same >= 0.9 * len(english)


def test_a_translation_is_scored_in_its_direction(model):
    translator = transduce.load(model, engine="torch", source="en", target="de")
    sources = ["ka lo mi", "ti du"]
    translations = translator.translate(sources)
    scored = translator.score(sources, [translation.text for translation in translations])
    assert [each.score for each in scored] == pytest.approx(
        [each.score for each in translations], abs=1e-4
    )


def test_names_of_files_choose_the_direction_of_scores(model, place, capsys):
    found = run(capsys, "score", model, *files(place, "test", ("de", "fr")))
    assert found[0] == 0
    assert found == run(
        capsys, "score", model, *files(place, "test", ("de", "fr")), "--from", "de", "--to", "fr"
    )


def test_words_are_aligned_without_the_tag(model):
    [translation] = transduce.load(model, engine="torch").translate(
        ["ka lo mi"], source="en", target="fr", align=True
    )
    assert translation.links
    assert {link.source for link in translation.links} <= {(0, 2), (3, 5), (6, 8)}


def test_a_direction_must_be_named(model, capsys, tmp_path):
    listed = "en-de, de-en, en-fr, fr-en, de-fr, fr-de"
    translator = transduce.load(model, engine="torch")
    for call in (lambda: translator.translate(["ka"]), lambda: translator.score(["ka"], ["zu"])):
        with pytest.raises(UserError, match=listed):
            call()
    with pytest.raises(
        UserError, match=f"does not translate from en to it. Choose one of its directions: {listed}"
    ):
        translator.translate(["ka"], source="en", target="it")
    (tmp_path / "a.txt").write_text("ka lo\n")
    status, _, error = run(capsys, "translate", model, "--input", tmp_path / "a.txt")
    assert status and listed in error
    status, said, _ = run(
        capsys, "translate", model, "--input", tmp_path / "a.txt", "--from", "en", "--to", "de"
    )
    assert not status and said.strip()


def test_translator_repr_shows_directions_engine_and_beam(model):
    translator = transduce.load(model, engine="torch")
    assert (
        repr(translator)
        == f"<Translator: {', '.join(model_folder.read_config(model).data.directions)}, torch, beam 4>"
    )
    assert repr(translator.toward("en", "de")) == "<Translator: en-de, torch, beam 4>"
    greedy = translator.translate(["ka lo mi"], source="en", target="de", beam_size=1)
    assert greedy == translator.toward("en", "de").with_beam_size(1).translate(["ka lo mi"])
    terms = {"lo": "pon"}
    found = translator.translate(["ka lo"], source="en", target="fr", glossary=terms)
    assert found == translator.translate(
        ["ka lo"], source="en", target="fr", glossary=[transduce.Term("lo", "pon")]
    )
    with pytest.raises(TypeError, match="item 1 is not a text but None"):
        translator.translate(["ka", None], target="de")


def test_a_model_with_one_direction_refuses_another(place, tmp_path, capsys):
    options = spelt(
        TINY
        | {"train.steps": 2, "train.save_every": 2, "train.validate_every": 2, "data.holdout": 20}
    )
    run(
        capsys,
        "train",
        "--out",
        tmp_path / "m",
        "--train",
        *files(place, "train", ("en", "de")),
        *options,
    )
    with pytest.raises(UserError, match="does not translate from de to en"):
        transduce.load(tmp_path / "m", engine="torch", source="de", target="en")
    assert transduce.load(tmp_path / "m", engine="torch", target="de").translate([""])[0].text == ""


def test_all_directions_are_evaluated_at_once(model, place, tmp_path, capsys):
    status, said, _ = run(capsys, "evaluate", model, *files(place, "test"), "--json")
    assert not status and sorted(json.loads(said)) == sorted(DIRECTIONS)
    others = [
        shutil.copy(file, tmp_path / f"test.{code}")
        for file, code in zip(files(place, "test"), ("it", "es", "pt"), strict=True)
    ]
    status, _, error = run(capsys, "evaluate", model, *others)
    assert status == 2 and "has no pairs in these directions: de-en, de-fr, en-de" in error
    expected = model_folder.read_metrics(model)["directions"]["de-fr"]["test"]["scores"][0]["value"]
    for more in ((), ("--from", "de"), ("--to", "fr")):
        status, said, _ = run(
            capsys, "evaluate", model, *files(place, "test", ("de", "fr")), *more, "--json"
        )
        assert not status and json.loads(said)["scores"][0]["value"] == pytest.approx(
            expected, abs=0.01
        )


def test_two_multilingual_models_are_compared_in_one_direction(model, place, capsys):
    command = ("evaluate", model, *files(place, "test"), "--against", model, "decode.beam_size=1")
    status, _, said = run(capsys, *command)
    assert status == 2 and "in one direction. Choose it with --from and --to." in said
    _, said, _ = run(capsys, *command, "--from", "de", "--to", "fr", "--json")
    found = json.loads(said)
    _, said, _ = run(
        capsys,
        "evaluate",
        model,
        *files(place, "test", ("de", "fr")),
        "--json",
        "decode.beam_size=1",
    )
    assert [each["second"]["value"] for each in found["scores"]] == [
        x["value"] for x in json.loads(said)["scores"]
    ]
    assert [each["p_value"] for each in found["scores"]] == [None] * 3, "too few sentences"


@pytest.mark.slow
def test_interruption_changes_no_result(place, tmp_path):
    from transduce.training.run import train

    corpora = {
        "data.corpora": [
            {
                "files": list(corpus.files),
                "source": corpus.languages.source,
                "target": corpus.languages.target,
            }
            for corpus in bilingual_corpora(files(place, "train"))
        ],
        "data.directions": tuple(DIRECTIONS),
        "data.valid": tuple(files(place, "valid")),
        "train.sample_source": 0.1,
        "data.augment": "default",
        "decode.max_extra_tokens": 2,
    }
    options = TINY | corpora | {"train.steps": 8, "train.save_every": 4, "train.validate_every": 4}
    train(options, tmp_path / "one")
    calls = iter([False] * 3 + [True] * 9)
    assert train(options, tmp_path / "two", stop=lambda: next(calls)).reason == "interrupted"
    train(options, tmp_path / "two")
    one, two = (load_file(tmp_path / name / model_folder.WEIGHTS) for name in ("one", "two"))
    assert one.keys() == two.keys() and all((one[key] == two[key]).all() for key in one)


def test_shards_of_a_multilingual_corpus_make_the_same_files(place, tmp_path):
    from transduce.wings.cluster import preparing

    options = {"data__holdout": 20}
    whole = prepared(place, tmp_path / "whole", **options)
    folder, config = tmp_path / "shards", data(place, **options)
    plan = preparing.plan_preparation(config, folder, 2, vocab_size=300, unit=50)
    for shard in plan.all():
        preparing.stage_shard(folder, plan, shard)
    preparing.aggregate_shards(folder, plan)
    for shard in plan.all():
        preparing.encode_shard(folder, plan, shard)
    merged = preparing.merge_prepared(folder, plan, tmp_path / "merged")
    assert merged.valid() == [
        pair._replace(origin=pair.origin._replace(file=str(tmp_path / "merged" / "valid.jsonl")))
        for pair in whole.valid()
    ]
    for file in sorted((tmp_path / "whole").rglob("*.ids")):
        assert (
            file.read_bytes()
            == (tmp_path / "merged" / file.relative_to(tmp_path / "whole")).read_bytes()
        )
    assert open_prepared(tmp_path / "merged").mixture.weights == whole.mixture.weights


WITHOUT = [Direction.parse(name) for name in DIRECTIONS if name not in ("de-fr", "fr-de")]


def without_german_french(model: Path, **options: object) -> transduce.Translator:
    """A translator that lacks two directions of its model, and has not measured them."""
    translator = transduce.load(model, engine="torch", **options)
    return replace(with_routes(translator, {}), directions=WITHOUT)


def with_routes(
    translator: transduce.Translator, routes: dict[str, dict[str, float]]
) -> transduce.Translator:
    """A copy of a translator that has measured other routes."""
    return replace(translator, scores=translator.scores._replace(routes=routes))


def test_a_direction_that_is_missing_is_translated_through_a_pivot(model, place):
    translator = without_german_french(model)
    german = (place / "test.de").read_text().splitlines()
    english = translator.translate(german, source="de", target="en", align=True)
    french = translator.translate(
        [each.text for each in english], source="en", target="fr", align=True, n_best=2
    )
    found = translator.translate(german, source="de", target="fr", align=True, n_best=2)
    assert [each.text for each in found] == [each.text for each in french]
    for each, first, second in zip(found, english, french, strict=True):
        assert [hop.text for hop in each.hops] == [first.text, second.text]
        assert each.score == pytest.approx(first.score + second.score, abs=1e-4)
        [alternative] = each.alternatives
        assert alternative.score <= each.score and alternative.confidence == pytest.approx(
            first.confidence * second.alternatives[0].confidence, abs=1e-4
        )
        links = {
            (one.source, other.target)
            for one in first.links
            for other in second.links
            if one.target == other.source
        }
        assert links <= {(link.source, link.target) for link in each.links}
    pivoting = translator.toward("de", "fr")
    assert [each.text for each in pivoting.translate_sentences(german)] == [
        each.text for each in found
    ]
    assert (
        pivoting.pivot == "en" and repr(pivoting) == "<Translator: de-fr through en, torch, beam 4>"
    )
    assert pivoting.translate(german, source="de", target="en", align=True) == english
    greedy = pivoting.translate(german, beam_size=1)
    assert [each.hops[0].text for each in greedy] == [
        each.text for each in translator.translate(german, source="de", target="en", beam_size=1)
    ]
    assert [each.text for each in greedy] == [
        each.text
        for each in translator.direct(Direction("en", "fr")).translate(
            [each.hops[0].text for each in greedy], beam_size=1
        )
    ]
    with pytest.raises(UserError, match="does not translate de-fr directly"):
        translator.toward("de", "fr").score(["zu"], ["zun"])
    lines = list(translator.toward("de", "fr").translate_lines(german))
    assert [each.text for each in lines] == [each.text for each in found]
    with pytest.raises(UserError, match="does not translate from de to de"):
        translator.toward("de", "de")


def test_shards_with_a_glossary_are_translated_through_a_pivot(model, place, tmp_path, capsys):
    bundle = model_folder.load(model)
    data = replace(bundle.config.data, directions=tuple(map(str, WITHOUT)))
    config, weights = replace(bundle.config, data=data), bundle.model.state_dict()
    publish_model(tmp_path / "m", config, bundle.tokenizer, weights, {"parameters": 1}, "")
    word = (place / "test.de").read_text().split()[0]
    (tmp_path / "terms.de-fr.tsv").write_text(f"{word}\tTERME\n")
    call = ["translate", tmp_path / "m", "--input", place / "test.de", "--from", "de", "--to", "fr"]
    call += ["--glossary", tmp_path / "terms.de-fr.tsv", "--engine", "torch"]
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    assert run(capsys, *call, "--output", whole)[0] == 0 and "TERME" in whole.read_text()
    assert [
        run(capsys, *call, "--output", parts, "--shard", f"{number}/2")[0] for number in (1, 2)
    ] == [0, 0]
    assert run(capsys, "join", parts, "--output", tmp_path / "joined")[0] == 0
    assert (tmp_path / "joined").read_bytes() == whole.read_bytes()


def test_similar_codes_have_the_same_route(model):
    translator = without_german_french(model)
    routes = [
        translator.toward(*codes) for codes in (("de", "fr"), ("DE", "fr"), ("de-AT", "fr_CA"))
    ]
    assert {(route.pivot, route.direction) for route in routes} == {("en", Direction("de", "fr"))}
    translator = with_routes(translator, {"en-de": {"direct": 30.0, "fr": 40.0}})
    assert translator.toward("en", "de").pivot == translator.toward("en-GB", "DE").pivot == "fr"


def test_the_route_with_the_better_score_is_taken(model, place):
    german = (place / "test.de").read_text().splitlines()
    trained = transduce.load(model, engine="torch").direct(Direction("de", "fr")).translate(german)
    translator = with_routes(without_german_french(model), {"de-fr": {"direct": 50.0, "en": 50.5}})
    chosen = translator.toward("de", "fr")
    assert not chosen.pivot and [each.text for each in chosen.translate(german)] == [
        each.text for each in trained
    ]
    whole = transduce.load(model, engine="torch")
    scored = whole.direct(Direction("de", "fr")).score(german, german)
    whole = with_routes(whole, {"de-fr": {"direct": 50.0, "en": 52.0}})
    chosen = whole.toward("de", "fr")
    assert chosen.pivot == "en" and chosen.score(german, german) == scored, (
        "scores are of the trained direction"
    )
    assert chosen.translate(["zu"])[0].hops and not whole.toward("de", "en").pivot


def test_routes_are_measured_when_a_training_ends(model, place, tmp_path):
    assert "routes" not in model_folder.read_metrics(model), (
        "30 pairs can't tell whether a pivot is better"
    )
    bundle, pairs = (
        model_folder.load(model),
        list(read_directed(files(place, "train"), data(place))),
    )
    routes = measure_routes(bundle, [pair for pair in pairs if pair.direction == "de-fr"], {})
    assert routes.keys() == {"de-fr"} and routes["de-fr"].keys() == {"direct", "en"}
    plain = {"decode.beam_size": 1, "decode.capitals": False, "decode.retry_loops": False}
    translator = transduce.load(model, engine="torch", options=plain)
    sources, references = zip(
        *((pair.source, pair.target) for pair in pairs if pair.direction == "de-fr"), strict=True
    )
    outputs = [
        each.text for each in translator.direct(Direction("de", "fr")).translate(sources[:200])
    ]
    assert routes["de-fr"]["direct"] == pytest.approx(
        CHRF().corpus_score(outputs, [references[:200]]).score
    )
    english = [
        each.text for each in translator.direct(Direction("de", "en")).translate(sources[:200])
    ]
    outputs = [each.text for each in translator.direct(Direction("en", "fr")).translate(english)]
    assert routes["de-fr"]["en"] == pytest.approx(
        CHRF().corpus_score(outputs, [references[:200]]).score
    )
    shouted = [
        pair._replace(source=pair.source.upper()) for pair in pairs if pair.direction == "de-fr"
    ][:200]
    outputs = [
        each.text
        for each in translator.direct(Direction("de", "fr")).translate(
            [each.source for each in shouted]
        )
    ]
    score = CHRF().corpus_score(outputs, [references[:200]]).score
    assert measure_routes(bundle, shouted, {})["de-fr"]["direct"] == pytest.approx(score), (
        "search is plain"
    )
    out, english_centric = tmp_path / "out", [name for name in DIRECTIONS if "en" in name]
    config = {
        "data.directions": english_centric,
        "data.valid": files(place, "valid"),
        "train.steps": 6,
    }
    corpora = [corpus for corpus in data(place).corpora if corpus.source == "en"]
    options = TINY | SHAPE | STEPS | config | {"data.corpora": [vars(corpus) for corpus in corpora]}
    metrics = transduce.training.run.train(options, out).metrics
    assert metrics["routes"].keys() == {"de-fr", "fr-de"} and metrics["directions"].keys() == {
        *english_centric
    }
    assert all(each.keys() == {"direct", "en"} for each in metrics["routes"].values())


def test_an_average_has_no_scores_of_other_weights(model, tmp_path, capsys):
    assert run(capsys, "average", model, "--last", "2", "--out", tmp_path / "average")[0] == 0
    was, now = (
        model_folder.read_metrics(folder)["directions"]["en-de"]
        for folder in (model, tmp_path / "average")
    )
    figures = dict.fromkeys(("perplexity", "bleu", "general", "general_perplexity"))
    assert now == {"validation": figures | {"chrf": was["validation"]["chrf"]}}
    status, said, _ = run(capsys, "info", tmp_path / "average")
    assert not status and "BLEU" not in said


def test_all_routes_of_a_test_set_are_compared(model, place, capsys):
    status, out, _ = run(capsys, "evaluate", model, *files(place, "test"), "--routes", "--json")
    found = json.loads(out)
    assert (
        not status and len(found) == 12 and {each["direction"] for each in found} == {*DIRECTIONS}
    )
    for each in found:
        assert (each["route"] == "direct") == (not each["p_values"]) and each["trained"]
    _, out, _ = run(
        capsys,
        "evaluate",
        model,
        *files(place, "test", ("de", "fr")),
        "--routes",
        "decode.beam_size=1",
    )
    rows = [line.split() for line in out.splitlines()]
    assert [row[:2] for row in rows[1:]] == [["de-fr", "direct"], ["de-fr", "through"]]


def test_markup_and_terms_survive_a_pivot(model):
    translator = without_german_french(model)
    [found] = translator.translate(
        ["zu <b>fe</b> ga {0}"], source="de", target="fr", sentences=True
    )
    assert found.text.count("<b>") == found.text.count("</b>") == found.text.count("{0}") == 1
    sources, glossary = ["zu fe", "fe ga", "ga fe zu", "fe"], [transduce.Term("fe", "pon")]
    results = translator.translate(
        sources, source="de", target="fr", glossary=glossary, sentences=True
    )
    pairs = translator.translate(
        sources, source="de", target="fr", glossary=[("fe", "pon")], sentences=True
    )
    assert pairs == results
    placed = ["pon" in found.text.split() for found in results]
    assert placed == [TERM not in found.flags for found in results] and any(placed)


def test_a_server_lists_and_uses_pivots(model):
    translator = without_german_french(model)
    app = application(store_of(translator), Keys(), Limits(), local=True)
    with TestClient(app, base_url="http://localhost", client=("127.0.0.1", 1)) as asking:
        targets = {
            each["code"]: sorted(each["targets"]) for each in asking.get("/languages").json()
        }
        assert targets == {"en": ["de", "fr"], "de": ["en", "fr"], "fr": ["de", "en"]}
        expected = (
            without_german_french(model)
            .translate(["zu fe ga"], source="de", target="fr", sentences=True)[0]
            .text
        )
        fields = {"q": "zu fe ga", "source": "de", "target": "fr", "scores": True}
        answer = asking.post("/translate", json=fields).json()
        assert answer["translatedText"] == expected and answer["route"] == ["de", "en", "fr"]
        assert len(answer["hops"]) == 2
        direct = asking.post("/translate", json=fields | {"target": "en"}).json()
        assert "route" not in direct and "hops" not in direct
        page = asking.post(
            "/translate", json=fields | {"q": "<p>zu <b>fe</b></p>", "format": "html"}
        ).json()
        assert page["translatedText"].count("<b>") == 1
        assert (
            asking.post("/attention", json={"q": "zu", "source": "de", "target": "fr"}).status_code
            == 400
        )
        same = asking.post(
            "/translate", json={"q": "ka lo", "source": "en-US", "target": "en"}
        ).json()
        assert same["translatedText"] == "ka lo"
        french, german = (
            "Bonjour, comment allez-vous aujourd'hui?",
            "Guten Morgen, wie geht es Ihnen heute?",
        )
        texts = {"q": [french, french, french, german], "source": "auto", "target": "fr"}
        mixed = asking.post("/translate", json=texts).json()
        assert mixed["translatedText"][:3] == [french] * 3 and mixed["route"] == [["fr"]] * 3 + [
            ["de", "en", "fr"]
        ]


def test_a_server_takes_the_better_route(model):
    routes = {
        "de-fr": {"direct": 50.0, "en": 40.0},
        "fr-de": {"direct": 40.0, "en": 50.0},
        "en-de": {"direct": 40.0, "fr": 50.0},
    }
    translator = replace(
        with_routes(without_german_french(model), routes),
        directions=[*WITHOUT, Direction("fr", "de")],
    )
    app = application(store_of(translator), Keys(), Limits(), local=True)
    with TestClient(app, base_url="http://localhost", client=("127.0.0.1", 1)) as asking:
        for source, target, route in (
            ("de", "fr", None),
            ("fr", "de", ["fr", "en", "de"]),
            ("en", "fr", None),
        ):
            answer = asking.post(
                "/translate", json={"q": "zu fe ga", "source": source, "target": target}
            ).json()
            expected = translator.translate(
                ["zu fe ga"], source=source, target=target, sentences=True
            )
            assert answer.get("route") == route and answer["translatedText"] == expected[0].text
        targets = {
            each["code"]: sorted(each["targets"]) for each in asking.get("/languages").json()
        }
        assert targets == {"en": ["de", "fr"], "de": ["en", "fr"], "fr": ["de", "en"]}


@pytest.mark.slow
def test_an_exported_model_is_imported_with_all_directions(model, tmp_path, capsys, monkeypatch):
    pytest.importorskip("transformers")
    for form in ("huggingface", "ctranslate2", "onnx"):
        status, said, error = run(capsys, "export", model, "--to", form, "--out", tmp_path / form)
        assert not status, error
        assert "produced identical tokens" in said
        card = (tmp_path / form / "README.md").read_text(encoding="utf-8")
        [program] = re.findall("```python\n(.*?)```", card, re.DOTALL)
        monkeypatch.chdir(tmp_path / form)
        monkeypatch.setattr(sys, "stdin", io.StringIO("ka lo mi\n"))
        exec(program, {})
        target = next(iter(model_folder.load(model).tokenizer.source.tags)).strip("<>")
        expected = transduce.load(model, engine="torch").translate(["ka lo mi"], target=target)
        assert (
            capsys.readouterr().out.strip() == expected[0].text and f"`>>{target}<<` (id " in card
        )
    status, _, error = run(capsys, "export", model, "--to", "argos", "--out", tmp_path / "argos")
    assert status and "it can't give the target language" in error
    status, _, error = run(capsys, "import", tmp_path / "huggingface", "--out", tmp_path / "again")
    assert not status, error
    texts = ["ka lo mi", "va ti"]
    for name in DIRECTIONS:
        direction = Direction.parse(name)
        expected = transduce.load(model, engine="torch").translate(
            texts, source=direction.source, target=direction.target
        )
        for folder in ("again", "onnx"):
            options = {} if folder == "onnx" else {"engine": "torch"}
            found = transduce.load(tmp_path / folder, **options).translate(
                texts, source=direction.source, target=direction.target
            )
            assert [each.text.strip() for each in found] == [each.text.strip() for each in expected]
    ours, theirs = transduce.load(model, engine="torch"), transduce.load(tmp_path / "onnx")
    assert theirs.scores.quality == ours.scores.quality != {}, "pivots are chosen by it"


def test_a_version_learns_corrections_of_two_directions_and_keeps_all(model, tmp_path):
    pytest.importorskip("rapidfuzz", reason="pip install 'transduce[serve]'")
    from transduce.wings.learning.learning import learn
    from transduce.wings.memories.database import Database, Unit

    own = Path(shutil.copytree(model, tmp_path / "model"))
    memory = Database(tmp_path / "memory.sqlite")
    new = texts(400, 77)
    for direction in (("en", "fr"), ("de", "fr")):
        pairs = zip(*(new[code] for code in direction), strict=True)
        units = [Unit(source, f"{target} {target}") for source, target in pairs]
        memory.add(units, "-".join(direction), "anna")
    options = {"train.steps": 60, "train.warmup": 10, "train.validate_every": 60}
    assert learn(own, memory.path, options=options)
    changed_model = transduce.load(own)
    assert {*map(str, changed_model.directions)} == {*DIRECTIONS}
    ways = Versions(own).trail()[0]
    assert len(ways["corrections"]) > 500
