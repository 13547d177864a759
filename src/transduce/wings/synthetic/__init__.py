"""Corpora that a model writes: sequence-level distillation."""
