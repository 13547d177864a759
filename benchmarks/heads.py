"""What the attention heads of a Transformer look at, and what each of them is worth (appendix of the paper).

    python benchmarks/heads.py MODEL valid.en valid.de

For each head: the relative position that gets most of its attention (self-attention), the mean entropy, and the
perplexity of the text if the output of this head alone is zero (Michel et al., 2019). Then more and more heads are
removed, those first that cost least alone. This order is found on the even pairs, and its cost measured on the odd ones
(Voita et al. learn the order instead).
"""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import torch
from measuring import run_script
from torch import Tensor

from transduce import model_folder
from transduce.config.schema import PAD
from transduce.decoding.stepper import forced_log_probs
from transduce.model.attention import MultiHeadAttention
from transduce.model.recording import recording
from transduce.model.seq2seq import Batch, Seq2Seq, make_batch
from transduce.text.plain import read_lines

SENTENCES_PER_BATCH, FARTHEST = 50, 3  # relative positions up to FARTHEST are counted
Head = tuple[str, int]  # the module's name, and the head's number from 0


def main(model: Path, source: Path, target: Path) -> None:
    """Print what each head attends to, and the perplexity without it and without the cheapest heads."""
    bundle = model_folder.load(model)
    network = bundle.model.eval()
    sources = bundle.tokenizer.encode_source([*read_lines(str(source))])
    targets = bundle.tokenizer.encode_target([*read_lines(str(target))])
    batches = [
        make_batch(
            sources[start : start + SENTENCES_PER_BATCH],
            targets[start : start + SENTENCES_PER_BATCH],
        )
        for start in range(0, len(sources), SENTENCES_PER_BATCH)
    ]
    modules = {
        name: module
        for name, module in network.named_modules()
        if isinstance(module, MultiHeadAttention)
    }
    heads = [(name, head) for name, module in modules.items() for head in range(module.num_heads)]
    even = batches[::2]
    odd = batches[1::2]
    print(f"{len(heads)} heads, perplexity {perplexity(network, even):.3f}\n")
    print("| attention | head | relative position: share | entropy, bits | perplexity without |")
    print("| --- | --- | --- | --- | --- |")
    costs = {}
    seen = look(network, batches)
    for name, head in heads:
        with removed(modules, [(name, head)]):
            costs[name, head] = perplexity(network, even)
        offset, share, entropy = (values[head].item() for values in seen[name])
        where = "" if "source" in name else f"{int(offset):+d}: {share:.0%}"
        print(f"| {name} | {head + 1} | {where} | {entropy:.1f} | {costs[name, head]:.3f} |")
    print("\n| heads removed | perplexity | increase |\n| --- | --- | --- |")
    order = sorted(heads, key=costs.__getitem__)
    whole = perplexity(network, odd)
    for count in range(0, len(heads) + 1, max(1, len(heads) // 12)):
        with removed(modules, order[:count]):
            left = perplexity(network, odd)
        print(f"| {count} | {left:.2f} | {left / whole - 1:.0%} |")


def perplexity(model: Seq2Seq, batches: Sequence[Batch]) -> float:
    """The perplexity per target token."""
    total = sum(forced_log_probs([model], batch).sum().item() for batch in batches)
    return math.exp(-total / sum(batch.num_tokens for batch in batches))


@torch.no_grad()
def look(model: Seq2Seq, batches: Sequence[Batch]) -> dict[str, list[Tensor]]:
    """For the heads of each module: the relative position with most of the attention, its share, and the entropy."""
    names = {module: name for name, module in model.named_modules()}
    # (h, 2 * FARTHEST + 3): shares of positions, entropy, and the number of queries.
    sums: dict[str, Tensor] = {}
    for batch in batches:
        with recording() as record:
            model(batch.src, batch.tgt_in)
        for module, weights in record.attention:
            name = names[module]
            queries = batch.src if name.startswith("encoder.") else batch.tgt_in
            real = (queries != PAD)[:, None, :, None]
            weights = weights * real
            found = [
                weights.diagonal(k, dim1=2, dim2=3).sum(dim=(0, 2))
                for k in range(-FARTHEST, FARTHEST + 1)
            ]
            found.append(-(weights * weights.clamp(min=1e-9).log2()).sum(dim=(0, 2, 3)))
            found.append(real.sum().expand_as(found[0]))
            sums[name] = sums.get(name, 0) + torch.stack(found, dim=1)
    means = {name: each[:, :-1] / each[:, -1:] for name, each in sums.items()}
    best = {name: each[:, :-1].max(dim=1) for name, each in means.items()}
    return {
        name: [best[name].indices - FARTHEST, best[name].values, each[:, -1]]
        for name, each in means.items()
    }


@contextmanager
def removed(modules: dict[str, MultiHeadAttention], heads: Sequence[Head]) -> Iterator[None]:
    """Set the outputs of some heads to zero, and restore them."""
    before = {name: module.out.weight.detach().clone() for name, module in modules.items()}
    try:
        for name, head in heads:
            weight = modules[name].out.weight
            width = modules[name].out.in_features // modules[name].num_heads
            weight.data[:, head * width : (head + 1) * width] = 0
        yield
    finally:
        for name, weight in before.items():
            modules[name].out.weight.data.copy_(weight)


if __name__ == "__main__":
    run_script(main, __doc__)
