"""Trains with several processes, called ranks, that torchrun or a cluster starts.

All ranks divide an update into the same micro-batches. Rank r of n computes micro-batches r, r + n, r + 2n and so on,
and DDP or FSDP averages the gradients. Only rank 0 prepares the corpus, validates the model and writes files.

A single process uses the model without a wrapper and without torch.distributed.
"""

import copy
import datetime
import json
import os
import socket
import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar, cast

import torch
import torch.distributed as dist
from torch import Tensor, nn

from transduce.model.device import choose_device
from transduce.system.console import silence
from transduce.system.errors import UserError
from transduce.system.machine import cores
from transduce.system.revision import code_hash
from transduce.training.rendezvous import environment_number, meet

# Rank 0 may prepare a corpus for days; heartbeats detect its death.
AGREE_TIMEOUT = datetime.timedelta(days=365)

Plain = TypeVar("Plain", bound=str | int | float | bool | list[Any] | dict[str, Any] | None)
Module = TypeVar("Module", bound=nn.Module)


@dataclass(frozen=True)
class Slot:
    """One forward and backward pass that a rank computes in an update."""

    index: int  # index of the micro-batch in its update
    is_dummy: bool  # a pass without effect, so that all ranks make equally many


class Ranks(NamedTuple):
    """The rank of this process, with methods to communicate with the other ranks."""

    rank: int = 0
    world: int = 1
    local_rank: int = 0  # rank among the processes on this machine
    local_world: int = 1
    agree_group: Any = None  # process group without a timeout

    @property
    def first(self) -> bool:
        """Whether this process is rank 0."""
        return self.rank == 0

    def slots(self, count: int) -> list[Slot]:
        """The passes of this rank in an update of `count` micro-batches, equally many for each rank."""
        indices = range(self.rank, self.rank + -(-count // self.world) * self.world, self.world)
        return [Slot(index, False) if index < count else Slot(0, True) for index in indices]

    def device(self) -> torch.device:
        """The GPU of this process, or the CPU if there is no GPU. Raises UserError if processes outnumber GPUs."""
        device = choose_device()
        if device.type == "cpu" or self.world == 1:
            return device
        gpus = torch.cuda.device_count()
        if self.local_world > gpus:
            raise UserError(
                f"torchrun started {self.local_world} processes for {gpus} GPUs.",
                "Start one for each GPU.",
            )
        device = torch.device("cuda", self.local_rank)
        torch.cuda.set_device(device)
        return device

    def threads(self, wanted: int) -> int:
        """The number of CPU threads for this process. If `wanted` is 0, return the maximum."""
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
        """The maximum of a number over all ranks."""
        if self.world == 1:
            return number
        highest = torch.tensor(number)
        dist.all_reduce(highest, dist.ReduceOp.MAX)
        return int(highest)

    def agree(self, value: Plain) -> Plain:
        """Return the `value` of rank 0 on every rank, after waiting for rank 0 without a timeout."""
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
    """Join the other ranks that environment variables such as RANK and WORLD_SIZE describe.

    Only rank 0 prints messages. If the `with` block raises or the process dies, all ranks end and print the reason.
    """
    world = environment_number("WORLD_SIZE", 1)
    if world == 1:
        yield ALONE
        return
    rank = environment_number("RANK")
    detector = meet(rank, world)
    agree_group = dist.new_group(backend="gloo", timeout=AGREE_TIMEOUT)
    ranks = Ranks(rank, world, *place_on_machine(rank, world, agree_group), agree_group)
    silence(not ranks.first)
    try:
        code = f"code {code_hash()}, torch {torch.__version__}"
        if ranks.agree(code) != code:
            raise UserError(
                f"Rank {rank} has other versions than rank 0 ({code}).",
                "Install the same on all machines.",
            )
        yield ranks
        ranks.agree(None)  # all ranks wait until rank 0 is done
    except BaseException as error:
        detector.close(error)
        raise
    detector.close()
    dist.destroy_process_group()


def place_on_machine(rank: int, world: int, group: Any) -> tuple[int, int]:
    """The rank of this process among the processes on its machine, and the number of these processes.

    Kubernetes sets no LOCAL_RANK and LOCAL_WORLD_SIZE, so the processes tell each other the names of their machines.
    """
    if "LOCAL_WORLD_SIZE" in os.environ:
        return environment_number("LOCAL_RANK", rank), environment_number("LOCAL_WORLD_SIZE", world)
    hosts = [""] * world
    dist.all_gather_object(hosts, socket.gethostname(), group=group)
    return hosts[:rank].count(hosts[rank]), hosts.count(hosts[rank])


def is_first() -> bool:
    """Whether this process is rank 0 or the only process, according to its environment variables."""
    return environment_number("WORLD_SIZE", 1) == 1 or environment_number("RANK") == 0


def check_single_process(command: str) -> None:
    """Raise UserError if torchrun started several processes for a single-process command."""
    if environment_number("WORLD_SIZE", 1) > 1:
        raise UserError(
            "torchrun is for `transduce train` only.", f"Start {command} without torchrun."
        )


def wrap(
    model: nn.Module, ranks: Ranks, *, shard: bool, sparse: bool, device: torch.device
) -> nn.Module:
    """Wrap the model in FSDP2 if `shard` is true, else in DDP. If `sparse` is true, weights may have no gradient."""
    if ranks.world == 1:
        return model
    if shard:
        return _shard_layers(copy.deepcopy(model), ranks.world, device)
    from torch.nn.parallel import DistributedDataParallel

    wrapped_model = DistributedDataParallel(
        model,
        device_ids=[device] if device.type == "cuda" else None,
        gradient_as_bucket_view=True,
        find_unused_parameters=sparse,
    )
    # Every rank computes its buffers; the argument above is deprecated.
    wrapped_model.broadcast_buffers = False
    return wrapped_model


def _shard_layers(model: nn.Module, world: int, device: torch.device) -> nn.Module:
    """Shard the weights of each layer with FSDP."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    # Our layers return views, but no code writes to these.
    warnings.filterwarnings("ignore", "FSDP2-wrapped module .* returned a view tensor", UserWarning)
    mesh = init_device_mesh(device.type, (world,))
    for layer in model.get_submodule("decoder").children():
        # `encode` calls key and value before the layer itself is called, so they are sharded separately.
        attention = layer.get_submodule("source_attention")
        fully_shard([attention.get_submodule("key"), attention.get_submodule("value")], mesh=mesh)
        fully_shard(layer, mesh=mesh)
    for layer in model.get_submodule("encoder").children():
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    return model


def gradient_sync(wrapped_model: nn.Module, *, last: bool) -> AbstractContextManager[None]:
    """A context for the forward and backward pass of a micro-batch. DDP averages gradients only if `last` is true."""
    no_sync = getattr(wrapped_model, "no_sync", None)
    return no_sync() if no_sync and not last else nullcontext()


def is_sharded(wrapped_model: nn.Module) -> bool:
    """Whether every rank has only a shard of each weight."""
    return any(hasattr(weight, "placements") for weight in wrapped_model.parameters())


def full_tensor(value: Tensor) -> Tensor:
    """Gather a tensor if it is sharded (collective call), else return it unchanged."""
    gather = getattr(value, "full_tensor", None)
    return gather() if gather else value


def shard_like(value: Tensor, like: Tensor) -> Tensor:
    """This rank's shard of the full tensor `value` if `like` is sharded, else `value` itself."""
    if not hasattr(like, "placements"):
        return value
    from torch.distributed.tensor import DTensor, distribute_tensor

    assert isinstance(like, DTensor)
    mesh = like.device_mesh
    return distribute_tensor(value.to(mesh.device_type), mesh, like.placements, src_data_rank=None)


@torch.no_grad()
def scatter_weights(model: nn.Module, wrapped_model: nn.Module, ranks: Ranks) -> None:
    """Copy the full model's weights into a sharded model, and free the full model on ranks other than 0."""
    if not is_sharded(wrapped_model):
        return
    for shard, weight in zip(wrapped_model.parameters(), model.parameters(), strict=True):
        shard.copy_(shard_like(weight, shard))
    if not ranks.first:
        model.to_empty(device="meta")


@contextmanager
def full_model(
    wrapped_model: nn.Module, model: Module, ranks: Ranks, device: torch.device
) -> Iterator[Module]:
    """Yield the full model. For a sharded model, only rank 0 gets the current weights."""
    if not is_sharded(wrapped_model):
        yield model
        return
    with torch.no_grad():
        for shard, weight in zip(wrapped_model.parameters(), model.parameters(), strict=True):
            value = full_tensor(shard)
            if ranks.first:
                weight.copy_(value)
    if ranks.first:
        model.to(device)
    yield model
    if ranks.first:
        model.to("cpu")
