"""train.word_dropout: the decoder reads UNK in the place of some subwords."""

import dataclasses

import pytest
import torch

from transduce.config.schema import BOS, EOS, PAD, UNK, ModelConfig, TrainConfig
from transduce.model.build import build
from transduce.model.seq2seq import make_batch
from transduce.training.objectives import omit, sums_of

BATCH = make_batch([[5, 6, 7]] * 500, [[9, 10, 11]] * 500)
TRAIN = TrainConfig(precision="float32")


def test_only_subwords_are_omitted():
    tokens = torch.tensor([[BOS, 5, 6, EOS, PAD]]).expand(2000, -1)
    torch.manual_seed(1)
    omitted = omit(tokens, 0.25)
    assert set(omitted[omitted != tokens].tolist()) == {UNK}
    assert (omitted == UNK).float().mean(dim=0).tolist() == pytest.approx(
        [0, 0.25, 0.25, 0, 0], abs=0.04
    )
    assert omit(tokens, 0.0) is tokens


@pytest.mark.parametrize("share", [0.0, 0.3])
def test_only_the_input_of_the_decoder_has_omitted_words(share):
    sizes = {
        "num_encoder_layers": 1,
        "num_decoder_layers": 1,
        "d_model": 8,
        "d_ff": 16,
        "num_heads": 2,
    }
    model = build(ModelConfig(vocab_size=16, **sizes), 1).train()
    read = []
    model.register_forward_pre_hook(lambda _, tokens: read.extend(tokens))
    torch.manual_seed(1)
    sums_of(model, BATCH, dataclasses.replace(TRAIN, word_dropout=share))
    src, tgt_in = read
    assert torch.equal(src, BATCH.src)
    assert (tgt_in[:, 1:] == UNK).float().mean().item() == pytest.approx(share, abs=0.05)
    kept = tgt_in != UNK
    assert torch.equal(tgt_in[kept], BATCH.tgt_in[kept])
