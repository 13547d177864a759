"""An export translates as the model does, or isn't written; what is imported translates as it did."""

import io
import json
import re
import shutil
import struct
import sys
import tempfile
import zipfile
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import sentencepiece
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file

import transduce
from command_line import run
from corpora import reverse_texts, write_texts
from models import make_model
from transduce import model_folder
from transduce.config.parse import configure
from transduce.config.schema import (
    PLACEHOLDER_TOKENS,
    ModelConfig,
    RunConfig,
    options,
    with_options,
)
from transduce.decoding.confidence import Confidence
from transduce.decoding.torch_engine import TorchEngine
from transduce.decoding.translator import Translator
from transduce.decoding.types import PLAIN_SEARCH
from transduce.inline.placeholders import intact
from transduce.model.embedding import sinusoids
from transduce.system.errors import Hint, UserError
from transduce.system.files import publish, read_manifest
from transduce.text.pairs import Origin, Pair
from transduce.text.tree_symbols import ALL_MARKS
from transduce.tokens.imported_vocabulary import ImportedVocabulary, piece_spans
from transduce.tokens.tokenizer import Tokenizer
from transduce.wings.ct2 import build as building
from transduce.wings.export import exporting, huggingface, importing, marian, parity
from transduce.wings.export.exporting import FORMS, export
from transduce.wings.export.importing import import_model
from transduce.wings.export.parity import Output, Runner
from transduce.wings.formats import FORMATS, VALUES_BY_OPTION, Format, refuse, refuse_config
from transduce.wings.phrasebook.examples import PHRASEBOOK

MODELS: dict[str, dict[str, Any]] = {
    "post": {},
    "silu": {
        "model.activation": "silu",
        "model.num_encoder_layers": 3,
        "model.num_decoder_layers": 1,
    },
    "gelu and a bias": {"model.activation": "gelu", "model.output_bias": True},
    "separate": {},
    "placeholder tokens": {"data.placeholders": "masked"},
    "separate placeholder tokens": {"data.placeholders": "masked"},
    "pre": {"model.norm": "pre"},
    "learned": {"model.positions": "learned", "model.max_positions": 80},
    "dot": {"model.attention": "dot", "model.d_k": 4, "model.d_v": 6},
    "separate symbols": {},
    "rotary": {"model.positions": "rotary"},
    "swiglu": {"model.activation": "swiglu"},
    "shared keys": {"model.num_kv_heads": 1},
    "rms": {"model.rms_norm": True},
    "blocks": {"model.block_size": 3},
    "no biases": {"model.bias": False},
    "modern": {
        "model.positions": "rotary",
        "model.activation": "swiglu",
        "model.bias": False,
        "model.rms_norm": True,
    },
}
ALIKE = (  # like others: only slow tests
    "silu",
    "gelu and a bias",
    "separate placeholder tokens",
    "relu",
    "gelu, bpe",
    "rotary",
    "swiglu",
    "rms",
    "no biases",
    "blocks",
)


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """A folder for every name in MODELS, made when it is asked for."""
    place = tmp_path_factory.mktemp("models")

    def get(name: str, updates: int = 40) -> Path:
        folder = place / f"{name.replace(' ', '-')}-{updates}"
        made = {
            "joint": "separate" not in name,
            "placeholder_tokens": PLACEHOLDER_TOKENS if "placeholder tokens" in name else "",
        }
        made["symbols"] = "symbols" in name
        return (
            folder if folder.exists() else make_model(folder, MODELS[name], updates=updates, **made)
        )

    return get


def refused(form: Format, folder: Path) -> bool:
    return bool(refuse(form, folder, model_folder.read_config(folder)))


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name in ALIKE)) for name in MODELS]
)
def test_exports_translate_like_the_model(form, name, models, tmp_path):
    folder = models(name)
    if refused(form, folder):
        with pytest.raises(UserError, match="can't be exported to") as raised:
            export(folder, form, tmp_path / "out")
        assert not list(tmp_path.iterdir())
        others = ", ".join(each for each in FORMATS if not refused(each, folder))
        assert raised.value.hint == (Hint(f"Choose another format: {others}.") if others else None)
        return
    found = export(folder, form, tmp_path / "out")
    assert found.sentences == found.identical == 40
    model_folder.verify(tmp_path / "out", hashes=True)
    assert "40 of 40 sentences" in (tmp_path / "out" / "README.md").read_text(encoding="utf-8")


