"""Tests of transduce/wings/export/exporting.py."""

import io
import json
import re
import shutil
import sys
import tempfile
import zipfile
from itertools import product
from pathlib import Path

import pytest

import transduce
from command_line import run
from corpora import reverse_texts, write_texts
from exports import disturb, greedy, sentences
from transduce import model_folder
from transduce.decoding.confidence import Confidence
from transduce.inline.placeholders import intact
from transduce.system.errors import UserError
from transduce.text.formats import PLAIN_TEXT
from transduce.text.pairs import Origin, Pair
from transduce.wings.ct2 import build as building
from transduce.wings.export import exporting
from transduce.wings.export.exporting import FORMS, export
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


@pytest.mark.parametrize("form", FORMATS)
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
    assert {
        "sentencepiece.model",
        "README.md",
        "metadata.json",
        "model/model.bin",
        "model/config.json",
    } <= names
    assert (
        metadata["from_code"] == "en"
        and metadata["to_name"] == "German"
        and metadata["type"] == "translate"
    )


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
