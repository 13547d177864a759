"""Tests of transduce/wings/export/exporting.py."""

import errno
import io
import json
import re
import shutil
import sys
import tempfile
import zipfile
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest

import transduce
from command_line import run
from corpora import reverse_texts, write_texts
from exports import disturb, greedy, sentences
from models import publish_model
from transduce import model_folder
from transduce.config.parse import configure
from transduce.config.schema import ModelConfig
from transduce.decoding.confidence import Confidence
from transduce.inline.placeholders import intact
from transduce.system.errors import Hint, UserError
from transduce.text.formats import PLAIN_TEXT
from transduce.text.pairs import Origin, Pair
from transduce.wings.ct2 import build as building
from transduce.wings.export import exporting, huggingface, onnx
from transduce.wings.export.exporting import FORMS, export
from transduce.wings.export.readme import about_tags, fill
from transduce.wings.formats import FORMATS
from transduce.wings.phrasebook.examples import PHRASEBOOK

FILES = {
    "ctranslate2": "model.bin",
    "huggingface": "model.safetensors",
    "onnx": "decoder.onnx",
    "marian": "model.npz",
}


def suitable(form: str) -> str:
    """A model for a format; skips the test if the format's program is not installed."""
    if form == "marian":
        pytest.importorskip("pymarian")
    return "marian" if form == "marian" else "post"


@pytest.mark.parametrize("form", [form for form in FORMATS if form != "web"])
def test_export_with_a_wrong_weight_is_not_written(form, models, tmp_path, monkeypatch):
    folder = models(suitable(form))
    norm = model_folder.load(folder).model.decoder[-1].residual[-1].norm.weight

    def write(model: model_folder.Bundle, out: Path, compute_type: str) -> None:
        FORMS_BEFORE[form].write(model, out, compute_type)
        if form != "argos":
            return disturb(out / FILES[form], norm)
        [package] = out.glob("*.argosmodel")
        with zipfile.ZipFile(package) as archive:
            archive.extractall(tmp_path / "package")
            names = archive.namelist()
        package.unlink()
        [file] = (tmp_path / "package").rglob("model.bin")
        disturb(file, norm)
        with zipfile.ZipFile(package, "w") as archive:
            for name in names:
                archive.write(tmp_path / "package" / name, name)
        return None

    FORMS_BEFORE = dict(FORMS)  # noqa: N806
    monkeypatch.setitem(FORMS, form, FORMS[form]._replace(write=write))
    with pytest.raises(
        UserError, match=r"differ in \d+ of 40 sentences\. The model translates '.*' as '.*', the"
    ):
        export(folder, form, tmp_path / "place" / "out")
    assert not (tmp_path / "place").exists()