def test_refused_formats_match_the_documented_table(models):
    found = {
        name: [form for form in FORMATS if not refused(form, models(name, updates=0))]
        for name in MODELS
    }
    everything = ["ctranslate2", "argos", "huggingface", "onnx"]
    assert found == {
        "post": everything,
        "blocks": everything,
        "silu": everything,
        "gelu and a bias": everything,
        "separate": ["ctranslate2", "huggingface", "onnx"],
        "placeholder tokens": everything,
        "separate placeholder tokens": ["ctranslate2", "huggingface", "onnx"],
        "pre": ["ctranslate2", "argos", "onnx"],
        "learned": ["ctranslate2", "argos", "onnx"],
        "dot": ["onnx"],
        "separate symbols": ["ctranslate2", "huggingface", "onnx"],
        **{
            name: ["ctranslate2", "argos", "onnx"]
            for name in ("rotary", "swiglu", "shared keys", "rms", "no biases", "modern")
        },
    }
    other = {"kind": "recurrent", "experts": 4, "window": 2, "attention": "additive"}
    for option, value in other.items():
        config = RunConfig(model=with_options(ModelConfig(), **{option: value}))
        for form in FORMATS:
            refusal = refuse_config(form, config)
            assert refusal and option in refusal.reason
    for form in FORMATS:
        # As 0.
        assert not refuse_config(
            form, configure({"model.d_k": 64, "model.d_v": 64, "model.num_kv_heads": 8})
        )
    assert set(VALUES_BY_OPTION) <= {option.name for option in options()}


def test_parsers_are_not_exported(tmp_path, capsys):
    """Symbols that are no trees are translated to like anything else."""
    folder = make_model(tmp_path / "model", {}, joint=False, symbols=True)
    assert "ctranslate2, huggingface, onnx" in run(capsys, "info", folder)[1]
    tokenizer = Tokenizer.train(
        ["ka lo"], [f"(S {ALL_MARKS} NN )"], vocab_size=300, joint=False, symbols=True
    )
    with publish(folder) as aside:
        for name in read_manifest(folder):
            shutil.copy(folder / name, aside / name)
        assert all(name.startswith("tokenizer.") for name in tokenizer.save(aside))
    for form in FORMATS:
        with pytest.raises(UserError, match=f"{form}: it can't restrict .* to well-formed trees"):
            export(folder, form, tmp_path / "out")
    (folder / "tokenizer.target.model").write_bytes(b"damaged")
    status, said, _ = run(capsys, "doctor", folder)
    assert status == 1 and "tokenizer.target.model" in said


# -- parity ---------------------------------------------------------------------------------------------


def disturb(file: Path, weight: torch.Tensor) -> None:
    """Change one number of a weight, in whatever layout it is stored."""
    content = file.read_bytes()
    for value in weight.flatten().tolist():
        place = content.find(struct.pack("<f", value))
        if place >= 0 and content.count(struct.pack("<f", value)) == 1:
            file.write_bytes(content[:place] + struct.pack("<f", value + 8) + content[place + 4 :])
            return
    raise AssertionError(f"{file} does not hold the weight")


FILES = {"ctranslate2": "model.bin", "huggingface": "model.safetensors", "onnx": "decoder.onnx"}


@pytest.mark.parametrize("form", FORMATS)
def test_export_with_a_wrong_weight_is_not_written(form, models, tmp_path, monkeypatch):
    folder = models("post")
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


def greedy(model: model_folder.Bundle, texts: list[str]) -> list[Output]:
    """What the model translates."""
    config = replace(model.config.decode, beam_size=1, **PLAIN_SEARCH)
    found = Translator(TorchEngine([model.model]), model.tokenizer, config).translate_sentences(
        texts
    )
    return [Output(list(each.tokens), each.text) for each in found]


def says(outputs: list[Output]) -> Runner:
    """Another program, whatever it is asked."""
    return Runner(lambda *_: outputs, "float32")


def test_outputs_may_differ_only_where_scores_tie(models, monkeypatch):
    model, texts = model_folder.load(models("gelu and a bias")), reverse_texts(100, seed=3)[0]
    pairs = [Pair(text, text, Origin("a test", 1)) for text in texts]
    ours = greedy(model, texts)
    assert parity.check_parity(model, pairs, says(ours), exact=True).identical == 100
    place = next(i for i, output in enumerate(ours) if len(output.pieces) > 3)
    pieces, text = ours[place]
    for other in ([*pieces[:-1], "<s>"], pieces[:-1], ["no piece"], [], ["<s>", *pieces]):
        outputs = [*ours[:place], Output(other, text), *ours[place + 1 :]]
        with pytest.raises(UserError, match="differ in 1 of 100 sentences"):
            parity.check_parity(model, pairs, says(outputs), exact=True)
    retold = [output._replace(text="x") for output in ours]
    # The same pieces, put together otherwise.
    with pytest.raises(UserError, match="differ in 100 of 100 sentences"):
        parity.check_parity(model, pairs, says(retold), exact=True)
    monkeypatch.setattr(parity, "MAX_TIE_NATS", 1e9)
    outputs = [*ours[:place], Output([*pieces[:-1], "<s>"], text), *ours[place + 1 :]]
    assert parity.check_parity(model, pairs, says(outputs), exact=True).identical == 99
    with pytest.raises(UserError, match="differ in 1 of 50 sentences"):  # fewer than 99 %
        parity.check_parity(
            model, pairs[place : place + 50], says(outputs[place : place + 50]), exact=True
        )


