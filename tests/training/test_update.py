"""Tests of transduce/training/update.py."""

import copy
import itertools
import math
import random
from dataclasses import replace

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

from corpora import reverse_rows
from small_trainings import MODEL, RATE, TRAIN, batch_of, same, updated, weights, written
from transduce import model_folder
from transduce.config.schema import TrainConfig, with_options
from transduce.model.build import build
from transduce.model.seq2seq import Batch
from transduce.model_folder import checkpoints_in
from transduce.system.errors import UserError
from transduce.system.files import write_folder
from transduce.system.profiling import profiling
from transduce.training import loop
from transduce.training.distributed import ALONE, Ranks, Slot
from transduce.training.objectives import sums_of
from transduce.training.resume import load_newest
from transduce.training.update import (
    AVERAGE,
    averaged,
    begin_update,
    dropout_seed,
    make_optimizer,
    rehearse,
    update,
    update_average,
)


def step_of_sgd(batches: list[Batch], **options: object) -> tuple[dict[str, Tensor], loop.Outcome]:
    """The weights after one update by plain gradient descent with rate 1, which moves them by the gradient."""
    model = build(replace(MODEL, dropout=0.0))
    optimizer = torch.optim.SGD(model.parameters())
    outcome = update(model, optimizer, batches, step=1, rate=1.0, train=replace(TRAIN, **options))
    return weights(model), outcome


def test_micro_batches_are_one_batch():
    rows = reverse_rows(24, seed=1)
    whole, one = step_of_sgd([batch_of(rows)])
    parts, three = step_of_sgd([batch_of(rows[:3]), batch_of(rows[3:20]), batch_of(rows[20:])])
    assert one.num_tokens == three.num_tokens == sum(len(target) + 1 for _, target in rows)
    assert three.loss == pytest.approx(one.loss, rel=1e-5)
    assert three.gradient_norm == pytest.approx(one.gradient_norm, rel=1e-4)
    for name, weight in whole.items():
        torch.testing.assert_close(parts[name], weight, atol=1e-6, rtol=1e-4)


def test_the_gradient_is_clipped_to_its_norm():
    rows = reverse_rows(8, seed=1)
    before = weights(build(MODEL))
    free, outcome = step_of_sgd([batch_of(rows)])
    clipped, _ = step_of_sgd([batch_of(rows)], clip_norm=outcome.gradient_norm / 2)
    moved = math.sqrt(sum((free[name] - before[name]).square().sum().item() for name in before))
    assert moved == pytest.approx(outcome.gradient_norm, rel=1e-4)
    for name, weight in before.items():
        torch.testing.assert_close(
            clipped[name] - weight, (free[name] - weight) / 2, atol=1e-6, rtol=1e-3
        )


def test_dropout_depends_on_seed_step_and_place_alone():
    batch = batch_of(reverse_rows(8, seed=1))

    def result(step: int, batches: list[Batch], seed: int = 1) -> float:
        model, train = build(replace(MODEL, dropout=0.3)), replace(TRAIN, seed=seed)
        torch.manual_seed(random.randrange(2**32))
        optimizer = make_optimizer(model.parameters(), train)
        return update(model, optimizer, batches, step=step, rate=1e-3, train=train).loss

    alone = result(4, [batch])
    assert result(4, [batch]) == alone
    others = result(5, [batch]), result(4, [batch], seed=2), result(4, [batch, batch]) - alone
    assert len({alone, *others}) == 4
    seeds = [dropout_seed(*key) for key in itertools.product(range(5), range(20), range(5))]
    assert len(set(seeds)) == 500
    assert all(0 <= seed < 2**63 for seed in seeds)


def test_adam_learns():
    model = build(MODEL)
    optimizer, batch = make_optimizer(model.parameters(), TRAIN), batch_of(reverse_rows(32, seed=1))
    outcomes = [
        update(model, optimizer, [batch], step=s, rate=RATE, train=TRAIN) for s in range(1, 61)
    ]
    assert outcomes[-1].loss < 0.85 * outcomes[0].loss
    assert outcomes[-1].correct > outcomes[0].correct
    assert all(outcome.applied for outcome in outcomes)


