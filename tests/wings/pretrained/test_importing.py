"""Tests of transduce/wings/pretrained/importing.py."""

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

import transduce
from command_line import run
from corpora import reverse_texts
from exports import ALIKE, MARIANS, disturb, make_marian, sentences
from transduce import model_folder
from transduce.decoding.torch_engine import TorchEngine
from transduce.decoding.translator import Translator
from transduce.model.build import build
from transduce.model.embedding import sinusoids
from transduce.system.errors import Hint, UserError
from transduce.text.pairs import Origin, Pair
from transduce.wings.export import huggingface, marian
from transduce.wings.export.exporting import export
from transduce.wings.formats import FORMATS
from transduce.wings.pretrained import importing
from transduce.wings.pretrained.importing import import_model

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
        if form in ("argos", "marian"):  # one SentencePiece model; other positions
            with pytest.raises(
                UserError, match=r"it (needs one|can't give the target|needs a model)"
            ):
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
        ({"model_type": "bart"}, "type is bart, which"),
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
        with pytest.raises(
            UserError, match=r"pytorch_model\.bin can't be read: torch\.save didn't write it"
        ):
            import_model(folder, tmp_path / "model")


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


def test_too_little_memory_is_said_before_anything_is_loaded(marians, tmp_path, monkeypatch):
    size = (marians("relu") / "model.safetensors").stat().st_size
    monkeypatch.setattr(importing, "free_memory", lambda: 3 * size - 1)
    with pytest.raises(UserError, match=r"of weights, and their import needs about .* of memory; "):
        import_model(marians("relu"), tmp_path / "model")
    monkeypatch.setattr(importing, "free_memory", lambda: 3 * size)
    importing.check_memory(marians("relu"))


@pytest.mark.parametrize("own", [True, False])
def test_a_text_with_translations_chooses_the_rates_of_positions(own, marians, tmp_path):
    """The text is translated by the model itself, with one of the two rates."""
    original = importing.huggingface_reader.read(marians("relu"), "en", "de")
    kind = "t2t" if own else "sinusoidal"
    config = replace(original.config, model=replace(original.config.model, positions=kind))
    network = build(config.model)
    network.load_state_dict(original.weights)
    translator = Translator(TorchEngine([network]), original.tokenizer, config.decode)
    texts = [pair.source for pair in sentences()[:30]]
    made = [each.text for each in translator.translate(texts)]
    pairs = [
        Pair(source, target or "-", Origin("a test", line))
        for line, (source, target) in enumerate(zip(texts, made, strict=True))
    ]
    imported = import_model(marians("relu"), tmp_path / "model", pairs=pairs)
    assert imported.parity and imported.parity.identical == imported.parity.sentences
    assert model_folder.read_config(tmp_path / "model").model.positions == kind
    assert imported.positions.endswith(f"{'Marian' if own else 'transformers'} is followed.")
    assert imported.positions in (tmp_path / "model" / "README.md").read_text(encoding="utf-8")
