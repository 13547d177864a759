"""From a batch to weights: the loss, the schedule, one update, checkpoints and the loop around them."""

import copy
import itertools
import math
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file
from torch import Tensor

from corpora import Rows, mixture, reverse_rows
from transduce import model_folder
from transduce.config.schema import PAD, ModelConfig, RunConfig, TrainConfig
from transduce.decoding.beam import beam_search
from transduce.decoding.stepper import ModelStepper
from transduce.evaluation.perplexity import Validation
from transduce.model.build import build
from transduce.model.seq2seq import Batch, Seq2Seq, make_batch, source_tensor
from transduce.model_folder import checkpoints_in, step_of
from transduce.system.errors import UserError
from transduce.system.files import verify, write_folder
from transduce.system.journal import Journal, read_events
from transduce.tokens import mixture as tokens_mixture
from transduce.training import loop
from transduce.training.checkpoint import (
    TrainState,
    load_checkpoint,
    moving_average,
    regular,
    remove_old,
    save_checkpoint,
)
from transduce.training.finish import choose
from transduce.training.loop import Training
from transduce.training.losses import smoothed_cross_entropy
from transduce.training.objectives import sums_of
from transduce.training.resume import load_newest
from transduce.training.schedule import learning_rate
from transduce.training.update import (
    AVERAGE,
    averaged,
    dropout_seed,
    make_optimizer,
    update,
)

MODEL = ModelConfig(
    vocab_size=14,
    d_model=16,
    d_ff=32,
    num_heads=2,
    num_encoder_layers=1,
    num_decoder_layers=1,
    dropout=0.1,
)
TRAIN = TrainConfig(
    steps=20, warmup=10, save_every=5, validate_every=1000, accumulate=1, threads=1, average=1
)
RATE = 1e-2


def batch_of(rows: Rows) -> Batch:
    return make_batch([source for source, _ in rows], [target for _, target in rows])


def weights(model: Seq2Seq) -> dict[str, Tensor]:
    return {name: weight.clone() for name, weight in model.state_dict().items()}


def same(first: dict[str, Tensor], second: dict[str, Tensor]) -> bool:
    """To the bit, also where it is not a number."""
    return first.keys() == second.keys() and all(
        torch.equal(
            weight.contiguous().view(torch.uint8), second[name].contiguous().view(torch.uint8)
        )
        if weight.dim()
        else torch.equal(weight, second[name])
        for name, weight in first.items()
    )


# -- loss -------------------------------------------------------------------------------------------------


def random_logits(
    dtype: torch.dtype, shape: tuple[int, ...] = (7, 30, 50)
) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(3)
    logits = 4 * torch.randn(*shape, generator=generator)
    targets = torch.randint(0, shape[-1], shape[:-1], generator=generator)
    targets[torch.rand(shape[:-1], generator=generator) < 0.3] = PAD
    return logits.to(dtype).requires_grad_(), targets


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.9])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_loss_equals_that_of_pytorch(smoothing, dtype):
    logits, targets = random_logits(dtype)
    before = logits.detach().clone()
    reference = logits.detach().double().requires_grad_()
    expected = F.cross_entropy(
        reference.flatten(0, 1),
        targets.flatten(),
        label_smoothing=smoothing,
        ignore_index=PAD,
        reduction="sum",
    )
    sums = smoothed_cross_entropy(logits, targets, smoothing)
    assert sums.loss.dtype == torch.float32
    assert sums.loss.item() == pytest.approx(expected.item(), rel=1e-6)
    (sums.loss / 7).backward()
    (expected / 7).backward()
    precision = (
        {"atol": 1e-6, "rtol": 1e-5} if dtype == torch.float32 else {"atol": 1e-4, "rtol": 2e-2}
    )
    torch.testing.assert_close(logits.grad.double(), reference.grad, **precision)
    assert torch.equal(logits.detach(), before)


def test_likelihood_and_accuracy_equal_those_of_pytorch():
    logits, targets = random_logits(torch.float32)
    sums = smoothed_cross_entropy(logits, targets, 0.1)
    real = targets != PAD
    expected = F.cross_entropy(logits[real].double(), targets[real], reduction="sum")
    assert sums.nll.item() == pytest.approx(expected.item(), rel=1e-6)
    assert sums.correct.item() == (logits.argmax(dim=-1) == targets)[real].sum()
    assert not sums.nll.requires_grad and not sums.correct.requires_grad


