"""One training by several processes that torchrun or a cluster starts: ranks 0 to world - 1.

All ranks plan the same micro-batches of an update; rank r computes micro-batches r, r + world, … of it. `parallel.py`
averages their gradients. Rank 0 alone prepares, validates and writes; the others wait for it in `agree`.

A single process calls nothing of torch.distributed.
"""

import datetime
import json
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, TypeVar, cast

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed import TCPStore  # type: ignore[attr-defined]

from transduce.system.errors import UserError
from transduce.system.journal import say, silence
from transduce.system.machine import cores
from transduce.training.failure_detector import FailureDetector

JOIN_SECONDS = 300.0  # pods of a cluster may start minutes apart
TORCHRUN_JOIN_SECONDS = 45.0  # torchrun starts processes when all its machines have joined
STALE_TIMEOUT = datetime.timedelta(seconds=2)  # the address may be that of a rank 0 that died
NOTICE_SECONDS = 20.0  # of waiting before a line names the missing rank
ALL_REDUCE_TIMEOUT = datetime.timedelta(seconds=300)
AGREE_TIMEOUT = datetime.timedelta(days=365)  # rank 0 may prepare a corpus for days; the failure detector ends it

Plain = TypeVar("Plain", bound=str | int | float | bool | list[Any] | None)


@dataclass(frozen=True)
class Slot:
    """A forward and backward pass of one rank."""

    index: int  # of the micro-batch in its update
    is_dummy: bool  # dummy pass, so that all ranks run equally many


