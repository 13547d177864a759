"""Sequence-level distillation: corpora whose targets are written by a model."""
