"""Algorithmic tasks of the Neural GPU (Kaiser and Sutskever, 2016) by the Extended Neural GPU and the Transformer.

    python benchmarks/algorithms.py --tasks copy reverse addition

Each model trains on random examples of up to 10 symbols, and is then tested with greedy search on 200 examples of each
of several lengths, most of them longer than any in training. A result is the share of examples without any error.
"""

import random
import time
from collections.abc import Callable

import torch
from measuring import run_script

from transduce.config.parse import Options, configure
from transduce.config.schema import UNK, DecodeConfig, RunConfig
from transduce.decoding.torch_engine import TorchEngine
from transduce.decoding.types import Request
from transduce.model.build import build, count_parameters
from transduce.model.seq2seq import Seq2Seq, make_batch
from transduce.training.schedule import learning_rate
from transduce.training.update import make_optimizer, update

Example = tuple[list[int], list[int]]
FIRST_SYMBOL = UNK + 1
SYMBOLS = 8
PLUS = FIRST_SYMBOL + SYMBOLS
LONGEST_IN_TRAINING = 10
TESTED_LENGTHS = (5, 10, 12, 15, 20, 30)  # in symbols of the source
TESTS = 200
BATCH = 32
MODELS: dict[str, Options] = {
    "Extended Neural GPU": {
        "model.kind": "neural_gpu",
        "model.d_model": 24,
        "model.num_encoder_layers": 1,
        "model.num_decoder_layers": 1,
    },
    "Transformer, sinusoids": {"model.d_model": 64, "model.d_ff": 256, "model.num_heads": 4},
    "Transformer, rotary": {
        "model.d_model": 64,
        "model.d_ff": 256,
        "model.num_heads": 4,
        "model.positions": "rotary",
    },
}
SHARED: Options = {
    "model.vocab_size": PLUS + 1,
    "model.num_encoder_layers": 2,
    "model.num_decoder_layers": 2,
    "model.dropout": 0.0,
    "train.label_smoothing": 0.0,
    "train.warmup": 200,
    "train.cooldown": 500,
    "train.precision": "float32",
    "train.clip_norm": 1.0,
}


def copying(draw: random.Random, length: int) -> Example:
    """The same symbols again."""
    symbols = [draw.randrange(SYMBOLS) + FIRST_SYMBOL for _ in range(length)]
    return symbols, symbols


def reversal(draw: random.Random, length: int) -> Example:
    """The symbols in reverse order."""
    symbols = [draw.randrange(SYMBOLS) + FIRST_SYMBOL for _ in range(length)]
    return symbols, symbols[::-1]


def addition(draw: random.Random, length: int) -> Example:
    """The sum of two binary numbers, lowest digit first; a source has up to `length` symbols, the plus sign counted."""
    places = max(1, (length - 1) // 2)
    numbers = [draw.getrandbits(places) for _ in range(2)]
    one, other = (digits(number, places) for number in numbers)
    return [*one, PLUS, *other], digits(sum(numbers), places + 1)


def digits(number: int, length: int) -> list[int]:
    """The binary digits of a number as symbols, lowest first."""
    return [(number >> place & 1) + FIRST_SYMBOL for place in range(length)]


TASKS: dict[str, Callable[[random.Random, int], Example]] = {
    "copy": copying,
    "reverse": reversal,
    "addition": addition,
}


def train(config: RunConfig, task: str) -> Seq2Seq:
    """Train a model on random examples of a task."""
    model = build(config.model).train()
    optimizer = make_optimizer(model.parameters(), config.train)
    draw = random.Random(1)
    for step in range(1, config.train.steps + 1):
        lengths = [draw.randint(1, LONGEST_IN_TRAINING) for _ in range(BATCH)]
        batch = make_batch(*zip(*(TASKS[task](draw, each) for each in lengths), strict=True))
        rate = learning_rate(step, config.train, config.model.d_model)
        update(model, optimizer, [batch], step=step, rate=rate, train=config.train)
    return model.eval()


def share_without_error(model: Seq2Seq, task: str, length: int) -> float:
    """The share of test examples of a length for which greedy search finds the right output."""
    draw = random.Random(1_000 + length)
    examples = [TASKS[task](draw, length) for _ in range(TESTS)]
    limits = [len(target) + 2 for _, target in examples]
    request = Request([""] * TESTS, [source for source, _ in examples], limits)
    [found] = TorchEngine([model]).search([request], DecodeConfig(beam_size=1), 1)
    outputs = [[*best.tokens] for [best] in found]
    return sum(map(list.__eq__, outputs, [target for _, target in examples])) / TESTS


def main(*, tasks: list[str], updates: int = 1_500) -> None:
    """Train and test each model on each task, and print a table."""
    torch.set_num_threads(1)
    lengths = " | ".join(f"{length} symbols" for length in TESTED_LENGTHS)
    print(f"| task | model | parameters | minutes | {lengths} |")
    print("| --- " * (4 + len(TESTED_LENGTHS)) + "|")
    for task in tasks:
        for name, options in MODELS.items():
            config = configure({**SHARED, **options, "train.steps": updates})
            began = time.process_time()
            model = train(config, task)
            minutes = (time.process_time() - began) / 60
            shares = [share_without_error(model, task, length) for length in TESTED_LENGTHS]
            cells = [task, name, f"{count_parameters(config.model):,}", f"{minutes:.1f}"]
            cells += [f"{share:.1%}" for share in shares]
            print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    run_script(main, __doc__)
