"""Where in the source a model looks for each token of a translation, by forced decoding: what words are aligned by.

Not all layers show it. Which one does is found without aligned text: by how much the pieces that a layer links say of
each other (mutual information, over pairs that were held out).

b = sentences, s = source positions, t = target positions.
"""

import json
import math
from collections import Counter
from collections.abc import Sequence
from itertools import islice

import torch
from torch import Tensor

from transduce import model_folder
from transduce.model.batch import Batch, Ids, make_batch
from transduce.model.recording import recording
from transduce.model.seq2seq import Seq2Seq
from transduce.preparation.prepared import VALID
from transduce.text.pairs import Pair, read_pairs
from transduce.tokens.tokenizer import Tokenizer

LAYER = "alignment_layer"  # in metrics.json: the layer, from 0, whose attention aligns words
PAIRS = 512  # that it is chosen by
TOGETHER = 32  # sentences
ONCE = 0.1  # pairs that are linked once tell little; what they count instead of 0


@torch.inference_mode()
def source_attention(model: Seq2Seq, batch: Batch) -> list[Tensor]:
    """Of each layer of the decoder (b, t, s): the mean of its heads, when the token of tgt_out was predicted.

    A list without any for a model that does not attend to the source.
    """
    with recording() as record:
        model.eval()(batch.src, batch.tgt_in)
    modules = [module for name, module in model.named_modules() if name.endswith("source_attention")]
    # Recurrent models ask once for every position.
    return [torch.cat(maps, dim=2).float().mean(dim=1) for module in modules if (maps := record.of(module))]


def alignment_layer(model: model_folder.Bundle) -> int:
    """What its training chose; of an older model, chosen now by held-out pairs, or guessed where they are gone."""
    metrics = model.folder / model_folder.METRICS
    if metrics.is_file() and LAYER in (known := json.loads(metrics.read_text(encoding="utf-8"))):
        return int(known[LAYER])
    held_out = model.folder / model_folder.DATA / VALID
    if held_out.is_file() and held_out.stat().st_size:
        return choose_layer(model.model, model.tokenizer, list(islice(read_pairs([str(held_out)]), PAIRS)))
    return guess_layer(model.config.model.num_decoder_layers)


def guess_layer(num_layers: int) -> int:
    """The last layer but one, and of two the last: the best, or not far from it, of most models."""
    return min(num_layers - 1, max(num_layers - 2, 1))


def choose_layer(model: Seq2Seq, tokenizer: Tokenizer, pairs: Sequence[Pair]) -> int:
    """The layer whose links say most: each target piece is linked to the source piece that it looked at most."""
    sources = tokenizer.encode_source([pair.source for pair in pairs[:PAIRS]])
    targets = tokenizer.encode_target([pair.target for pair in pairs[:PAIRS]])
    links = piece_links(model, sources, targets)
    return max(range(len(links)), key=lambda layer: information(links[layer]), default=0)


def piece_links(model: Seq2Seq, sources: Sequence[Ids], targets: Sequence[Ids]) -> list[Counter[tuple[int, int]]]:
    """Of each layer, how often which (source, target) pieces are linked; pairs too long for the model are left out."""
    device = next(model.parameters()).device
    most = model.max_positions or math.inf
    kept = [i for i in range(len(sources)) if len(sources[i]) and max(len(sources[i]), len(targets[i])) < most]
    kept.sort(key=lambda i: len(targets[i]))
    found: list[Counter[tuple[int, int]]] = []
    for start in range(0, len(kept), TOGETHER):
        chosen = kept[start : start + TOGETHER]
        layers = source_attention(
            model, make_batch([sources[i] for i in chosen], [targets[i] for i in chosen]).to(device)
        )
        found = found or [Counter() for _ in layers]
        for links, weights in zip(found, layers, strict=True):
            for i, each in zip(chosen, weights, strict=True):
                best = each[: len(targets[i]), : len(sources[i])].argmax(dim=-1).tolist()
                links.update((int(sources[i][s]), int(t)) for s, t in zip(best, targets[i], strict=True))
    return found


def information(links: Counter[tuple[int, int]]) -> float:
    """The mutual information of linked pieces, in nats; each link is judged by the others of its kind."""
    source, target = Counter[int](), Counter[int]()
    for (s, t), count in links.items():
        source[s] += count
        target[t] += count
    total = links.total()
    return sum(
        count * math.log(max(count - 1, ONCE) * total / (source[s] * target[t])) for (s, t), count in links.items()
    ) / max(total, 1)
