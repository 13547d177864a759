"""IBM model 1 by hand."""

import numpy as np
import pytest

from transduce.wings.ibm_model_1 import NULL_WORD, learn, meet

PAIRS = [([0, 1], [0, 1]), ([0], [0]), ([], [2]), ([1, 0], [])]


def rows(pairs):
    return [tuple(np.array(side, dtype=np.int64) for side in pair) for pair in pairs]


def test_each_word_and_the_null_word_meet_each_target_word():
    sources, targets, places = (each.tolist() for each in meet(rows(PAIRS)))
    assert list(zip(sources, targets, places, strict=True)) == [
        (1, 0, 0),
        (1, 1, 1),
        (2, 0, 0),
        (2, 1, 1),
        (NULL_WORD, 0, 0),
        (NULL_WORD, 1, 1),
        (1, 0, 2),
        (NULL_WORD, 0, 2),
        (NULL_WORD, 2, 3),
    ]


def reference(pairs, rounds):
    """The same by dictionaries, as in the paper."""
    probability = dict[tuple[int, int], float]()
    for _ in range(rounds):
        counts = dict[tuple[int, int], float]()
        for source, target in pairs:
            words = [each + 1 for each in source] + [NULL_WORD]
            for other in target:
                total = sum(probability.get((word, other), 1.0) for word in words)
                for word in words:
                    share = probability.get((word, other), 1.0) / total
                    counts[word, other] = counts.get((word, other), 0.0) + share
        totals = dict[int, float]()
        for (word, _), count in counts.items():
            totals[word] = totals.get(word, 0.0) + count
        probability = {key: count / totals[key[0]] for key, count in counts.items()}
    return counts


@pytest.mark.parametrize("rounds", [1, 2, 5])
def test_expected_occurrences_are_those_of_the_paper(rounds):
    table = learn(meet(rows(PAIRS)), rounds)
    expected = reference(PAIRS, rounds)
    keys = list(zip(table.source.tolist(), table.target.tolist(), strict=True))
    assert keys == sorted(expected)
    assert dict(zip(keys, table.occurrences.tolist(), strict=True)) == pytest.approx(expected)
    assert sum(table.occurrences) == pytest.approx(4), "each target word occurs once"