def test_adam_follows_the_paper():
    optimizer = make_optimizer(build(MODEL).parameters(), TrainConfig())
    (group,) = optimizer.param_groups
    assert (group["betas"], group["eps"], group["weight_decay"]) == ((0.9, 0.98), 1e-9, 0)


@pytest.mark.parametrize("wait", [True, False])
@pytest.mark.parametrize("trouble", ["nan", "inf"])
def test_an_update_that_is_not_finite_changes_nothing(trouble, wait):
    model = build(MODEL)
    optimizer, batch = make_optimizer(model.parameters(), TRAIN), batch_of(reverse_rows(8, seed=1))
    assert update(model, optimizer, [batch], step=1, rate=1e-3, train=TRAIN).applied
    model.decoder[0].feed_forward.inner.bias.data[3] = float(trouble)
    before, states = weights(model), copy.deepcopy(optimizer.state_dict()["state"])
    figures = begin_update(model, optimizer, [batch], step=2, rate=1e-3, train=TRAIN, wait=wait)
    assert not figures.read().applied
    assert same(weights(model), before)
    after = optimizer.state_dict()["state"]
    assert all(
        torch.equal(value, after[key][part])
        for key, parts in states.items()
        for part, value in parts.items()
    )
    model.decoder[0].feed_forward.inner.bias.data[3] = 0.0
    assert update(
        model, optimizer, [batch], step=3, rate=1e-3, train=TRAIN
    ).applied  # no gradient was left over


def test_a_rate_far_too_high_is_noticed():
    model = build(MODEL)
    optimizer, batch = make_optimizer(model.parameters(), TRAIN), batch_of(reverse_rows(8, seed=1))
    outcomes = [
        update(model, optimizer, [batch], step=s, rate=1e30, train=TRAIN) for s in range(1, 4)
    ]
    assert [outcome.applied for outcome in outcomes] == [True, False, False]


@pytest.mark.parametrize(
    "file", ["model.safetensors", "optimizer.safetensors", "state.json", "manifest.json"]
)
@pytest.mark.parametrize("damage", ["bit", "cut", "gone"])
def test_a_damaged_checkpoint_is_named_and_the_one_before_is_used(file, damage, tmp_path, capsys):
    first, second = written(tmp_path, range(1, 3), float)
    path = second / file
    whole = path.read_bytes()
    if damage == "gone":
        path.unlink()
    else:
        at = whole.index(b"{")
        path.write_bytes(
            whole[:at] if damage == "cut" else whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :]
        )
    with pytest.raises(UserError, match=file):
        model_folder.average([first, second])
    model = build(MODEL)
    state = load_newest(tmp_path, model, make_optimizer(model.parameters(), TRAIN))
    assert state.step == 1
    assert same(weights(model), load_file(first / "model.safetensors"))
    said = " ".join(capsys.readouterr().err.split())
    assert str(path) in said and "The previous checkpoint is used." in said
    assert checkpoints_in(tmp_path) == [first]
    assert (tmp_path / "damaged-step-00000002").is_dir()
    (again,) = written(tmp_path, range(2, 3), float)  # by the training that went on
    (again / file).unlink()
    assert load_newest(tmp_path, model, make_optimizer(model.parameters(), TRAIN)).step == 1


def test_folder_of_something_else_is_not_taken_for_a_checkpoint(tmp_path):
    written(tmp_path, range(1, 2))
    with write_folder(
        tmp_path / "step-00000099"
    ) as aside:  # as a model in the folder of checkpoints
        (aside / "model.safetensors").write_bytes(b"x")
    model = build(MODEL)
    assert load_newest(tmp_path, model, make_optimizer(model.parameters(), TRAIN)).step == 1