def test_loss_by_hand():
    # Softmax: 1/6, 1/6, 1/6, 1/2.
    logits = torch.tensor([[[0.0, 0.0, 0.0, math.log(3)], [9.0, 1.0, 2.0, 3.0]]])
    sums = smoothed_cross_entropy(logits, torch.tensor([[3, PAD]]), 0.4)
    assert sums.nll.item() == pytest.approx(math.log(2))
    # 0.6 + 0.4 / 4 on the right one.
    assert sums.loss.item() == pytest.approx(0.7 * math.log(2) + 0.3 * math.log(6))
    assert sums.correct.item() == 1


def test_losses_are_sums_and_padding_counts_nothing():
    logits, targets = random_logits(torch.float32)
    whole = smoothed_cross_entropy(logits, targets, 0.1)
    parts = [
        smoothed_cross_entropy(logits[i : i + 1], targets[i : i + 1], 0.1)
        for i in range(len(logits))
    ]
    for total, each in zip(whole, zip(*parts, strict=True), strict=True):
        assert sum(value.item() for value in each) == pytest.approx(total.item(), rel=1e-5)
    other = logits.detach().clone()
    other[targets == PAD] = 100.0
    assert smoothed_cross_entropy(other, targets, 0.1).loss.item() == whole.loss.item()
    whole.loss.backward()
    assert not logits.grad[targets == PAD].any()


# -- schedule ---------------------------------------------------------------------------------------------


def test_the_papers_schedule_by_hand():
    train = TrainConfig(warmup=4000)
    rates = [learning_rate(step, train, 512) for step in (1, 4000, 16000)]
    assert rates == pytest.approx([1.746928e-7, 6.987712e-4, 3.493856e-4], rel=1e-6)
    assert learning_rate(4000, replace(train, learning_rate=2.0), 512) == pytest.approx(
        2 * 6.987712e-4, rel=1e-6
    )


def test_the_schedule_rises_falls_and_cools_down():
    train = TrainConfig(steps=100, warmup=20)
    rates = [learning_rate(step, train, 64) for step in range(1, 101)]
    assert rates[:20] == sorted(rates[:20])
    assert rates[19:] == sorted(rates[19:], reverse=True)
    cooled = [
        learning_rate(step, replace(train, cooldown=10), 64) / rates[step - 1]
        for step in range(1, 101)
    ]
    assert cooled[:91] == [1.0] * 91
    assert cooled[91:] == pytest.approx([0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1])


# -- one update -------------------------------------------------------------------------------------------


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


@pytest.mark.parametrize("trouble", ["nan", "inf"])
def test_an_update_that_is_not_finite_changes_nothing(trouble):
    model = build(MODEL)
    optimizer, batch = make_optimizer(model.parameters(), TRAIN), batch_of(reverse_rows(8, seed=1))
    assert update(model, optimizer, [batch], step=1, rate=1e-3, train=TRAIN).applied
    model.decoder[0].feed_forward.inner.bias.data[3] = float(trouble)
    before, states = weights(model), copy.deepcopy(optimizer.state_dict()["state"])
    outcome = update(model, optimizer, [batch], step=2, rate=1e-3, train=TRAIN)
    assert not outcome.applied
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


def test_bfloat16_is_near_float32_and_keeps_weights_and_sums():
    model, batch = build(replace(MODEL, dropout=0.0)), batch_of(reverse_rows(32, seed=1))
    exact = sums_of(model, batch, TRAIN)
    near = sums_of(model, batch, replace(TRAIN, precision="bfloat16"))
    assert near.loss.dtype == torch.float32
    assert near.loss.item() != exact.loss.item()
    assert near.loss.item() == pytest.approx(exact.loss.item(), rel=1e-2)
    near.loss.backward()
    assert {weight.dtype for weight in model.parameters()} == {torch.float32}
    assert {weight.grad.dtype for weight in model.parameters()} == {torch.float32}


