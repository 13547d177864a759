"""A mixture of experts that sends each token to a few of several feed-forward layers (Shazeer et al., 2017).

n = tokens, e = experts, k = experts per token.
"""

from collections.abc import Iterable

import torch
from torch import Tensor, nn

from transduce.config.schema import ModelConfig
from transduce.model.embedding import Dropout
from transduce.model.recording import Routing, routing_record
from transduce.model.transformer import FeedForward
from transduce_lab.options import ExpertOptions


class Experts(nn.Module):
    """Sums the outputs of each token's k best experts, weighted by the softmax of their gates.

    Experts have no capacity limit, so the output for a sentence does not depend on its batch. With model.gate_noise,
    training adds noise to the gates, and learns its standard deviation (section 2.1 of Shazeer et al.).
    """

    is_sparse = True  # a batch may give some parameters no gradient

    def __init__(self, config: ModelConfig):
        super().__init__()
        options = ExpertOptions.of(config)
        self.k = options.experts_per_token
        self.gate = nn.Linear(config.d_model, options.experts, bias=False)
        self.noise = (
            nn.Linear(config.d_model, options.experts, bias=False) if options.gate_noise else None
        )
        self.experts = nn.ModuleList(FeedForward(config) for _ in range(options.experts))

    def forward(self, x: Tensor) -> Tensor:
        """(r, t, d_model) -> (r, t, d_model)."""
        tokens = x.flatten(0, 1)
        with torch.autocast(x.device.type, enabled=False):  # in bfloat16 many gates would be equal
            gates = clean = self.gate(tokens.float())  # (n, e)
            deviation = nn.functional.softplus(self.noise(tokens.float())) if self.noise else None
            if deviation is not None and self.training:
                gates = clean + torch.randn_like(clean) * deviation
        best, chosen = gates.topk(self.k, dim=-1)  # (n, k)
        routings = routing_record.get()
        if routings is not None:
            if deviation is None:
                routings.append(Routing(chosen, balance_loss(gates, chosen)))
            else:
                routings.append(
                    Routing(chosen, noisy_balance_loss(clean, gates, deviation, chosen))
                )
        shares = best.softmax(dim=-1).to(x.dtype).flatten()
        order = chosen.flatten().argsort(stable=True)  # (n * k,), sorted by expert
        counts = torch.bincount(chosen.flatten(), minlength=len(self.experts)).tolist()
        rows = order // self.k
        outputs = [
            expert(part)
            for expert, part in zip(self.experts, tokens[rows].split(counts), strict=True)
            if len(part)
        ]
        weighted = torch.cat(outputs).to(x.dtype) * shares[order, None]
        # (n * k, d_model), a token's k rows adjacent.
        back = torch.empty_like(weighted).index_copy(0, order, weighted)
        return back.unflatten(0, (-1, self.k)).sum(dim=1).view_as(x)


def make_experts(config: ModelConfig, layer: int) -> Experts | None:
    """Make the experts of a layer of a Transformer, or none if it has a feed-forward layer. `layer` counts from 0."""
    return Experts(config) if ExpertOptions.of(config).has_experts(layer + 1) else None


def balance_loss(gates: Tensor, chosen: Tensor) -> Tensor:
    """The load-balancing loss of Fedus et al. (2022, equation 4) for gates (n, e) and the chosen experts (n, k).

    The loss is 1 if all experts get equally many tokens. Padding tokens are included.
    """
    experts = gates.size(-1)
    shares = torch.bincount(chosen.flatten(), minlength=experts) / chosen.numel()
    return experts * (shares * gates.softmax(dim=-1).mean(dim=0)).sum()


def noisy_balance_loss(clean: Tensor, gates: Tensor, deviation: Tensor, chosen: Tensor) -> Tensor:
    """The sum of the losses of importance and load of Shazeer et al. (2017, section 4 and appendix A).

    `gates` (n, e) are the gates `clean` with noise of this `deviation`; `chosen` (n, k) are the experts with the
    largest gates. The loss is 0 if importance and load are equal for all experts. Padding tokens are included.
    """
    k = chosen.size(-1)
    weights = gates.gather(-1, chosen).softmax(dim=-1)
    importance = torch.zeros_like(gates).scatter(-1, chosen, weights).sum(dim=0)
    if k == gates.size(-1):
        return squared_variation(importance)
    lowest, next_lowest = gates.topk(k + 1, dim=-1).values[:, k - 1 :].split(1, dim=-1)
    # The k-th largest gate of the other experts.
    threshold = torch.where(gates >= lowest, next_lowest, lowest)
    # The probability that other noise would choose the expert.
    probability = torch.special.ndtr((clean - threshold) / deviation)
    return squared_variation(importance) + squared_variation(probability.sum(dim=0))


def squared_variation(values: Tensor) -> Tensor:
    """The squared coefficient of variation: the variance of `values` divided by the square of their mean."""
    return values.var(correction=0) / values.mean().square()


class ExpertsBetween(nn.Module):
    """Experts with a residual connection after some layers of a stack (appendix E of Shazeer et al.)."""

    def __init__(self, config: ModelConfig, layers: Iterable[int]):
        super().__init__()
        options = ExpertOptions.of(config)
        self.after = nn.ModuleDict(
            {str(layer): Experts(config) for layer in layers if options.has_experts(layer)}
        )
        self.dropout = Dropout(config.dropout)

    def forward(self, x: Tensor, layer: int) -> Tensor:
        """The outputs x (r, t, d_model) of a layer, counted from 1 -> the inputs of the next layer."""
        return x + self.dropout(self.after[str(layer)](x)) if str(layer) in self.after else x
