"""Fixtures for the tests in this folder."""

import random

import pytest
import torch

from aligned import EXAMPLES
from phrases import CONFIG, SOURCES, TARGETS, model_config, own
from transduce.config.schema import PAD
from transduce.decoding.translator import Translator
from transduce.model.build import build
from transduce.model.seq2seq import Seq2Seq, make_batch, target_log_probs
from transduce.tokens.tokenizer import Tokenizer
from transduce.wings.ct2.convert import convert
from transduce.wings.ct2.engine import CTranslate2Engine


@pytest.fixture(scope="session")
def tokenizer() -> Tokenizer:
    return Tokenizer.train(SOURCES, TARGETS, vocab_size=340)


@pytest.fixture(scope="session")
def model(tokenizer: Tokenizer) -> Seq2Seq:
    """A model that has learnt to translate word for word; two seconds of training."""
    model, steps, choice = build(model_config(tokenizer)), 200, random.Random(2)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.0, steps)
    sources, targets = tokenizer.encode_source(SOURCES), tokenizer.encode_target(TARGETS)
    for _ in range(steps):
        chosen = choice.sample(range(len(SOURCES)), 32)
        batch = make_batch([sources[i] for i in chosen], [targets[i] for i in chosen])
        log_probs = target_log_probs(model(batch.src, batch.tgt_in), batch.tgt_out)
        loss = -log_probs[batch.tgt_out != PAD].sum() / batch.num_tokens
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    return model


@pytest.fixture(scope="session", params=["torch", "ctranslate2"])
def translator(
    model: Seq2Seq,
    tokenizer: Tokenizer,
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
) -> Translator:
    """All engines obey the same laws."""
    if request.param == "torch":
        return own([model], tokenizer, CONFIG)
    folder, config = tmp_path_factory.mktemp("engine"), model_config(tokenizer)
    convert(model, config, folder, "float32")
    return Translator(CTranslate2Engine(folder, "float32", config, threads=2), tokenizer, CONFIG)


@pytest.fixture(scope="session", params=["bpe", "unigram", "separate"])
def aligning_tokenizer(request: pytest.FixtureRequest) -> Tokenizer:
    english, german = [each.english for each in EXAMPLES], [each.german for each in EXAMPLES]
    german += ["die Katze läuft 漢字 かな", "l’eau, e\u0301te\u0301"]
    kind = "unigram" if request.param == "unigram" else "bpe"
    return Tokenizer.train(
        english, german, vocab_size=600, kind=kind, joint=request.param != "separate"
    )


@pytest.fixture(scope="session")
def bpe() -> Tokenizer:
    return Tokenizer.train(
        [each.english for each in EXAMPLES],
        [each.german for each in EXAMPLES],
        vocab_size=500,
        kind="bpe",
    )
