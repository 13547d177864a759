"""A model of chance and terms for the tests of constrained search."""

from collections.abc import Sequence

import torch
from torch import Tensor

from transduce.config.schema import DecodeConfig
from transduce.decoding.types import (
    Term,
)
from transduce.decoding.words import kind
from transduce.wings.phrasebook.examples import examples
from transduce.wings.terms.glossary import (
    Constraint,
    WordBoundaries,
)

EXAMPLES = list(examples("train", 300))


CONFIG = DecodeConfig(beam_size=3, max_extra_tokens=8, max_tokens=256)


class Chance:
    """A stepper: any history of any sentence has random, but always the same, probabilities of what follows."""

    device = torch.device("cpu")

    def __init__(self, sentences: Sequence[int], vocab_size: int, sharpness: float = 3.0):
        self.sentences, self.vocab_size, self.sharpness = list(sentences), vocab_size, sharpness
        self.rows: list[tuple[int, ...]] = [(each,) for each in sentences]

    def __call__(self, tokens: Tensor) -> Tensor:
        self.rows = [(*row, token) for row, token in zip(self.rows, tokens.tolist(), strict=True)]
        return torch.stack([self.log_probs(row) for row in self.rows])

    def log_probs(self, row: tuple[int, ...]) -> Tensor:
        generator = torch.Generator().manual_seed(hash(row) % 2**40)
        return (self.sharpness * torch.randn(self.vocab_size, generator=generator)).log_softmax(
            dim=-1
        )

    def reorder(self, rows: Tensor, _: Tensor | None = None) -> None:
        self.rows = [self.rows[row] for row in rows.tolist()]


PIECES = ["<pad>", "<s>", "</s>", "<unk>", "\u2581a", "b", ".", "\u2581"]


BOUNDARIES = WordBoundaries(
    tuple(kind(piece.replace("\u2581", " ")[0]) for piece in PIECES), opens=(False,) * len(PIECES)
)


CONSTRAINTS = {
    "a": Constraint("a", ((4,),), "letter", "letter"),
    "ab": Constraint("ab", ((4, 5),), "letter", "letter"),
    ".": Constraint(".", ((7, 6), (6,)), "sign", "sign"),
    "a .": Constraint("a .", ((4, 7, 6),), "letter", "sign"),
}


def text_of(tokens: Sequence[int]) -> str:
    return "".join(PIECES[token] for token in tokens).replace("\u2581", " ").removeprefix(" ")


TEXTS = [
    "",
    *(each.english for each in EXAMPLES[:4]),
    "The dog sleeps.",
    " ",
    "A dog and a cat.",
    "The dog sleeps.",
]


TERMS = [Term("dog", "Rüde"), Term("the", "der"), Term("cat", "rote Katze"), Term("sleeps", "漢字")]