@pytest.mark.parametrize("form", FORMATS)
def test_sentences_that_other_programs_read_otherwise_are_not_compared(form, models, tmp_path):
    odd = ["\u2581ka", "ka </s> lo", "<unk>", ">>de<< ka lo", "<pad> ka"]
    pairs = [
        Pair(text, text, Origin("a test", 1)) for text in (*odd, "ka >>de<<", "<b> ka", "ka lo")
    ]
    assert export(models("post"), form, tmp_path / "out", pairs=pairs).sentences == 3
    with pytest.raises(UserError, match="needs a sentence of fewer than"):
        export(models("post"), form, tmp_path / "other", pairs=pairs[:5])


def test_inexact_exports_are_compared_by_bleu(models):
    model, texts = model_folder.load(models("post")), reverse_texts(200, seed=3)[0]
    ours = greedy(model, texts)
    pairs = [
        Pair(text, output.text, Origin("a test", 1))
        for text, output in zip(texts, ours, strict=True)
    ]
    found = parity.check_parity(model, pairs, says(ours), exact=False)
    assert found.bleu and found.bleu.first.value == found.bleu.second.value == pytest.approx(100)
    assert (
        "BLEU is 100.00, the model's 100.00" in found.report()[1]
        and "at least 1,000" in found.report()[2]
    )
    with pytest.raises(
        UserError, match="Nothing was written, since the export translates worse: BLEU"
    ):
        parity.check_parity(
            model, pairs, says([Output(["x"], "x y z")] * 20 + ours[20:]), exact=False
        )
    gone = [pair._replace(origin=Origin(PHRASEBOOK, 1)) for pair in pairs]
    for changes in (
        {"target": "fr"},
        {"source": "en", "target": "de", "directions": ("en-de", "en-fr")},
    ):
        other = model._replace(
            config=replace(model.config, data=replace(model.config.data, **changes))
        )
        with pytest.raises(UserError, match="Name a validation text with its translations"):
            parity.check_parity(other, gone, says(ours), exact=False)


def test_search_options_do_not_affect_the_comparison(models):
    model, texts = model_folder.load(models("post")), reverse_texts(100, seed=3)[0]
    decode = replace(model.config.decode, no_repeat_ngram=1, beam_size=2, mbr="chrf")
    other = model._replace(config=replace(model.config, decode=decode))
    pairs = [Pair(text, text, Origin("a test", 1)) for text in texts]
    assert (
        parity.check_parity(other, pairs, says(greedy(model, texts)), exact=True).identical == 100
    )


def test_an_export_in_8_bits_says_what_it_lost(models, tmp_path, monkeypatch):
    monkeypatch.setattr(parity, "MAX_BLEU_LOSS", 100.0)  # a toy model may lose much
    monkeypatch.setattr(parity, "MAX_P_VALUE", 0.0)
    sizes = []
    for compute_type in ("float32", "int8"):
        out = tmp_path / compute_type
        export(models("silu"), "ctranslate2", out, compute_type)
        sizes.append((out / "model.bin").stat().st_size)
    assert sizes[1] < sizes[0]
    card = (tmp_path / "int8" / "README.md").read_text(encoding="utf-8")
    assert "weights in int8" in card and "BLEU" in card


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


# -- placeholders ------------------------------------------------------------------------------------------


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
            for each in translator.translate_lines(marked, kinds=["plain"] * len(marked))
        ]
        for translator in (
            transduce.load(models(name), {"decode.retry_loops": False}, engine="torch"),
            transduce.load(models(name), {"decode.retry_loops": False}, engine="ctranslate2"),
            transduce.load(tmp_path / "out", {"decode.retry_loops": False}),
        )
    )
    assert own == fast  # and ONNX says nothing of where tags belong, but keeps them
    for made in (own, onnx):
        assert all(
            intact(text, each, markup=False) for text, (each, _) in zip(marked, made, strict=True)
        )
    assert "U+FDD0" in (tmp_path / "out" / "README.md").read_text(encoding="utf-8")


# -- used as README.md says ----------------------------------------------------------------------------------


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


