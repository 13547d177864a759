"""Tests of transduce/wings/pretrained/importing.py."""

import errno
import json
import math
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
from transduce.wings.export.parity import Parity
from transduce.wings.formats import FORMATS
from transduce.wings.phrasebook.examples import phrases
from transduce.wings.pretrained import importing
from transduce.wings.pretrained.conversion import output_bias as _output_bias
from transduce.wings.pretrained.families import MARIAN
from transduce.wings.pretrained.families import check as _check
from transduce.wings.pretrained.huggingface_reader import read
from transduce.wings.pretrained.importing import import_model
from transduce.wings.pretrained.marian_vocabulary import Vocabulary
from transduce.wings.pretrained.marian_vocabulary import directions_of as _directions
from transduce.wings.pretrained.marian_vocabulary import vocabularies as _vocabularies
from variants import slow

MULTILINGUAL = Pair("ka lo", "", Origin("a test", 0), "en-de")


def sources() -> list[Pair]:
    """`sentences` without translations, by which an import would also choose positions, in 80 % of its time."""
    return [pair._replace(target="") for pair in sentences()]


def by_transformers(folder: Path, never: list[str]) -> list[str]:
    """The pieces of the greedy translations of `sources` by what is in a folder."""
    vocabulary = next(
        folder / name for name in ("target_vocab.json", "vocab.json") if (folder / name).exists()
    )
    ids = json.loads(vocabulary.read_text(encoding="utf-8"))
    runner = huggingface.open_runner(folder, [ids[piece] for piece in never])
    return [
        " ".join(output.pieces) for output in runner.translate(sources(), [""] * len(sources()), 30)
    ]


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name in ALIKE)) for name in MARIANS]
)
def test_an_imported_model_translates_as_the_original_also_when_it_is_exported_again(
    name, marians, tmp_path
):
    pairs = [*sources(), MULTILINGUAL] if name == "OPUS-MT" else sources()
    imported = import_model(marians(name), tmp_path / "model", pairs=pairs)
    assert imported.parity and imported.parity.identical == imported.parity.sentences == len(pairs)
    config = model_folder.read_config(tmp_path / "model")
    assert (config.data.source, config.data.target) == ("en", "de")
    expected = by_transformers(marians(name), ["<pad>", "<unk>"])
    for form in FORMATS:
        # One SentencePiece model; other positions; ids of transduce's own.
        if form in ("argos", "marian", "web"):
            with pytest.raises(
                UserError,
                match=r"it(s page| needs one| needs a model| does not support model\.activation)",
            ):
                export(tmp_path / "model", form, tmp_path / form)
            continue
        found = export(tmp_path / "model", form, tmp_path / form, pairs=pairs)
        assert found.identical == found.sentences == len(pairs)
    assert by_transformers(tmp_path / "huggingface", []) == expected
    card = (tmp_path / "onnx" / "README.md").read_text(encoding="utf-8")
    assert "transduce translate . " in card and "```python" not in card, (
        "SentencePiece has other ids"
    )
    again = import_model(tmp_path / "huggingface", tmp_path / "again", pairs=sources())
    assert again.parity and again.parity.identical == len(sources())
    weights = [model_folder.load(tmp_path / each).model.state_dict() for each in ("model", "again")]
    for key, weight in weights[0].items():
        if key != "output_bias":  # of what never comes out
            assert torch.equal(weight, weights[1][key])


def test_placeholders_survive_an_export_and_an_import(models, tmp_path):
    export(models("placeholder tokens"), "huggingface", tmp_path / "out")
    import_model(tmp_path / "out", tmp_path / "again", pairs=sources())
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
        make_marian(tmp_path / "marian", begin=0), tmp_path / "model", pairs=sources()
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
        import_model(marians("relu"), tmp_path / "model", pairs=sources())
    assert not list(tmp_path.iterdir())


