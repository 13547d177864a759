"""Glossaries: terms whose translations are enforced by constrained beam search."""
