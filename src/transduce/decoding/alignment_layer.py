"""Choose the decoder layer whose attention to the source aligns words best.

Each target piece is linked to the source piece that it attends to most. The chosen layer is the one whose linked pieces
have the highest mutual information.

b = sentences, s = source positions, t = target positions.
"""

import math
from collections import Counter
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transduce import model_folder
from transduce.decoding.directions import encode_sources
from transduce.model.recording import recording
from transduce.model.seq2seq import Batch, Ids, Seq2Seq, make_batch
from transduce.preparation.prepared import VALID_FILE, read_valid
from transduce.system.files import MANIFEST
from transduce.text.pairs import Pair, by_direction
from transduce.tokens.tokenizer import Tokenizer

# Key in metrics.json: the layer, from 0, whose attention aligns words.
ALIGNMENT_LAYER = "alignment_layer"
MAX_PAIRS = 512  # held-out pairs from which the layer is chosen
BATCH_SENTENCES = 32
MAX_TOKENS = 256  # maximum on each side; the attention weights of longer pairs need much memory
SINGLE_COUNT = 0.1  # replaces the leave-one-out count 0 of pieces that are linked only once


@torch.inference_mode()
def source_attention(model: Seq2Seq, batch: Batch) -> list[Tensor]:
    """Compute each decoder layer's attention (b, t, s) to the source, averaged over heads."""
    with recording() as record:
        model.eval()(batch.src, batch.tgt_in)
    # The decoder reads the first token of a tagged source, and the encoder does not.
    begin = int(model.target_tag)
    # Recurrent models call their attention once for every position.
    return [
        F.pad(torch.cat(maps, dim=2).float().mean(dim=1)[:, begin:], (begin, 0))
        for each in source_attentions(model)
        if (maps := record.of(each))
    ]


def source_attentions(model: Seq2Seq) -> list[nn.Module]:
    """The modules of a model that attend to the source, in the order of layers."""
    return [module for name, module in model.named_modules() if name.endswith("source_attention")]


def alignment_layer(model: model_folder.Bundle) -> int:
    """The index of the decoder layer whose attention aligns words."""
    recorded = model_folder.read_metrics(model.folder) if (model.folder / MANIFEST).exists() else {}
    if ALIGNMENT_LAYER in recorded:
        return int(recorded[ALIGNMENT_LAYER])
    held_out = model.folder / model_folder.DATA / VALID_FILE
    if held_out.is_file() and held_out.stat().st_size:
        return choose_layer(model.model, model.tokenizer, read_valid(held_out.parent))
    return guess_layer(len(source_attentions(model.model)))


def guess_layer(num_layers: int) -> int:
    """The index of the second-last layer, or of the last layer if there are at most two."""
    return min(num_layers - 1, max(num_layers - 2, 1))


def choose_layer(model: Seq2Seq, tokenizer: Tokenizer, pairs: Sequence[Pair]) -> int:
    """The index of the layer with the highest mutual information between linked pieces, in the first direction."""
    pairs = next(iter(by_direction(pairs).values()), [])
    sources = encode_sources(tokenizer, pairs[:MAX_PAIRS])
    targets = tokenizer.encode_target([pair.target for pair in pairs[:MAX_PAIRS]])
    links = piece_links(model, sources, targets)
    return max(range(len(links)), key=lambda layer: information(links[layer]), default=0)


def piece_links(
    model: Seq2Seq, sources: Sequence[Ids], targets: Sequence[Ids]
) -> list[Counter[tuple[int, int]]]:
    """For each layer, count how often each target piece attends most to each source piece."""
    device = next(model.parameters()).device
    positions = min(model.max_positions or math.inf, MAX_TOKENS)
    pairs = zip(sources, targets, strict=True)
    fitting = sorted(
        (pair for pair in pairs if len(pair[0]) and max(map(len, pair)) < positions),
        key=lambda p: len(p[1]),
    )
    counts: list[Counter[tuple[int, int]]] = []
    for start in range(0, len(fitting), BATCH_SENTENCES):
        batch = fitting[start : start + BATCH_SENTENCES]
        layers = source_attention(model, make_batch(*zip(*batch, strict=True)).to(device))
        counts = counts or [Counter() for _ in layers]
        for links, weights in zip(counts, layers, strict=True):
            for (source, target), attention in zip(batch, weights, strict=True):
                best = attention[: len(target), : len(source)].argmax(dim=-1).tolist()
                links.update((int(source[s]), int(t)) for s, t in zip(best, target, strict=True))
    return counts


def information(links: Counter[tuple[int, int]]) -> float:
    """Estimate the mutual information of linked pieces, in nats, with leave-one-out probabilities."""
    source = Counter[int]()
    target = Counter[int]()
    for (s, t), count in links.items():
        source[s] += count
        target[t] += count
    total = links.total()
    return sum(
        count * math.log(max(count - 1, SINGLE_COUNT) * total / (source[s] * target[t]))
        for (s, t), count in links.items()
    ) / max(total, 1)
