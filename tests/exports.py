"""Models to export, and other programs that run the exports."""

import json
import os
import struct
from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
import sentencepiece
import torch

from corpora import reverse_texts
from models import make_model
from transduce import model_folder
from transduce.config.schema import PLACEHOLDER_TOKENS, ModelConfig
from transduce.decoding.torch_engine import TorchEngine
from transduce.decoding.translator import Translator
from transduce.decoding.types import PLAIN_SEARCH
from transduce.model.build import build
from transduce.model.transformer import Transformer
from transduce.system.files import write_folder
from transduce.text.pairs import Origin, Pair
from transduce.wings.export import graph, runtime, web
from transduce.wings.export.onnx_engine import DECODER, ENCODER, OnnxEngine
from transduce.wings.export.parity import Output
from transduce.wings.formats import Format, refuse

MODELS: dict[str, dict[str, Any]] = {
    "post": {},
    "silu": {
        "model.activation": "silu",
        "model.num_encoder_layers": 3,
        "model.num_decoder_layers": 1,
    },
    "gelu and a bias": {"model.activation": "gelu", "model.output_bias": True},
    "separate": {},
    "marian": {"model.positions": "t2t", "model.zero_start": True, "model.activation": "silu"},
    "separate marian": {"model.positions": "t2t", "model.zero_start": True},
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


def refused(form: Format, folder: Path) -> bool:
    return bool(refuse(form, folder, model_folder.read_config(folder)))


def disturb(file: Path, weight: torch.Tensor) -> None:
    """Change one number of a weight, in whatever layout it is stored."""
    content = file.read_bytes()
    for value in weight.flatten().tolist():
        place = content.find(struct.pack("<f", value))
        if place >= 0 and content.count(struct.pack("<f", value)) == 1:
            file.write_bytes(content[:place] + struct.pack("<f", value + 8) + content[place + 4 :])
            return
    raise AssertionError(f"{file} does not hold the weight")


def greedy(model: model_folder.Bundle, texts: list[str]) -> list[Output]:
    """What the model translates."""
    config = replace(model.config.decode, beam_size=1, **PLAIN_SEARCH)
    found = Translator(TorchEngine([model.model]), model.tokenizer, config).translate_sentences(
        texts
    )
    return [Output(list(each.tokens), each.text) for each in found]


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


GRAPH_SHAPE: dict[str, Any] = {
    **{"vocab_size": 23, "d_model": 12, "d_ff": 10, "num_heads": 3, "dropout": 0.0},
    **{"num_encoder_layers": 1, "num_decoder_layers": 2},
}
SOURCES = [[5, 6, 7, 8, 9, 10], [11], [12, 13, 14]]
TARGETS = [[15, 4], [16, 17, 18, 19], [20]]


def graph_engines(
    folder: Path, *, eps: float | None = None, **options: Any
) -> tuple[TorchEngine, OnnxEngine]:
    """A model in which every weight matters, and its export."""
    torch.manual_seed(1)
    config = ModelConfig(**GRAPH_SHAPE | options)
    model = build(config).eval()
    assert isinstance(model, Transformer)
    for weight in model.parameters():
        weight.data += torch.randn_like(weight) / 3
    for module in model.modules():
        if eps and isinstance(module, torch.nn.RMSNorm | torch.nn.LayerNorm):
            module.eps = eps
    (folder / ENCODER).write_bytes(graph.encoder(model, config))
    (folder / DECODER).write_bytes(graph.decoder(model, config))
    return TorchEngine([model]), OnnxEngine(folder, config, 1)


def sentences() -> list[Pair]:
    """With characters, cases and spaces that a vocabulary of OPUS-MT doesn't know or keep."""
    odd = ["KA lo\u3000mi", " nu  re ", "ka \u2603 lo", "\ufb01 so", "va \u2581 ti", "kkk"]
    texts = [*reverse_texts(60, seed=3)[0], *odd]
    return [Pair(text, text, Origin("a test", line)) for line, text in enumerate(texts, start=1)]


@pytest.fixture(scope="session")
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


@pytest.fixture(scope="session")
def marians(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """A folder for every name in MARIANS, made when it is asked for."""
    place = tmp_path_factory.mktemp("marians")

    def get(name: str) -> Path:
        folder = place / name.split(",")[0]
        return folder if folder.exists() else make_marian(folder, **MARIANS[name])

    return get


def real_runtime() -> Path:
    """The folder of onnxruntime-web that TEST_ONNXRUNTIME names; the test is skipped without it."""
    if folder := os.environ.get("TEST_ONNXRUNTIME"):
        return Path(folder)
    pytest.skip("the page's runtime is needed: TEST_ONNXRUNTIME=FOLDER of onnxruntime-web")


def make_site(model: Path, folder: Path) -> None:
    """Export a model for the web without comparing it, since so small models lose BLEU by chance."""
    with write_folder(folder) as aside:
        runtime.add_runtime(aside, real_runtime())
        web.write(model_folder.load(model), aside, "int8")


@pytest.fixture
def small_runtime(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """A folder that takes the place of onnxruntime-web, for tests that don't run the page; also in node_modules."""
    folder = tmp_path_factory.mktemp("project")
    place = folder / "node_modules" / "onnxruntime-web" / "dist"
    place.mkdir(parents=True)
    for name in runtime.RUNTIME_FILES:
        (place / name).write_bytes(name.encode())
        monkeypatch.setitem(runtime.RUNTIME_FILES, name, sha256(name.encode()).hexdigest())
    monkeypatch.chdir(folder)
    return place.parent
