"""Whether a model learns to copy from a translation memory what it can't know.

    python benchmarks/copied_words.py [--names 8000] [--updates 2000] [--tests 150]

Writes a corpus in an invented language: each name has a translation of its own, drawn at random, and stands in two
pairs that differ in another word. A model is trained with data.translation_memory. Then it translates sentences with
new names, whose other sentence is in the memory. Prints how many translations are right, with the memory and without.
"""

import random
import tempfile
from pathlib import Path

from measuring import run_script

import transduce
from transduce.text.pairs import Origin, Pair
from transduce.wings.memories.database import Database, Unit

SYLLABLES = [first + vowel for first in "bdfgklmnprstvz" for vowel in "aeiou"]
OPTIONS = {
    "data.translation_memory": True,
    "data.vocab_size": 400,
    "data.holdout": 50,
    "data.max_tokens": 2048,
    "model.num_encoder_layers": 2,
    "model.num_decoder_layers": 2,
    "model.d_model": 64,
    "model.d_ff": 128,
    "model.num_heads": 4,
    "model.dropout": 0.0,
    "train.warmup": 200,
    "train.validate_every": 100_000,
    "train.precision": "float32",
    "train.learning_rate": 1.0,
}


def both(draw: random.Random, words: dict[str, str]) -> list[Pair]:
    """Two pairs with the same new name, which differ in another word."""
    name, translation = ("".join(draw.choices(SYLLABLES, k=2)) for _ in range(2))
    first, *rest = draw.choices([*words], k=3)
    pairs = []
    for other in draw.sample([*words], 2):
        source = [first, name, other, *rest]
        target = [words[first], translation, words[other], *map(words.__getitem__, rest)]
        pairs.append(Pair(" ".join(source), " ".join(target), Origin("", 0)))
    return pairs


def main(*, names: int = 8000, updates: int = 2000, tests: int = 150) -> None:
    """Train the model, and print the counts."""
    draw = random.Random(1)
    words = {
        "".join(draw.choices(SYLLABLES, k=2)): "".join(draw.choices(SYLLABLES, k=2))
        for _ in range(24)
    }
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        corpus = [pair for _ in range(names) for pair in both(draw, words)]
        file = folder / "train.tsv"
        file.write_text("".join(f"{pair.source}\t{pair.target}\n" for pair in corpus))
        options = OPTIONS | {"train.steps": updates}
        transduce.train(folder / "model", train=file, source="en", target="de", options=options)
        translator = transduce.load(folder / "model", engine="torch")
        memory = Database(folder / "memory.sqlite")
        known, asked = zip(*(both(draw, words) for _ in range(tests)), strict=True)
        memory.add([Unit(pair.source, pair.target) for pair in known], "en-de")
        for name, used in (("without", None), ("with", memory)):
            found = translator.translate([pair.source for pair in asked], translation_memory=used)
            right = sum(one.text == pair.target for one, pair in zip(found, asked, strict=True))
            print(f"{name} the memory: {right} of {tests} right")


if __name__ == "__main__":
    run_script(main, __doc__)
