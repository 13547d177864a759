"""The alignment error rate of word alignments from cross-attention, for every layer of a model.

    PYTHONPATH=tools python benchmarks/alignment.py MODEL [MODEL …] [--sentences 400]

MODEL translates English to German. Its attention is recorded during forced decoding of the phrasebook's German
sentences. The phrasebook's alignments are the reference. All their links are sure, so the alignment error rate (AER)
is 1 - F1. "nats": mutual information of a layer's subword links on held-out pairs; it decides which layer is chosen.
Variants: one link a word; the attention of the step after the one that writes a subword; the mean of all layers.
"""

from itertools import islice
from pathlib import Path

import numpy as np
from measuring import run_script
from numpy.typing import NDArray

from phrasebook import Example, stream, tokens
from transduce import model_folder
from transduce.decoding import alignment
from transduce.decoding.alignment_layer import (
    MAX_PAIRS,
    alignment_layer,
    information,
    piece_links,
    source_attention,
)
from transduce.model.seq2seq import make_batch
from transduce.preparation.prepared import VALID_FILE
from transduce.text.pairs import read_pairs

Span = tuple[int, int]
SEED = 77  # not the demo's seed


def main(*models: Path, sentences: int = 400) -> None:
    """Print a table for each model."""
    examples = list(islice(stream(SEED), sentences))
    for folder in models:
        report(model_folder.load(folder), examples)


def report(model: model_folder.Bundle, examples: list[Example]) -> None:
    sources = model.tokenizer.encode_source([each.english for each in examples])
    targets = model.tokenizer.encode_target([each.german for each in examples])
    found = [
        [
            layer[0].numpy()
            for layer in source_attention(model.model, make_batch([source], [target]))
        ]
        for source, target in zip(sources, targets, strict=True)
    ]
    pairs = list(
        islice(read_pairs([str(model.folder / model_folder.DATA / VALID_FILE)]), MAX_PAIRS)
    )
    held_out = [model.tokenizer.encode_source([pair.source for pair in pairs])]
    held_out.append(model.tokenizer.encode_target([pair.target for pair in pairs]))
    links = piece_links(model.model, *held_out)
    chosen = alignment_layer(model)
    print(f"\n{model.folder}\n")
    print("| layer | nats | precision | recall | AER | AER, one link a word | AER, a step later |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for layer in range(len(links)):
        maps = [each[layer] for each in found]
        name = f"{layer + 1}{' (chosen)' if layer == chosen else ''}"
        print(f"| {name} | {information(links[layer]):.2f} | {cells(model, examples, maps)} |")
    mean = [np.mean(each, axis=0) for each in found]
    print(f"| mean | | {cells(model, examples, mean)} |")


def cells(
    model: model_folder.Bundle, examples: list[Example], maps: list[NDArray[np.float32]]
) -> str:
    precision, recall, error = measure(model, examples, maps, 0, alignment.LINK_SHARE)
    one, later = (
        measure(model, examples, maps, *how)[2] for how in ((0, 1.0), (1, alignment.LINK_SHARE))
    )
    return f"{precision:.3f} | {recall:.3f} | {error:.3f} | {one:.3f} | {later:.3f}"


def measure(
    model: model_folder.Bundle,
    examples: list[Example],
    maps: list[NDArray[np.float32]],
    later: int,
    share: float,
) -> tuple[float, float, float]:
    """Precision, recall and alignment error rate of links between the phrasebook's words."""
    hits = given = gold = 0
    for example, weights in zip(examples, maps, strict=True):
        sides = []
        for text, side in ((example.english, "source"), (example.german, "target")):
            vocabulary = getattr(model.tokenizer, side)
            spans = vocabulary.spans_in(text, vocabulary.encode([text]).lists()[0])
            sides.append((positions(text), spans))
        (read, source_spans), (written, target_spans) = sides
        inner = weights[later : later + len(target_spans), : len(source_spans)]
        links = alignment.find_links(inner, read, source_spans, written, target_spans, share)
        known = {(read.index(link.source), written.index(link.target)) for link in links}
        hits += len(known & set(example.alignment))
        given = given + len(known)
        gold = gold + len(example.alignment)
    precision = hits / given
    recall = hits / gold
    return precision, recall, 1 - 2 * precision * recall / (precision + recall)


def positions(text: str) -> list[Span]:
    """The positions (begin, end) of the words in a sentence of the phrasebook."""
    found = []
    end = 0
    for word in tokens(text):
        begin = text.index(word, end)
        end = begin + len(word)
        found.append((begin, end))
    return found


if __name__ == "__main__":
    run_script(main, __doc__)