@dataclass(frozen=True)
class Ranks:
    """The number of this process among those of a training, and how they exchange values."""

    rank: int = 0
    world: int = 1
    local_rank: int = 0  # on this machine
    local_world: int = 1
    agree_group: Any = None  # process group without a timeout

    @property
    def first(self) -> bool:
        """Whether this process prepares, validates, writes and prints."""
        return self.rank == 0

    def slots(self, count: int) -> list[Slot]:
        """What this rank computes of an update of `count` micro-batches; all ranks have equally many slots."""
        indices = range(self.rank, self.rank + -(-count // self.world) * self.world, self.world)
        return [Slot(index, False) if index < count else Slot(0, True) for index in indices]

    def device(self) -> torch.device:
        """The GPU of this process, or the CPU; raises UserError if there are more processes than GPUs."""
        if not torch.cuda.is_available():
            return torch.device("cpu")
        if self.world == 1:
            return torch.device("cuda")
        gpus = torch.cuda.device_count()
        if self.local_world > gpus:
            raise UserError(f"torchrun started {self.local_world} processes for {gpus} GPUs: start {gpus} a machine.")
        device = torch.device("cuda", self.local_rank)
        torch.cuda.set_device(device)
        return device

    def threads(self, wanted: int) -> int:
        """CPU threads of this process (wanted = 0: all); the processes of a machine share its cores."""
        if self.local_world == 1:
            return wanted or min(torch.get_num_threads(), cores())
        share = max(1, cores() // self.local_world)
        return min(wanted or share, share)

    def sum(self, values: Tensor) -> Tensor:
        """The sum of a CPU tensor over all ranks."""
        if self.world == 1:
            return values
        total = values.double()
        dist.all_reduce(total)
        return total

    def highest(self, number: int) -> int:
        """The highest number that any rank has."""
        if self.world == 1:
            return number
        highest = torch.tensor(number)
        dist.all_reduce(highest, dist.ReduceOp.MAX)
        return int(highest)

    def agree(self, value: Plain) -> Plain:
        """Rank 0's value, on every rank; the others wait for it without a timeout."""
        if self.world == 1:
            return value
        content = torch.frombuffer(bytearray(json.dumps(value).encode()), dtype=torch.uint8)
        size = torch.tensor(len(content))
        dist.broadcast(size, 0, group=self.agree_group)
        content = content if self.first else torch.empty(int(size), dtype=torch.uint8)
        dist.broadcast(content, 0, group=self.agree_group)
        return cast(Plain, json.loads(bytes(content.tolist())))


ALONE = Ranks()


@contextmanager
def init_distributed() -> Iterator[Ranks]:
    """The ranks that the environment describes (RANK, WORLD_SIZE, LOCAL_RANK …, as torchrun sets them).

    Only rank 0 prints. If the block raises, or this process dies, all ranks end and print why.
    """
    if environment_number("WORLD_SIZE", 1) == 1:
        yield ALONE
        return
    ranks, detector = _join()
    silence(not ranks.first)
    try:
        yield ranks
        ranks.agree(None)  # the others stay until rank 0 is done
    except BaseException as error:
        detector.fail(error)
        raise
    detector.close()
    dist.destroy_process_group()


def is_first() -> bool:
    """Whether this process is rank 0, or alone."""
    return environment_number("WORLD_SIZE", 1) == 1 or environment_number("RANK") == 0


def check_single_process(command: str) -> None:
    """Raise UserError if torchrun started several processes of a command that does not share its work."""
    if environment_number("WORLD_SIZE", 1) > 1:
        raise UserError(f"torchrun is for `transduce train`; {command} is one process, start it without.")


def environment_number(name: str, default: int | None = None) -> int:
    """A number of the environment; raises UserError if it is missing and has no default."""
    text = os.environ.get(name, "")
    if not text and default is not None:
        return default
    if not text.isdecimal():
        raise UserError(
            f"WORLD_SIZE says that several processes train together, but {name} is '{text}': start them with torchrun, "
            "or unset WORLD_SIZE."
        )
    return int(text)


def _join() -> tuple[Ranks, FailureDetector]:
    """Meet the other ranks; raises UserError if one is missing."""
    rank, world = environment_number("RANK"), environment_number("WORLD_SIZE")
    backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
    try:
        store = _store(rank)
        names = _roll_call(store, rank, world)
        dist.init_process_group(backend, store=store, rank=rank, world_size=world, timeout=ALL_REDUCE_TIMEOUT)
        agree_group = dist.new_group(backend="gloo", timeout=AGREE_TIMEOUT)
        detector = FailureDetector(names, rank)
    except (RuntimeError, ValueError) as error:
        raise UserError(
            f"Rank {rank} of {world} does not meet the others: {' '.join(str(error).split())}; all ranks need the same "
            "MASTER_ADDR, MASTER_PORT and WORLD_SIZE, and must be started together."
        ) from error
    local_rank, local_world = environment_number("LOCAL_RANK", rank), environment_number("LOCAL_WORLD_SIZE", world)
    return Ranks(rank, world, local_rank, local_world, agree_group), detector


def _store(rank: int) -> Any:
    """The store in which the ranks meet, which rank 0 opens."""
    address, port = os.environ.get("MASTER_ADDR") or "localhost", environment_number("MASTER_PORT")
    if port > 65535:
        raise UserError(f"MASTER_PORT is {port}; the last port is 65535.")
    timeout = datetime.timedelta(seconds=JOIN_SECONDS)
    if not _has_torchrun():
        return TCPStore(address, port, None, rank == 0, timeout, wait_for_workers=False)
    # torchrun's own store outlives a restart, with the keys of the start before: it only holds the new address.
    meeting = TCPStore(address, port, None, False, timeout, wait_for_workers=False)
    if rank == 0:
        store = TCPStore("localhost", 0, None, True, timeout, wait_for_workers=False)
        meeting.set("transduce/rank 0", f"{_own_address(address, port)} {store.port}")
        return store
    until = time.monotonic() + TORCHRUN_JOIN_SECONDS
    while True:
        address, number = meeting.get("transduce/rank 0").decode().split()
        try:
            store = TCPStore(address, int(number), None, False, STALE_TIMEOUT, wait_for_workers=False)
        except RuntimeError:
            if time.monotonic() > until:
                raise
        else:
            store.set_timeout(timeout)
            return store


def _own_address(address: str, port: int) -> str:
    """The address of this machine that others reach: the one from which it would send to `address`."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender, suppress(OSError):
        sender.connect((address, port))  # sends nothing
        return str(sender.getsockname()[0])
    return address


def _has_torchrun() -> bool:
    return os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"


def _roll_call(store: Any, rank: int, world: int) -> list[str]:
    """The names of all ranks, once they have come; raises UserError for one that is missing or comes twice."""
    name = f"Rank {rank} (process {os.getpid()} on {socket.gethostname()})"
    if store.add(f"transduce/count/{rank}", 1) > 1:
        raise UserError(f"{name} is the second of its number; give each process its own RANK.")
    store.set(f"transduce/name/{rank}", name)
    seconds = TORCHRUN_JOIN_SECONDS if _has_torchrun() else JOIN_SECONDS
    for other in range(world):
        keys = [f"transduce/name/{other}"]
        try:
            store.wait(keys, datetime.timedelta(seconds=min(NOTICE_SECONDS, seconds)))
        except RuntimeError:
            missing = f"{name} has not heard of rank {other}"
            say(f"{missing}: was it killed, or never started? Waiting {seconds:.0f} seconds in all.")
            try:
                store.wait(keys, datetime.timedelta(seconds=max(1.0, seconds - NOTICE_SECONDS)))
            except RuntimeError:
                raise UserError(
                    f"{missing} for {seconds:.0f} seconds; start all ranks together, and check the network."
                ) from None
    return [store.get(f"transduce/name/{other}").decode() for other in range(world)]
