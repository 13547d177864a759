"""Tests of transduce/wings/export/marian_files.py and marian_native.py, and of the reader of Marian's own format."""

import shutil

import numpy as np
import pytest
import torch

from exports import sentences
from transduce import model_folder
from transduce.decoding.torch_engine import TorchEngine
from transduce.model.build import build
from transduce.system.errors import UserError
from transduce.wings.export import marian_files, marian_native
from transduce.wings.export.exporting import export
from transduce.wings.pretrained import marian_reader
from transduce.wings.pretrained.importing import import_model


@pytest.fixture(scope="module")
def exported(models, tmp_path_factory):
    """An export of a model whose sides share a vocabulary, without Marian's own program."""
    folder = tmp_path_factory.mktemp("native") / "export"
    folder.mkdir()
    marian_files.write(model_folder.load(models("marian")), folder, "float32")
    return folder


@pytest.mark.parametrize("name", ["marian", "separate marian"])
def test_what_is_exported_is_read_with_the_same_scores(name, models, tmp_path):
    bundle = model_folder.load(models(name))
    marian_files.write(bundle, tmp_path, "float32")
    found = marian_reader.read(tmp_path, "en", "de")
    network = build(found.config.model)
    network.load_state_dict(found.weights)
    assert found.tokenizer.joint == ("separate" not in name)
    for pair in sentences()[:20]:
        rows = []
        for tokenizer, model in (
            (bundle.tokenizer, bundle.model),
            (found.tokenizer, network.eval()),
        ):
            source, target = (
                tokenizer.encode_source([pair.source]),
                tokenizer.encode_target(["du zu ga"]),
            )
            rows.append(TorchEngine([model]).log_probs(source, target)[0])
        # Marian has no padding and no start among the pieces that may come next.
        assert rows[1] == pytest.approx(rows[0], abs=0.02)
        assert sum(rows[1]) >= sum(rows[0])


@pytest.mark.parametrize("name", ["marian", "separate marian"])
def test_marian_itself_translates_an_export_alike(name, models, tmp_path):
    pytest.importorskip("pymarian")
    parity = export(models(name), "marian", tmp_path / "out", pairs=sentences())
    assert parity and parity.identical == parity.sentences == len(sentences()) - 1
    imported = import_model(tmp_path / "out", tmp_path / "again", "en", "de", sentences())
    assert imported.parity and imported.parity.identical == imported.parity.sentences


def test_an_import_of_marian_can_be_tuned_and_exported_again(exported, tmp_path):
    """The vector that begins a translation stays zero, whatever a training makes of its row."""
    import_model(exported, tmp_path / "model", "en", "de")
    bundle = model_folder.load(tmp_path / "model")
    assert bundle.config.model.zero_start and bundle.config.model.positions == "t2t"
    with torch.no_grad():
        bundle.model.embedding.weight[:2] += 5
        marian_files.write(bundle, tmp_path, "float32")
    one, other = (np.load(folder / "model.npz") for folder in (exported, tmp_path))
    assert one.files == other.files
    for name in one.files:
        differs = one[name] != other[name]
        if name == "Wemb":  # of padding and of the start, which Marian never reads
            differs = differs[2:]
        assert not differs.any()


def test_names_of_weights_by_hand():
    for name, expected in {
        "model.encoder.layers.0.self_attn.q_proj.weight": "encoder_l1_self_Wq",
        "model.decoder.layers.11.encoder_attn.out_proj.bias": "decoder_l12_context_bo",
        "model.decoder.layers.1.encoder_attn_layer_norm.weight": "decoder_l2_context_Wo_ln_scale",
        "model.encoder.layers.1.self_attn_layer_norm.bias": "encoder_l2_self_Wo_ln_bias",
        "model.encoder.layers.2.final_layer_norm.weight": "encoder_l3_ffn_ffn_ln_scale",
        "model.encoder.layers.0.fc1.weight": "encoder_l1_ffn_W1",
        "model.encoder.layers.0.fc2.bias": "encoder_l1_ffn_b2",
    }.items():
        assert marian_native.native_name(name) == expected


