"""The losses of two passes: the divergence and its gradients are those of the definition."""

import dataclasses

import pytest
import torch
from torch.nn.functional import kl_div

from transduce.config.schema import BOS, EOS, PAD, UNK, ModelConfig, TrainConfig
from transduce.model.build import build
from transduce.model.seq2seq import make_batch
from transduce.training.losses import CACHED_LOGITS, divergence
from transduce.training.objectives import objective, omit

BATCH = make_batch([[5, 6, 7], [8]], [[9, 10], [11, 12, 13]])
TRAIN = TrainConfig(precision="float32")


def model(dropout=0.0):
    sizes = {
        "vocab_size": 16,
        "num_encoder_layers": 1,
        "num_decoder_layers": 1,
        "d_model": 8,
        "d_ff": 16,
        "num_heads": 2,
    }
    return build(ModelConfig(**sizes, dropout=dropout), 1).train()


@pytest.mark.parametrize("vocab_size", [7, CACHED_LOGITS // 4, 2 * CACHED_LOGITS])  # 15, 4 and 1 row at a time
def test_the_divergence_is_its_definition_and_so_are_its_gradients(vocab_size):
    torch.manual_seed(1)
    first, second = (torch.randn(3, 5, vocab_size, requires_grad=True) for _ in range(2))
    targets = torch.tensor([[4, 5, 6, 4, EOS], [5, EOS, PAD, PAD, PAD], [6, 6, EOS, PAD, PAD]])
    each = kl_div(second.log_softmax(-1), first.log_softmax(-1), reduction="none", log_target=True).sum(-1)
    expected = each[targets != PAD].sum()
    wanted = torch.autograd.grad(2 * expected, (first, second))
    found = divergence(first, second, targets)
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(torch.autograd.grad(2 * found, (first, second)), wanted)


def test_only_subwords_are_omitted():
    tokens = torch.tensor([[BOS, 5, 6, EOS, PAD]]).expand(2000, -1)
    torch.manual_seed(1)
    omitted = omit(tokens, 0.25)
    assert set(omitted[omitted != tokens].tolist()) == {UNK}
    assert (omitted == UNK).float().mean(dim=0).tolist() == pytest.approx([0, 0.25, 0.25, 0, 0], abs=0.04)
    assert omit(tokens, 0.0) is tokens


def inputs(batch, train):
    """What the model reads in the pass over a batch."""
    read, network = [], model()
    network.register_forward_pre_hook(lambda _, tokens: read.extend(tokens))
    objective(train)(network, batch)
    return read


def test_without_a_second_pass_the_inputs_are_the_batch():
    src, tgt_in = inputs(BATCH, TRAIN)
    assert torch.equal(src, BATCH.src) and torch.equal(tgt_in, BATCH.tgt_in)


def test_simcut_omits_words_of_the_second_pass_on_both_sides():
    batch = make_batch([[5, 6, 7]] * 500, [[9, 10, 11]] * 500)
    src, tgt_in = inputs(batch, dataclasses.replace(TRAIN, consistency="simcut", cutoff=0.3))
    assert torch.equal(src[:500], batch.src) and torch.equal(tgt_in[:500], batch.tgt_in)
    shares = [(tokens == UNK).float().mean().item() for tokens in (src[500:, :3], tgt_in[500:, 1:])]
    assert shares == pytest.approx([0.3, 0.3], abs=0.05)


def test_both_passes_of_rdrop_omit_words():
    batch = make_batch([[5]] * 500, [[9, 10, 11]] * 500)
    train = dataclasses.replace(TRAIN, consistency="rdrop", word_dropout=0.3)
    torch.manual_seed(1)
    src, tgt_in = inputs(batch, train)
    assert torch.equal(src, torch.cat([batch.src] * 2))
    shares = [(each[:, 1:] == UNK).float().mean().item() for each in tgt_in.chunk(2)]
    assert shares == pytest.approx([0.3, 0.3], abs=0.05) and not torch.equal(*tgt_in.chunk(2))


@pytest.mark.parametrize(("consistency", "passes"), [("simcut", 1), ("rdrop", 2)])
def test_equal_passes_add_no_penalty(consistency, passes):
    train = dataclasses.replace(TRAIN, consistency=consistency, cutoff=0.0)
    plain, both = (objective(options)(model(), BATCH) for options in (TRAIN, train))
    torch.testing.assert_close(both.loss, passes * plain.loss)
    torch.testing.assert_close(both.nll, plain.nll)


@pytest.mark.parametrize("consistency", ["simcut", "rdrop"])
def test_unequal_passes_cost_in_proportion_to_the_weight(consistency):
    losses = []
    for weight in (0.0, 1.0, 2.0):
        torch.manual_seed(1)
        train = dataclasses.replace(TRAIN, consistency=consistency, cutoff=0.5, consistency_weight=weight)
        losses.append(objective(train)(model(dropout=0.3), BATCH).loss)
    assert losses[1] > losses[0] + 1e-4
    torch.testing.assert_close(losses[2] - losses[1], losses[1] - losses[0])
