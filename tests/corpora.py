"""A toy language for the tests: a translation is its source in reverse order, one word for one word."""

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from transduce.config.schema import DataConfig
from transduce.preparation.aggregate import leave_out
from transduce.preparation.passes import read_part
from transduce.text.clean import Cleaning
from transduce.text.pairs import Pair
from transduce.text.rules import Rules
from transduce.tokens.mixture import Mixture
from transduce.tokens.store import Encoded, TokenStore, write_store
from transduce.tokens.vocabulary import pack

WORDS = {
    "ka": "zu",
    "lo": "fe",
    "mi": "ga",
    "nu": "po",
    "re": "wi",
    "so": "ya",
    "ti": "du",
    "va": "ce",
}
TINY: dict[str, object] = {  # options of a training that takes a second or two
    "data.vocab_size": 300,
    "data.max_tokens": 256,
    "model.num_encoder_layers": 1,
    "model.num_decoder_layers": 1,
    "model.d_model": 16,
    "model.d_ff": 32,
    "model.num_heads": 2,
    "train.threads": 1,
    "train.precision": "float32",
    "train.label_smoothing": 0.1,  # what a small corpus gets by default is for more updates than tests make
    "train.word_dropout": 0.0,
    "train.ema": 0.0,
    "train.select_by": "perplexity",
    "train.cooldown": 0,
    "decode.max_extra_tokens": 2,  # a model that has learnt little ends few of its translations
}
Rows = Sequence[tuple[list[int], list[int]]]


def reverse_texts(count: int, seed: int, longest: int = 5) -> tuple[list[str], list[str]]:
    """Different sources of 2 to `longest` words, and their translations; other seeds give other sentences."""
    choice, sources = random.Random(seed), dict[str, None]()
    while len(sources) < count:
        sources[" ".join(choice.choices(list(WORDS), k=choice.randint(2, longest)))] = None
    return list(sources), [
        " ".join(WORDS[word] for word in reversed(text.split())) for text in sources
    ]


# Options of a model that soon translates `texts_in_order`.
WORD_BY_WORD = {
    "data.vocab_size": 300,
    "data.holdout": 40,
    "data.max_tokens": 512,
    "model.num_encoder_layers": 1,
    "model.num_decoder_layers": 1,
    "model.d_model": 64,
    "model.d_ff": 128,
    "model.num_heads": 2,
    "model.dropout": 0.0,
    "train.steps": 400,
    "train.warmup": 50,
    "train.validate_every": 400,
    "train.threads": 1,
    "train.precision": "float32",
    "train.label_smoothing": 0.1,
}


def texts_in_order(count: int, seed: int) -> list[tuple[str, str]]:
    """Texts that are translated word by word, in the same order, which is learnt faster than in reverse."""
    both = zip(*reverse_texts(count, seed), strict=True)
    return [(source, " ".join(reversed(target.split()))) for source, target in both]


def write_texts(
    folder: Path, name: str, count: int, seed: int, longest: int = 5
) -> tuple[str, str]:
    """The same as two line-aligned files; returns their paths."""
    paths = folder / f"{name}.src", folder / f"{name}.tgt"
    for path, lines in zip(paths, reverse_texts(count, seed, longest), strict=True):
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return str(paths[0]), str(paths[1])


def changed(options: Mapping[str, object], **changes: object) -> dict[str, object]:
    """Options, some of them changed; a change is written train__steps=10."""
    return {**options, **{name.replace("__", "."): value for name, value in changes.items()}}


def spelt(options: Mapping[str, object]) -> list[str]:
    """Options as the command line takes them."""
    return [
        f"{name}={str(value).lower() if isinstance(value, bool) else value}"
        for name, value in options.items()
    ]


def reverse_rows(count: int, seed: int, vocab_size: int = 14, longest: int = 7) -> Rows:
    """Ids from 4 on, and the same in reverse order."""
    choice = random.Random(seed)
    rows = [
        choice.choices(range(4, vocab_size), k=choice.randint(1, longest)) for _ in range(count)
    ]
    return [(row, row[::-1]) for row in rows]


def mixture(folder: Path, rows: Rows) -> Mixture:
    """The rows as a training corpus; line n of file 0 is row n - 1."""
    write_store(
        folder,
        blocks((source, target, 0, line) for line, (source, target) in enumerate(rows, start=1)),
    )
    return Mixture([TokenStore(folder)], [1.0])


def clean(pairs: Iterable[Pair], rules: Rules, report: Cleaning) -> list[Pair]:
    """The pairs that preparation keeps by these rules; the others are counted in `report`."""
    source, target = rules.languages
    data = DataConfig(
        max_ratio=rules.max_ratio,
        deduplicate=rules.deduplicate,
        rules=rules.others,
        source=source,
        target=target,
        test=rules.test,
        placeholders="kept",
        holdout=0,
    )
    with TemporaryDirectory() as folder:
        staged = read_part(pairs, data, Path(folder) / "staged")
        leave_out([staged], data, report)
        return list(staged.pairs())


def blocks(
    rows: Iterable[tuple[Sequence[int], Sequence[int], int, int]], size: int = 5
) -> Iterator[Encoded]:
    """Pairs (source ids, target ids, number of the file, line) as a store is written from."""
    stream = iter(rows)
    while some := list(islice(stream, size)):
        sources, targets, files, lines = zip(*some, strict=True)
        yield Encoded(pack(sources), pack(targets), np.array(files), np.array(lines))