def test_a_full_disk_lacks_the_size_of_the_weights(marians, tmp_path, monkeypatch):
    def fill(_, *given):
        weights.append(given[2])
        raise OSError(errno.ENOSPC, "No space left on device")

    weights = []
    monkeypatch.setattr(model_folder, "fill", fill)
    with pytest.raises(UserError, match="There is no room for") as raised:
        import_model(marians("relu"), tmp_path / "model")
    size = sum(4 * each.numel() for each in weights[0].values())
    assert f"it needs at least {size:,} bytes" in str(raised.value)


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
        ({"d_model": 64}, r"is \d+( x \d+)?, but .* by the model's options"),
        (
            {"encoder_ffn_dim": 128, "decoder_ffn_dim": 128},
            r"fc1\.weight is 64 x 32, but 128 x 32 by the model's options",
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
        import_model(folder, tmp_path / "model", pairs=sources()[:5])
    assert not (tmp_path / "model").exists()


def test_entries_that_a_configuration_may_lack():
    sizes = {
        f"{side}_{name}": 2
        for side in ("encoder", "decoder")
        for name in ("layers", "ffn_dim", "attention_heads")
    } | {"d_model": 2}
    fixed = {"scale_embedding": True, "activation_function": "swish"}
    usual = {
        **{"tie_word_embeddings": True, "normalize_before": False, "normalize_embedding": False},
        **{"add_final_layer_norm": False, "quantization_config": None},
        "share_encoder_decoder_embeddings": True,
    }
    whole = sizes | fixed | usual
    _check(Path("c"), MARIAN, sizes | fixed)
    _check(Path("c"), MARIAN, whole | {"share_encoder_decoder_embeddings": False})
    for name in whole:
        lacking = {key: value for key, value in whole.items() if key != name}
        if name in usual:
            _check(Path("c"), MARIAN, lacking)
        else:
            with pytest.raises(UserError, match=f"^c: {name} is (None; only|missing)"):
                _check(Path("c"), MARIAN, lacking)
        if name not in ("d_model", "encoder_layers", "decoder_layers"):
            other = whole | {name: 3 if name in sizes else "x"}
            with pytest.raises(UserError, match=f"^c: ({name} is x; only|.* differ; they must)"):
                _check(Path("c"), MARIAN, other)


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


@pytest.mark.parametrize(
    "dtype", [slow(torch.float32), torch.float16, slow(torch.bfloat16), torch.int8]
)
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
            import_model(folder, tmp_path / "model", pairs=sources())
        return
    found = import_model(folder, tmp_path / "model", pairs=sources()).parity
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
    "name", [slow("lm_head.weight"), "model.encoder.embed_positions.weight", "another"]
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
        found = import_model(folder, tmp_path / "model", pairs=sources()).parity
        assert found and found.identical == found.sentences


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("final_logits_bias", (1, 5)),
        ("final_logits_bias", (5,)),
        ("model.encoder.layers.0.fc1.weight", (32,)),
        ("model.decoder.layers.1.final_layer_norm.bias", (32, 2)),
        ("model.shared.weight", (50,)),
        ("model.decoder.embed_positions.weight", ()),
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
    with pytest.raises(UserError, match=rf"{re.escape(name)} is"):
        import_model(folder, tmp_path / "model")
    assert not (tmp_path / "model").exists()


def test_too_little_memory_is_said_before_anything_is_loaded(marians, tmp_path, monkeypatch):
    size = (marians("relu") / "model.safetensors").stat().st_size
    monkeypatch.setattr(importing, "free_memory", lambda: 3 * size - 1)
    with pytest.raises(UserError, match=r"of weights, and their import needs about .* of memory; "):
        import_model(marians("relu"), tmp_path / "model")
    monkeypatch.setattr(importing, "free_memory", lambda: 3 * size)
    importing.check_memory(marians("relu"))


@pytest.mark.parametrize("own", [True, slow(False)])
def test_a_text_with_translations_chooses_the_rates_of_positions(own, marians, tmp_path):
    """The text is translated by the model itself, with one of the two rates."""
    original = importing.huggingface_reader.read(marians("relu"), "en", "de")
    kind = "t2t" if own else "sinusoidal"
    config = replace(original.config, model=replace(original.config.model, positions=kind))
    network = build(config.model)
    network.load_state_dict(original.weights)
    translator = Translator(TorchEngine([network]), original.tokenizer, config.decode)
    texts = [pair.source for pair in sources()[:30]]
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


@pytest.mark.parametrize(
    ("tags", "described", "source", "target", "expected"),
    [
        ("", {"source_lang": "en", "transduce_directions": ["en-de"]}, "", "", []),
        ("de fr", {"transduce_directions": ["en-de", "fr-de"]}, "", "", ["en-de", "fr-de"]),
        ("de fr", {"transduce_directions": ["en-fr"]}, "", "de", ["src-de"]),
        ("de fr", {"transduce_directions": ["en-fr"]}, "es", "", ["es-de", "es-fr"]),
        ("de fr", {"source_lang": "en"}, "", "", ["en-de", "en-fr"]),
        ("de fr", {}, "", "", ["src-de", "src-fr"]),
        ("de fr en", {}, "en,fr", "", ["en-de", "en-fr", "fr-de", "fr-en"]),
        ("de fr en", {}, "en,fr", "fr,de", ["en-de", "en-fr", "fr-de"]),
        ("pt-BR de", {}, "zh-Hans", "pt-BR", ["zh_Hans-pt_BR"]),
        ("de fr", {}, "en", "it", "has no target language 'it'. It has de, fr."),
        ("de", {}, "de", "", "'de' is the only target language. Name another. (--from)"),
        ("de fr", {}, "de", "de", "'de' is the only target language. Name another. (--to)"),
    ],
)
def test_directions_by_hand(tags, described, source, target, expected):
    sources = Vocabulary(["<pad>", "a", *(f">>{tag}<<" for tag in tags.split())], [])
    if isinstance(expected, list):
        assert [*map(str, _directions(described, sources, source, target))] == expected
        return
    with pytest.raises(UserError) as raised:
        _directions(described, sources, source, target)
    assert expected.removesuffix(" (--from)").removesuffix(" (--to)") in str(raised.value)
    options = {"(--from)": ("data.source",), "(--to)": ("data.target",)}
    if expected[-1] == ")":
        assert raised.value.hint == Hint("Name another.", options[expected.split()[-1]])


def test_vocabularies_by_hand(tmp_path):
    """Padding, the first token, the end and unknown words come first; all others keep their order."""
    target = {"a": 0, "<pad>": 1, "b": 2, "</s>": 3, "c": 4, "<unk>": 5, "<begin>": 6}
    source = {"x": 0, "</s>": 1, "y": 2, "<pad>": 3, "z": 4, "<unk>": 5}
    (tmp_path / "vocab.json").write_text(json.dumps(source))
    (tmp_path / "target_vocab.json").write_text(json.dumps(target))
    separate = {"share_encoder_decoder_embeddings": False}
    described = {"unk_token": {"content": "<unk>"}, "pad_token": None}
    targets, sources = _vocabularies(tmp_path, separate, described)
    assert targets == (
        ["<pad>", "<s>", "</s>", "<unk>", "a", "b", "c", "<begin>"],
        [1, 1, 3, 5, 0, 2, 4, 6],
    )
    assert sources == (["<pad>", "<s>", "</s>", "<unk>", "x", "y", "z"], [3, 3, 1, 5, 0, 2, 4])
    begun = separate | {"decoder_start_token_id": 6, "eos_token_id": 3, "pad_token_id": 1}
    targets, sources = _vocabularies(tmp_path, begun, described)
    assert targets == (["<pad>", "<begin>", "</s>", "<unk>", "a", "b", "c"], [1, 6, 3, 5, 0, 2, 4])
    assert sources == (["<pad>", "<s>", "</s>", "<unk>", "x", "y", "z"], [3, 3, 1, 5, 0, 2, 4])
    (tmp_path / "vocab.json").write_text(json.dumps(source | {"<begin>": 6}))
    assert _vocabularies(tmp_path, begun, described)[1] == (
        ["<pad>", "<begin>", "</s>", "<unk>", "x", "y", "z"],
        [3, 6, 1, 5, 0, 2, 4],
    )
    (tmp_path / "vocab.json").write_text(json.dumps(source | {"<s>": 6, "<<s>>": 7}))
    shared = ["<pad>", "<<<s>>>", "</s>", "<unk>", "x", "y", "z", "<s>", "<<s>>"]
    for config in ({}, {"share_encoder_decoder_embeddings": True}):
        assert _vocabularies(tmp_path, config, {}) == ((shared, [3, 3, 1, 5, 0, 2, 4, 6, 7]), None)
    end = _vocabularies(tmp_path, {"decoder_start_token_id": 1}, {})[0]
    assert end.pieces[:4] == ["<pad>", "<<<s>>>", "</s>", "<unk>"] and end.rows[:4] == [3, 1, 1, 5]


def test_a_piece_that_became_two_comes_out_as_the_second():
    bias = torch.tensor([1.0, -math.inf, 3, 4, -500])
    assert _output_bias(bias, [0, 0, 2, 3, 1]).tolist() == [-100, 1, 3, 4, -100]
    assert _output_bias(bias, [0, 2, 2, 3, 4]).tolist() == [1, -100, 3, 4, -100]
    assert _output_bias(bias, [0, 3, 2, 4, 1]).tolist() == [1, 4, 3, -100, -100]
    assert bias.tolist() == [1, -math.inf, 3, 4, -500]


def test_options_of_an_imported_model(marians, tmp_path):
    folder = shutil.copytree(marians("relu"), tmp_path / "marian")
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    config |= {"dropout": 0.25, "attention_dropout": 0.125}
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    found = read(folder, "", "").config
    vocab_size = len(json.loads((folder / "vocab.json").read_text(encoding="utf-8"))) + 1  # <s>
    assert (found.model.d_model, found.model.d_ff, found.model.num_heads) == (32, 64, 4)
    assert (found.model.num_encoder_layers, found.model.num_decoder_layers) == (2, 2)
    assert (found.model.activation, found.model.output_bias) == ("relu", True)
    assert (found.model.vocab_size, found.model.source_vocab_size) == (vocab_size, 0)
    assert (found.model.dropout, found.model.attention_dropout) == (0.25, 0.125)
    assert (found.data.source, found.data.target, found.data.directions) == ("en", "de", ())
    assert (found.data.joint, found.data.vocab_size, found.data.tokenizer) == (
        True,
        vocab_size,
        "unigram",
    )
    del config["dropout"], config["attention_dropout"]
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    (folder / "tokenizer_config.json").unlink()
    found = read(folder, "", "").config
    assert (found.model.dropout, found.model.attention_dropout) == (0.1, 0.0)
    assert (found.data.source, found.data.target) == ("src", "tgt")
    found = read(folder, "fr", "es").config
    assert (found.data.source, found.data.target) == ("fr", "es")
    separate = read(marians("separate"), "", "").config
    assert separate.data.joint is False and separate.model.source_vocab_size == 55


def test_a_model_without_a_bias_has_zeros(marians, tmp_path):
    folder = shutil.copytree(marians("relu"), tmp_path / "marian")
    weights = load_file(folder / "model.safetensors")
    del weights["final_logits_bias"]
    save_file(weights, folder / "model.safetensors")
    bias = read(folder, "", "").weights["output_bias"]
    assert bias[0] == -100 and not bias[1:].any(), "padding never comes out"


@pytest.mark.parametrize("given", [True, False])
def test_an_imported_model_is_compared_in_all_directions(given, marians, tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(importing, "MAX_COMPARED_SENTENCES", 3)
    monkeypatch.setattr(
        huggingface,
        "open_runner",
        lambda folder, forbidden: asked.append((folder, forbidden)) or asked,
    )

    def check_parity(model, pairs, runner, *, exact):
        asked.append((model.config, pairs, runner, exact))
        return Parity(3, "a test", 3, "float32", None)

    monkeypatch.setattr(importing, "check_parity", check_parity)
    pairs = sources() if given else []
    folder = marians("OPUS-MT")
    import_model(folder, tmp_path / "one", pairs=sources()[:1])
    assert [pair.direction for pair in asked[1][1]] == ["en-de"]
    asked.clear()
    import_model(folder, tmp_path / "model", source="en,fr", pairs=pairs)
    ids = json.loads((folder / "vocab.json").read_text(encoding="utf-8"))
    (opened, forbidden), (config, compared, runner, exact) = asked
    assert (opened, forbidden) == (folder, [ids["<unk>"], ids["<pad>"]])
    assert config.data.directions == ("en-de", "fr-de") and runner is asked and exact
    assert [pair.direction for pair in compared] == ["en-de", "fr-de", "en-de"]
    expected = pairs or phrases(config.data, 3)
    assert [pair.source for pair in compared] == [pair.source for pair in expected[:3]]


def test_what_an_imported_model_says_of_itself(marians, tmp_path, capsys):
    folder = shutil.copytree(marians("relu"), tmp_path / "marian")
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text("".join(f"{pair.source}\tx\n" for pair in sources()[:9]), encoding="utf-8")
    status, said, _ = run(capsys, "import", folder, "--out", tmp_path / "model", "--valid", pairs)
    metrics = model_folder.read_metrics(tmp_path / "model")
    weights = model_folder.load(tmp_path / "model").model.parameters()
    assert metrics == {"parameters": sum(each.numel() for each in weights), "imported": "marian"}
    assert status == 0 and said.startswith("9 of 9 sentences from pairs.tsv produced identical")
    assert f"model: {metrics['parameters']:,} parameters, in " in " ".join(said.split())
    card = (tmp_path / "model" / "README.md").read_text(encoding="utf-8")
    assert card.startswith("# en → de\n\nImported by transduce from marian, a Marian model")
    assert "transduce translate . --input text.en --output text.de" in card
    assert "9 of 9 sentences from pairs.tsv" in card
    status, _, said = run(capsys, "import", pairs, "--out", tmp_path / "x")
    assert status == 2 and "pairs.tsv is not a folder." in said


def test_the_vocabulary_of_a_marian_model_is_not_trimmed(marians, tmp_path):
    with pytest.raises(UserError, match="a vocabulary for its own languages, which is not trimmed"):
        import_model(marians("relu"), tmp_path / "model", trim=30, texts=["ka lo"])
    assert not (tmp_path / "model").exists()