def test_yaml_by_hand():
    text = 'a: 1\nb:\n  - x\n  - "y z"\nc:\n  []\nd: ""\ne: "[eos]"\nf: http://x\0\0\0'
    expected = {"a": "1", "b": ["x", "y z"], "c": [], "d": "", "e": "[eos]", "f": "http://x"}
    assert marian_native.parse_yaml(text) == expected


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            'transformer-preprocess: ""',
            "transformer-preprocess: n",
            "transformer-preprocess is 'n'; only ''",
        ),
        (
            "ffn-activation: swish",
            "ffn-activation: gelu",
            "ffn-activation is gelu; only relu and swish",
        ),
        ("type: transformer", "type: s2s", "type is 's2s'; only 'transformer'"),
        ("enc-depth: 2", "enc-depth: x", "enc-depth is missing or not a whole number"),
        ("enc-depth: 2", "enc-depth: 1", r"the weight encoder_l2_\S+ has no counterpart"),
        ("enc-depth: 2", "enc-depth: 3", r"the weight encoder_l3_\S+ is missing"),
    ],
)
def test_models_of_marian_that_ours_cannot_express_are_refused(old, new, said, exported, tmp_path):
    folder = shutil.copytree(exported, tmp_path / "native")
    arrays = dict(np.load(folder / "model.npz"))
    options = arrays[marian_native.OPTIONS_KEY].tobytes().decode()
    assert f"\n{old}" in f"\n{options}" or old in options
    changed = options.replace(old, new).encode()
    arrays[marian_native.OPTIONS_KEY] = np.frombuffer(changed, dtype=np.int8)
    np.savez(folder / "model.npz", **arrays)
    with pytest.raises(UserError, match=said):
        marian_reader.read(folder, "en", "de")


def test_vocabularies_as_yaml_have_their_own_ids(exported, tmp_path):
    """As OPUS-MT's: text is split by source.spm and target.spm, and the .yml file says the ids."""
    folder = shutil.copytree(exported, tmp_path / "native")
    expected = marian_reader.read(exported, "en", "de")
    arrays = dict(np.load(folder / "model.npz"))
    model = (folder / "vocab.spm").read_bytes()
    pieces = expected.tokenizer.target.all_pieces()
    order = [2, 3, *range(len(pieces) - 1, 3, -1)]
    lines = [_line(pieces[token], i) for i, token in enumerate(order)]
    (folder / "vocab.yml").write_text("".join(lines), encoding="utf-8")
    for name in ("source.spm", "target.spm"):
        (folder / name).write_bytes(model)
    arrays["Wemb"] = arrays["Wemb"][order]
    arrays["decoder_ff_logit_out_b"] = arrays["decoder_ff_logit_out_b"][:, order]
    np.savez(folder / "model.npz", **arrays)
    description = folder / "model.npz.decoder.yml"
    text = description.read_text(encoding="utf-8").replace("vocab.spm", "vocab.yml")
    description.write_text(text, encoding="utf-8")
    found = marian_reader.read(folder, "en", "de")
    texts = ["ka lo", "mi ti"]
    for name in ("encode_source", "encode_target"):
        mine, theirs = (
            getattr(found.tokenizer, name)(texts),
            getattr(expected.tokenizer, name)(texts),
        )
        for one, other in zip(mine, theirs, strict=True):
            assert found.tokenizer.target.pieces(one) == expected.tokenizer.target.pieces(other)
            assert torch.equal(
                found.weights["embedding.weight"][one], expected.weights["embedding.weight"][other]
            )


def _line(piece: str, number: int) -> str:
    if piece == "'":
        return f'"\'": {number}\n'
    return f"'{piece}': {number}\n" if number % 2 else f'"{piece}": {number}\n'


def test_pieces_of_a_yaml_vocabulary_by_hand(tmp_path):
    """A piece may be a line separator, a colon or a quote; only a line feed ends a line."""
    written = {
        "</s>": "</s>",
        '"<unk>"': "<unk>",
        '"\u2028"': "\u2028",
        "a\x85": "a\x85",
        r'"\x85"': "\x85",
        "a: 1": "a: 1",
        "''''": "'",
        r'"\""': '"',
        r'"\\x41"': r"\x41",
        r'"\u00e9"': "é",
    }
    text = "".join(f"{line}: {number}\n" for number, line in enumerate(written))
    (tmp_path / "vocab.yml").write_bytes(text.encode())
    expected = {piece: number for number, piece in enumerate(written.values())}
    assert marian_reader._read_ids(tmp_path / "vocab.yml") == expected
    (tmp_path / "vocab.yml").write_bytes(f"{text}without an id\n".encode())
    with pytest.raises(UserError, match=r"vocab\.yml:11: expected a piece and its id"):
        marian_reader._read_ids(tmp_path / "vocab.yml")


@pytest.mark.parametrize("name", ["model.npz", "vocab.spm"])
def test_missing_and_damaged_files_of_marian_are_named(name, exported, tmp_path):
    folder = shutil.copytree(exported, tmp_path / "native")
    (folder / name).write_bytes(b"PK damaged")
    with pytest.raises(
        UserError,
        match=name if name == "model.npz" else "can't be used|can't be read|not a complete",
    ):
        marian_reader.read(folder, "en", "de")
    (folder / name).unlink()
    with pytest.raises(UserError, match=f"{name} is missing"):
        marian_reader.read(folder, "en", "de")
