"""Tests of transduce_lab/paper/table1.py."""

import math

import pytest
import torch

from transduce_lab.paper import layers, table1

pytest.importorskip("scipy", reason="pip install 'transduce[lab]'")


@pytest.mark.parametrize("name", table1.CLAIMS)
def test_layers_keep_the_shape(name):
    x = torch.randn(1, 37, 16)
    assert layers.layer(name, 16)(x).shape == x.shape


@pytest.mark.parametrize("name", table1.CLAIMS)
def test_only_recurrence_is_sequential(name):
    operations = [table1.sequential_operations(name, n) for n in (96, 192, 384)]
    if name == "recurrent":
        assert operations[2] - operations[1] == 2 * (operations[1] - operations[0]) > 16
    else:
        assert operations[0] == operations[1] == operations[2]


@pytest.mark.parametrize(
    ("name", "lengths", "paths"),
    [
        ("self-attention", (10, 100, 1000), [1, 1, 1]),
        ("recurrent", (10, 100), [10, 100]),
        (
            "convolutional",
            (3, 9, 128),
            [1, 4, 64],
        ),  # a kernel of 3 reaches two positions further per layer
        ("separable convolutional", (3, 9, 128), [1, 4, 64]),
        (
            "convolutional, dilated",
            (2, 3, 4, 9, 10, 81, 128, 512),
            [1, 1, 2, 2, 3, 4, 5, 6],
        ),  # log_3 n, rounded up
        (
            "restricted self-attention",
            (32, 33, 63, 64, 95),
            [1, 2, 2, 3, 4],
        ),  # r = 64: 31 to each side
    ],
)
def test_path_lengths(name, lengths, paths):
    assert [table1.path_length(name, n) for n in lengths] == paths


@pytest.mark.slow
def test_costs_of_a_layer_grow_with_the_length():
    short, long = table1.measure("self-attention", [64, 2048], 32)
    assert (
        (short.n, long.n) == (64, 2048)
        and 0 < short.seconds < long.seconds
        and long.megabytes > 0.2
    )


def test_exponents_of_power_laws():
    sizes = [64, 128, 256, 512]
    assert table1.exponent(sizes, [3 * n**1.7 for n in sizes]) == pytest.approx(1.7)
    assert math.isnan(table1.exponent([64], [1.0]))


def test_where_two_power_laws_cross():
    lengths = [100, 200, 400, 800]
    assert table1.where_one(lengths, [n / 300 for n in lengths]) == pytest.approx(300)
    assert table1.where_one(lengths, [0.5] * 4) == math.inf
    assert table1.where_one(lengths, [2.0] * 4) == 100
