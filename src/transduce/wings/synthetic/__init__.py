"""Makes corpora for sequence-level distillation."""
