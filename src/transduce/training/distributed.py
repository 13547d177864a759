"""One training by several processes that torchrun or a cluster starts: ranks 0 to world - 1.

All ranks plan the same micro-batches of an update; rank r computes micro-batches r, r + world, … of it, and DDP or FSDP
averages the gradients. Rank 0 alone prepares, validates and writes; the others wait for it in `agree`.

A single process calls nothing of torch.distributed, and its model is its own wrapped model.
"""

import copy
import datetime
import json
import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar, cast

import torch
import torch.distributed as dist
from torch import Tensor, nn

from transduce.system.console import silence
from transduce.system.errors import UserError
from transduce.system.machine import cores
from transduce.training.rendezvous import environment_number, meet

AGREE_TIMEOUT = datetime.timedelta(days=365)  # rank 0 may prepare a corpus for days; the failure detector ends it

Plain = TypeVar("Plain", bound=str | int | float | bool | list[Any] | None)
Module = TypeVar("Module", bound=nn.Module)


@dataclass(frozen=True)
class Slot:
    """A forward and backward pass of one rank."""

    index: int  # of the micro-batch in its update
    is_dummy: bool  # dummy pass, so that all ranks run equally many


class Ranks(NamedTuple):
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
    world = environment_number("WORLD_SIZE", 1)
    if world == 1:
        yield ALONE
        return
    rank = environment_number("RANK")
    detector = meet(rank, world)
    agree_group = dist.new_group(backend="gloo", timeout=AGREE_TIMEOUT)
    local_rank, local_world = environment_number("LOCAL_RANK", rank), environment_number("LOCAL_WORLD_SIZE", world)
    ranks = Ranks(rank, world, local_rank, local_world, agree_group)
    silence(not ranks.first)
    try:
        yield ranks
        ranks.agree(None)  # the others stay until rank 0 is done
    except BaseException as error:
        detector.close(error)
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


def wrap(model: nn.Module, ranks: Ranks, *, shard: bool, sparse: bool, device: torch.device) -> nn.Module:
    """Wrap the model: unchanged, DDP, or FSDP2 where every rank keeps only a shard of each weight.

    sparse: some weights may have no gradient in an update.
    """
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
    wrapped_model.broadcast_buffers = False  # tables that every rank computes; as an argument it is deprecated
    return wrapped_model


def _shard_layers(model: nn.Module, world: int, device: torch.device) -> nn.Module:
    """Shard each layer's weights; FSDP gathers them while the layer computes."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    # Outputs are views, and nothing here writes into them.
    warnings.filterwarnings("ignore", "FSDP2-wrapped module .* returned a view tensor", UserWarning)
    mesh = init_device_mesh(device.type, (world,))
    for layer in model.get_submodule("decoder").children():
        # The encoding projects the memory before the layer itself is called.
        attention = layer.get_submodule("source_attention")
        fully_shard([attention.get_submodule("key"), attention.get_submodule("value")], mesh=mesh)
        fully_shard(layer, mesh=mesh)
    for layer in model.get_submodule("encoder").children():
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    return model


def gradient_sync(wrapped_model: nn.Module, *, last: bool) -> AbstractContextManager[None]:
    """Put it around forward and backward of each micro-batch: DDP averages gradients in the last one only."""
    no_sync = getattr(wrapped_model, "no_sync", None)
    return no_sync() if no_sync and not last else nullcontext()


def is_sharded(wrapped_model: nn.Module) -> bool:
    """Whether every rank has only a shard of each weight."""
    return any(hasattr(weight, "placements") for weight in wrapped_model.parameters())


def full_tensor(value: Tensor) -> Tensor:
    """Gather a sharded tensor (collective call); another tensor is returned unchanged."""
    gather = getattr(value, "full_tensor", None)
    return gather() if gather else value


def shard_like(value: Tensor, like: Tensor) -> Tensor:
    """This rank's shard of a full tensor if `like` is sharded, else the tensor."""
    if not hasattr(like, "placements"):
        return value
    from torch.distributed.tensor import DTensor, distribute_tensor

    assert isinstance(like, DTensor)
    mesh = like.device_mesh
    return distribute_tensor(value.to(mesh.device_type), mesh, like.placements, src_data_rank=None)


@torch.no_grad()
def scatter_weights(model: nn.Module, wrapped_model: nn.Module, ranks: Ranks) -> None:
    """Copy the full model's weights into a sharded one; afterwards only rank 0 keeps the full model."""
    if not is_sharded(wrapped_model):
        return
    for shard, weight in zip(wrapped_model.parameters(), model.parameters(), strict=True):
        shard.copy_(shard_like(weight, shard))
    if not ranks.first:
        model.to_empty(device="meta")


@contextmanager
def full_model(wrapped_model: nn.Module, model: Module, ranks: Ranks, device: torch.device) -> Iterator[Module]:
    """The full model with the current weights. If they are sharded: on rank 0 only, and on `device` for the block."""
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
