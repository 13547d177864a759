"""The device on which models compute, and the threads of a CPU."""

import os
import threading

import torch

_is_forked = threading.Event()


def set_threads(count: int) -> None:
    """Set PyTorch's number of CPU threads; always 1 in a forked process, which has no other threads to wait for."""
    torch.set_num_threads(1 if _is_forked.is_set() else count)


def _begin_fork() -> None:
    _is_forked.set()
    set_threads(1)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_fork)


def choose_device() -> torch.device:
    """The GPU if PyTorch finds one, otherwise the CPU. On a GPU, turns off cuDNN's attention and TF32.

    cuDNN compiles its attention for each new shape of a batch, which took 4/5 of the time of an update on an H200
    (benchmarks/results/gpu.md). Its convolutions and recurrent layers would round the factors of products to TF32.
    """
    if not torch.cuda.is_available():
        return torch.device("cpu")
    torch.backends.cuda.enable_cudnn_sdp(False)
    torch.backends.cudnn.allow_tf32 = False
    return torch.device("cuda")