def test_onnx_is_translated_with_and_scored_as_the_model(models, tmp_path, capsys):
    export(models("dot"), "onnx", tmp_path / "out")
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        "encoder.onnx",
        "decoder.onnx",
        "config.toml",
        "tokenizer.model",
        "README.md",
        "manifest.json",
    }
    texts = [*reverse_texts(30, seed=7)[0], ""]
    own, exported = transduce.load(models("dot"), engine="torch"), transduce.load(tmp_path / "out")
    assert exported.engine.name == "ONNX Runtime"
    expected, found = own.translate(texts, n_best=3), exported.translate(texts, n_best=3)
    assert [each.text for each in found] == [each.text for each in expected]
    scores = [
        [best.score for each in some for best in (each, *each.alternatives)]
        for some in (expected, found)
    ]
    assert scores[1] == pytest.approx(scores[0], abs=1e-3)
    targets = [each.text for each in expected]
    reported = [
        [each.log_prob for each in translator.score(texts, targets)]
        for translator in (own, exported)
    ]
    assert reported[1] == pytest.approx(reported[0], abs=1e-2)
    (tmp_path / "texts").write_text("ka lo\n\nmi nu\n", encoding="utf-8")
    status, said, error = run(capsys, "translate", tmp_path / "out", "--input", tmp_path / "texts")
    assert status == 0 and len(said.split("\n")) == 4, error
    with pytest.raises(UserError, match="An export has its own engine"):
        transduce.load(tmp_path / "out", engine="torch")
    with pytest.raises(UserError, match="An export can't be part of an ensemble"):
        transduce.load([models("dot"), tmp_path / "out"])
    status, said, error = run(capsys, "score", tmp_path / "out", *2 * [tmp_path / "texts"])
    assert status == 0 and len(said.split("\n")) == 4, error
    for arguments in (
        ["info"],
        ["attention", "ka lo"],
        ["export", "--to", "onnx", "--out", tmp_path / "again"],
    ):
        status, _, error = run(capsys, arguments[0], tmp_path / "out", *arguments[1:])
        assert status == 2 and "out is an export" in error
    (tmp_path / "out" / "decoder.onnx").write_bytes(b"nothing")
    with pytest.raises(UserError, match="is damaged"):
        transduce.load(tmp_path / "out")


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
        ("--to", "marian", "--out", tmp_path / "x"): 'Invalid value "marian"',
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


# -- import ------------------------------------------------------------------------------------------------


def spm(
    folder: Path, texts: list[str], name: str, kind: str = "unigram", size: int = 40
) -> list[str]:
    """A SentencePiece model as OPUS-MT has it, with its own ids and normalisation; returns its pieces."""
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(texts),
        model_prefix=str(folder / name),
        vocab_size=size,
        model_type=kind,
        hard_vocab_limit=False,
        minloglevel=2,
    )
    (folder / f"{name}.model").rename(folder / f"{name}.spm")
    (folder / f"{name}.vocab").unlink()
    found = sentencepiece.SentencePieceProcessor(model_file=str(folder / f"{name}.spm"))
    return [found.id_to_piece(i) for i in range(3, found.get_piece_size())]


def make_marian(
    folder: Path,
    *,
    activation: str = "swish",
    separate: bool = False,
    kind: str = "unigram",
    begin: int | None = None,
) -> Path:
    """A random Marian model as OPUS-MT's are: ids of its own, padding last, begun with padding, a bias."""
    transformers = pytest.importorskip("transformers")
    folder.mkdir()
    sources, targets = reverse_texts(300, seed=0)
    source, target = spm(folder, sources, "source", kind), spm(folder, targets, "target", kind)
    source.remove(
        "k"
    ) if "k" in source else source.pop()  # a piece that the vocabulary lacks: unknown
    texts = {"vocab.json": source if separate else sorted({*source, *target})}
    if separate:
        texts["target_vocab.json"] = target
    sizes = []
    for name, pieces in texts.items():
        codes = [">>de<<"] if activation == "swish" else []
        # Padding has one id.
        fillers = [f"filler{i}" for i in range(50 - len(pieces))] if separate else []
        listed = ["</s>", "<unk>", *pieces, *codes, *fillers, "<pad>"]
        (folder / name).write_text(
            json.dumps({piece: i for i, piece in enumerate(listed)}), encoding="utf-8"
        )
        sizes.append(len(listed))
    described = {"source_lang": "en", "target_lang": "de", "separate_vocabs": separate}
    (folder / "tokenizer_config.json").write_text(json.dumps(described), encoding="utf-8")
    config = transformers.MarianConfig(
        vocab_size=sizes[0],
        decoder_vocab_size=sizes[-1],
        share_encoder_decoder_embeddings=not separate,
        d_model=32,
        encoder_layers=2,
        decoder_layers=2,
        encoder_ffn_dim=64,
        decoder_ffn_dim=64,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        activation_function=activation,
        scale_embedding=True,
        max_position_embeddings=512,
        pad_token_id=sizes[-1] - 1,
        decoder_start_token_id=sizes[-1] - 1 if begin is None else begin,
        eos_token_id=0,
        forced_eos_token_id=0,
    )
    torch.manual_seed(0)
    model = transformers.MarianMTModel(config)
    for name, weight in model.named_parameters():
        if "embed_positions" not in name:
            weight.data.normal_(std=0.25)
            if "norm.weight" in name:
                weight.data.add_(1)
    model.final_logits_bias = torch.randn(1, sizes[-1]) / 2
    model.save_pretrained(folder)
    return folder