# -- checkpoints ------------------------------------------------------------------------------------------


def test_training_after_a_checkpoint_is_bit_identical(tmp_path):
    model = build(MODEL)
    optimizer, batch = make_optimizer(model.parameters(), TRAIN), batch_of(reverse_rows(8, seed=1))
    for step in (1, 2, 3):
        update(model, optimizer, [batch], step=step, rate=RATE, train=TRAIN)
    state = TrainState(3, 1, 2, 345, 6.75, 1 / 3, 2, 1, 0, 789, 1.1, 2.2, 3.3, 4)
    path = save_checkpoint(tmp_path, model, optimizer, state)
    assert path.name == "step-00000003"
    other = build(MODEL, seed=9)
    other_optimizer = make_optimizer(other.parameters(), TRAIN)
    assert load_checkpoint(path, other, other_optimizer) == state
    assert same(weights(other), weights(model))
    for each in (4, 5):
        for who, its in ((model, optimizer), (other, other_optimizer)):
            update(who, its, [batch], step=each, rate=RATE, train=TRAIN)
    assert same(weights(other), weights(model))
    save_checkpoint(tmp_path / "a", model, optimizer, state)
    save_checkpoint(tmp_path / "b", other, other_optimizer, state)
    files = [load_file(tmp_path / side / path.name / "optimizer.safetensors") for side in "ab"]
    assert same(*files) and len(files[0]) > 0


def written(
    folder: Path, steps: range, change: Callable[[int], float] = lambda _: 0.0
) -> list[Path]:
    """Checkpoints of a model, whose weights grow by `change` of the step."""
    paths = []
    for step in steps:
        model = build(MODEL)
        for weight in model.parameters():
            weight.data.add_(change(step))
        paths.append(
            save_checkpoint(
                folder, model, make_optimizer(model.parameters(), TRAIN), TrainState(step)
            )
        )
    return paths


def test_the_average_of_equal_checkpoints_is_the_same_to_the_bit(tmp_path):
    for count in (1, 3, 5, 7):
        assert same(
            model_folder.average(written(tmp_path / str(count), range(1, count + 1))),
            weights(build(MODEL)),
        )


def test_the_average_is_the_mean_in_double_precision(tmp_path):
    paths = written(tmp_path, range(1, 6), lambda step: 0.1 * step**2)
    files = [load_file(path / "model.safetensors") for path in paths]
    for name, weight in model_folder.average(paths).items():
        exact = torch.stack([file[name].double() for file in files]).mean(dim=0)
        assert torch.equal(weight, exact.float())
        assert weight.dtype == torch.float32


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


@settings(max_examples=40)
@given(
    steps=st.integers(1, 30),
    save_every=st.integers(1, 7),
    keep_last=st.integers(1, 3),
    bests=st.sets(st.integers(1, 30), max_size=5),
    interrupted=st.sets(st.integers(1, 30), max_size=5),
    killed=st.sets(st.integers(1, 30), max_size=5),
)
def test_interrupted_training_keeps_the_same_checkpoints(
    steps, save_every, keep_last, bests, interrupted, killed, tmp_path_factory
):
    """With empty folders as checkpoints; a training that is killed comes to save, but not to remove."""
    kept = []
    for stops, deaths in ((set(), set()), (interrupted, killed)):
        folder, best = tmp_path_factory.mktemp("run"), 0
        for step in range(steps + 1):
            best = step if step in bests else best
            if step % save_every == 0 or step in {best, steps, *stops}:
                (folder / f"step-{step:08d}").mkdir()
                if step == steps or step not in deaths:
                    remove_old(folder, save_every, keep_last, best)
        kept.append([step_of(path) for path in checkpoints_in(folder)])
    wanted = [step for step in range(steps + 1) if step % save_every == 0 or step == steps][
        -keep_last:
    ]
    assert [step_of(path) for path in regular(folder, save_every)][-keep_last:] == wanted
    # Before the first validation, step 0 counts as the best.
    assert kept[0] == kept[1] == sorted({*wanted, best})


# -- the moving average and weight decay ------------------------------------------------------------------


