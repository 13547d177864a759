"""Finds a micro-batch size that fits into memory, and measures the duration of an update."""

import contextlib
import math
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

import torch
from rich.filesize import decimal

from transduce.config.schema import RunConfig, TrainConfig
from transduce.model.build import count_parameters
from transduce.model.seq2seq import Seq2Seq
from transduce.system.errors import UserError
from transduce.system.machine import free_memory
from transduce.tokens.batching import Indices, padding_share
from transduce.tokens.mixture import Mixture
from transduce.training.batches import assemble, budget, check_packing
from transduce.training.distributed import ALONE, Ranks
from transduce.training.update import make_optimizer, rehearse, update

with contextlib.suppress(ImportError):  # missing on Windows
    import resource

MAX_CPU_TOKENS = 4096  # per side; larger micro-batches gain nothing on a CPU
MEMORY_SHARE = 0.6  # maximum share of the free memory that a micro-batch may take
MIN_TIMED_UPDATES, MAX_TIMED_UPDATES = 3, 30
TIMED_SECONDS = 1.0  # minimum time to measure, so that the mean of short updates is reliable


class Trial(NamedTuple):
    """The results of `try_batches`."""

    accumulate: int  # micro-batches per update
    updates_per_epoch: int  # extrapolated from the first block if there are several
    padding: float  # share of padding in the first block
    seconds_per_update: float  # infinite if not measured


def try_batches(
    model: Seq2Seq, data: Mixture, config: RunConfig, device: torch.device, ranks: Ranks = ALONE
) -> Trial:
    """If train.accumulate is 0, choose it so that micro-batches fit into memory. Then measure the time of an update.

    The chosen value is a multiple of the number of ranks, unless the longest sentence would not fit into a micro-batch.
    For a sharded model, micro-batches are as small as on a CPU, and nothing is measured. The weights do not change.
    Raises UserError if a sentence does not fit into a micro-batch.
    """
    optimizer = make_optimizer(model.parameters(), config.train)

    def learn(batches: Sequence[Indices], train: TrainConfig = config.train) -> None:
        model.train()
        tensors = [assemble(data, batch, config, device, tokens) for batch in batches]
        update(model, optimizer, tensors, step=1, rate=0.0, train=train)
        if device.type == "cuda":
            torch.cuda.synchronize(device)

    def cells(batch: Indices) -> int:
        source, target = data.lengths(batch)
        return len(batch) * int(source.max() + target.max() + 2)

    largest = (
        replace(config.train, risk_steps=config.train.steps)
        if config.train.risk_steps
        else config.train
    )
    longest = data.longest()[1] + 1
    sharded = config.train.shard and ranks.world > 1
    if config.data.pack:
        rehearse(model, config.train, device, config.data.pack)
    accumulate = config.train.accumulate
    if not accumulate:
        accumulate = _least_accumulate(
            config, longest, ranks, is_small=sharded or device.type == "cpu"
        )
    while True:
        tokens = budget(config, accumulate)
        check_packing(model, config, tokens, longest)
        if longest > tokens:
            raise UserError(
                f"A sentence of {longest} tokens does not fit into a micro-batch of {tokens} tokens.",
                "Raise data.max_tokens, lower data.max_length, set a smaller train.accumulate, or choose a "
                "smaller model.",
            )
        plan = data.plan(
            0,
            0,
            budget=tokens,
            accumulate=accumulate,
            seed=config.train.seed,
            width=config.data.pack,
        )
        batches = [batch for update in plan for batch in update]
        if not batches:
            raise UserError(
                "An epoch has no pairs, since the weights of the corpora are too small.",
                "Raise them in [[data.corpora]].",
            )
        if (
            config.train.accumulate
            or sharded
            or _fits(partial(learn, train=largest), max(batches, key=cells), device)
        ):
            break
        accumulate *= 2
    per_epoch = round(len(plan) * data.pairs_per_epoch / sum(map(len, batches)))
    seconds = math.inf if sharded else _seconds(learn, plan, ranks)
    packed = tokens // config.data.pack * config.data.pack if config.data.pack else 0
    share = padding_share(map(data.lengths, batches), packed)
    return Trial(accumulate, per_epoch, share, seconds)


