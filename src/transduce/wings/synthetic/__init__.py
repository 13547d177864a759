"""Sequence-level distillation: corpora whose targets are translations by a model."""