MARIANS = {
    "OPUS-MT": {},
    "relu": {"activation": "relu"},
    "gelu, bpe": {"activation": "gelu", "kind": "bpe"},
    "separate": {"separate": True},
}


@pytest.fixture(scope="module")
def marians(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """A folder for every name in MARIANS, made when it is asked for."""
    place = tmp_path_factory.mktemp("marians")

    def get(name: str) -> Path:
        folder = place / name.split(",")[0]
        return folder if folder.exists() else make_marian(folder, **MARIANS[name])

    return get


def sentences() -> list[Pair]:
    """With characters, cases and spaces that a vocabulary of OPUS-MT doesn't know or keep."""
    odd = ["KA lo\u3000mi", " nu  re ", "ka \u2603 lo", "\ufb01 so", "va \u2581 ti", "kkk"]
    texts = [*reverse_texts(60, seed=3)[0], *odd]
    return [Pair(text, text, Origin("a test", line)) for line, text in enumerate(texts, start=1)]


MULTILINGUAL = Pair("ka lo", "", Origin("a test", 0), "en-de")


def by_transformers(folder: Path, never: list[str]) -> list[str]:
    """The pieces of the greedy translations of `sentences` by what is in a folder."""
    vocabulary = next(
        folder / name for name in ("target_vocab.json", "vocab.json") if (folder / name).exists()
    )
    ids = json.loads(vocabulary.read_text(encoding="utf-8"))
    runner = huggingface.open_runner(folder, [ids[piece] for piece in never])
    return [
        " ".join(output.pieces)
        for output in runner.translate(sentences(), [""] * len(sentences()), 30)
    ]


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name in ALIKE)) for name in MARIANS]
)
def test_an_imported_model_translates_as_the_original_also_when_it_is_exported_again(
    name, marians, tmp_path
):
    pairs = [*sentences(), MULTILINGUAL] if name == "OPUS-MT" else sentences()
    imported = import_model(marians(name), tmp_path / "model", pairs=pairs)
    assert imported.parity and imported.parity.identical == imported.parity.sentences == len(pairs)
    config = model_folder.read_config(tmp_path / "model")
    assert (config.data.source, config.data.target) == ("en", "de")
    expected = by_transformers(marians(name), ["<pad>", "<unk>"])
    for form in FORMATS:
        if form == "argos":  # which has one SentencePiece model
            with pytest.raises(UserError, match=r"argos: it (needs one|can't give the target)"):
                export(tmp_path / "model", form, tmp_path / form)
            continue
        found = export(tmp_path / "model", form, tmp_path / form, pairs=pairs)
        assert found.identical == found.sentences == len(pairs)
    assert by_transformers(tmp_path / "huggingface", []) == expected
    again = import_model(tmp_path / "huggingface", tmp_path / "again", pairs=sentences())
    assert again.parity and again.parity.identical == len(sentences())
    weights = [model_folder.load(tmp_path / each).model.state_dict() for each in ("model", "again")]
    for key, weight in weights[0].items():
        if key != "output_bias":  # of what never comes out
            assert torch.equal(weight, weights[1][key])


def test_placeholders_survive_an_export_and_an_import(models, tmp_path):
    export(models("placeholder tokens"), "huggingface", tmp_path / "out")
    import_model(tmp_path / "out", tmp_path / "again", pairs=sentences())
    texts = [f"{text} {{name}}" for text in reverse_texts(10, seed=3)[0]]
    own, again = (
        transduce.load(folder, engine="torch")
        for folder in (models("placeholder tokens"), tmp_path / "again")
    )
    expected = [each.text for each in own.translate(texts)]
    assert [each.text for each in again.translate(texts)] == expected and all(
        "{name}" in each for each in expected
    )


def test_a_source_language_that_is_the_only_target_is_refused(marians, tmp_path):
    with pytest.raises(
        UserError, match="The source language 'de' is the only target language"
    ) as refused:
        import_model(marians("OPUS-MT"), tmp_path / "model", source="de", target="de")
    assert refused.value.hint == Hint("Name another.", ("data.source",))


def test_model_that_starts_with_eos_is_imported(tmp_path):
    found = import_model(
        make_marian(tmp_path / "marian", begin=0), tmp_path / "model", pairs=sentences()
    ).parity
    assert found and found.identical == found.sentences


