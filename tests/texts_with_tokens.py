"""Texts with placeholder tokens."""

from transduce.config.schema import PLACEHOLDER_TOKENS

A, B, C = PLACEHOLDER_TOKENS[:3]
