"""Optimisers by name: the paper's Adam (section 5.3), and others of its time."""

from collections.abc import Iterable

import torch
from torch import nn

from transduce.config.schema import TrainConfig


def make_optimizer(weights: Iterable[nn.Parameter], train: TrainConfig) -> torch.optim.Optimizer:
    """The optimiser that train.optimizer names; the schedule sets its rate before every update."""
    match train.optimizer:
        case "adam":
            return torch.optim.Adam(weights, betas=(train.beta1, train.beta2), eps=train.epsilon, fused=True)
        case "adagrad":
            return torch.optim.Adagrad(weights)
        case "rmsprop":
            return torch.optim.RMSprop(weights, alpha=train.beta2, eps=1e-6)
        case "sgd":
            return torch.optim.SGD(weights, lr=0.0, momentum=train.beta1)
