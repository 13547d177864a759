"""Low-rank updates: the model computes what it computed, and to others it has its usual weights."""

import copy

import pytest
import torch

from corpora import reverse_rows
from small_trainings import MODEL, batch_of
from transduce.config.schema import with_options
from transduce.model.build import build
from transduce.model.seq2seq import Seq2Seq
from transduce.wings.pretrained.low_rank import LowRankLinear, use_low_rank

BATCH = batch_of(reverse_rows(8, seed=3))


def updates(model: Seq2Seq) -> dict[str, torch.Tensor]:
    return {name: weight for name, weight in model.named_parameters() if weight.requires_grad}


def logits(model: Seq2Seq) -> torch.Tensor:
    with torch.no_grad():
        return model.eval()(BATCH.src, BATCH.tgt_in)


def trained(model: Seq2Seq, updates: int = 3) -> Seq2Seq:
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    for _ in range(updates):
        model(BATCH.src, BATCH.tgt_in).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    return model


@pytest.mark.parametrize("bias", [True, False])
def test_only_updates_of_this_rank_are_learnt(bias):
    plain = build(with_options(MODEL, bias=bias))
    old = copy.deepcopy(plain.state_dict())
    model = copy.deepcopy(plain)
    use_low_rank(model, 2, seed=1)
    assert torch.equal(logits(model), logits(plain)), "before training"
    assert {name.rsplit(".", 1)[1] for name in updates(model)} == {"up", "down"}
    new = trained(model).state_dict()
    assert new.keys() == old.keys()
    matrices = {f"{n}.weight" for n, m in model.named_modules() if isinstance(m, LowRankLinear)}
    for name, weight in new.items():
        rank = torch.linalg.matrix_rank(weight - old[name]) if weight.dim() == 2 else 0
        assert rank == (2 if name in matrices else 0), name
    assert len(matrices) == 16


def test_the_merged_weights_are_those_of_a_usual_model():
    model = build(MODEL)
    use_low_rank(model, 3, seed=1)
    before = logits(trained(model))
    plain = build(MODEL, seed=2)
    plain.load_state_dict(model.state_dict())
    torch.testing.assert_close(logits(plain), before)
    again = build(MODEL, seed=3)
    use_low_rank(again, 3, seed=4)
    again.load_state_dict(trained(again).state_dict() | plain.state_dict())
    assert torch.equal(logits(again), logits(plain)), "the updates are zero again"


def test_the_seed_determines_the_updates():
    models = [build(MODEL) for _ in range(3)]
    for model, seed in zip(models, (1, 1, 2), strict=True):
        use_low_rank(model, 2, seed)
    one, same, other = ([*updates(each).values()] for each in models)
    assert all(map(torch.equal, one, same)) and not all(map(torch.equal, one, other))