def test_a_full_disk_lacks_the_size_of_the_model(models, tmp_path, monkeypatch):
    def write(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setitem(FORMS, "ctranslate2", FORMS["ctranslate2"]._replace(write=write))
    size = model_folder.describe(models("post")).size
    for compute_type, needs in (("float32", f"it needs at least {size:,} bytes, "), ("int8", "")):
        with pytest.raises(
            UserError, match=rf"There is no room for .*out: {needs}[\d,]+ bytes are"
        ):
            export(models("post"), "ctranslate2", tmp_path / "out", compute_type)


@pytest.mark.usefixtures("small_runtime")
@pytest.mark.parametrize("form", FORMATS)
def test_sentences_that_other_programs_read_otherwise_are_not_compared(form, models, tmp_path):
    odd = ["\u2581ka", "ka </s> lo", "<unk>", ">>de<< ka lo", "<pad> ka"]
    pairs = [
        Pair(text, text, Origin("a test", 1)) for text in (*odd, "ka >>de<<", "<b> ka", "ka lo")
    ]
    folder = models(suitable(form))
    assert export(folder, form, tmp_path / "out", pairs=pairs).sentences == 3
    with pytest.raises(UserError, match="needs a sentence of fewer than"):
        export(folder, form, tmp_path / "other", pairs=pairs[:5])


@pytest.mark.parametrize(
    ("form", "package"),
    [("ctranslate2", "ctranslate2"), ("huggingface", "transformers"), ("onnx", "onnx")],
)
def test_a_missing_package_is_named(form, package, models, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(
        UserError, match=rf"needs the package {package}\. .*pip install 'transduce\[export\]'"
    ):
        export(models("post"), form, tmp_path / "out")
    assert not list(tmp_path.iterdir())


def test_models_without_held_out_pairs_are_compared_on_the_phrasebook(models, tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    for file in models("post").iterdir():
        if file.is_file():
            (folder / file.name).write_bytes(file.read_bytes())
    (folder / "README.md").write_text("Corrected.")  # which is no damage
    found = export(folder, "ctranslate2", tmp_path / "out")
    assert found.sentences == 1000 and found.identical >= 990 and found.origin == PHRASEBOOK
    with (folder / "model.safetensors").open("r+b") as file:
        file.seek(-4, 2)
        file.write(b"\0\0\0\1")
    with pytest.raises(UserError, match=r"model\.safetensors is damaged"):
        export(folder, "ctranslate2", tmp_path / "other")


@pytest.mark.parametrize("name", ["placeholder tokens", "separate placeholder tokens"])
def test_placeholders_are_put_back_as_with_our_own_engine(name, models, tmp_path, monkeypatch):
    monkeypatch.setattr(building, "COMPUTE_TYPES", ("float32",))  # which has the same numbers
    export(models(name), "onnx", tmp_path / "out")
    marked = [
        f"<b>{text}</b> {{{number}}}" for number, text in enumerate(reverse_texts(10, seed=9)[0])
    ]
    own, fast, onnx = (
        [
            (each.text, each.flags)
            for each in translator.translate_lines(marked, kinds=[PLAIN_TEXT] * len(marked))
        ]
        for translator in (
            transduce.load(models(name), {"decode.retry_loops": False}, engine="torch"),
            transduce.load(models(name), {"decode.retry_loops": False}, engine="ctranslate2"),
            transduce.load(tmp_path / "out", {"decode.retry_loops": False}),
        )
    )
    assert own == fast  # and ONNX says nothing of where tags belong, but keeps them
    for made in (own, onnx):
        assert all(intact(text, each) for text, (each, _) in zip(marked, made, strict=True))
    assert "U+FDD0" in (tmp_path / "out" / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("form", "name"),
    [
        *product(
            ["ctranslate2", "huggingface", "onnx"], ["post", "separate", "placeholder tokens"]
        ),
        *product(["ctranslate2", "onnx"], ["learned"]),
    ],
)
def test_the_program_in_its_readme_translates(form, name, models, tmp_path, monkeypatch, capsys):
    export(models(name), form, tmp_path / "out")
    card = (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    [program] = re.findall("```python\n(.*?)```", card, re.DOTALL)
    texts = reverse_texts(5, seed=8)[0]
    if name == "learned":  # up to the last position that it knows
        texts[4] = " ".join(reverse_texts(300, seed=5)[0])[:85]
        assert 60 < len(model_folder.load(models(name)).tokenizer.encode_source(texts[4:])[0]) < 80
    monkeypatch.chdir(tmp_path / "out")
    monkeypatch.setattr(
        sys, "stdin", io.StringIO("".join(f"{text}\n" for text in [texts[0], "", " ", *texts[1:]]))
    )
    capsys.readouterr()
    exec(program, {})
    lines = capsys.readouterr().out.split("\n")
    assert lines[1:3] == ["", ""] and len(lines) == 8 and all(lines[3:7])
    del lines[1:3]
    if name == "post":
        monkeypatch.setattr(sys, "stdin", io.StringIO(""))
        exec(program, {})
        assert not capsys.readouterr().out
    if form == "ctranslate2":  # as many positions as there are, without the end
        assert f"max_input_length={79 if name == 'learned' else 4095}," in program
    if form == "onnx":
        assert "log_probs[:, [0, 1, 3]] = -np.inf" in program
    if form == "onnx":  # which searches greedily, and ends as ours does
        assert lines[:5] == [each.text for each in greedy(model_folder.load(models(name)), texts)]
    if (form, name) == ("ctranslate2", "post"):  # with the model's own beam and length penalty
        own = transduce.load(models(name), {"decode.retry_loops": False}, engine="torch")
        assert lines[:5] == [each.text for each in own.translate(texts)]


def test_onnx_knows_long_texts_and_splits_longer_ones(models, tmp_path):
    export(models("post"), "onnx", tmp_path / "out")
    text = " ".join(reverse_texts(300, seed=7)[0])
    own, exported = transduce.load(models("post"), engine="torch"), transduce.load(tmp_path / "out")
    scores = [each.score([text], ["zu fe"])[0].log_prob for each in (own, exported)]
    assert len(own.tokenizer.encode_source([text])[0]) > 1100 and scores[1] == pytest.approx(
        scores[0], abs=1e-2
    )
    # Memory grows with the square.
    one, long, other = exported.translate_lines(["ka lo", "mi nu, " * 3000, "so ya"])
    assert "split" in long.flags and [one, other] == exported.translate(["ka lo", "so ya"])


def test_an_onnx_export_has_the_confidence_of_its_model(models, tmp_path):
    folder = Path(shutil.copytree(models("post"), tmp_path / "model"))
    regression = (-1.0, 1.0, 0.0), (1.0, 1.0, 1.0), (1.0, 0.5, 0.5), 0.0, 100, 0.8, 0.04
    (folder / model_folder.CONFIDENCE).write_text(
        Confidence(*regression, 50.0, -9.0).to_json(), encoding="utf-8"
    )
    export(folder, "onnx", tmp_path / "out")
    texts = reverse_texts(20, seed=4)[0]
    own, other = transduce.load(folder, engine="torch"), transduce.load(tmp_path / "out")
    expected = [each.confidence for each in own.translate(texts)]
    assert [each.confidence for each in other.translate(texts)] == pytest.approx(
        expected, abs=1e-3
    ) and all(expected)


def test_argos_package_has_the_files_that_argos_reads(models, tmp_path, monkeypatch):
    # All is written beside the package.
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing"))
    export(models("post"), "argos", tmp_path / "out")
    with zipfile.ZipFile(tmp_path / "out" / "translate-en_de-1_0.argosmodel") as archive:
        metadata = json.loads(archive.read("translate-en_de-1_0/metadata.json"))
        names = {name.removeprefix("translate-en_de-1_0/") for name in archive.namelist()}
        readme = archive.read("translate-en_de-1_0/README.md").decode()
    assert {
        "sentencepiece.model",
        "README.md",
        "metadata.json",
        "model/model.bin",
        "model/config.json",
    } <= names and "model/sentencepiece.model" not in names
    assert metadata == {
        **{"package_version": "1.0", "argos_version": "1.9.0", "type": "translate"},
        **{"from_code": "en", "from_name": "English", "to_code": "de", "to_name": "German"},
    }
    assert readme == "# English - German\n\nTrained with and exported by transduce.\n"
    card = (tmp_path / "out" / "README.md").read_text()
    assert card.startswith(
        "# en → de, for Argos Translate and LibreTranslate\n\nExported by transduce "
    )
    assert "from the model post-40: transformer, 2+2 layers, d_model 32" in card
    assert "; weights in float32.\n" in card and "U+FDD0" not in card
    assert card.endswith("identical tokens in both programs (float32, greedy).\n")
    [*_, usage] = card.partition("```python\n")
    assert 'install_from_path("translate-en_de-1_0.argosmodel")' in usage
    assert 'translate.translate("…", "en", "de")' in usage
    assert [path.name for path in (tmp_path / "out").glob("*.argosmodel")] == [
        "translate-en_de-1_0.argosmodel"
    ], "nothing else is left"


def test_the_configuration_of_a_hugging_face_model(models, tmp_path):
    sizes = {"d_model": 8, "d_ff": 12, "num_heads": 2, "vocab_size": 30, "source_vocab_size": 20}
    layers = {"num_encoder_layers": 3, "num_decoder_layers": 1, "activation": "silu"}
    config = ModelConfig(**sizes, **layers, dropout=0.2, attention_dropout=0.3)
    found = huggingface._config(config)
    assert found == {
        **{"architectures": ["MarianMTModel"], "model_type": "marian", "torch_dtype": "float32"},
        **{"is_encoder_decoder": True, "scale_embedding": True, "tie_word_embeddings": True},
        **{"normalize_before": False, "normalize_embedding": False, "d_model": 8},
        **{"encoder_layers": 3, "decoder_layers": 1, "num_hidden_layers": 3},
        **{"encoder_ffn_dim": 12, "decoder_ffn_dim": 12},
        **{"encoder_attention_heads": 2, "decoder_attention_heads": 2},
        **{"vocab_size": 20, "decoder_vocab_size": 30, "share_encoder_decoder_embeddings": False},
        **{"max_position_embeddings": 1024, "static_position_embeddings": True},
        **{"activation_function": "silu", "dropout": 0.2, "attention_dropout": 0.3},
        **{"activation_dropout": 0.0, "encoder_layerdrop": 0.0, "decoder_layerdrop": 0.0},
        **{"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2},
        **{"decoder_start_token_id": 1, "forced_eos_token_id": 2},
    }
    joint = huggingface._config(replace(config, source_vocab_size=0))
    assert joint["vocab_size"] == 30 and joint["share_encoder_decoder_embeddings"] is True
    model = model_folder.load(models("separate"))
    search = configure({"decode.beam_size": 3, "decode.length_penalty": 0.7}).decode
    languages = replace(model.config.data, directions=("en-de", "en-fr"))
    huggingface.write(
        model._replace(config=replace(model.config, decode=search, data=languages)), tmp_path, ""
    )
    described = {
        path.name: json.loads(path.read_text(encoding="utf-8")) for path in tmp_path.glob("*.json")
    }
    assert described["generation_config.json"] == {
        **{"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1},
        **{"forced_eos_token_id": 2, "max_length": 1024, "num_beams": 3, "length_penalty": 0.7},
    }
    assert described["tokenizer_config.json"] == {
        **{"tokenizer_class": "MarianTokenizer", "separate_vocabs": True},
        **{"model_max_length": 1024, "clean_up_tokenization_spaces": False},
        **{"source_lang": "en", "target_lang": "de", "unk_token": "<unk>"},
        **{"eos_token": "</s>", "pad_token": "<pad>", "transduce_directions": ["en-de", "en-fr"]},
    }
    for name, side in (("vocab.json", "source"), ("target_vocab.json", "target")):
        pieces = getattr(model.tokenizer, side).all_pieces()
        assert described[name] == {piece: number for number, piece in enumerate(pieces)}
    for name, content in zip(("source.spm", "target.spm"), model.tokenizer.models, strict=True):
        assert (tmp_path / name).read_bytes() == content


SCORES = {"directions": {"en-de": 1}, "routes": {"de-en": 2}}


@pytest.mark.parametrize(
    ("directions", "metrics", "expected"),
    [
        (("en-de", "de-en"), {**SCORES, "parameters": 3, "bleu": 4}, SCORES),
        (("en-de", "de-en"), {"bleu": 4}, {}),
        (("en-de", "de-en"), None, None),
        ((), {**SCORES, "bleu": 4}, None),
    ],
)
def test_an_onnx_export_has_the_scores_for_routes(directions, metrics, expected, models, tmp_path):
    model = model_folder.load(models("post"))
    data = replace(model.config.data, directions=directions)
    config = replace(model.config, data=data, sources={"data.corpora": "a"})
    folder, out = tmp_path / "model", tmp_path / "out"
    out.mkdir()
    publish_model(folder, model.config, model.tokenizer, model.model.state_dict(), metrics or {})
    if metrics is None:
        (folder / model_folder.METRICS).unlink()
    onnx.write(model._replace(folder=folder, config=config), out, "")
    file = out / model_folder.METRICS
    assert (json.loads(file.read_text()) if file.exists() else None) == expected
    assert model_folder.read_config(out).data.directions == directions
    assert not (out / model_folder.CONFIDENCE).exists()
    assert not (out / model_folder.SOURCES).exists(), "which tells of private files"


def test_tags_in_a_readme():
    assert about_tags({}, "[{1}] + ") == {"tag": "", "tags": ""}
    found = about_tags({"<2de>": 4, "<2fr>": 5}, '["{0}", {1}] + ')
    assert found == {
        "tag": '["<2de>", 4] + ',
        "tags": "\nEach source begins with the tag of its target language: `<2de>` (id 4), `<2fr>` (id 5).",
    }
    assert "U+FDD0" in fill("placeholders") and "(`x` $" not in fill("onnx", command="x")


def test_export_as_a_command(models, tmp_path, capsys, monkeypatch):
    out = tmp_path / "out"
    files = write_texts(tmp_path, "valid", 12, seed=4)
    monkeypatch.setattr(exporting, "MAX_COMPARED_SENTENCES", 8)
    assert export(models("post"), "onnx", tmp_path / "few", pairs=sentences()).sentences == 8
    monkeypatch.undo()
    status, said, error = run(
        capsys, "export", models("post"), "--to", "ctranslate2", "--out", out, "--valid", *files
    )
    assert (
        status == 0
        and said.startswith("12 of 12 sentences from valid.src produced")
        and "README.md says how to use it" in said
    ), error
    size = sum(path.stat().st_size for path in out.iterdir())
    assert f"{out}: {size / 1000:.1f} kB, in " in " ".join(said.split())
    kept = b"".join(path.read_bytes() for path in out.iterdir())
    compared = reverse_texts(12, seed=4)
    assert not any(text.encode() in kept for text in (*compared[0], *compared[1]))
    for arguments, why in {
        ("--to", "ctranslate2", "--out", out): "exists already",
        (
            "--to",
            "onnx",
            "--out",
            tmp_path / "x",
            "--compute-type",
            "int8",
        ): "onnx is written in float32 only. For other compute types, use ctranslate2 or argos.",
        (
            "--to",
            "argos",
            "--out",
            tmp_path / "x",
            "--compute-type",
            "int7",
        ): "CTranslate2 can't compute in int7: int7 is not",
        ("--to", "marain", "--out", tmp_path / "x"): 'Invalid value "marain"',
        (
            "--to",
            "marian",
            "--out",
            tmp_path / "x",
        ): "model.positions=t2t and model.zero_start=true",
        ("--to", "huggingface", "--out", tmp_path / "\udcff"): "is not UTF-8. Use another name.",
    }.items():
        status, _, error = run(capsys, "export", models("post"), *arguments)
        assert status == 2 and why in error
    with pytest.raises(UserError, match="onnx is written in float32 only") as raised:
        export(models("dot"), "onnx", tmp_path / "x", "int8")
    assert raised.value.hint == Hint.about("Export in float32.", "compute_type")
    (tmp_path / "empty.tsv").touch()
    for command in (["export", models("post"), "--to", "onnx"], ["import", tmp_path]):
        status, _, error = run(
            capsys, *command, "--out", tmp_path / "x", "--valid", tmp_path / "empty.tsv"
        )
        assert status == 2 and "No sentences in" in error and "empty.tsv" in error
    assert not (tmp_path / "x").exists()
    (tmp_path / "unfinished").mkdir()
    (tmp_path / "unfinished" / "config.toml").write_bytes(
        (models("post") / "config.toml").read_bytes()
    )
    status, _, error = run(
        capsys, "export", tmp_path / "unfinished", "--to", "onnx", "--out", tmp_path / "x"
    )
    assert status == 2 and "is not finished. Repeat the command of the training" in error


def test_a_model_of_several_languages_whose_recipe_names_none_begins_with_its_first_direction():
    given = {"data.directions": ("en-de", "fr-de")}
    config = configure(given)
    every = exporting.in_direction(config, "").data
    assert (every.source, every.target, every.directions) == ("en", "de", ("en-de", "fr-de"))
    one = exporting.in_direction(config, "fr-de").data
    assert (one.source, one.target, one.directions) == ("fr", "de", ("fr-de",))
    named = configure(given | {"data.source": "fr", "data.target": "de"})
    assert exporting.in_direction(named, "") == named
