"""Fixtures for the tests in this folder."""

from exports import marians, models, small_runtime

__all__ = ["marians", "models", "small_runtime"]
