"""Enforces the terms of a glossary by constrained beam search."""
