"""One training by several processes, which torchrun or a cluster starts: ranks 0 to world - 1.

All ranks know the plan of an update's micro-batches; rank r computes those at the places r, r + world, … of it. Their
gradients are summed by an engine of PyTorch: DDP, or FSDP2 where weights and the optimiser's state are sharded. What
must not be done twice (preparing, validating, writing) is done by rank 0, and the others wait for it in `agree`.

Alone, none of this is there: no process group, no wrapper, nothing of torch.distributed that is called.
"""

import copy
import datetime
import json
import os
import socket
import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar, cast

import torch
from torch import Tensor, nn

from transduce.system.errors import UserError
from transduce.system.journal import silence
from transduce.system.machine import cores
from transduce.training.failure_detector import JOIN, Knock, Lifeline, Listener, arrive, call, number

SUM = datetime.timedelta(seconds=JOIN)  # for a sum of gradients, too
MEETING = "transduce: rank 0"
FOR_EVER = datetime.timedelta(days=365)  # while rank 0 works alone; a rank that ends in the meantime ends all

Module = TypeVar("Module", bound=nn.Module)
Plain = TypeVar("Plain", bound=str | int | float | bool | list[Any] | None)


class Turn(NamedTuple):
    """A pass of one rank through the model."""

    place: int  # of the micro-batch in its update
    counts: bool  # False: another rank's, computed along, so that all ranks make as many passes and none waits