def updated(
    train: TrainConfig, steps: int
) -> tuple[list[dict[str, Tensor]], torch.optim.Optimizer, Seq2Seq]:
    """The weights after each of some updates, the optimizer and the model."""
    model, history = build(MODEL), []
    optimizer = make_optimizer(model.parameters(), train)
    for step in range(1, steps + 1):
        update(
            model,
            optimizer,
            [batch_of(reverse_rows(8, seed=step))],
            step=step,
            rate=0.01,
            train=train,
        )
        history.append(weights(model))
    return history, optimizer, model


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


def test_the_moving_average_by_hand(tmp_path):
    train = replace(TRAIN, ema=0.5)
    history, optimizer, model = updated(train, 12)
    plain, *_ = updated(TRAIN, 12)
    assert all(same(*pair) for pair in zip(history, plain, strict=True)), (
        "it does not change what is learnt"
    )
    expected = {name: weight.double() for name, weight in history[0].items()}
    for step, after in enumerate(history, start=1):
        decay = min(0.5, (1 + step) / (10 + step))
        expected = {
            name: decay * weight + (1 - decay) * after[name] for name, weight in expected.items()
        }
    save_checkpoint(tmp_path, model, optimizer, TrainState(step=12))
    found = moving_average(tmp_path / "step-00000012")
    assert found.keys() == history[0].keys()
    assert all(
        torch.allclose(weight.double(), expected[name], atol=1e-6) for name, weight in found.items()
    )
    for key in ("exp_avg", "exp_avg_sq", "step"):  # Adam's own state is as before
        assert all(key in state for state in optimizer.state.values())


def test_weight_decay_shrinks_weights_by_the_rate_and_nothing_else():
    (plain, *_), *_ = updated(TRAIN, 1)
    (decayed, *_), *_ = updated(replace(TRAIN, weight_decay=0.1), 1)
    first = weights(build(MODEL))
    for name, weight in plain.items():
        assert torch.allclose(decayed[name], weight - 0.01 * 0.1 * first[name], atol=1e-6)


# -- the loop ---------------------------------------------------------------------------------------------


def training(
    folder: Path,
    rows: Rows,
    model: ModelConfig,
    train: TrainConfig,
    validations: Callable[[Seq2Seq], Validation],
) -> Training:
    """A training of rows of ids."""
    config = RunConfig(model=model, train=train)
    config = replace(config, data=replace(config.data, max_tokens=512))
    network = build(model)
    folder.mkdir(exist_ok=True)
    return Training(
        config=config,
        model=network,
        wrapped_model=network,
        optimizer=make_optimizer(network.parameters(), train),
        data=mixture(folder / "store", rows),
        origin=lambda index: f"toy.txt:{index + 1}",
        state=TrainState(),
        journal=Journal(folder / "journal.jsonl"),
        folder=folder / "checkpoints",
        validate=validations,
        device=torch.device("cpu"),
    )


def perplexities(*values: float) -> Callable[[Seq2Seq], Validation]:
    """A validation that finds these, one after another."""
    left = iter(values)
    return lambda _: Validation(next(left), 0.0)


@pytest.mark.parametrize("ema", [0.0, 0.9])
def test_unchanged_weights_are_not_validated_again(tmp_path, ema):
    measured: list[float] = []

    def measure(model: Seq2Seq) -> Validation:
        measured.append(sum(weight.double().abs().sum().item() for weight in model.parameters()))
        return Validation(measured[-1], 0.0)

    train = replace(TRAIN, steps=12, validate_every=4, save_every=4, average=3, ema=ema, patience=0)
    task = training(tmp_path, reverse_rows(200, seed=1), MODEL, train, measure)
    loop.train(task)
    chosen = choose(task)
    assert len(set(measured)) == len(measured) == (6 if ema else 4), (
        "3 in the loop, an average, and with ema two more"
    )
    task.validations.clear()  # as after a resumption
    again = choose(task)
    assert (again.steps, again.validation, again.is_moving) == (
        chosen.steps,
        chosen.validation,
        chosen.is_moving,
    )
    assert same(again.weights, chosen.weights)