def test_imported_model_can_be_fine_tuned(marians, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(importing, "MAX_COMPARED_SENTENCES", 100)
    status, said, error = run(
        capsys, "import", marians("OPUS-MT"), "--out", tmp_path / "model", "--to", "fr"
    )
    assert status == 2 and "has no target language 'fr'. It has de" in error
    assert "Choose one of them (--to)." in error
    status, said, error = run(
        capsys, "import", marians("OPUS-MT"), "--out", tmp_path / "model", "--to", "de"
    )
    assert status == 0, error
    assert re.search(
        r"(99|100) of 100 sentences from the phrasebook produced identical tokens", said
    )
    files = write_texts(tmp_path, "train", 200, seed=2)
    options = [
        "train.steps=20",
        "train.warmup=5",
        "data.max_tokens=256",
        "train.threads=1",
        "data.holdout=10",
    ]
    arguments = [
        "--init",
        tmp_path / "model",
        "--train",
        *files,
        "--out",
        tmp_path / "tuned",
        *options,
    ]
    status, _, error = run(capsys, "train", *arguments)
    assert status == 0, error
    before, after = (model_folder.load(tmp_path / name) for name in ("model", "tuned"))
    assert after.config.data.directions == ("en-de",) and after.tokenizer.same_pieces(
        before.tokenizer
    )
    for name, weight in before.model.named_parameters():
        moved = not torch.equal(weight, after.model.get_parameter(name))
        assert moved or name == "output_bias"
    assert after.model.output_bias is not None and not torch.equal(
        after.model.output_bias, before.model.output_bias
    )
    export(tmp_path / "tuned", "huggingface", tmp_path / "out")
    texts = reverse_texts(30, seed=9)[0]
    translated = [each.text for each in transduce.load(tmp_path / "tuned").translate(texts)]
    assert len(translated) == len(texts)
    status, said, _ = run(capsys, "info", tmp_path / "model")
    assert status == 0 and "exports to  ctranslate2, huggingface, onnx" in said


def test_import_without_transformers_is_not_compared_and_says_so(
    marians, tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr(importing, "find_spec", lambda _: None)
    status, said, _ = run(capsys, "import", marians("relu"), "--out", tmp_path / "model")
    assert status == 0 and said.startswith("Not compared with the original")
    assert "Not compared with the original" in (tmp_path / "model" / "README.md").read_text(
        encoding="utf-8"
    )
    assert len(transduce.load(tmp_path / "model", engine="torch").translate(["ka lo"])) == 1


def test_import_with_a_wrong_weight_is_not_written(marians, tmp_path, monkeypatch):
    def fill(folder: Path, *rest: Any) -> None:
        bundle_fill(folder, *rest)
        disturb(folder / model_folder.WEIGHTS, rest[2]["decoder.1.residual.2.norm.weight"])

    bundle_fill = model_folder.fill
    monkeypatch.setattr(model_folder, "fill", fill)
    with pytest.raises(UserError, match=r"(?i)nothing was written"):
        import_model(marians("relu"), tmp_path / "model", pairs=sentences())
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"model_type": "bart"}, "model_type is bart"),
        ({"scale_embedding": False}, "scale_embedding is False"),
        ({"normalize_before": True}, "normalize_before is True"),
        ({"decoder_ffn_dim": 32}, "encoder_ffn_dim and decoder_ffn_dim differ"),
        ({"activation_function": ["relu"]}, r"activation_function is \["),
        ({"activation_function": "gelu_new"}, "activation_function is gelu_new; only relu, gelu"),
        ({"decoder_layers": 3}, r"weight model\.decoder\.layers\.2\..* is missing"),
        ({"decoder_layers": 1}, r"model\.decoder\.layers\.1\..* has no counterpart"),
        ({"eos_token_id": 3}, "eos_token_id is 3"),
        ({"pad_token_id": 3}, "pad_token_id is 3"),
        ({"d_model": None}, "d_model is missing"),
        ({"d_model": 64}, r"is \d+( x \d+)?, but .* by config\.json"),
        (
            {"encoder_ffn_dim": 128, "decoder_ffn_dim": 128},
            r"fc1\.weight is 64 x 32, but 128 x 32 by config\.json",
        ),
        ({"decoder_start_token_id": None}, "decoder_start_token_id is None"),
        ({"decoder_start_token_id": -1}, "decoder_start_token_id is -1"),
        ({"decoder_start_token_id": 1000}, "the id 1000, but the embedding has"),
        (
            {"share_encoder_decoder_embeddings": "no"},
            "share_encoder_decoder_embeddings is no; only True, False",
        ),
        ({"quantization_config": {"bits": 4}}, "quantization_config is "),
        ({"max_position_embeddings": 8}, "transformers can't open .*, so nothing was compared"),
        ({"max_position_embeddings": None}, "transformers can't open .*, so nothing was compared"),
    ],
)
def test_unsupported_marian_options_are_refused(changed, why, marians, tmp_path):
    folder = shutil.copytree(marians("relu"), tmp_path / "marian")
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    (folder / "config.json").write_text(json.dumps(config | changed), encoding="utf-8")
    with pytest.raises(UserError, match=why):
        import_model(folder, tmp_path / "model")
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize(
    ("described", "why"),
    [
        (b"[" * 100_000, r"tokenizer_config\.json can't be read: .*\. Use another copy\."),
        (b'{"pad_token": {"lstrip": false}}', r"vocab\.json: the piece .* is missing"),
        (b'{"source_lang": ["en"]}', "data.source must be a text"),
        (b'{"separate_vocabs": true}', "transformers can't open"),
        (b'{"transduce_directions": 5}', "transduce_directions is not a list of texts"),
        (
            b'{"transduce_directions": ["en-de", ["en"]]}',
            "transduce_directions is not a list of texts",
        ),
        (b'{"source_lang": "../x"}', "data.source must be a language code"),
    ],
)
def test_a_damaged_description_is_named(described, why, marians, tmp_path):
    folder = shutil.copytree(
        marians("OPUS-MT" if b"directions" in described else "relu"), tmp_path / "marian"
    )
    (folder / "tokenizer_config.json").write_bytes(described)
    with pytest.raises(UserError, match=why):
        import_model(folder, tmp_path / "model")
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.int8])
def test_half_precision_weights_are_imported_and_quantised_ones_refused(dtype, marians, tmp_path):
    """transformers would compute in what the configuration names."""
    folder = shutil.copytree(marians("relu"), tmp_path / "marian")
    weights = {
        name: weight.to(dtype) for name, weight in load_file(folder / "model.safetensors").items()
    }
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    (folder / "config.json").write_text(
        json.dumps(config | {"dtype": "float16", "torch_dtype": "float16"})
    )
    if dtype == torch.int8:
        with pytest.raises(UserError, match="quantised weights can't be imported"):
            import_model(folder, tmp_path / "model", pairs=sentences())
        return
    found = import_model(folder, tmp_path / "model", pairs=sentences()).parity
    assert found and found.identical == found.sentences