def test_missing_whole_checkpoint_is_reported(tmp_path):
    (path,) = written(tmp_path, range(1, 2))
    (path / "model.safetensors").write_bytes(b"")
    model = build(MODEL)
    with pytest.raises(UserError, match="holds no intact checkpoint"):
        load_newest(tmp_path, model, make_optimizer(model.parameters(), TRAIN))


@pytest.mark.parametrize("ema", [0.0, 0.15, 0.5, 0.999])
def test_the_moving_average_by_hand(ema):
    """The first weights count for less and less: decays of 2/11, 3/12, 4/13, … up to `ema`."""
    plain, _, _ = updated(TRAIN, 6)
    history, optimizer, model = updated(replace(TRAIN, ema=ema), 6)
    assert all(map(same, history, plain)), "the average changes no weight"
    if not ema:
        assert not any(AVERAGE in state for state in optimizer.state.values())
        return
    expected = {name: weight.clone() for name, weight in history[0].items()}
    for step, now in enumerate(history, 1):
        decay = min(ema, (1 + step) / (10 + step))
        expected = {name: decay * old + (1 - decay) * now[name] for name, old in expected.items()}
    for name, weight in model.named_parameters():
        torch.testing.assert_close(optimizer.state[weight][AVERAGE], expected[name])


def test_an_update_that_is_not_applied_changes_no_moving_average():
    train = replace(TRAIN, ema=0.5)
    _, optimizer, model = updated(train, 2)
    before = [state[AVERAGE].clone() for state in optimizer.state.values()]
    bias = model.decoder[0].feed_forward.inner.bias
    kept = bias.data[3].item()
    bias.data[3] = math.nan
    batch = batch_of(reverse_rows(8, seed=1))
    assert not update(model, optimizer, [batch], step=3, rate=1e-3, train=train).applied
    assert all(map(torch.equal, before, (state[AVERAGE] for state in optimizer.state.values())))
    bias.data[3] = kept
    outcome = update(model, optimizer, [batch], step=4, rate=1e-3, train=train)
    assert outcome.applied and math.isfinite(outcome.loss)
    assert all(state[AVERAGE].isfinite().all() for state in optimizer.state.values())


def test_validation_uses_the_moving_average_and_restores_the_weights():
    _, optimizer, model = updated(replace(TRAIN, ema=0.5), 12)
    before = weights(model), [state[AVERAGE].clone() for state in optimizer.state.values()]
    with averaged(optimizer):
        assert all(map(torch.equal, model.parameters(), before[1]))
    assert same(weights(model), before[0])
    assert all(
        torch.equal(state[AVERAGE], old)
        for state, old in zip(optimizer.state.values(), before[1], strict=True)
    )
    _, plain, model = updated(TRAIN, 2)
    before = weights(model), []
    with averaged(plain):
        assert same(weights(model), before[0]), "without a moving average, nothing changes"


def test_weight_decay_shrinks_weights_by_the_rate_and_nothing_else():
    (plain, *_), *_ = updated(TRAIN, 1)
    (decayed, *_), *_ = updated(replace(TRAIN, weight_decay=0.1), 1)
    first = weights(build(MODEL))
    for name, weight in plain.items():
        assert torch.allclose(decayed[name], weight - 0.01 * 0.1 * first[name], atol=1e-6)


def test_the_pass_before_training_leaves_no_gradients():
    model = build(MODEL)
    before = weights(model)
    passes = []
    for parameter in model.parameters():
        parameter.register_hook(passes.append)
    rehearse(model.eval(), TRAIN, torch.device("cpu"), 3)
    assert len(passes) == len(before) and model.training
    assert all(parameter.grad is None for parameter in model.parameters())
    assert same(weights(model), before)