def test_the_reverse_task_is_learnt(tmp_path):
    rows = reverse_rows(3000, seed=1)
    model = replace(MODEL, d_model=32, d_ff=64, num_heads=4, dropout=0.0)
    train = replace(TRAIN, steps=500, warmup=100, learning_rate=1.0, save_every=1000, cooldown=150)
    task = training(tmp_path, rows, model, train, perplexities())
    assert loop.train(task) == "steps"
    fresh = [row for row in reverse_rows(400, seed=2) if row not in rows]
    found = beam_search(
        ModelStepper([task.model], source_tensor([source for source, _ in fresh])),
        [9] * len(fresh),
        beam_size=1,
    )
    right = [best.tokens == target for (best, *_), (_, target) in zip(found, fresh, strict=True)]
    assert sum(right) / len(right) > 0.95
    assert len(fresh) > 200


def test_ten_updates_in_a_row_that_are_not_finite_end_the_training(tmp_path):
    rows = reverse_rows(60, seed=1)
    task = training(tmp_path, rows, MODEL, TRAIN, perplexities())
    task.model.encoder[0].feed_forward.out.weight.data[0, 0] = torch.nan
    before = weights(task.model)
    with pytest.raises(
        UserError, match=r"of 10 updates in a row was not finite \(the last at step 10\)"
    ):
        loop.train(task)
    assert same(weights(task.model), before)
    events = list(read_events(tmp_path / "journal.jsonl"))
    assert [(event["event"], event["step"]) for event in events] == [
        ("skipped", step) for step in range(1, 11)
    ]
    named = set("; ".join(event["places"] for event in events).split("; "))
    assert named == {f"toy.txt:{line}" for line in range(1, 61)}


def test_fewer_updates_that_are_not_finite_are_left_out(tmp_path):
    task = training(
        tmp_path, reverse_rows(60, seed=1), MODEL, replace(TRAIN, steps=12), perplexities()
    )
    bias = task.model.encoder[0].feed_forward.out.bias
    bias.data[0] = torch.nan
    plan = loop.updates(task)
    for step in range(1, 13):
        if step == 9:
            bias.data[0] = 0.0
        batches = next(plan)
        loop.log_update(task, loop.learn(task, batches), batches)
    assert task.state.skipped == 0
    last = list(read_events(tmp_path / "journal.jsonl"))[-1]
    assert (last["event"], last["step"]) == ("update", 10)
    assert 2 < last["loss"] < 5  # a mean over the two updates that counted


def test_the_journal_holds_means_per_token(tmp_path):
    rows = reverse_rows(200, seed=1)
    train = replace(TRAIN, steps=10, learning_rate=1e-30)  # so that the weights stay as they are
    task = training(tmp_path, rows, replace(MODEL, dropout=0.0), train, perplexities())
    loop.train(task)
    (event,) = read_events(tmp_path / "journal.jsonl")
    plan = [
        batches
        for epoch in (0, 1, 2, 3)
        for batches in task.data.plan(epoch, 0, budget=512, accumulate=1, seed=1)
    ]
    batches = [
        make_batch(task.data.sources(batch), task.data.targets(batch)) for (batch,) in plan[:10]
    ]
    sums = [sums_of(task.model, batch, train) for batch in batches]
    tokens = sum(batch.num_tokens for batch in batches)
    assert event["tokens_seen"] == task.state.tokens_seen == tokens
    for name, values in zip(("loss", "nll", "accuracy"), zip(*sums, strict=True), strict=True):
        assert event[name] == pytest.approx(
            sum(value.item() for value in values) / tokens, rel=1e-5
        )
    assert event["rate"] == learning_rate(10, train, 16)


def test_a_micro_batch_has_its_share_of_the_budget(tmp_path):
    task = training(
        tmp_path, reverse_rows(100, seed=1), MODEL, replace(TRAIN, accumulate=3), perplexities()
    )
    plan = loop.updates(task)
    first = next(plan)
    assert len(first) == 3
    # 512 / 3, rounded up.
    assert all((task.data.lengths(batch)[0].max() + 1) * len(batch) <= 171 for batch in first)


