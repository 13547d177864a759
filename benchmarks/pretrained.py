"""Imports of other programs' models, compared with these programs.

Makes models of four families with transformers: random weights, vocabularies that SentencePiece learns from the texts,
all languages of the family. Then trains a model of M2M-100's architecture with transformers for some minutes. Imports
them, and prints how many translations and log-probabilities are those of transformers; and what --trim keeps.

    python benchmarks/pretrained.py TEXTS --minutes 5 --marian FOLDER

TEXTS is a folder with train.en, train.de, train.fr, train.cs, and test.en … test.cs, line by line translations.
FOLDER holds a model in Marian's own format, with scored.source.txt, scored.target.txt and scored.logprob.txt, the sums
of Marian's log-probabilities; and source.txt with Marian's translations by beam search, beam4-normalize0.6.txt.
"""

import random
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import torch
from measuring import run_script

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from pretrained import FAMILIES, make_pretrained
from transduce.decoding.loading import load
from transduce.decoding.torch_engine import TorchEngine
from transduce.decoding.translator import Translator
from transduce.decoding.types import PLAIN_SEARCH
from transduce.model.build import build
from transduce.text.pairs import Origin, Pair
from transduce.tokens.tokenizer import Tokenizer
from transduce.wings.pretrained import huggingface_reader, marian_reader
from transduce.wings.pretrained.importing import import_model

LANGUAGES = ("en", "de", "fr", "cs")
DIRECTIONS = tuple(f"{source}-{target}" for source, target in permutations(LANGUAGES, 2))
PIECES = 3000
SENTENCES = 200


def lines(file: Path) -> list[str]:
    return file.read_text(encoding="utf-8").split("\n")[:-1]


def pairs(texts: dict[str, list[str]], count: int) -> list[Pair]:
    """Pairs of all directions in turn."""
    chosen = []
    for i in range(count):
        source, target = DIRECTIONS[i % len(DIRECTIONS)].split("-")
        chosen.append(
            Pair(texts[source][i], texts[target][i], Origin("test", i), f"{source}-{target}")
        )
    return chosen


def compare(folder: Path, out: Path, test: Sequence[Pair], **more: Any) -> str:
    codes = ",".join(LANGUAGES)
    imported = import_model(folder, out, codes, codes, test, **more)
    assert imported.parity
    return f"{imported.parity.identical} of {imported.parity.sentences}"


def train(network: Any, folder: Path, texts: dict[str, list[str]], minutes: float) -> int:
    """Train with transformers for some minutes, on all directions. Returns the number of updates."""
    codes = ",".join(LANGUAGES)
    network.save_pretrained(folder)
    imported = huggingface_reader.read(folder, codes, codes)
    rows = torch.tensor(imported.target_rows)
    optimizer = torch.optim.AdamW(network.parameters(), lr=1e-3)
    draw = random.Random(0)
    network.train()
    updates = 0
    end = time.monotonic() + 60 * minutes
    while time.monotonic() < end:
        direction = draw.choice(DIRECTIONS)
        source, target = direction.split("-")
        tokenizer = imported.tokenizer.toward(direction)
        places = draw.sample(range(len(texts["en"])), 64)
        sources = [
            [*each[1:], 2] for each in tokenizer.encode_source([texts[source][i] for i in places])
        ]
        tag = tokenizer.tags[0]
        targets = [
            [2, tag, *each, 2]
            for each in tokenizer.encode_target([texts[target][i] for i in places])
        ]
        src, tgt = (_padded(each, rows) for each in (sources, targets))
        logits = network(
            input_ids=src, attention_mask=(src != 1).long(), decoder_input_ids=tgt[:, :-1]
        ).logits
        loss = torch.nn.functional.cross_entropy(
            logits.flatten(0, 1), tgt[:, 1:].flatten(), ignore_index=1
        )
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        updates += 1
    network.eval().save_pretrained(folder)
    return updates


def _padded(rows: Sequence[Sequence[int]], theirs: torch.Tensor) -> torch.Tensor:
    longest = max(map(len, rows))
    return theirs[torch.tensor([[*row, *[0] * (longest - len(row))] for row in rows])]


