"""The rule "unrelated": targets of other lines are found, whatever the chunk, and little else is."""

import random
from collections.abc import Sequence

import numpy as np
import pytest

from transduce.text.pair_batch import PairBatch
from transduce.text.rules import BITS, OTHERS, UNRELATED, Checker, Rules
from transduce.wings.ibm_model_1 import learn, meet
from transduce.wings.rules import unrelated
from transduce.wings.rules.unrelated import (
    Lexicon,
    Unrelated,
    _folds,
    _stems,
    _threshold,
)

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
        targets = spoilt(targets, 5)[0][:1_800]
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


def test_words_are_cut_to_stems():
    assert _stems("Die Häuser, häuser 3.5 漢字!") == [
        "die",
        "häuse",
        ",",
        "häuse",
        "3",
        ".",
        "5",
        "漢",
        "字",
        "!",
    ]
    assert _stems("x " * 60) == ["x"] * 50


def test_a_lexicon_by_hand():
    """Word 0 always has target 0, word 1 has target 1; the score is the mean log-ratio of two probabilities."""

    def pair(sources: Sequence[int], targets: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
        return np.array(sources, dtype=np.int64), np.array(targets, dtype=np.int64)

    pairs = [pair([0], [0]), pair([1], [1]), pair([0], [0]), pair([1], [1])]
    lexicon = Lexicon.learn(pairs, 3)
    assert lexicon.shares.tolist() == [0.5, 0.5, 0.0]
    # NULL takes a share of each; with 1 added, the probability of a translation is below 1.
    probability = {int(k): p for k, p in zip(lexicon.keys, lexicon.probabilities, strict=True)}
    assert [*probability] == [0, 1, 3, 7]  # (source + 1) * 3 + target, and NULL's
    source, target, counts = learn(meet(pairs), 5)
    of_word = sum(count for word, count in zip(source, counts, strict=True) if word == 1)
    assert probability[3] == probability[7] == pytest.approx(of_word / (of_word + 1))
    assert set(zip(source.tolist(), target.tolist(), strict=True)) == {
        (0, 0),
        (0, 1),
        (1, 0),
        (2, 1),
    }
    some = [*pairs, pair([0, 1, 2], [0, 2]), pair([1, 2], [1, 2, 2])]
    source, _, counts = learn(meet(some), 5)
    expected = counts / (np.bincount(source, counts)[source] + 1)
    assert Lexicon.learn(some, 3).probabilities == pytest.approx(expected, rel=1e-9)
    gain = np.log(0.9 * probability[3] / 0.5 + 0.1)
    found = lexicon.scores(
        [pair([0], [0]), pair([0], [1]), pair([1, 0], [0, 1]), pair([0], [2]), pair([0], [0, 1, 2])]
    )
    assert found[:3] == pytest.approx([gain, np.log(0.1), gain])
    assert lexicon.scores([pair([9], [1])]) == pytest.approx([np.log(0.1)]), "an unknown word"
    assert np.isnan(found[3]) and found[4] == pytest.approx((gain + np.log(0.1)) / 2)


def test_the_threshold_is_as_high_as_its_precision_allows():
    random = np.linspace(0, 1, 1001)  # quantiles: 0.98, 0.95, 0.9 and 0.8

    def real(bad: int, good: int) -> np.ndarray:
        return np.concatenate((np.linspace(0, 1, bad), np.linspace(0.93, 2, good)))

    assert _threshold(np.linspace(1, 2, 99), random) == pytest.approx(0.98)  # nothing is found
    assert _threshold(real(50, 950), random) == pytest.approx(0.98, abs=0.05)
    assert _threshold(np.linspace(0, 1.2, 99), random) == -np.inf, "the median is below 0.98"
    assert _threshold(np.append(np.linspace(1, 2, 9), np.nan), random) == pytest.approx(0.98)
    assert _threshold(np.array([1.0, 2.0]), np.array([np.nan])) == -np.inf
    equal = np.array([0.1] * 10 + [float(np.quantile(random, 0.98))] * 90)
    assert _threshold(equal, random) == pytest.approx(0.98), "pairs at the threshold are not found"
    # A fifth is unrelated; of it, 98 % would be found, among two fifths: 0.196 are less than half of 0.4.
    many = np.array([0.2] * 10 + [0.7] * 30 + [2.0] * 60)
    assert _threshold(many, random) == pytest.approx(0.8)
    # Of a fifth, 98 % are less than half of the two fifths below 0.98; so 95 % (or 90 %) of it are to be found.
    for other, quantile in ((0.96, 0.95), (0.92, 0.9)):
        some = np.array([0.2] * 10 + [other] * 30 + [2.0] * 60)
        assert _threshold(some, random) == pytest.approx(quantile)
    low = np.concatenate((np.linspace(0.81, 0.97, 40), np.linspace(1, 2, 60)))
    assert _threshold(low, random) == pytest.approx(0.8), (
        "no pair is below the median of mixed pairs"
    )


def test_half_of_the_pairs_is_scored_by_the_other_half(monkeypatch: pytest.MonkeyPatch) -> None:
    sources, targets = corpus(2_400)
    found = Unrelated(sources, targets)
    folds = _folds(sources, targets)
    assert set(folds.tolist()) == {0, 1} and (folds == _folds(sources, targets)).all()
    assert _folds(["a"], ["b"]) != _folds(["a"], ["c"]) or _folds(["a"], ["b"]) != _folds(
        ["a"], ["d"]
    )
    for fold in (0, 1):
        rows = np.flatnonzero(folds == fold)
        half = [found._numbers(sources[row], targets[row]) for row in rows.tolist()]
        own = found._lexicons[fold][0].shares
        counts = np.bincount(np.concatenate([target for _, target in half]), minlength=len(own))
        assert own == pytest.approx(counts / counts.sum()), "the target words of this half"
        own = found._lexicons[fold][1].shares
        counts = np.bincount(np.concatenate([source for source, _ in half]), minlength=len(own))
        assert own == pytest.approx(counts / counts.sum()), "and the source words"
    monkeypatch.setattr(unrelated, "MAX_SAMPLE_MEETINGS", 1_000)
    small = Unrelated(sources, targets)
    assert not small._lexicons, "too few pairs are left"