def test_resumed_training_continues_inside_a_block(tmp_path, monkeypatch):
    monkeypatch.setattr(tokens_mixture, "BLOCK_PAIRS", 40)
    monkeypatch.setattr(tokens_mixture, "RUN_PAIRS", 7)
    task = training(tmp_path, reverse_rows(100, seed=1), MODEL, TRAIN, perplexities())
    task.config = replace(task.config, data=replace(task.config.data, max_tokens=50))
    assert task.data.blocks == 3
    stream, states, seen = loop.updates(task), [], []
    while task.state.epoch < 2:
        seen.append([batch.tolist() for batch in next(stream)])
        states.append(replace(task.state))
        task.state.position += 1  # as `learn` does
    assert max(state.position for state in states) > 2, "a block of one update shows nothing"
    for place, state in enumerate(states):
        task.state = replace(state)  # which moves along
        again = itertools.islice(loop.updates(task), 3)
        assert [[batch.tolist() for batch in batches] for batches in again][
            : len(seen) - place
        ] == seen[place:][:3]
    first = [batches for batches, state in zip(seen, states, strict=True) if state.epoch == 0]
    assert sorted(pair for batches in first for batch in batches for pair in batch) == list(
        range(100)
    )


def test_patience_ends_a_training_and_the_best_is_kept(tmp_path):
    train = replace(TRAIN, steps=1000, validate_every=2, patience=3, keep_last=2)
    task = training(
        tmp_path, reverse_rows(60, seed=1), MODEL, train, perplexities(9, 8, 8.5, 8, 8.2, 1)
    )
    assert loop.train(task) == "patience"
    assert (task.state.step, task.state.best, task.state.best_step, task.state.stale) == (
        10,
        8,
        4,
        3,
    )
    assert [step_of(path) for path in checkpoints_in(task.folder)] == [4, 5, 10]
    for path in checkpoints_in(task.folder):
        verify(path, hashes=True)


@pytest.mark.parametrize("ema", [0.0, 0.9])
def test_a_validation_that_fails_costs_no_updates(ema, tmp_path):
    train = replace(TRAIN, steps=10, validate_every=4, save_every=4, ema=ema)
    # Has no value for step 4.
    task = training(tmp_path, reverse_rows(60, seed=1), MODEL, train, perplexities())
    with pytest.raises(StopIteration):
        loop.train(task)
    [saved] = checkpoints_in(task.folder)
    assert step_of(saved) == task.state.step == 4
    weights = load_file(saved / "model.safetensors")
    assert all(
        torch.equal(weight, weights[name]) for name, weight in task.model.state_dict().items()
    )


@pytest.mark.parametrize(("select_by", "best"), [("perplexity", 4), ("bleu", 6), ("chrf", 8)])
def test_the_best_step_is_that_of_the_chosen_score(select_by, best, tmp_path):
    train = replace(TRAIN, steps=10, validate_every=2, select_by=select_by)
    results = iter(
        [Validation(*each) for each in [(9, 1, 1), (5, 2, 2), (6, 4, 3), (7, 3, 4), (8, 3, 3)]]
    )
    task = training(tmp_path, reverse_rows(60, seed=1), MODEL, train, lambda _: next(results))
    loop.train(task)
    assert task.state.best_step == best
    assert Validation(3.0).cost(select_by) == 3.0  # without text, perplexity decides
    hopeless, useful = Validation(300.0, 0.9, 30.0), Validation(900.0, 1.0, 10.0)
    assert hopeless.cost(select_by) == 300.0
    assert select_by == "perplexity" or useful.cost(select_by) < hopeless.cost(select_by)


def test_minutes_end_a_training_and_its_last_state_is_saved(tmp_path):
    train = replace(TRAIN, steps=10**6, minutes=0.1 / 60)
    task = training(tmp_path, reverse_rows(60, seed=1), MODEL, train, perplexities())
    assert loop.train(task) == "minutes"
    assert task.state.seconds >= 0.1
    assert step_of(checkpoints_in(task.folder)[-1]) == task.state.step > 0


def test_missing_validation_text_does_not_exhaust_patience(tmp_path):
    train = replace(TRAIN, steps=12, validate_every=2, patience=2)
    task = training(tmp_path, reverse_rows(60, seed=1), MODEL, train, lambda _: None)
    assert loop.train(task) == "steps"
    assert (task.state.best, task.state.best_step) == (None, 0)
