"""Small models and batches for the tests of training."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor

from corpora import Rows, mixture, reverse_rows
from transduce.config.schema import ModelConfig, RunConfig, TrainConfig
from transduce.evaluation.perplexity import Validation
from transduce.model.build import build
from transduce.model.seq2seq import Batch, Seq2Seq, make_batch
from transduce.system.journal import Journal
from transduce.training.checkpoint import (
    TrainState,
    save_checkpoint,
)
from transduce.training.loop import Training
from transduce.training.update import (
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