def _least_accumulate(config: RunConfig, longest: int, ranks: Ranks, *, is_small: bool) -> int:
    """The first number of micro-batches to try. If `is_small` is true, they have at most MAX_CPU_TOKENS tokens."""
    least = -(-config.data.max_tokens // MAX_CPU_TOKENS) if is_small else 1
    accumulate = -(-least // ranks.world) * ranks.world
    while accumulate > 1 and longest > budget(config, accumulate):
        accumulate -= 1  # otherwise, some ranks would have no work
    return accumulate


@cache
def has_fast_bfloat16(device: torch.device) -> bool:
    """Whether the device multiplies matrices faster in bfloat16 than in float32. On a CPU, this is measured.

    Some processors with instructions for bfloat16 multiply faster in float32.
    """
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    names = "_is_avx512_bf16_supported", "_is_amx_tile_supported"
    if not any(getattr(torch.cpu, name, lambda: False)() for name in names):
        return False
    factors = {
        dtype: torch.ones(1024, 512, dtype=dtype) for dtype in (torch.float32, torch.bfloat16)
    }
    seconds = dict.fromkeys(factors, math.inf)
    # Both types in turns, so that other programs disturb both equally.
    for dtype in list(factors) * 8:
        begin = time.perf_counter()
        torch.nn.functional.linear(factors[dtype], factors[dtype])
        seconds[dtype] = min(seconds[dtype], time.perf_counter() - begin)
    return seconds[torch.bfloat16] < seconds[torch.float32]


def check_memory(config: RunConfig, device: torch.device) -> None:
    """Raise UserError if the weights, their gradients and Adam's two means don't fit into memory."""
    try:
        needed = count_parameters(config.model) * torch.float32.itemsize
        needed *= 1 if config.train.low_rank else 4
    except (RuntimeError, TypeError, OverflowError):  # sizes beyond 64 bits
        needed = sys.maxsize
    torch.cuda.empty_cache()  # an earlier training in this process may have filled it
    free = torch.cuda.mem_get_info(device)[0] if device.type == "cuda" else free_memory()
    if needed > free:
        raise UserError(
            f"The model ({config.model.shape}) needs at least {decimal(needed)} of "
            f"memory, and {decimal(int(free))} are free.",
            "Choose smaller [model] options or a smaller data.vocab_size, or fine-tune with train.low_rank=16, which "
            "needs a quarter.",
        )


def _fits(learn: Callable[[Sequence[Indices]], None], worst: Indices, device: torch.device) -> bool:
    """Whether an update with the batch `worst` fits into memory and leaves some of it free."""
    if device.type == "cuda":
        torch.cuda.empty_cache()
        # Otherwise, the memory of an earlier try that did not fit would count.
        torch.cuda.reset_peak_memory_stats(device)
        try:
            learn([worst])
        except torch.OutOfMemoryError:
            return False
        total = torch.cuda.get_device_properties(device).total_memory
        return torch.cuda.max_memory_reserved(device) < 0.9 * total
    learn([worst[:1]])  # allocates the gradients and the optimizer's state
    if (free := free_memory()) == math.inf:
        return True
    # An out-of-memory kill can't be caught, so the memory is extrapolated from a quarter of the batch.
    quarter = worst[: max(1, len(worst) // 4)]
    with contextlib.suppress(OSError):  # the peak of an earlier try would hide this one
        Path("/proc/self/clear_refs").write_text("5")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    learn([quarter])
    # On Linux, ru_maxrss is in kilobytes.
    kilobytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    if 1024 * kilobytes * len(worst) / len(quarter) > MEMORY_SHARE * free:
        return False
    learn([worst])
    return True


def _seconds(
    learn: Callable[[Sequence[Indices]], None], plan: Sequence[Sequence[Indices]], ranks: Ranks
) -> float:
    """The mean seconds per update on this rank, not counting the first update."""
    times: list[float] = []
    for batches in [plan[0], *plan[:: max(1, len(plan) // MAX_TIMED_UPDATES)][:MAX_TIMED_UPDATES]]:
        began = time.perf_counter()
        learn([batches[slot.index] for slot in ranks.slots(len(batches))])
        times.append(time.perf_counter() - began)
        if len(times) > MIN_TIMED_UPDATES and sum(times[1:]) > TIMED_SECONDS:
            break
    return sum(times[1:]) / len(times[1:])
