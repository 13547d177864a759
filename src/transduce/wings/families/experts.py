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


class Experts(nn.Module):
    """Sums the outputs of each token's k best experts, weighted by the softmax of their gates.

    Experts have no capacity limit, so the output for a sentence does not depend on its batch. Unlike in Shazeer et al.,
    gates have no noise. The loss `training.update.balance_loss` balances the load of the experts.
    """

    def __init__(self, config: ModelConfig):
        super().__init__()
        self.k = config.experts_per_token
        self.gate = nn.Linear(config.d_model, config.experts, bias=False)
        self.experts = nn.ModuleList(FeedForward(config) for _ in range(config.experts))

    def forward(self, x: Tensor) -> Tensor:
        """(r, t, d_model) -> (r, t, d_model)."""
        tokens = x.flatten(0, 1)
        with torch.autocast(x.device.type, enabled=False):  # in bfloat16 many gates would be equal
            gates = self.gate(tokens.float())  # (n, e)
        best, chosen = gates.topk(self.k, dim=-1)  # (n, k)
        routings = routing_record.get()
        if routings is not None:
            routings.append(Routing(gates.softmax(dim=-1), chosen))
        shares = best.softmax(dim=-1).to(x.dtype).flatten()
        order = chosen.flatten().argsort(stable=True)  # (n * k,), sorted by expert
        counts = torch.bincount(chosen.flatten(), minlength=len(self.experts)).tolist()
        rows = order // self.k
        outputs = [
            expert(part) for expert, part in zip(self.experts, tokens[rows].split(counts), strict=True) if len(part)
        ]
        weighted = torch.cat(outputs).to(x.dtype) * shares[order, None]
        back = torch.empty_like(weighted).index_copy(0, order, weighted)  # (n * k, d_model), a token's k rows adjacent
        return back.unflatten(0, (-1, self.k)).sum(dim=1).view_as(x)


class ExpertsBetween(nn.Module):
    """Experts with a residual connection after some layers of a stack (appendix E of Shazeer et al.)."""

    def __init__(self, config: ModelConfig, layers: Iterable[int]):
        super().__init__()
        chosen = [each for each in layers if config.experts and each in (config.expert_layers or [each])]
        self.after = nn.ModuleDict({str(layer): Experts(config) for layer in chosen})
        self.dropout = Dropout(config.dropout)

    def forward(self, x: Tensor, layer: int) -> Tensor:
        """The outputs x (r, t, d_model) of a layer, counted from 1 -> the inputs of the next layer."""
        return x + self.dropout(self.after[str(layer)](x)) if str(layer) in self.after else x
