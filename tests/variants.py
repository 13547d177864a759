"""Marks the variants of a test that only `make test-all` runs."""

from typing import Any

import pytest


def slow(*values: object) -> Any:
    """A parameter set that `make test` leaves out, since others are like it."""
    return pytest.param(*values, marks=pytest.mark.slow)
