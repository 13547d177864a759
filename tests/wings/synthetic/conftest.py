"""A teacher for the tests in this folder."""

from pathlib import Path

import pytest
import torch

from corpora import reverse_texts
from models import SIZES, learn, publish_model
from transduce.config.parse import configure
from transduce.model.build import build
from transduce.model.seq2seq import make_batch
from transduce.tokens.imported_vocabulary import ImportedVocabulary
from transduce.tokens.tokenizer import Tokenizer

LICENCE = "cc-by-nc-4.0"


@pytest.fixture(scope="session")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model as from NLLB, with tags for the languages of both texts, that has begun to reverse words both ways."""
    sources, targets = reverse_texts(60, seed=0)
    learnt = Tokenizer.train(sources, targets, vocab_size=280).target
    pieces = [*learnt.all_pieces(), "<<en>>", "<<de>>", "<<fr>>"]
    tokenizer = Tokenizer(ImportedVocabulary(learnt.model, pieces))
    options = {
        "model.vocab_size": len(pieces),
        "model.target_tag": True,
        "model.num_encoder_layers": 1,
        "model.num_decoder_layers": 1,
        "data.directions": ("en-de", "de-en", "en-fr"),
        "data.licence": LICENCE,
        "decode.max_extra_tokens": 2,
    }
    config = configure(SIZES | options)
    torch.manual_seed(0)
    model = build(config.model)
    rows = [
        (tokenizer.toward(name).encode_source(these), tokenizer.encode_target(those))
        for name, these, those in (("en-de", sources, targets), ("de-en", targets, sources))
    ]
    batch = make_batch(*([*one, *other] for one, other in zip(*rows, strict=True)))
    learn(model, batch, 60)
    folder = tmp_path_factory.mktemp("imported") / "model"
    folder.mkdir()
    publish_model(folder, config, tokenizer, model.state_dict(), {"parameters": 1})
    return folder