@pytest.mark.parametrize(
    "ids", [["</s>", "7"], ["</s>", None], ["</s>", -1], ["<unk>", 0], ["another", 0]]
)
def test_a_vocabulary_gives_each_piece_an_id_of_its_own(ids, marians, tmp_path):
    folder = shutil.copytree(marians("relu"), tmp_path / "marian")
    vocabulary = json.loads((folder / "vocab.json").read_text(encoding="utf-8"))
    (folder / "vocab.json").write_text(json.dumps(vocabulary | dict([ids])), encoding="utf-8")
    with pytest.raises(UserError, match=r"vocab\.json: two pieces share an id"):
        import_model(folder, tmp_path / "model")


@pytest.mark.parametrize(
    "missing", ["config.json", "model.safetensors", "source.spm", "vocab.json"]
)
def test_missing_files_are_named_and_pickles_are_never_opened(missing, marians, tmp_path):
    folder = shutil.copytree(marians("relu"), tmp_path / "marian")
    (folder / missing).unlink()
    with pytest.raises(UserError, match=re.escape(missing)):
        import_model(folder, tmp_path / "model")
    if missing == "model.safetensors":
        (folder / "pytorch_model.bin").write_bytes(b"cos\nsystem\n(S'touch opened'\ntR.")
        with pytest.raises(UserError, match=r"never opened here\..*save_pretrained"):
            import_model(folder, tmp_path / "model")


letters = st.text("ab \u2603\u00c9\ufb01\u3000>", max_size=12)


@given(st.lists(letters, max_size=4))
def test_a_foreign_vocabulary_gives_the_pieces_that_its_model_cuts_or_what_is_unknown(texts):
    processor = sentencepiece.SentencePieceProcessor(model_proto=FOREIGN)
    own = [processor.id_to_piece(i) for i in range(processor.get_piece_size())][3::2]
    pieces = ["<pad>", "<s>", "</s>", "<unk>", *own, "another"]
    vocabulary = ImportedVocabulary(FOREIGN, pieces)
    for text, ids in zip(texts, vocabulary.encode(texts).lists(), strict=True):
        cut = processor.encode(text, out_type=str)
        assert vocabulary.pieces(ids) == [piece if piece in own else "<unk>" for piece in cut]
    rows = [[4, len(pieces) - 1, 2, 3], []]
    assert vocabulary.decode(rows) == [(own[0] + "another").replace("\u2581", " ").strip(), ""]


@given(letters)
def test_the_spans_of_a_foreign_vocabulary_are_those_of_what_was_written(text):
    """Whatever it does not know, or writes otherwise: each piece lies where its characters are, in order."""
    vocabulary = ImportedVocabulary(FOREIGN, ["<pad>", "<s>", "</s>", "<unk>", *"ab", "\u2581"])
    [ids] = vocabulary.encode([text]).lists()
    spans = vocabulary.spans_in(text, ids)
    assert len(spans) == len(ids) and all(0 <= begin <= end <= len(text) for begin, end in spans)
    assert [begin for begin, _ in spans] == sorted(begin for begin, _ in spans)
    for piece, (begin, end) in zip(vocabulary.pieces(ids), spans, strict=True):
        assert piece == "<unk>" or piece.strip("\u2581") == text[begin:end].strip(" \u3000")


