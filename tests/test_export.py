"""An export translates as the model does, or isn't written; what is imported translates as it did."""

import json
import struct
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import sentencepiece
import torch

import transduce
from corpora import reverse_texts
from transduce import bundle
from transduce.config import ModelConfig, RunConfig, configure
from transduce.corpus.pairs import Origin, Pair
from transduce.decoding.engines.support import FORMATS, TABLE, Format, unknown_to
from transduce.errors import UserError
from transduce.export import exporting, huggingface
from transduce.export.exporting import FORMS, export
from transduce.export.importing import import_model
from transduce.model.build import build
from transduce.tokens.tokenizer import Tokenizer

SIZES = {
    "model.d_model": 32,
    "model.d_ff": 64,
    "model.num_heads": 4,
    "model.num_encoder_layers": 2,
    "model.num_decoder_layers": 2,
    "model.dropout": 0.0,
    "data.source": "en",
    "data.target": "de",
}
VOCABULARY = 290


def make_model(folder: Path, options: dict[str, Any], *, joint: bool = True, held_out: int = 40) -> Path:
    """A model folder with random weights, so large that everything matters."""
    sources, targets = reverse_texts(300, seed=0)
    tokenizer = Tokenizer.train(sources, targets, vocab_size=VOCABULARY, joint=joint)
    sizes = {
        "model.vocab_size": tokenizer.target_size,
        "model.source_vocab_size": 0 if joint else tokenizer.source_size,
        "data.joint": joint,
    }
    config = configure({**SIZES, **sizes, **options})
    model, generator = build(config.model), torch.Generator().manual_seed(0)
    for weight in model.parameters():
        weight.data.mul_(1.6).add_(torch.randn(weight.shape, generator=generator), alpha=0.1)
    (folder / bundle.DATA).mkdir(parents=True)
    lines = [json.dumps({"source": s, "target": t}) for s, t in zip(*reverse_texts(held_out, seed=1), strict=True)]
    (folder / bundle.DATA / "valid.jsonl").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    bundle.publish_model(folder, config, tokenizer, model.state_dict(), {"parameters": 1}, "a card")
    return folder


MODELS: dict[str, dict[str, Any]] = {
    "post": {},
    "silu": {"model.activation": "silu", "model.num_encoder_layers": 3, "model.num_decoder_layers": 1},
    "gelu and a bias": {"model.activation": "gelu", "model.output_bias": True},
    "separate": {},
    "pre": {"model.norm": "pre"},
    "learned": {"model.positions": "learned", "model.max_positions": 80},
    "dot": {"model.attention": "dot", "model.d_k": 4, "model.d_v": 6},
}


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """A folder for every name in MODELS, made when it is asked for."""
    place = tmp_path_factory.mktemp("models")

    def get(name: str) -> Path:
        folder = place / name.replace(" ", "-")
        return folder if folder.exists() else make_model(folder, MODELS[name], joint=name != "separate")

    return get


def refused(form: Format, folder: Path) -> bool:
    return bool(exporting.refusal(form, folder, bundle.read_config(folder)))


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("name", MODELS)
def test_an_export_translates_as_the_model_does_or_is_refused(form, name, models, tmp_path):
    folder = models(name)
    if refused(form, folder):
        with pytest.raises(UserError, match="can't be exported to"):
            export(folder, form, tmp_path / "out")
        assert not list(tmp_path.iterdir())
        return
    proof = export(folder, form, tmp_path / "out")
    assert proof.sentences == 40 and proof.same == 40
    bundle.verify(tmp_path / "out", hashes=True)
    assert "40 of 40 sentences" in (tmp_path / "out" / "README.md").read_text(encoding="utf-8")


def test_what_is_refused_is_what_the_table_says(models):
    found = {name: [form for form in FORMATS if not refused(form, models(name))] for name in MODELS}
    everything = ["ctranslate2", "argos", "huggingface", "onnx"]
    assert found == {
        "post": everything,
        "silu": everything,
        "gelu and a bias": everything,
        "separate": ["ctranslate2", "huggingface", "onnx"],
        "pre": ["ctranslate2", "argos", "onnx"],
        "learned": ["ctranslate2", "argos", "onnx"],
        "dot": ["onnx"],
    }
    other = {"kind": "recurrent", "experts": 4, "window": 2, "attention": "additive"}
    for option, value in other.items():
        config = RunConfig(model=replace(ModelConfig(), **{option: value}))
        for form in FORMATS:
            assert option in unknown_to(form, config)
    for form in FORMATS:
        trees = configure({"data.symbols": True, "data.joint": False})
        assert "trees" in unknown_to(form, trees) or "data.joint" in unknown_to(form, trees)
        assert not unknown_to(form, configure({"model.d_k": 64, "model.d_v": 64}))  # what 0 stands for
    assert set(TABLE) <= {option.name for option in transduce.config.options()}


