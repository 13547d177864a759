"""Fixtures for the tests in this folder."""

from exports import marians, models

__all__ = ["marians", "models"]
