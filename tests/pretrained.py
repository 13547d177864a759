"""Small random models of the families that `transduce import` reads, with tokenizers as transformers writes them."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import sentencepiece
import torch

from corpora import reverse_texts
from transduce.text.pairs import Origin, Pair
from transduce.wings.pretrained.multilingual import usual_codes

FAMILIES = ("M2M-100", "NLLB-200", "SMaLL-100", "mBART-50")
LANGUAGES = {"M2M-100": "fr", "NLLB-200": "fra_Latn", "SMaLL-100": "fr", "mBART-50": "fr_XX"}
SPECIAL = ["<s>", "<pad>", "</s>", "<unk>"]


def make_pretrained(
    folder: Path,
    family: str,
    texts: Sequence[str] = (),
    *,
    pieces_count: int = 60,
    layers: int = 2,
    width: int = 32,
    is_lively: bool = True,
) -> Path:
    """Write a random model of a family: all its languages, and pieces learnt from texts (default: a toy language).

    `is_lively`: the weights are so large that everything matters.
    """
    transformers = pytest.importorskip("transformers")
    folder.mkdir()
    texts = texts or [text for side in reverse_texts(300, seed=0) for text in side]
    kind = "unigram" if family == "mBART-50" else "bpe"
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(texts),
        model_prefix=str(folder / "model"),
        vocab_size=pieces_count,
        model_type=kind,
        hard_vocab_limit=False,
        minloglevel=2,
    )
    (folder / "model.vocab").unlink()
    (folder / "model.model").rename(folder / "sentencepiece.bpe.model")
    processor = sentencepiece.SentencePieceProcessor(
        model_file=str(folder / "sentencepiece.bpe.model")
    )
    pieces = [processor.id_to_piece(i) for i in range(3, processor.get_piece_size())]
    codes = usual_codes(family)
    rows = len(SPECIAL) + len(pieces) + len(codes) + 1
    if family in ("NLLB-200", "mBART-50"):
        listed = [*SPECIAL, *pieces, *codes, "<mask>"]
        if family == "NLLB-200":
            ids = {piece: i for i, piece in enumerate(listed)}
            tokenizer = transformers.NllbTokenizer(vocab=ids, merges=merges(pieces))
        else:
            scores = [(each, processor.get_score(processor.piece_to_id(each))) for each in listed]
            tokenizer = transformers.MBart50Tokenizer(vocab=scores)
        tokenizer.save_pretrained(folder)
    else:
        ids = {piece: i for i, piece in enumerate([*SPECIAL, *pieces])}
        (folder / "vocab.json").write_text(json.dumps(ids), encoding="utf-8")
        described = {"tokenizer_class": "M2M100Tokenizer"}
        (folder / "tokenizer_config.json").write_text(json.dumps(described), encoding="utf-8")
        if family == "SMaLL-100":
            (folder / "tokenization_small100.py").write_text(
                "raise AssertionError", encoding="utf-8"
            )
    options: dict[str, Any] = {
        "vocab_size": rows,
        "d_model": width,
        "scale_embedding": True,
        "activation_function": "relu",
        "max_position_embeddings": 256,
        "decoder_start_token_id": 2,
        **{f"{stack}_layers": layers for stack in ("encoder", "decoder")},
        **{f"{stack}_ffn_dim": 2 * width for stack in ("encoder", "decoder")},
        **{f"{stack}_attention_heads": 4 for stack in ("encoder", "decoder")},
    }
    torch.manual_seed(0)
    if family == "mBART-50":
        network = transformers.MBartForConditionalGeneration(transformers.MBartConfig(**options))
    else:
        config = transformers.M2M100Config(**options)
        network = transformers.M2M100ForConditionalGeneration(config)
    for name, weight in network.named_parameters() if is_lively else ():
        weight.data.normal_(std=0.25)
        if "norm" in name and name.endswith("weight"):
            weight.data.add_(1)
    if family == "mBART-50":
        network.final_logits_bias = torch.randn(1, rows) / 2
    network.save_pretrained(folder)
    return folder


def merges(pieces: list[str]) -> list[tuple[str, str]]:
    """The merges of a BPE model, in the order of its pieces."""
    ids = {piece: i for i, piece in enumerate(pieces)}
    found = [
        (ids[piece], ids[piece[:cut]], ids[piece[cut:]])
        for piece in pieces
        for cut in range(1, len(piece))
        if piece[:cut] in ids and piece[cut:] in ids
    ]
    return [(pieces[left], pieces[right]) for _, left, right in sorted(found)]


def pairs(count: int = 40) -> list[Pair]:
    """Pairs of the toy language in four directions."""
    directions = ("en-de", "de-en", "en-fr", "fr-de")
    texts = zip(*reverse_texts(count, seed=3), strict=True)
    return [
        Pair(source, target, Origin("a test", line), directions[line % 4])
        for line, (source, target) in enumerate(texts)
    ]
