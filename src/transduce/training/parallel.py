"""A model on several ranks: DDP, or FSDP2 where every rank keeps only a shard of each weight.

The wrapped model computes gradients that are averaged over the ranks. Alone, a model is its own wrapped model.
"""

import copy
import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TypeVar

import torch
from torch import Tensor, nn

from transduce.training.distributed import Ranks

Module = TypeVar("Module", bound=nn.Module)


def wrap(model: nn.Module, ranks: Ranks, *, shard: bool, sparse: bool, device: torch.device) -> nn.Module:
    """Wrap the model: unchanged, DDP or FSDP.

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


def unwrap(wrapped_model: nn.Module) -> nn.Module:
    """The module whose parameters have the model's own names."""
    from torch.nn.parallel import DistributedDataParallel

    return wrapped_model.module if isinstance(wrapped_model, DistributedDataParallel) else wrapped_model


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
