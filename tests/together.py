"""Processes that train together, started by hand as a cluster does it, for the tests; and what each of them computes.

`GRADIENTS` is the program of such a process; its arguments are FOLDER and END.
"""

import os
import signal
import socket
import time
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor

from corpora import reverse_rows
from forked import Forked
from transduce.config.schema import ModelConfig, TrainConfig, with_options
from transduce.model.build import build
from transduce.model.seq2seq import Batch, make_batch
from transduce.system.errors import UserError
from transduce.training.distributed import (
    Ranks,
    full_tensor,
    init_distributed,
    scatter_weights,
    wrap,
)
from transduce.training.update import begin_update, rehearse
from waiting import PATIENCE

MODEL = ModelConfig(
    vocab_size=14,
    d_model=16,
    d_ff=32,
    num_heads=2,
    num_encoder_layers=1,
    num_decoder_layers=2,
    dropout=0.1,
)
MODELS = {
    "transformer": MODEL,
    "experts": with_options(
        MODEL, experts=8, experts_per_token=1
    ),  # with few tokens, some have no gradient
    "blocks": with_options(MODEL, block_size=4),  # some heads have no row in a micro-batch
    "recurrent": replace(MODEL, kind="recurrent"),
    "convolutional": replace(MODEL, kind="convolutional"),
    "bytenet": replace(MODEL, kind="bytenet"),
    "deep_att": replace(MODEL, kind="deep_att"),
    "neural_gpu": replace(MODEL, kind="neural_gpu"),
}
TRAIN = TrainConfig(steps=20, warmup=10, clip_norm=100.0)
# Micro-batches: all remainders of 2 and 3.
COUNTS = dict.fromkeys(MODELS, (1, 3)) | {"transformer": range(1, 7)}


class Kept(torch.optim.SGD):
    """An optimiser that keeps the last gradients and changes nothing."""

    def step(self) -> None:
        """Instead of a step."""
        weights = [weight for group in self.param_groups for weight in group["params"]]
        self.gradients = [
            None if weight.grad is None else full_tensor(weight.grad).clone() for weight in weights
        ]


def batches(count: int) -> list[Batch]:
    """Micro-batches of different sizes."""
    rows = [reverse_rows(1 + 3 * number % 7, seed=number) for number in range(count)]
    return [
        make_batch([source for source, _ in each], [target for _, target in each]) for each in rows
    ]


def gradients(name: str, ranks: Ranks, *, shard: bool = False) -> dict[str, Tensor]:
    """The gradient of an update of every count of micro-batches, by count and number of the weight; and the losses.

    The greatest count comes first, as "first", and again.
    """
    found, config, counts = {}, MODELS[name], COUNTS[name]
    model = build(config)
    wrapped_model = wrap(
        model, ranks, shard=shard, sparse="experts" in dict(config.more), device=torch.device("cpu")
    )
    scatter_weights(model, wrapped_model, ranks)
    optimizer = Kept(wrapped_model.parameters(), lr=1.0)
    if ranks.world > 1 and not shard:
        rehearse(wrapped_model, TRAIN, torch.device("cpu"), 1)
    for key, count in [("first", max(counts)), *zip(map(str, counts), counts, strict=True)]:
        made = batches(count)
        slots, total = ranks.slots(count), sum(batch.num_tokens for batch in made)
        part = [made[slot.index] for slot in slots]
        several = {"ranks": ranks, "slots": slots, "total": total}
        outcome = begin_update(
            wrapped_model.train(), optimizer, part, step=count, rate=1.0, train=TRAIN, **several
        ).read()
        for number, gradient in enumerate(optimizer.gradients):
            if gradient is not None:
                found[f"{key}/{number}"] = gradient
        found[f"{key}/loss"] = torch.tensor(
            [outcome.loss, outcome.nll, outcome.correct, outcome.gradient_norm]
        )
    return found


def free_port() -> int:
    """A port that nobody listens at."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def start(world: int, code: str, *arguments: object, **environment: str) -> list[Forked]:
    """So many processes of a Python program, without torchrun."""
    known = {"WORLD_SIZE": str(world), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    return [
        Forked(code, *arguments, **known | {"RANK": str(rank)} | environment)
        for rank in range(world)
    ]


def ends(processes: list[Forked], seconds: float = PATIENCE) -> list[tuple[int, str]]:
    """Exit status of each, which must end in time, and what it said."""
    until = time.monotonic() + seconds
    try:
        return [
            (process.wait(max(until - time.monotonic(), 0.1)), process.said)
            for process in processes
        ]
    finally:
        for process in processes:
            process.kill()


GRADIENTS = "import sys, pathlib, together; together.main(pathlib.Path(sys.argv[1]), sys.argv[2])"


def main(folder: Path, end: str) -> None:
    """Compute gradients, leave them in the folder, and come to an end: two are killed, three have an error."""
    torch.set_num_threads(1)
    with init_distributed() as ranks:
        last = ranks.rank == ranks.world - 1
        kinds = MODELS if end == "killed" else ["transformer"]
        found = {f"{name}/ddp": gradients(name, ranks) for name in kinds}
        if end == "error":
            found["transformer/fsdp"] = gradients("transformer", ranks, shard=True)
        torch.save(found, folder / f"{ranks.world}-{ranks.rank}.pt")
        ranks.agree(None)
        if end == "error" and last:
            raise UserError("There is no room.")
        if end == "killed" and last:
            os.kill(os.getpid(), signal.SIGKILL)
        if ranks.first:
            time.sleep(2 * PATIENCE)  # it works alone, and the others wait for it
        ranks.agree(None)