# -- the proof ---------------------------------------------------------------------------------------------


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
def test_a_wrong_weight_is_found_and_nothing_is_written(form, models, tmp_path, monkeypatch):
    folder = models("post")
    norm = bundle.load(folder).model.decoder[-1].residual[-1].norm.weight

    def write(model: bundle.Bundle, out: Path, compute_type: str) -> None:
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
    with pytest.raises(UserError, match=r"nothing was written: of 40 sentences \d+ differ\. '.*' becomes '.*' here"):
        export(folder, form, tmp_path / "place" / "out")
    assert not (tmp_path / "place").exists()


# -- import ------------------------------------------------------------------------------------------------


def spm(folder: Path, texts: list[str], name: str, kind: str = "unigram", size: int = 40) -> list[str]:
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


def make_marian(folder: Path, *, activation: str = "swish", separate: bool = False, kind: str = "unigram") -> Path:
    """A random Marian model as OPUS-MT's are: ids of its own, padding last, begun with padding, a bias."""
    transformers = pytest.importorskip("transformers")
    folder.mkdir()
    sources, targets = reverse_texts(300, seed=0)
    source, target = spm(folder, sources, "source", kind), spm(folder, targets, "target", kind)
    source.remove("k") if "k" in source else source.pop()  # a piece that the vocabulary lacks: unknown
    texts = {"vocab.json": source if separate else sorted({*source, *target})}
    if separate:
        texts["target_vocab.json"] = target
    sizes = []
    for name, pieces in texts.items():
        codes = [">>de<<"] if activation == "swish" else []
        fillers = [f"filler{i}" for i in range(50 - len(pieces))] if separate else []  # padding has one id
        listed = ["</s>", "<unk>", *pieces, *codes, *fillers, "<pad>"]
        (folder / name).write_text(json.dumps({piece: i for i, piece in enumerate(listed)}), encoding="utf-8")
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
        decoder_start_token_id=sizes[-1] - 1,
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


MULTILINGUAL = Pair(">>de<< ka lo", "", Origin("a test", 0))


def by_transformers(folder: Path, never: list[str]) -> list[str]:
    """The pieces of the greedy translations of `sentences` by what is in a folder."""
    vocabulary = next(folder / name for name in ("target_vocab.json", "vocab.json") if (folder / name).exists())
    ids = json.loads(vocabulary.read_text(encoding="utf-8"))
    peer = huggingface.open_peer(folder, [ids[piece] for piece in never])
    return [" ".join(output.pieces) for output in peer.translate([pair.source for pair in sentences()], 30)]


@pytest.mark.parametrize("name", MARIANS)
def test_an_imported_model_translates_as_the_original_also_when_it_is_exported_again(name, marians, tmp_path):
    pairs = [*sentences(), MULTILINGUAL] if name == "OPUS-MT" else sentences()
    imported = import_model(marians(name), tmp_path / "model", pairs=pairs)
    assert imported.proof and imported.proof.same == imported.proof.sentences == len(pairs)
    config = bundle.read_config(tmp_path / "model")
    assert (config.data.source, config.data.target) == ("en", "de")
    expected = by_transformers(marians(name), ["<pad>", "<unk>"])
    for form in FORMATS:
        if form == "argos":  # which has one SentencePiece model
            with pytest.raises(UserError, match="argos: it has one"):
                export(tmp_path / "model", form, tmp_path / form)
            continue
        proof = export(tmp_path / "model", form, tmp_path / form, pairs=pairs)
        assert proof.same == proof.sentences == len(pairs)
    assert by_transformers(tmp_path / "huggingface", []) == expected
    again = import_model(tmp_path / "huggingface", tmp_path / "again", pairs=sentences())
    assert again.proof and again.proof.same == len(sentences())
    weights = [bundle.load(tmp_path / each).model.state_dict() for each in ("model", "again")]
    for key, weight in weights[0].items():
        if key != "output_bias":  # of what never comes out
            assert torch.equal(weight, weights[1][key])
