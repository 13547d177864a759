"""The device on which models compute."""

import torch


def choose_device() -> torch.device:
    """The GPU if PyTorch finds one, otherwise the CPU. On a GPU, cuDNN computes no attention, and rounds no float32.

    cuDNN compiles its attention for each new shape of a batch, which took 4/5 of the time of an update on an H200
    (benchmarks/results/gpu.md). Its convolutions and recurrent layers would round the factors of products to TF32.
    """
    if not torch.cuda.is_available():
        return torch.device("cpu")
    torch.backends.cuda.enable_cudnn_sdp(False)
    torch.backends.cudnn.allow_tf32 = False
    return torch.device("cuda")
