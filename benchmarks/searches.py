"""Beam search of CTranslate2 in float32 beside ours, with a model whose vocabulary can lack characters.

CTranslate2 forbids UNK before the softmax, so that the other tokens share its probability; our search forbids it
afterwards, as Marian and transformers do. Prints how many translations are the same token for token: as both search,
and if our search shares the probability, too.

    python benchmarks/searches.py MODEL TEXTS [--sentences 50] [--beam 4]

TEXTS is a folder with test.en and so on: line by line translations. Each direction of the model translates the first
sentences of its source language.
"""

import tempfile
from dataclasses import replace
from pathlib import Path

import torch
from measuring import run_script

from transduce import model_folder
from transduce.config.schema import BOS, PAD, UNK
from transduce.decoding import beam
from transduce.decoding.torch_engine import TorchEngine
from transduce.decoding.translator import Translator
from transduce.decoding.types import PLAIN_SEARCH, Translation
from transduce.wings.ct2.convert import convert
from transduce.wings.ct2.engine import CTranslate2Engine

MAX_APART = 0.01  # nats, after the length penalty

forbid = beam.forbid


def forbid_before_softmax(log_probs: torch.Tensor, full: torch.Tensor | None) -> None:
    """Forbid PAD, BOS and UNK, and share their probability among the other tokens."""
    log_probs[..., [PAD, BOS, UNK]] = -torch.inf
    log_probs -= log_probs.logsumexp(-1, keepdim=True)
    forbid(log_probs, full)


def main(model: Path, texts: Path, /, *, sentences: int = 50, beam_size: int = 4) -> None:
    """Translate with both engines, and compare."""
    bundle = model_folder.load(model)
    config = bundle.config
    with tempfile.TemporaryDirectory() as temporary:
        convert(bundle.model, config.model, Path(temporary), "float32")
        fast = CTranslate2Engine(Path(temporary), "float32", config.model, threads=1)
    decode = replace(config.decode, **PLAIN_SEARCH, beam_size=beam_size)

    def translations(engine: TorchEngine | CTranslate2Engine) -> list[Translation]:
        found = []
        for direction in config.data.directions:
            translator = Translator(engine, bundle.tokenizer.toward(direction), decode)
            lines = (texts / f"test.{direction.partition('-')[0]}").read_text(encoding="utf-8")
            found += translator.translate_sentences(lines.split("\n")[:sentences])
        return found

    theirs = translations(fast)
    for name, function in (("after", forbid), ("before", forbid_before_softmax)):
        beam.forbid = function
        ours = translations(TorchEngine([bundle.model]))
        same = sum(a.tokens == b.tokens for a, b in zip(ours, theirs, strict=True))
        print(f"UNK forbidden {name} the softmax: {same} of {len(ours)} the same")
        if function is forbid:
            alike = [(a, b) for a, b in zip(ours, theirs, strict=True) if a.tokens == b.tokens]
            apart = sum(abs(a.score - b.score) > MAX_APART for a, b in alike)
            print(f"scores more than {MAX_APART} apart: {apart} of {len(alike)} same ones")


if __name__ == "__main__":
    run_script(main, __doc__)
