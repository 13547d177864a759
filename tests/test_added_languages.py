"""Languages that are added to a trained model: its vocabulary, its weights, its directions, and their scores."""

import json
import shutil
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sentencepiece.sentencepiece_model_pb2 import ModelProto

import transduce
from command_line import run
from corpora import TINY, WORDS, reverse_texts, spelt
from transduce import model_folder
from transduce.config.schema import SYNTHETIC_TAG
from transduce.config.size_table import training_options
from transduce.evaluation.routes import measure_routes
from transduce.preparation.prepared import open_prepared
from transduce.system.errors import UserError
from transduce.text.pairs import Origin, Pair, by_direction
from transduce.tokens.learning import extend_model
from transduce.tokens.tokenizer import Tokenizer
from transduce.tokens.vocabulary import Vocabulary
from transduce.training.origin import extended as extended_weights

FRENCH = {german: f"{german}é" for german in WORDS.values()}
SHAPE = {
    "model.d_model": 32,
    "model.d_ff": 64,
    "model.num_heads": 4,
    "data.max_tokens": 512,
    "data.holdout": 20,
}
STEPS = {"train.steps": 12, "train.warmup": 4, "train.average": 1, "decode.max_extra_tokens": 2}


def texts(count: int, seed: int) -> dict[str, list[str]]:
    english, german = reverse_texts(count, seed, 4)
    return {
        "en": english,
        "de": german,
        "fr": [" ".join(FRENCH[WORDS[w]] for w in text.split()) for text in english],
    }


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with old.en, old.de, new.en, new.fr, and a model `old` for English to German."""
    folder = tmp_path_factory.mktemp("added")
    for seed, (name, languages) in enumerate({"old": ("en", "de"), "new": ("en", "fr")}.items()):
        lines = texts(200, seed)
        for language in languages:
            (folder / f"{name}.{language}").write_text(
                "".join(f"{line}\n" for line in lines[language])
            )
    train(folder, "old", "old.en", "old.de", options=TINY | SHAPE | STEPS)
    return folder


@pytest.fixture(scope="module")
def added(place: Path) -> Path:
    """The model with French, in both directions with English."""
    train(
        place,
        "added",
        "new.en",
        "new.fr",
        more=("--init", str(place / "old"), "--from", "en,fr", "--to", "en,fr"),
    )
    return place / "added"


def train(
    place: Path,
    out: str,
    *files: str,
    more: tuple[str, ...] = (),
    options: Mapping[str, object] = STEPS,
) -> None:
    names = [str(place / name) for name in files]
    transduce.cli.main(
        ["train", "--out", str(place / out), "--train", *names, *more, *spelt(options)]
    )


@pytest.mark.parametrize("kind", ["bpe", "unigram", "char"])
@given(text=st.text(max_size=40))
def test_an_extended_vocabulary_keeps_ids_and_texts(text, kind):
    old, new = extended(kind)
    size = old.target.size
    assert new.target.pieces(range(size)) == old.target.pieces(range(size))
    assert new.decode(new.encode_target([text])) == old.decode(old.encode_target([text]))


@cache
def extended(kind: Literal["bpe", "unigram", "char"]) -> tuple[Tokenizer, Tokenizer]:
    lines = texts(300, 3)
    old = Tokenizer.train(
        lines["en"], lines["de"], vocab_size=300, kind=kind, languages=["de", "en"]
    )
    return old, old.extended(lines["fr"], 30, ["en", "fr"])


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_an_extended_vocabulary_has_pieces_and_tags_for_the_new_language(kind):
    old, new = extended(kind)
    lines = texts(100, 4)
    lengths = [
        [sum(map(len, each.encode_target(lines[code]))) for each in (old, new)]
        for code in ("fr", "de")
    ]
    assert lengths[0][1] < 0.8 * lengths[0][0], "new pieces are used"
    assert lengths[1][1] <= lengths[1][0]
    assert list(new.source.tags) == [">>de<<", ">>en<<", ">>fr<<"]
    assert new.into("fr").encode_source(["a"])[0][0] == old.target.size == new.source.tags[">>fr<<"]
    assert old.target.size + 1 < new.target.size <= old.target.size + 31
    scores = new.target.scores()
    assert scores[old.target.size] is None and all(
        score is not None for score in scores[old.target.size + 1 :]
    )


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_pieces_are_added_behind_those_of_the_model(kind):
    old, _ = extended(kind)
    model = extend_model(old.target.model, ["ü" * 100] * 50, 30, kind, [">>xx<<", ">>de<<"])
    before, after = ModelProto.FromString(old.target.model), ModelProto.FromString(model)
    assert (
        after.pieces[: len(before.pieces)] == before.pieces
        and after.trainer_spec == before.trainer_spec
    )
    tag, *added = after.pieces[len(before.pieces) :]
    assert (tag.piece, tag.type) == (">>xx<<", ModelProto.SentencePiece.CONTROL), ">>de<< was there"
    assert 0 < len(added) <= 30 and all(
        each.type == ModelProto.SentencePiece.NORMAL for each in added
    )
    scores = [each.score for each in added]
    assert kind != "bpe" or scores == sorted(scores, reverse=True)
    assert Vocabulary(model).encode(["ü" * 100]).lengths.tolist()[0] < 100


def test_a_new_language_is_learnt_at_the_rate_of_a_training_from_scratch(added):
    config = model_folder.read_config(added)
    whole = training_options(1, 1, config.model.d_model, steps=12, warmup=4, cooldown=True)
    assert config.train.learning_rate == whole["train.learning_rate"] and config.train.cooldown == 4


def test_new_rows_are_means_of_the_rows_that_spelt_the_pieces(place, added):
    origin, tokenizer = model_folder.load(place / "old"), model_folder.load(added).tokenizer
    model = model_folder.load(added).model
    weights = extended_weights(origin, tokenizer, model)
    size = origin.tokenizer.target.size
    ((name, grown),) = [
        (n, w) for n, w in weights.items() if w.shape != origin.model.state_dict()[n].shape
    ]
    old = origin.model.state_dict()[name]
    assert torch.equal(grown[:size], old) and len(grown) == tokenizer.target.size
    piece = next(t for t in range(size, len(grown)) if "é" in tokenizer.target.pieces([t])[0])
    text = tokenizer.target.pieces([piece])[0].replace("\u2581", " ")
    assert torch.allclose(grown[piece], old[origin.tokenizer.target.encode_behind(text)].mean(0))
    assert torch.allclose(grown[tokenizer.source.tags[">>de<<"]], old.mean(0)), (
        "the old model had no tags"
    )


def test_old_pairs_are_trained_on_and_validated_too(place, added, capsys):
    old, new = open_prepared(place / "old" / "data"), open_prepared(added / "data")
    assert model_folder.read_config(added).data.directions == ("en-de", "en-fr", "fr-en")
    valid = by_direction(new.valid())
    assert [pair[:2] for pair in valid["en-de"]] == [pair[:2] for pair in old.valid()]
    assert valid.keys() == {"en-de", "en-fr", "fr-en"} and new.facts.held_out == len(new.valid())
    views = zip(new.numbers, new.mixture.stores, strict=True)
    sizes = [(*new.facts.pair_languages[number], view.pairs) for number, view in views]
    added_pairs = new.facts.pairs - old.facts.pairs
    assert sizes == [
        ("en", "fr", added_pairs),
        ("en", "fr", added_pairs),
        ("en", "de", old.facts.pairs),
    ]
    assert added_pairs > 150
    first = np.arange(5)
    was, now = (
        [row.tolist() for row in corpus.mixture.stores[-1].target.rows(first)]
        for corpus in (old, new)
    )
    again = new.tokenizer.target.encode(old.tokenizer.target.decode(was)).lists()
    assert now == again != was, "the new vocabulary cuts old texts in another way"
    metrics, before = (
        model_folder.read_metrics(added),
        model_folder.read_metrics(place / "old")["validation"],
    )
    scores = {"perplexity": before["perplexity"], "bleu": before["bleu_greedy"]}
    assert metrics["directions"]["en-de"]["before"] == scores
    assert "before" not in metrics["directions"]["en-fr"]
    assert "before languages were added" in run(capsys, "info", added)[1]


@pytest.mark.parametrize("valid", [False, True])
def test_no_sentence_of_the_old_validation_pairs_is_trained_on(place, valid):
    english = [pair.source for pair in open_prepared(place / "old" / "data").valid()]
    lines = texts(60, 9)
    for code, leaked in (
        ("en", english),
        ("fr", [f"ooo{number}" for number in range(len(english))]),
    ):
        (place / f"leak.{code}").write_text("".join(f"{line}\n" for line in lines[code] + leaked))
    named = [str(place / "new.en"), str(place / "new.fr")]
    more = ("--init", str(place / "old"), *(["--valid", *named] if valid else []))
    train(place, f"leaked-{valid}", "leak.en", "leak.fr", more=more)
    new = open_prepared(place / f"leaked-{valid}" / "data")
    store = new.mixture.stores[0]
    trained = new.tokenizer.decode(
        [row.tolist() for row in store.source.rows(np.arange(store.pairs))]
    )
    assert trained and not {*trained} & {*english}


def test_a_file_of_the_old_corpus_may_hold_the_new_language_too(place):
    rows = (
        dict(zip(("en", "de", "fr"), row, strict=True))
        for row in zip(*texts(200, 0).values(), strict=True)
    )
    (place / "all.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    labelled = f"en,de={place / 'all.jsonl'}", f"en,fr={place / 'all.jsonl'}"
    transduce.cli.main(
        ["train", "--out", str(place / "one"), "--train", labelled[0], *spelt(TINY | SHAPE | STEPS)]
    )
    more = ["--init", str(place / "one"), "--out", str(place / "two languages"), *spelt(STEPS)]
    transduce.cli.main(["train", "--train", labelled[1], *more])
    facts = open_prepared(place / "two languages" / "data").facts
    assert facts.pair_languages == [["en", "fr"], ["en", "de"]]


def test_one_direction_of_a_model_is_trained_further(place, added, capsys):
    train(place, "narrowed", "new.fr", "new.en", more=("--init", str(added)))
    assert "--from fr --to en" in capsys.readouterr().out
    data = model_folder.read_config(place / "narrowed").data
    assert (data.source, data.target, data.directions) == ("fr", "en", ("fr-en",))


def test_adding_a_language_again_keeps_all_directions(place, added):
    lines = texts(80, 5)
    for code in ("de", "fr"):
        (place / f"third.{code}").write_text("".join(f"{line}\n" for line in lines[code]))
    (place / "third.it").write_text("".join(f"{line[::-1]}\n" for line in lines["fr"]))
    train(place, "third", "third.de", "third.it", more=("--init", str(added)))
    corpus = open_prepared(place / "third" / "data")
    assert corpus.facts.directions == ["en-de", "en-fr", "fr-en", "de-it"]
    assert by_direction(corpus.valid()).keys() == {*corpus.facts.directions}
    translator = transduce.load(place / "third", engine="torch")
    assert len(translator.translate(["a b"], source="de", target="it")) == 1


def test_a_resumed_training_has_the_same_weights(place, added):
    whole = model_folder.load(added).model.state_dict()
    more = ("--init", str(place / "old"), "--from", "en,fr", "--to", "en,fr")
    train(
        place,
        "part",
        "new.en",
        "new.fr",
        more=more,
        options=STEPS | {"train.steps": 6, "train.cooldown": 0},
    )
    train(
        place,
        "part",
        "new.en",
        "new.fr",
        more=more[2:],
        options={"train.steps": 12, "train.cooldown": 0},
    )
    train(place, "full", "new.en", "new.fr", more=more, options=STEPS | {"train.cooldown": 0})
    part, full = (model_folder.load(place / name).model.state_dict() for name in ("part", "full"))
    assert all(torch.equal(part[name], full[name]) for name in whole)


def test_adding_a_language_needs_the_old_corpus_and_a_joint_vocabulary(place, tmp_path, capsys):
    shutil.copytree(place / "old", tmp_path / "old")
    shutil.rmtree(tmp_path / "old" / "data")
    files = [place / "new.en", place / "new.fr"]
    status, _, said = run(
        capsys, "train", "--init", tmp_path / "old", "--out", tmp_path / "out", "--train", *files
    )
    assert (
        status
        and f"The prepared corpus of {tmp_path / 'old'} is missing" in said
        and "Traceback" not in said
    )
    status, _, said = run(
        capsys,
        "train",
        "--init",
        place / "old",
        "--out",
        tmp_path / "x",
        "--train",
        place / "old.en",
        place / "old.de",
        f"data.replay={place / 'old' / 'data'}",
    )
    assert (
        status == 2
        and "this corpus has none. Leave data.replay out" in said
        and "Traceback" not in said
    )
    train(place, "two", "old.en", "old.de", options=TINY | SHAPE | STEPS | {"data.joint": False})
    status, _, said = run(
        capsys, "train", "--init", place / "two", "--out", tmp_path / "out", "--train", *files
    )
    assert status and "one vocabulary" in said and not (tmp_path / "out" / "config.toml").exists()


def write(place: Path, name: str, lines: Mapping[str, list[str]]) -> list[Path]:
    for code, its in lines.items():
        (place / f"{name}.{code}").write_text("".join(f"{line}\n" for line in its))
    return [place / f"{name}.{code}" for code in lines]


def test_the_old_corpus_stays_if_the_new_one_has_its_languages_too(place):
    write(place, "three", texts(60, 7))
    train(place, "both", "three.en", "three.de", "three.fr", more=("--init", str(place / "old")))
    old, new = open_prepared(place / "old" / "data"), open_prepared(place / "both" / "data")
    assert new.facts.corpora[-1] == old.facts.corpora[0] and new.facts.pair_languages[-1] == [
        "en",
        "de",
    ]
    assert len(new.mixture.stores[-1].source.lengths) == old.facts.pairs


def test_a_size_of_the_vocabulary_includes_the_tags(place, capsys):
    size = model_folder.load(place / "old").tokenizer.source.size
    more = ("--init", str(place / "old"))
    train(
        place,
        "sized",
        "new.en",
        "new.fr",
        more=more,
        options=STEPS | {"data.vocab_size": size + 12},
    )
    assert size + 2 < model_folder.load(place / "sized").tokenizer.source.size <= size + 12
    arguments = (
        "train",
        "--out",
        place / "small",
        *more,
        "--train",
        place / "new.en",
        place / "new.fr",
    )
    status, _, said = run(capsys, *arguments, f"data.vocab_size={size}")
    assert status and f"data.vocab_size must be at least {size + 2}" in said


def test_a_training_resumes_without_the_first_model(place, tmp_path):
    shutil.copytree(place / "old", tmp_path / "old")
    more = ("--init", str(tmp_path / "old"))
    train(place, "alone", "new.en", "new.fr", more=more, options=STEPS | {"train.cooldown": 0})
    for step, again, lost in ((14, (), "data"), (16, more, "")):
        shutil.rmtree(tmp_path / "old" / lost)
        train(
            place,
            "alone",
            "new.en",
            "new.fr",
            more=again,
            options={"train.steps": step, "train.cooldown": 0},
        )
    assert model_folder.read_metrics(place / "alone")["training"]["steps"] == 16


def test_a_language_is_added_to_a_model_of_a_corpus_prepared_before(place):
    text = {name: value for name, value in TINY.items() if name.startswith("data.vocab_size")}
    files = [str(place / "old.en"), str(place / "old.de")]
    transduce.cli.main(
        [
            "prepare",
            "--train",
            *files,
            "--out",
            str(place / "prepared"),
            "data.holdout=20",
            *spelt(text),
        ]
    )
    others = {
        name: value
        for name, value in (TINY | SHAPE | STEPS).items()
        if name not in (*text, "data.holdout")
    }
    train(place, "of-prepared", "prepared", options=others)
    train(place, "of-prepared-fr", "new.en", "new.fr", more=("--init", str(place / "of-prepared")))
    assert {"en-de", "en-fr"} <= {
        *model_folder.read_config(place / "of-prepared-fr").data.directions
    }
    before = model_folder.read_metrics(place / "of-prepared")["validation"]
    after = model_folder.read_metrics(place / "of-prepared-fr")["directions"]["en-de"]["before"]
    assert after == {"perplexity": before["perplexity"], "bleu": before["bleu_greedy"]}


def test_test_files_in_the_wrong_order_are_refused(place, capsys):
    files = [place / f"old.{code}" for code in ("en", "de")]
    command = (
        "train",
        "--init",
        place / "old",
        "--train",
        *files,
        "--test",
        *files[::-1],
        "--out",
        place / "swapped",
    )
    status, _, said = run(capsys, *command)
    assert status == 2 and "their names say" in said and not (place / "swapped").exists()


def test_score_refuses_files_in_the_wrong_order(place, capsys):
    status, printed, said = run(capsys, "score", place / "old", place / "old.de", place / "old.en")
    assert status == 2 and not printed and "their names say" in said


def test_a_variant_of_a_language_in_a_file_name_is_not_a_new_language(place):
    lines = texts(60, 8)
    write(place, "variant", {"en-GB": lines["en"], "de": lines["de"]})
    train(place, "tuned", "variant.en-GB", "variant.de", more=("--init", str(place / "old")))
    assert model_folder.read_config(place / "tuned").data.directions == ()


def test_a_language_is_added_to_a_model_with_a_regional_code(place):
    lines = texts(120, 10)
    write(place, "regional", {"pt-BR": lines["de"], "en": lines["en"]})
    train(place, "pt", "regional.pt-BR", "regional.en", options=TINY | SHAPE | STEPS)
    train(place, "pt-fr", "new.en", "new.fr", more=("--init", str(place / "pt")))
    assert model_folder.read_config(place / "pt-fr").data.directions == ("pt_BR-en", "en-fr")
    assert (
        len(
            transduce.load(place / "pt-fr", engine="torch").translate(
                ["a"], source="pt_BR", target="en"
            )
        )
        == 1
    )


def test_a_fine_tuning_is_resumed_without_its_model_and_reads_a_table_in_its_direction(
    place, added, capsys
):
    shutil.copytree(added, place / "moved")
    lines = texts(60, 11)
    (place / "pairs.tsv").write_text(
        "".join(f"{a}\t{b}\n" for a, b in zip(lines["fr"], lines["en"], strict=True))
    )
    table = str(place / "pairs.tsv")
    command = (
        "train",
        "--train",
        table,
        "--valid",
        table,
        "--init",
        place / "moved",
        "--from",
        "fr",
        "--to",
        "en",
    )
    out = place / "resumed"
    assert (
        run(capsys, *command, "--out", out, "train.steps=4", "train.warmup=2", "data.rules=")[0]
        == 0
    )
    assert model_folder.read_config(out).data.directions == ("fr-en",)
    shutil.rmtree(place / "moved")
    status, _, said = run(capsys, *command, "--out", out, "train.steps=6")
    assert status == 0 and "Resuming at step 4 of 6" in said


def test_corpora_of_other_languages_and_weights_of_prepared_corpora_are_refused(place):
    from transduce.training.run import train as fit

    files = [str(place / f"new.{code}") for code in ("en", "fr")]
    corpora = [{"files": files, "source": "en", "target": "fr"}]
    with pytest.raises(
        UserError, match=r"is en to fr, but the model is en to de\. .* data\.directions"
    ):
        fit({"data.corpora": corpora, "data.source": "en", "data.target": "de"}, place / "mixed")
    transduce.cli.main(
        ["prepare", "--train", *files, "--out", str(place / "ready"), "data.vocab_size=300"]
    )
    with pytest.raises(UserError, match="Leave out the weight of this corpus"):
        fit(
            {"data.corpora": [{"files": [str(place / "ready")], "weight": 3.0}]}, place / "weighted"
        )


def test_languages_of_tables_are_those_of_the_model(place, tmp_path):
    names = [str(place / f"new.{code}") for code in ("en", "fr")]
    for name, text in {"en.txt": names[0], "fr.txt": names[1]}.items():
        shutil.copy(text, tmp_path / name.replace(".txt", "-text.txt"))
    files = f'files = ["{tmp_path}/en-text.txt", "{tmp_path}/fr-text.txt"]'
    (tmp_path / "one.toml").write_text(f'[[data.corpora]]\n{files}\nsource = "en"\ntarget = "fr"\n')
    (tmp_path / "two.toml").write_text(
        f'[data]\nsource = "en"\ntarget = "fr"\ndirections = ["en-fr", "fr-en"]\n[[data.corpora]]\n{files}\n'
    )
    for recipe, directions in (("one", ["en-fr"]), ("two", ["en-fr", "fr-en"])):
        out = tmp_path / recipe
        transduce.cli.main(
            ["prepare", str(out) + ".toml", "--out", str(out), "data.vocab_size=300"]
        )
        assert open_prepared(out).facts.directions == directions


def test_validation_pairs_of_old_directions_that_are_not_used_are_counted(place, capsys):
    write(place, "three", texts(60, 7))
    three = [str(place / f"three.{code}") for code in ("en", "de", "fr")]
    train(
        place, "counted", "new.en", "new.fr", more=("--init", str(place / "old"), "--valid", *three)
    )
    assert "60 validation pairs are not used" in capsys.readouterr().err


@pytest.mark.parametrize("reference", ["", "a\nb"])
def test_routes_are_not_measured_on_pairs_without_a_reference_of_one_line(added, reference):
    unusable = [
        Pair("a b", reference, Origin("", 1), "de-fr"),
        Pair(reference, "a b", Origin("", 2), "de-fr"),
    ]
    assert measure_routes(model_folder.load(added), unusable, {}) == {}


def test_back_translations_are_not_repeated_backwards(place, capsys):
    records = zip(*(texts(60, 9)[code] for code in ("en", "de")), strict=True)
    pairs = [json.dumps({"en": english, "de": german}) + "\n" for english, german in records]
    (place / "made.jsonl").write_text("".join(pairs))
    tables = [f'[[data.corpora]]\nfiles = ["{place}/old.en", "{place}/old.de"]\nweight = 5.0\n']
    tables += [f'[[data.corpora]]\nfiles = ["{place}/made.jsonl"]\nsynthetic = true\n']
    (place / "made.toml").write_text('[data]\nsource = "en"\ntarget = "de"\n' + "".join(tables))
    assert (
        run(
            capsys,
            "train",
            place / "made.toml",
            "--out",
            place / "made",
            *spelt(TINY | SHAPE | STEPS),
        )[0]
        == 0
    )
    train(
        place,
        "more",
        "new.en",
        "new.fr",
        more=("--init", str(place / "made"), "--from", "en,fr", "--to", "en,fr"),
    )
    assert "back-translated pairs" in capsys.readouterr().err
    data = open_prepared(place / "more" / "data")
    assert data.facts.weights == [1.0, 1.0], "the weight balanced the back-translated pairs"
    for view in data.mixture.stores:
        targets = data.tokenizer.target.decode(
            [row.tolist() for row in view.target.rows(np.arange(view.pairs))]
        )
        assert targets and not any(text.startswith(SYNTHETIC_TAG) for text in targets)


def test_no_piece_joins_a_placeholder_token_with_other_characters():
    french = [f"{line} \ufdd0 \ufdd1" for line in texts(300, 3)["fr"]]
    new = extended("bpe")[0].extended(french, 300, ["en", "fr"])
    pieces = new.source.pieces(range(new.source.size))
    assert not [piece for piece in pieces if {"\ufdd0", "\ufdd1"} & {*piece}]


def test_a_prepared_corpus_without_tags_is_refused(place, added, capsys):
    files = place / "new.en", place / "new.fr"
    prepared = (
        "prepare",
        "--train",
        *files,
        "--vocabulary",
        added,
        "--out",
        place / "untagged",
        "data.holdout=20",
    )
    assert run(capsys, *prepared)[0] == 0
    command = (
        "train",
        "--init",
        added,
        "--train",
        place / "untagged",
        "--out",
        place / "of-untagged",
        *spelt(STEPS),
    )
    status, _, said = run(capsys, *command)
    assert (
        status == 2
        and "The model reads language tags" in said
        and "Name text files instead" in said
    )


def test_a_prepared_corpus_with_another_language_is_refused(place, tmp_path, capsys):
    data, files = tmp_path / "data", (place / "new.en", place / "new.fr")
    prepared = (
        "prepare",
        "--train",
        *files,
        "--vocabulary",
        place / "old",
        "--out",
        data,
        "data.holdout=20",
    )
    assert run(capsys, *prepared)[0] == 0
    command = (
        "train",
        "--init",
        place / "old",
        "--train",
        data,
        "--out",
        tmp_path / "out",
        *spelt(STEPS),
    )
    status, _, said = run(capsys, *command)
    assert (
        status == 2
        and f"{data} has data.target = fr, but the model has de. To add a language, name text files."
        in said
    )


def test_a_prepared_corpus_may_have_a_similar_code(place, tmp_path, capsys):
    for code in ("en", "de"):
        shutil.copy(place / f"old.{code}", tmp_path / f"more.{code.upper()}")
    files = tmp_path / "more.EN", tmp_path / "more.DE"
    prepared = (
        "prepare",
        "--train",
        *files,
        "--vocabulary",
        place / "old",
        "--out",
        tmp_path / "data",
    )
    assert run(capsys, *prepared, "--from", "en-GB", "--to", "de_DE", "data.holdout=20")[0] == 0
    command = (
        "train",
        "--init",
        place / "old",
        "--train",
        tmp_path / "data",
        "--out",
        tmp_path / "out",
        *spelt(STEPS),
    )
    assert run(capsys, *command)[0] == 0


def test_an_average_keeps_the_scores_that_choose_routes(place, added, capsys):
    assert run(capsys, "average", added, "--out", place / "averaged", "--last", 1)[0] == 0
    metrics, before = (model_folder.read_metrics(folder) for folder in (place / "averaged", added))
    both = [its["directions"].items() for its in (metrics, before)]
    kept, known = ({name: each["validation"]["chrf"] for name, each in its} for its in both)
    assert kept == known and metrics.get("routes") == before.get("routes")


def test_relative_paths_of_old_corpus_files_are_recognised(place, monkeypatch, capsys):
    monkeypatch.chdir(place)
    more = ("--init", str(place / "old"), "--from", "en,de,fr", "--to", "en,de,fr")
    named = [
        "train",
        "--out",
        "again",
        "--train",
        "old.en",
        "old.de",
        "new.en",
        "new.fr",
        *more,
        *spelt(STEPS),
    ]
    transduce.cli.main(named)
    assert len(open_prepared(place / "again" / "data").facts.corpora) == 2
    assert (
        f"{place}/old.en + {place}/old.de is taken from the new corpus" in capsys.readouterr().err
    )


def test_routes_of_an_ensemble_need_the_same_directions(place, added, capsys):
    write(place, "three", texts(60, 7))
    train(place, "other", "three.en", "three.de", "three.fr", options=TINY | SHAPE | STEPS)
    command = (
        "evaluate",
        place / "other",
        place / "three.de",
        place / "three.fr",
        "--routes",
        "--ensemble",
        added,
    )
    status, _, said = run(capsys, *command)
    assert status and "Traceback" not in said and "must have the same directions" in said


def test_other_text_is_repeated_instead_of_the_corpus_of_the_model(place, added, capsys):
    lines = texts(80, 12)
    write(place, "italian", {"en": lines["en"], "it": [line[::-1] for line in lines["fr"]]})
    more = ("--init", str(added), "--like", "fr", "--remember", str(place / "old.en"))
    train(
        place,
        "it",
        "italian.en",
        "italian.it",
        more=(*more, str(place / "old.de")),
        options=STEPS | {"train.learning_rate": 1e-30},
    )
    assert "will lack the directions en-fr, fr-en," in capsys.readouterr().err
    corpus = open_prepared(place / "it" / "data")
    assert corpus.facts.directions == ["en-de", "en-it"]
    assert corpus.facts.pair_languages == [["en", "it"], ["en", "de"]]
    model = model_folder.load(place / "it")
    tags = model.tokenizer.source.tags
    [name] = [name for name in model.model.state_dict() if name.startswith("embedding")]
    weight = model.model.state_dict()[name]
    torch.testing.assert_close(weight[tags[">>it<<"]], weight[tags[">>fr<<"]])
    directions = model_folder.read_metrics(place / "it")["directions"]
    assert all("before" not in its for its in directions.values()), "other validation pairs"