@pytest.mark.parametrize("trouble", ["loss", "gradient"])
def test_a_loss_or_a_gradient_alone_that_is_not_finite_is_left_out(trouble):
    model, batch = build(with_options(MODEL, output_bias=True)), batch_of(reverse_rows(8, seed=1))
    optimizer = make_optimizer(model.parameters(), TRAIN)
    bias = next(weight for weight in model.parameters() if weight.shape == (MODEL.vocab_size,))
    if trouble == "loss":  # a target token is impossible, which has a gradient
        bias.data[batch.tgt_out[0, 0]] = -math.inf
    else:
        bias.register_hook(lambda gradient: gradient * math.inf)
    before = weights(model)
    train = replace(TRAIN, label_smoothing=0.0)
    outcome = update(model, optimizer, [batch], step=1, rate=1e-3, train=train)
    assert math.isfinite(outcome.gradient_norm) is (trouble == "loss")
    assert math.isfinite(outcome.loss) is (trouble == "gradient")
    assert not outcome.applied and same(weights(model), before)
    assert all(weight.grad is None for weight in model.parameters())


@pytest.mark.usefixtures("shard")
def test_a_gradient_is_a_sum_over_ranks_divided_by_the_tokens_of_all():
    """DDP takes the mean over ranks, so each of two ranks doubles its part; a dummy pass adds nothing."""
    batch = batch_of(reverse_rows(6, seed=1))
    before, moved = weights(build(MODEL)), []
    for ranks, slots, total in (
        (ALONE, (), 0),
        (Ranks(1, 2), [Slot(0, False), Slot(3, True)], 2 * batch.num_tokens),
    ):
        model = build(replace(MODEL, dropout=0.0))
        optimizer = torch.optim.SGD(model.parameters())
        parts = [batch] * max(1, len(slots))
        several = {"ranks": ranks, "slots": slots, "total": total}
        figures = begin_update(model, optimizer, parts, step=1, rate=1.0, train=TRAIN, **several)
        outcome = figures.read()
        moved.append({name: before[name] - weight for name, weight in weights(model).items()})
        assert outcome.num_tokens == (total or batch.num_tokens)
        assert outcome.loss == pytest.approx(sums_of(build(MODEL).eval(), batch, TRAIN).loss.item())
    for name, change in moved[0].items():
        torch.testing.assert_close(moved[1][name], change)


def test_each_micro_batch_has_the_dropout_of_its_place():
    """Whichever rank computes it, and whatever the random numbers were before."""
    batches = [batch_of(reverse_rows(4, seed=seed)) for seed in (1, 2)]
    both, first, second = (
        begin_update(
            build(MODEL),
            torch.optim.SGD(build(MODEL).parameters()),
            some,
            step=7,
            rate=1.0,
            train=TRAIN,
            slots=slots,
        )
        .read()
        .loss
        for some, slots in (
            (batches, ()),
            (batches[:1], [Slot(0, False)]),
            (batches[1:], [Slot(1, False)]),
        )
    )
    assert both == pytest.approx(first + second, rel=1e-6)


def test_pairs_and_tokens_of_an_update_are_counted():
    rows = reverse_rows(6, seed=1)
    batch = batch_of(rows)
    with profiling([]) as profile:
        begin_update(
            build(MODEL),
            torch.optim.SGD(build(MODEL).parameters()),
            [batch, batch],
            step=1,
            rate=1.0,
            train=TRAIN,
            slots=[Slot(0, False), Slot(0, True)],
        )
    target = sum(len(target) + 1 for _, target in rows)
    longest = max(len(source) + 1 for source, _ in rows)
    assert profile.counts == {"pairs": 6, "source tokens": 6 * longest, "target tokens": target}


def test_a_weight_that_had_no_gradient_has_no_average():
    used, unused = (torch.nn.Parameter(torch.ones(2)) for _ in range(2))
    optimizer = make_optimizer([used, unused], TRAIN)
    for value in (3.0, 5.0):
        used.grad = torch.ones(2)
        optimizer.step()
        used.data.fill_(value)
        update_average(optimizer, 0.75)
    assert optimizer.state[used][AVERAGE].tolist() == [3.5, 3.5]
    assert not optimizer.state[unused]
    assert optimizer.param_groups[0]["weight_decay"] == TRAIN.weight_decay
