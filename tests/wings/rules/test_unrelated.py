"""The rule "unrelated": targets of other lines are found, whatever the chunk, and little else is."""

import random
from collections.abc import Sequence

import numpy as np
import pytest

from transduce.text.pair_batch import PairBatch
from transduce.text.rules import BITS, OTHERS, UNRELATED, Checker, Rules
from transduce.wings.rules.unrelated import MIN_SAMPLE_PAIRS, Unrelated

VOCABULARY = 300
Side = list[str]


def corpus(pairs: int, seed: int = 1) -> tuple[Side, Side]:
    """Sentences of 3 to 9 words with a Zipfian distribution; a translation has another order and other words."""
    choice = random.Random(seed)
    weights = [1 / (rank + 5) for rank in range(VOCABULARY)]
    rows = [
        choice.choices(range(VOCABULARY), weights, k=choice.randint(3, 9)) for _ in range(pairs)
    ]
    targets = [choice.sample(row, len(row)) for row in rows]
    return [" ".join(f"a{n}" for n in row) for row in rows], [
        " ".join(f"b{n}" for n in row) for row in targets
    ]


def spoilt(targets: Side, every: int) -> tuple[Side, np.ndarray]:
    """The targets, of which each `every`-th one has the place of the next such one, and a mask of these."""
    places = list(range(0, len(targets), every))
    result = list(targets)
    for place, other in zip(places, places[1:] + places[:1], strict=True):
        result[place] = targets[other]
    return result, np.isin(np.arange(len(targets)), places)


@pytest.mark.parametrize("every", [3, 20])
def test_targets_of_other_lines_are_found(every: int) -> None:
    sources, (targets, is_spoilt) = corpus(4_000)[0], spoilt(corpus(4_000)[1], every)
    for sample in (4_000, 2_500):
        found = Unrelated(sources[:sample], targets[:sample]).find(sources, targets)
        assert found[is_spoilt].mean() > 0.9 and found[~is_spoilt].mean() < 0.02


def test_hardly_anything_is_found_in_a_good_corpus() -> None:
    sources, targets = corpus(4_000)
    assert Unrelated(sources, targets).find(sources, targets).mean() < 0.01


@pytest.mark.parametrize("kind", ["independent", "few", "no words", "empty"])
def test_nothing_is_found_without_evidence(kind: str) -> None:
    sources, targets = corpus(4_000)
    if kind == "independent":
        targets = corpus(4_000, seed=2)[1]
    elif kind == "few":
        targets = spoilt(targets, 5)[0][: MIN_SAMPLE_PAIRS - 200]
        sources = sources[: len(targets)]
    elif kind == "no words":
        sources = [" "] * len(targets)
    else:
        sources, targets = [], []
    assert not Unrelated(sources, targets).find(sources, targets).any()
    other: Sequence[Side] = (["x y z"] * 3, ["", "q r s", "b1"])
    assert not Unrelated(*corpus(2_500)).find(*other).any()  # no known word on one side at least


def test_chunk_size_changes_no_result() -> None:
    sources, (targets, _) = corpus(3_000)[0], spoilt(corpus(3_000)[1], 10)
    rules = Checker(Rules(0, False, (UNRELATED,)), (sources, targets))
    flags = rules.check(PairBatch(sources, targets))
    assert set(flags.tolist()) == {0, int(BITS[UNRELATED])}
    parts = [
        rules.check(PairBatch(sources[at : at + 7], targets[at : at + 7]))
        for at in range(0, 3_000, 7)
    ]
    assert (np.concatenate(parts) == flags).all()
    assert UNRELATED in OTHERS