def trim(folder: Path, texts: dict[str, list[str]], test: dict[str, list[str]]) -> None:
    """Trim by 1,000 lines of each language; compare tokens and unknown pieces on other lines."""
    codes = ",".join(LANGUAGES)
    few = [line for language in LANGUAGES for line in texts[language][:5000]]
    unseen = [line for language in LANGUAGES for line in test[language][:250]]
    full: Tokenizer = huggingface_reader.read(folder, codes, codes).tokenizer
    rows = full.encode_target(unseen)
    for size in (2000, 2400, 2700):
        small = huggingface_reader.read(folder, codes, codes, size, few).tokenizer
        cut = small.encode_target(unseen)
        more = sum(map(len, cut)) / sum(map(len, rows)) - 1
        unknown = [sum(row.count(3) for row in each) for each in (rows, cut)]
        same = sum(a == b for a, b in zip(full.decode(rows), small.decode(cut), strict=True))
        unknowns = f"unknown {unknown[0]} → {unknown[1]}"
        kept = f"texts {same} of {len(unseen)}"
        show(f"trimmed to {size:,} of {PIECES:,} pieces", f"{more:+.1%} tokens", unknowns, kept)


def measure_marian(folder: Path) -> None:
    """Scores and translations of a model in Marian's own format."""
    read = marian_reader.read(folder, "en", "de")
    for kind in ("t2t", "sinusoidal"):
        network = build(replace(read.config.model, positions=kind))
        network.load_state_dict(read.weights)
        config = replace(read.config.decode, beam_size=4, length_penalty=0.6, **PLAIN_SEARCH)
        translator = Translator(TorchEngine([network.eval()]), read.tokenizer, config)
        sources, targets, sums = (
            lines(folder / f"scored.{name}.txt") for name in ("source", "target", "logprob")
        )
        found = [each.log_prob for each in translator.score(sources, targets)]
        apart = np.abs(np.array(found) - np.array([*map(float, sums)]))
        texts = translator.translate_sentences(lines(folder / "source.txt"))
        expected = lines(folder / "beam4-normalize0.6.txt")
        same = sum(each.text == text for each, text in zip(texts, expected, strict=True))
        sums_apart = f"{len(found)} sums: mean {apart.mean():.5f}, max {apart.max():.4f} apart"
        show(f"Marian, positions {kind}", sums_apart, f"beam 4: {same} of {len(expected)}")


def main(texts: Path, /, *, minutes: float = 5, marian: Path | None = None) -> None:
    """Measure with the texts in a folder."""
    from transformers import AutoModelForSeq2SeqLM

    known, test = (
        {language: lines(texts / f"{part}.{language}") for language in LANGUAGES}
        for part in ("train", "test")
    )
    few = [line for language in LANGUAGES for line in known[language][:6000]]
    given = pairs(test, SENTENCES)
    with tempfile.TemporaryDirectory() as temporary:
        place = Path(temporary)
        for family in FAMILIES:
            folder = make_pretrained(place / family, family, few, pieces_count=PIECES, width=64)
            show(f"{family}, random", f"greedy: {compare(folder, place / f'{family}-ours', given)}")
        trim(place / "NLLB-200", known, test)
        folder = make_pretrained(
            place / "trained",
            "M2M-100",
            few,
            pieces_count=PIECES,
            layers=3,
            width=256,
            is_lively=False,
        )
        network = AutoModelForSeq2SeqLM.from_pretrained(str(folder))
        updates = train(network, folder, known, minutes)
        show(f"M2M-100, {updates} updates", f"greedy: {compare(folder, place / 'ours', given)}")
        translators = [load(place / "ours", engine=name) for name in ("torch", "ctranslate2")]
        for beam in (1, 4):
            one, two = (each.with_beam_size(beam).translate_pairs(given) for each in translators)
            same = sum(a.text == b.text for a, b in zip(one, two, strict=True))
            show(f"{translators[1].engine.name}, beam {beam}", f"as torch: {same} of {len(given)}")
    if marian:
        measure_marian(marian)


def show(*cells: str) -> None:
    print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    run_script(main, __doc__)