@dataclass(frozen=True)
class Ranks:
    """Who this process is among those of a training, and how they come to the same figures."""

    rank: int = 0
    world: int = 1
    local_rank: int = 0  # on this machine
    local_world: int = 1
    waiting: Any = None  # the process group in which others wait for rank 0

    @property
    def first(self) -> bool:
        """Whether this process prepares, validates, writes and speaks."""
        return self.rank == 0

    def turns(self, count: int) -> list[Turn]:
        """What this rank computes of an update of `count` micro-batches: as many passes on every rank."""
        places = range(self.rank, self.rank + -(-count // self.world) * self.world, self.world)
        return [Turn(place, True) if place < count else Turn(0, False) for place in places]

    def device(self) -> torch.device:
        """The GPU of this process, or the CPU; raises UserError if there are more processes than GPUs."""
        if not torch.cuda.is_available():
            return torch.device("cpu")
        if self.world == 1:
            return torch.device("cuda")
        if self.local_world > (found := torch.cuda.device_count()):
            raise UserError(f"{self.local_world} processes were started for {found} GPUs: --nproc-per-node {found}.")
        device = torch.device("cuda", self.local_rank)
        torch.cuda.set_device(device)
        return device

    def threads(self, wanted: int) -> int:
        """CPU threads of this process: as wanted (0: all), but the processes of a machine share its cores."""
        if self.local_world == 1:
            return wanted or min(torch.get_num_threads(), cores())
        share = max(1, cores() // self.local_world)
        return min(wanted or share, share)

    def sum(self, values: Tensor) -> Tensor:
        """The sum over all ranks of a tensor on the CPU."""
        if self.world == 1:
            return values
        import torch.distributed as dist

        total = values.double()
        dist.all_reduce(total)
        return total

    def highest(self, number: int) -> int:
        """The highest number that any rank has."""
        if self.world == 1:
            return number
        import torch.distributed as dist

        found = torch.tensor(number)
        dist.all_reduce(found, dist.ReduceOp.MAX)
        return int(found)

    def agree(self, value: Plain) -> Plain:
        """What rank 0 has, on every rank; those wait, however long it takes."""
        if self.world == 1:
            return value
        import torch.distributed as dist

        content = torch.frombuffer(bytearray(json.dumps(value).encode()), dtype=torch.uint8)
        size = torch.tensor(len(content))
        dist.broadcast(size, 0, group=self.waiting)
        content = content if self.first else torch.empty(int(size), dtype=torch.uint8)
        dist.broadcast(content, 0, group=self.waiting)
        return cast(Plain, json.loads(bytes(content.tolist())))

    def wrap(self, model: nn.Module, *, shard: bool, sparse: bool, device: torch.device) -> nn.Module:
        """What learns in the place of `model`: itself, the same with gradients summed, or a sharded copy.

        sparse: some weights may have no gradient in an update.
        """
        if self.world == 1:
            return model
        if shard:
            return _sharded(copy.deepcopy(model), self.world, device)
        from torch.nn.parallel import DistributedDataParallel

        learner = DistributedDataParallel(
            model,
            device_ids=[device] if device.type == "cuda" else None,
            gradient_as_bucket_view=True,
            find_unused_parameters=sparse,
        )
        learner.broadcast_buffers = False  # tables that every rank computes; as an argument it is deprecated
        return learner


ALONE = Ranks()


@contextmanager
def joined(arrival: Listener | Knock | None = None) -> Iterator[Ranks]:
    """The ranks that the environment speaks of (RANK, WORLD_SIZE, LOCAL_RANK …, as torchrun sets them).

    Only rank 0 speaks to people. If the block raises, or this process dies, all ranks end and say why.
    arrival: what `arrive` has given, if it has been called already.
    """
    if number("WORLD_SIZE", 1) == 1:
        yield ALONE
        return
    import torch.distributed as dist

    ranks, lifeline = _join(arrival or arrive())
    silence(not ranks.first)
    try:
        yield ranks
        ranks.agree(None)  # nobody leaves before rank 0 is done
    except BaseException as error:
        lifeline.fail(error)
        raise
    lifeline.close()
    dist.destroy_process_group()


def is_first() -> bool:
    """Whether this process is rank 0, or alone."""
    return number("WORLD_SIZE", 1) == 1 or number("RANK") == 0


def refuse_several(command: str) -> None:
    """Raise UserError where torchrun has started several processes of a command that does not share its work."""
    if number("WORLD_SIZE", 1) > 1:
        raise UserError(f"torchrun is for `transduce train`; {command} is one process, start it without.")


def passing(learner: nn.Module, *, last: bool) -> AbstractContextManager[None]:
    """Around each pass of an update, forward and backward: DDP sums the gradients of all in the last one."""
    no_sync = getattr(learner, "no_sync", None)
    return no_sync() if no_sync and not last else nullcontext()


def unwrapped(learner: nn.Module) -> nn.Module:
    """The module whose weights are learnt, by their own names."""
    from torch.nn.parallel import DistributedDataParallel

    return learner.module if isinstance(learner, DistributedDataParallel) else learner


def whole(value: Tensor) -> Tensor:
    """A tensor of which every rank may have a part only; then all ranks must ask for it."""
    gather = getattr(value, "full_tensor", None)
    return gather() if gather else value


def part(value: Tensor, like: Tensor) -> Tensor:
    """This rank's part of a whole tensor, if `like` is sharded."""
    if not hasattr(like, "placements"):
        return value
    from torch.distributed.tensor import DTensor, distribute_tensor

    assert isinstance(like, DTensor)
    mesh = like.device_mesh
    return distribute_tensor(value.to(mesh.device_type), mesh, like.placements, src_data_rank=None)


@torch.no_grad()
def spread(model: nn.Module, learner: nn.Module, ranks: Ranks) -> None:
    """Give a sharded learner the weights of the whole model, which only rank 0 keeps."""
    if not is_sharded(learner):
        return
    for own, weight in zip(learner.parameters(), model.parameters(), strict=True):
        own.copy_(part(weight, own))
    if not ranks.first:
        model.to_empty(device="meta")


@contextmanager
def gathered(learner: nn.Module, model: Module, ranks: Ranks, device: torch.device) -> Iterator[Module]:
    """The whole model with the learner's weights; of a sharded one on rank 0 only, and on the device for the block."""
    if not is_sharded(learner):
        yield model
        return
    with torch.no_grad():
        for own, weight in zip(learner.parameters(), model.parameters(), strict=True):
            value = whole(own)
            if ranks.first:
                weight.copy_(value)
    if ranks.first:
        model.to(device)
    yield model
    if ranks.first:
        model.to("cpu")


def is_sharded(learner: nn.Module) -> bool:
    """Whether every rank has a part of each weight only."""
    return any(hasattr(weight, "placements") for weight in learner.parameters())


def _sharded(model: nn.Module, world: int, device: torch.device) -> nn.Module:
    """The model with each layer's weights sharded, and gathered while the layer computes."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    # Outputs are views, which nothing here writes into.
    warnings.filterwarnings("ignore", "FSDP2-wrapped module .* returned a view tensor", UserWarning)
    mesh = init_device_mesh(device.type, (world,))
    for layer in model.get_submodule("decoder").children():
        # The memory is projected by the encoding, before the layer itself is called.
        attention = layer.get_submodule("source_attention")
        fully_shard([attention.get_submodule("key"), attention.get_submodule("value")], mesh=mesh)
        fully_shard(layer, mesh=mesh)
    for layer in model.get_submodule("encoder").children():
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    return model


def _join(arrival: Listener | Knock | None) -> tuple[Ranks, Lifeline]:
    """Meet the other ranks; raises UserError if they don't come."""
    import torch.distributed as dist

    rank, world, lifeline = number("RANK"), number("WORLD_SIZE"), None
    backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
    try:
        store, lifeline = _meet(rank, world, arrival)
        dist.init_process_group(backend, store=store, rank=rank, world_size=world, timeout=SUM)
        waiting = dist.new_group(backend="gloo", timeout=FOR_EVER)
    except (RuntimeError, ValueError) as error:
        failure = UserError(
            f"Rank {rank} of {world} does not meet the others: {' '.join(str(error).split())}; all ranks need the same "
            "MASTER_ADDR, MASTER_PORT and WORLD_SIZE, and must be started together."
        )
        if lifeline:
            lifeline.fail(failure)
        raise failure from error
    return Ranks(rank, world, number("LOCAL_RANK", rank), number("LOCAL_WORLD_SIZE", world), waiting), lifeline


def _meet(rank: int, world: int, arrival: Listener | Knock | None) -> tuple[Any, Lifeline]:
    """A store that only the ranks of this start know, and a lifeline.

    Under torchrun they meet in its store. That outlives a restart, with all that an earlier start left in it, so that
    rank 0 only tells there where to find it.
    """
    from torch.distributed import TCPStore  # type: ignore[attr-defined]

    if not arrival:
        address, port = os.environ.get("MASTER_ADDR", ""), number("MASTER_PORT")
        meeting = TCPStore(address, port, None, False, SUM, wait_for_workers=False)
        if rank == 0:
            arrival = Listener(_own(address, port), world)
            meeting.set(MEETING, arrival.announcement)
    if isinstance(arrival, Listener):
        store = TCPStore("localhost", 0, None, True, SUM, wait_for_workers=False)
        return store, arrival.accept(str(store.port), JOIN)
    welcome = arrival.enter(JOIN) if arrival else call(lambda: meeting.get(MEETING).decode(), rank, JOIN)
    return TCPStore(welcome.address, int(welcome.text), None, False, SUM), welcome.lifeline


def _own(address: str, port: int) -> list[str]:
    """Addresses by which other machines may reach this one: that from which it would send to the meeting, or that."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one, suppress(OSError):
        one.connect((address, port))  # nothing is sent
        return [one.getsockname()[0], address]
    return [address]
