"""Tiny models of the toy language, made in a second."""

import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import torch

from corpora import reverse_texts
from transduce import model_folder
from transduce.config.parse import configure
from transduce.config.schema import ModelConfig, RunConfig
from transduce.model.build import build
from transduce.model.seq2seq import Batch, Seq2Seq, make_batch
from transduce.system.files import publish
from transduce.tokens.tokenizer import Tokenizer
from transduce.training.losses import smoothed_cross_entropy

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
Rows = tuple[tuple[int, ...], ...]


def publish_model(
    folder: Path,
    config: RunConfig,
    tokenizer: Tokenizer,
    weights: dict[str, torch.Tensor],
    metrics: dict[str, Any],
    card: str = "",
    more: dict[str, str] | None = None,
) -> None:
    """Write a model folder; `more` are texts of other files."""
    with publish(folder) as aside:
        model_folder.fill(aside, config, tokenizer, weights, metrics, card, more or {})


def texts_of(count: int, seed: int, placeholder_tokens: str) -> tuple[list[str], list[str]]:
    """Texts of the toy language, each with one of the stand-ins at its end, if there are any."""
    sources, targets = reverse_texts(count, seed)
    ends = [
        placeholder_tokens[i % len(placeholder_tokens)] if placeholder_tokens else ""
        for i in range(count)
    ]
    return (
        [f"{text} {end}".strip() for text, end in zip(sources, ends, strict=True)],
        [f"{end} {text}".strip() for text, end in zip(targets, ends, strict=True)],
    )


def make_model(
    folder: Path,
    changed: dict[str, Any],
    *,
    joint: bool = True,
    held_out: int = 40,
    placeholder_tokens: str = "",
    symbols: bool = False,
    marks: Sequence[str] = (),
    updates: int = 40,
) -> Path:
    """The folder of a model that has begun to learn to reverse words, with weights so large that everything matters."""
    sources, targets = texts_of(300, 0, placeholder_tokens[:3])
    vocab_size = VOCABULARY + len(placeholder_tokens)
    tokenizer = Tokenizer.train(
        sources,
        targets,
        vocab_size=vocab_size,
        joint=joint,
        placeholder_tokens=placeholder_tokens,
        symbols=symbols,
        marks=marks,
    )
    sizes = {
        "model.vocab_size": tokenizer.target.size,
        "model.source_vocab_size": 0 if joint else tokenizer.source.size,
        "data.joint": joint,
        "data.symbols": symbols,
    }
    config = configure({**SIZES, **sizes, **changed})
    some = tokenizer.encode_source(sources[:60]), tokenizer.encode_target(targets[:60])
    weights = learnt(config.model, tuple(map(tuple, some[0])), tuple(map(tuple, some[1])), updates)
    (folder / model_folder.DATA).mkdir(parents=True)
    lines = [
        json.dumps({"source": s, "target": t})
        for s, t in zip(*texts_of(held_out, 1, placeholder_tokens[:3]), strict=True)
    ]
    (folder / model_folder.DATA / "valid.jsonl").write_text(
        "".join(f"{line}\n" for line in lines), encoding="utf-8"
    )
    publish_model(folder, config, tokenizer, weights, {"parameters": 1}, "a card")
    return folder


@cache
def learnt(
    config: ModelConfig, sources: Rows, targets: Rows, updates: int
) -> dict[str, torch.Tensor]:
    """The weights of a model that has learnt a little. Most tests ask for the same model."""
    model, generator = build(config), torch.Generator().manual_seed(0)
    for weight in model.parameters():
        weight.data.add_(torch.randn(weight.shape, generator=generator), alpha=0.05)
    learn(model, make_batch(sources, targets), updates)
    return model.state_dict()


def learn(model: Seq2Seq, batch: Batch, updates: int) -> None:
    """After some updates, the translations differ and end."""
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for _ in range(updates):
        loss = (
            smoothed_cross_entropy(model(batch.src, batch.tgt_in), batch.tgt_out, 0.1).loss
            / batch.num_tokens
        )
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
