"""Figures for the tests of the paper's tables."""

import pytest

from transduce.system.errors import UserError
from transduce_lab.comparing import runs

pytest.importorskip("scipy", reason="pip install 'transduce[lab]'")


def fails(name: str, real=runs.train):
    """A training that fails for the row with this name."""

    def train(options, out, **more):
        if out.parent.name == name:
            raise UserError("The disk is full.")
        return real(options, out, **more)

    return train


COUNTS = {"train": 60, "valid": 10, "test": 10}
