"""Tests of transduce_lab/paper/figures.py."""

import itertools
import math

import pytest

from transduce.system.errors import UserError
from transduce_lab.paper import figures

pytest.importorskip("scipy", reason="pip install 'transduce[lab]'")


@pytest.mark.parametrize("offset", [0, 1, 7, 60])
def test_shifting_positions_is_linear(offset):
    assert figures.shift_error(offset, 64, 200) < 1e-4


def test_wavelengths_span_from_two_pi_to_ten_thousand_times_that():
    found = figures.wavelengths(512)
    assert found[0] == pytest.approx(2 * math.pi)
    assert found[-1] == pytest.approx(10000 * 2 * math.pi, rel=0.04)
    assert all(b / a == pytest.approx(found[1] / found[0]) for a, b in itertools.pairwise(found))


def test_without_the_scale_softmax_loses_its_gradient():
    small, large = figures.scale_of_dot_products([4, 2048])
    assert small.variance == pytest.approx(4, rel=0.1) and large.variance == pytest.approx(
        2048, rel=0.1
    )
    assert large.gradient < 0.5 * large.gradient_scaled
    assert large.gradient_scaled == pytest.approx(small.gradient_scaled, rel=0.2)


@pytest.mark.slow
def test_figures_are_drawn(tmp_path):
    figures.draw_positions(tmp_path / "positions.png")
    figures.draw_schedules(tmp_path / "schedules.svg", steps=100)
    figures.draw_scale(tmp_path / "scale.png", figures.scale_of_dot_products([2, 8]))
    assert all(path.stat().st_size > 1000 for path in tmp_path.iterdir())
    (tmp_path / "folder.png").mkdir()
    with pytest.raises(UserError, match=r"folder\.png can't be written"):
        figures.draw_positions(tmp_path / "folder.png")
