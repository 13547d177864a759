"""Before the first update: how large a micro-batch memory allows, and how long an update will take."""

import contextlib
import dataclasses
import math
import time
from collections.abc import Sequence
from typing import NamedTuple

import torch

from transduce.config.schema import RunConfig
from transduce.model.batch import make_batch
from transduce.model.seq2seq import Seq2Seq
from transduce.system.errors import UserError
from transduce.system.machine import free_memory
from transduce.tokens.batching import Indices
from transduce.tokens.mixture import Mixture
from transduce.training.distributed import ALONE, Ranks
from transduce.training.update import forward

with contextlib.suppress(ImportError):  # Windows has none
    import resource

CPU_CELLS = 4096  # larger micro-batches gain nothing on a CPU
SHARE = 0.6  # of the free memory that a micro-batch may take
TIMED = 3  # updates


class Rehearsal(NamedTuple):
    """What was found out; the weights are as before."""

    accumulate: int  # micro-batches of an update
    updates_per_epoch: int  # reckoned from the first block, where there are several
    seconds_per_update: float  # infinite if it was not tried


def rehearse(model: Seq2Seq, data: Mixture, config: RunConfig, device: torch.device, ranks: Ranks = ALONE) -> Rehearsal:
    """Find train.accumulate by trying the worst batch of the corpus, unless it is given, and time a few updates.

    It is a multiple of the ranks, each of which has as many micro-batches to compute. One process can't try a model
    that needs several: micro-batches of a sharded one are small enough for a CPU.
    Raises UserError if a single sentence does not fit the budget or the memory.
    """
    longest = data.longest()[1] + 1
    sharded = config.train.shard and ranks.world > 1
    least = -(-config.data.max_tokens // CPU_CELLS) if sharded or device.type == "cpu" else 1
    accumulate = config.train.accumulate or -(-least // ranks.world) * ranks.world
    while True:
        budget = -(-config.data.max_tokens // accumulate)
        if longest > budget:
            raise UserError(
                f"A sentence of {longest} tokens does not fit a micro-batch of {budget}: raise data.max_tokens, lower "
                "data.max_length or set a smaller train.accumulate."
            )
        plan = data.plan(0, 0, budget=budget, accumulate=accumulate, seed=config.train.seed)
        if not plan:
            raise UserError(
                "Every corpus has weight 0, so there is nothing to train on; raise one in [[data.corpora]]."
            )
        worst = max((batch for batches in plan for batch in batches), key=lambda batch: _cells(data, batch))
        if config.train.accumulate or sharded or _fits(model, data, worst, config, device):
            break
        accumulate *= 2
    trial = dataclasses.replace(config, train=dataclasses.replace(config.train, accumulate=accumulate))
    per_epoch = round(len(plan) * data.pairs_per_epoch / sum(len(batch) for batches in plan for batch in batches))
    seconds = math.inf if sharded else _seconds(model, data, plan, trial, device, ranks)
    return Rehearsal(accumulate, per_epoch, seconds)


def _fits(model: Seq2Seq, data: Mixture, worst: Indices, config: RunConfig, device: torch.device) -> bool:
    """Whether forward and backward of the worst batch leave memory to spare."""
    if device.type == "cuda":
        try:
            _try(model, data, worst, config, device)
        except torch.OutOfMemoryError:
            return False
        total = torch.cuda.get_device_properties(device).total_memory
        return torch.cuda.max_memory_reserved(device) < 0.9 * total
    free = free_memory()
    if free == math.inf:
        return True
    quarter = worst[: max(1, len(worst) // 4)]  # a CPU has no second chance: the system ends who takes too much
    before = _peak_bytes()
    _try(model, data, quarter, config, device)
    needed = (_peak_bytes() - before) * len(worst) / len(quarter)
    if needed > SHARE * free:
        return False
    _try(model, data, worst, config, device)
    return True


def _seconds(
    model: Seq2Seq,
    data: Mixture,
    plan: Sequence[Sequence[Indices]],
    config: RunConfig,
    device: torch.device,
    ranks: Ranks,
) -> float:
    """Of one update, from this rank's share of a few spread over the plan, the first of them not counted."""
    times = []
    for batches in [plan[0], *plan[:: max(1, len(plan) // TIMED)][:TIMED]]:
        began = time.perf_counter()
        for slot in ranks.slots(len(batches)):
            _try(model, data, batches[slot.index], config, device)
        times.append(time.perf_counter() - began)
    return sum(times[1:]) / len(times[1:])


def _try(model: Seq2Seq, data: Mixture, batch: Indices, config: RunConfig, device: torch.device) -> None:
    model.train()
    tensors = make_batch(data.sources(batch), data.targets(batch)).to(device)
    forward(model, tensors, config.train).loss.backward()
    model.zero_grad(set_to_none=True)
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def _cells(data: Mixture, batch: Indices) -> int:
    source, target = data.lengths(batch)
    return len(batch) * int(source.max() + target.max() + 2)


def _peak_bytes() -> int:
    """The most memory that this process ever had; asked for on Linux only."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
