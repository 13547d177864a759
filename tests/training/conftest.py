"""What several tests of training share."""

import copy
import json
from collections.abc import Callable, Iterator
from types import SimpleNamespace

import pytest
import torch
import torch.distributed
from torch import nn

from transduce.training import distributed
from transduce.training.distributed import _shard_layers


@pytest.fixture
def shard() -> Iterator[Callable[[nn.Module], nn.Module]]:
    """Shards a copy of a model, in a process group of this process alone."""
    store = torch.distributed.HashStore()
    torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
    yield lambda model: _shard_layers(copy.deepcopy(model), 1, torch.device("cpu"))
    torch.distributed.destroy_process_group()


@pytest.fixture
def rank_0_says(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """A list of values that rank 0 sends to this process, one after another."""
    values: list[object] = []

    def broadcast(tensor: torch.Tensor, _: int, **__: object) -> None:
        content = json.dumps(values[0]).encode()
        tensor[...] = torch.tensor(list(content)) if tensor.ndim else len(content)
        del values[: tensor.ndim]

    monkeypatch.setattr(distributed, "dist", SimpleNamespace(broadcast=broadcast))
    return values