def test_the_list_of_a_foreign_vocabulary_may_be_longer_than_its_model():
    pieces = ["<pad>", "<s>", "</s>", "<unk>", *"ab"]
    longer = ImportedVocabulary(FOREIGN, [*pieces, *map(str, range(10_000))])
    assert longer.kind == ImportedVocabulary(FOREIGN, pieces).kind


def test_a_character_in_bytes_of_a_foreign_vocabulary_stands_at_its_last_byte():
    e, kanji = "é".encode(), "漢".encode()
    assert piece_spans(["a", *e, " b", *kanji]) == [
        (0, 1),
        (1, 1),
        (1, 2),
        (2, 4),
        (4, 4),
        (4, 4),
        (4, 5),
    ]
    # Bytes of no character.
    assert piece_spans([0xE2, 0x96, "x", 0xFF]) == [
        (0, 1),
        (1, 2),
        (2, 3),
        (3, 4),
    ]


def make_foreign() -> bytes:
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(["ab ba abab", "a \u00c9 b fi"] * 9),
        model_writer=model,
        vocab_size=16,
        hard_vocab_limit=False,
        minloglevel=2,
    )
    return model.getvalue()


FOREIGN = make_foreign()


def test_a_foreign_vocabulary_is_saved_and_damage_is_named(tmp_path):
    pieces = ["<pad>", "<s>", "</s>", "<unk>", "\u2581a", "b"]
    tokenizer = Tokenizer(ImportedVocabulary(FOREIGN, pieces))
    tokenizer.save(tmp_path)
    loaded = Tokenizer.load(tmp_path)
    assert (
        loaded.is_imported
        and loaded.joint
        and loaded.same_pieces(tokenizer)
        and not loaded.target_symbols()
    )
    assert loaded.encode_source(["a b"]) == tokenizer.encode_source(["a b"])
    for damage in ('["a"]', "[[]]", "{", '[["a", "a", "b", "c", "d"]]'):
        (tmp_path / "tokenizer.pieces.json").write_text(damage, encoding="utf-8")
        with pytest.raises(UserError, match="another copy"):
            Tokenizer.load(tmp_path)


@pytest.mark.parametrize(
    "name", ["lm_head.weight", "model.encoder.embed_positions.weight", "another"]
)
def test_unknown_weights_are_named(name, marians, tmp_path):
    folder = shutil.copytree(marians("relu"), tmp_path / "marian")
    weights = load_file(folder / "model.safetensors")
    rows = len(weights["model.shared.weight"])
    save_file({**weights, name: torch.ones(rows, 32)}, folder / "model.safetensors")
    with pytest.raises(UserError, match=re.escape(name)):
        import_model(folder, tmp_path / "model")
    if name != "another":  # as transformers itself has written them at times
        same = (
            weights["model.shared.weight"]
            if name == "lm_head.weight"
            else marian.to_theirs(sinusoids(512, 32), 1)
        )
        save_file({**weights, name: same.clone()}, folder / "model.safetensors")
        found = import_model(folder, tmp_path / "model", pairs=sentences()).parity
        assert found and found.identical == found.sentences


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("final_logits_bias", (1, 5)),
        ("final_logits_bias", (5,)),
        ("model.encoder.layers.0.fc1.weight", (32,)),
        ("model.decoder.layers.1.final_layer_norm.bias", (32, 2)),
        ("model.shared.weight", (50,)),
        ("model.decoder.embed_positions.weight", (7,)),
        ("model.decoder.embed_positions.weight", (7, 31)),
    ],
)
def test_weights_of_another_shape_are_named_without_transformers_too(
    name, shape, marians, tmp_path, monkeypatch
):
    monkeypatch.setattr(importing, "find_spec", lambda _: None)
    folder = shutil.copytree(marians("relu"), tmp_path / "marian")
    weights = load_file(folder / "model.safetensors")
    save_file({**weights, name: torch.ones(shape)}, folder / "model.safetensors")
    with pytest.raises(UserError, match=rf"{re.escape(name)} (is|has the shape)"):
        import_model(folder, tmp_path / "model")
    assert not (tmp_path / "model").exists()


@given(st.integers(1, 20).map(lambda half: torch.randn(3, 2 * half)))
def test_the_order_of_channels_is_that_of_the_sinusoids_and_is_undone(weight):
    assert torch.equal(marian.to_ours(marian.to_theirs(weight, 1), 1), weight)
    table = marian.to_theirs(sinusoids(50, weight.size(1)), 1)
    half = weight.size(1) // 2
    # sin(0), then cos(0).
    assert torch.equal(table[0], torch.cat((torch.zeros(half), torch.ones(half))))
